//===- InterfaceTests.cpp - Costs, evaluation and refusals ----------------===//
//
// What the interfaces of nn ops say that no other test sees: FLOPs, calls of
// the runtime, what stands in for an op in evaluation, and which gradients are
// refused.
//
//===----------------------------------------------------------------------===//

#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNLimits.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "test/unit/nn/Reference.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::nn;

namespace {

class Interfaces : public testing::Test {
protected:
  Interfaces() {
    context.loadDialect<NNDialect, call::CallDialect, func::FuncDialect>();
  }

  /// The last op of the function with this text.
  Operation *parse(StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return nullptr;
    function = *module->getOps<func::FuncOp>().begin();
    return function.front().getTerminator()->getPrevNode();
  }

  /// The message of the first diagnostic that `body` causes.
  std::string messageOf(const std::function<void()> &body) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (message.empty())
        message = diagnostic.str();
    });
    body();
    return message;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};

TEST_F(Interfaces, FlopsOfMatmulCountMultiplyAddsTwice) {
  Operation *op =
      parse(R"(func.func @f(%a: tensor<2x5x3xf32>, %b: tensor<3x4xf32>) {
    %0 = nn.matmul %a, %b : (tensor<2x5x3xf32>, tensor<3x4xf32>) -> tensor<2x5x4xf32>
    return })");
  EXPECT_EQ(cast<CostOpInterface>(op).getFlops(), 2 * 2 * 5 * 3 * 4);
}

TEST_F(Interfaces, FlopsOfTransposedMatmulAreTheSame) {
  Operation *op =
      parse(R"(func.func @f(%a: tensor<3x5xf32>, %b: tensor<4x3xf32>) {
    %0 = nn.matmul %a, %b transpose_a transpose_b : (tensor<3x5xf32>, tensor<4x3xf32>) -> tensor<5x4xf32>
    return })");
  EXPECT_EQ(cast<CostOpInterface>(op).getFlops(), 2 * 5 * 3 * 4);
}

TEST_F(Interfaces, FlopsOfGroupedConvCountOneGroupPerOutput) {
  Operation *op =
      parse(R"(func.func @f(%x: tensor<1x4x8x8xf32>, %w: tensor<6x2x3x3xf32>) {
    %0 = nn.conv %x, %w strides = [1, 1] pads = [1, 1, 1, 1] dilations = [1, 1] groups = 2
      : (tensor<1x4x8x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x8x8xf32>
    return })");
  EXPECT_EQ(cast<CostOpInterface>(op).getFlops(), 2 * 6 * 8 * 8 * 2 * 3 * 3);
}

TEST_F(Interfaces, FlopsOfEpiloguesAreThoseOfTheOpsTheyStandFor) {
  Operation *op = parse(
      R"(func.func @f(%a: tensor<5x3xf32>, %b: tensor<3x8xf32>, %c: tensor<8xf32>) {
    %p = nn.matmul %a, %b : (tensor<5x3xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>
    %h = nn.add %p, %c : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
    %y = nn.gelu %h approximate = tanh : tensor<5x8xf32>
    %0:2 = call.matmul_epilogue %a, %b bias %c epilogue = bias_gelu
      : (tensor<5x3xf32>, tensor<3x8xf32>, tensor<8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>)
    return })");
  int64_t flops = 0;
  for (auto cost : function.getOps<CostOpInterface>())
    if (cost != op)
      flops += cost.getFlops();
  EXPECT_EQ(cast<CostOpInterface>(op).getFlops(), flops);
}

/// The names of the fields that a call spells out.
std::vector<std::string> fieldNames(const LibraryCall &call) {
  std::vector<std::string> names;
  for (const ShapeField &field : call.shape)
    names.push_back(field.name.str());
  return names;
}

TEST_F(Interfaces, CallsLeaveOutFieldsThatHaveTheirDefault) {
  auto op = cast<LibraryOpInterface>(
      parse(R"(func.func @f(%a: tensor<2x5x3xbf16>, %b: tensor<4x3xbf16>) {
    %0 = nn.matmul %a, %b transpose_b : (tensor<2x5x3xbf16>, tensor<4x3xbf16>) -> tensor<2x5x4xbf16>
    return })"));
  LibraryCall call = op.getCall({});
  EXPECT_EQ(fieldNames(call),
            (std::vector<std::string>{"m", "n", "k", "transposeB", "type",
                                      "result"}));
  EXPECT_EQ(std::get<int64_t>(call.shape[0].value), 2 * 5);
  EXPECT_EQ(call.buffers,
            (SmallVector<Value>{op->getOperand(0), op->getOperand(1),
                                op->getResult(0)}));
}

TEST_F(Interfaces, ProductsSayInTheirShapeThatTheyAreAdded) {
  auto op = cast<LibraryOpInterface>(
      parse(R"(func.func @f(%a: tensor<5x3xf32>, %b: tensor<3x4xf32>) {
    %0 = nn.matmul %a, %b : (tensor<5x3xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
    return })"));
  LibraryCall call = op.getCall("w");
  EXPECT_EQ(call.added, op->getResult(0));
  EXPECT_EQ(call.shape.back(), (ShapeField{"beta", 1.0f}));
  EXPECT_FALSE(call.saysAdded);
}

TEST_F(Interfaces, CallsMarkBuffersThatAreAbsent) {
  auto op = cast<LibraryOpInterface>(
      parse(R"(func.func @f(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x1x1xf32>) {
    %0 = nn.conv %x, %w strides = [1, 1] pads = [0, 0, 0, 0] dilations = [1, 1] groups = 1
      : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32>
    return })"));
  LibraryCall call = op.getCall({});
  EXPECT_TRUE(call.isNumbered);
  EXPECT_TRUE(call.weight.empty());
  EXPECT_FALSE(call.buffers[2]);
  EXPECT_EQ(call.preparation.option, "false");
}

TEST_F(Interfaces, DropoutIsTheIdentityInEvaluation) {
  Operation *op = parse(R"(func.func @f(%x: tensor<4xf32>) {
    %0 = nn.dropout %x rate = 0.5 id = 1 : tensor<4xf32>
    return })");
  OpBuilder builder(op);
  SmallVector<Value> results;
  ASSERT_TRUE(succeeded(
      cast<StatefulOpInterface>(op).buildInference(builder, results)));
  EXPECT_EQ(results, SmallVector<Value>{op->getOperand(0)});
}

TEST_F(Interfaces, AttentionDropsNothingInEvaluation) {
  Operation *op = parse(R"(func.func @f(%q: tensor<1x1x2x4xf32>) {
    %o, %stats = nn.attention %q, %q, %q scale = 0.5 dropout_rate = 0.5 dropout_id = 1
      : (tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>)
        -> (tensor<1x1x2x4xf32>, tensor<1x1x2x2xf32>)
    return })");
  OpBuilder builder(op);
  SmallVector<Value> results;
  ASSERT_TRUE(succeeded(
      cast<StatefulOpInterface>(op).buildInference(builder, results)));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(
      results[0].getDefiningOp<AttentionOp>().getDropoutRate().isZero());
}

TEST_F(Interfaces, PackedAttentionDropsNothingInEvaluation) {
  Operation *op = parse(R"(func.func @f(%x: tensor<1x2x3x1x4xf32>) {
    %o, %stats = call.packed_attention %x scale = 0.5 dropout_rate = 0.5 dropout_id = 1
      : (tensor<1x2x3x1x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2x2xf32>)
    return })");
  OpBuilder builder(op);
  SmallVector<Value> results;
  ASSERT_TRUE(succeeded(
      cast<StatefulOpInterface>(op).buildInference(builder, results)));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[1]
                  .getDefiningOp<call::PackedAttentionOp>()
                  .getDropoutRate()
                  .isZero());
}

constexpr const char *kBatchNorm = R"(
  nn.weight @mean role = state : tensor<2xf32>
  nn.weight @variance role = state : tensor<2xf32>
  func.func @f(%x: tensor<3x2xf32>, %s: tensor<2xf32>, %b: tensor<2xf32>) {
    %y, %m, %v = nn.batch_norm %x, %s, %b epsilon = 0.25 momentum = 0.5
        running_mean = @mean running_variance = @variance
      : (tensor<3x2xf32>, tensor<2xf32>, tensor<2xf32>)
        -> (tensor<3x2xf32>, tensor<2xf32>, tensor<2xf32>)
    return })";

TEST_F(Interfaces, BatchNormUsesRunningStatisticsInEvaluation) {
  Operation *op = parse(kBatchNorm);
  OpBuilder builder(function.front().getTerminator());
  SmallVector<Value> results;
  ASSERT_TRUE(succeeded(
      cast<StatefulOpInterface>(op).buildInference(builder, results)));
  ASSERT_EQ(results.size(), 3u);
  reference::Values values;
  auto set = [&](Value value, ArrayRef<double> data) {
    values[value] =
        reference::Tensor(cast<ShapedType>(value.getType()).getShape());
    values[value].data.assign(data.begin(), data.end());
  };
  set(function.getArgument(0), {1, 2, 3, 4, 5, 6});
  set(function.getArgument(1), {2, 3});
  set(function.getArgument(2), {10, 20});
  set(results[1], {1, 2});
  // With epsilon these have roots of 1 and 2.
  set(results[2], {0.75, 3.75});
  for (Operation &each : llvm::make_range(std::next(Block::iterator(op)),
                                          std::prev(function.front().end())))
    if (!isa<ParameterOp>(each)) {
      ASSERT_TRUE(reference::evaluate(&each, values));
    }
  EXPECT_EQ(values[results[0]].data,
            (std::vector<double>{10, 20, 14, 23, 18, 26}));
}

TEST_F(Interfaces, DroppingEffectsOfBatchNormKeepsItsResults) {
  Operation *op = parse(kBatchNorm);
  EXPECT_FALSE(isMemoryEffectFree(op));
  cast<StatefulOpInterface>(op).dropEffects();
  EXPECT_TRUE(isMemoryEffectFree(op));
  EXPECT_EQ(cast<BatchNormOp>(op).getEpsilon().convertToDouble(), 0.25);
}

TEST_F(Interfaces, ByProductsHaveNoGradient) {
  Operation *op = parse(
      R"(func.func @f(%x: tensor<4x3xf32>, %l: tensor<4xi64>, %d: tensor<4xf32>) {
    %loss, %largest, %sum = nn.softmax_cross_entropy %x, %l ignore_index = 1
      : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    return })");
  OpBuilder builder(op);
  SmallVector<Value> grads;
  EXPECT_EQ(messageOf([&] {
              EXPECT_TRUE(failed(cast<DifferentiableOpInterface>(op).buildVjp(
                  builder, {Value(), function.getArgument(2)}, grads)));
            }),
            "'nn.softmax_cross_entropy' op expects a gradient of its first "
            "result only, but got one of result 1");
}

TEST_F(Interfaces, NothingFlowsWithoutAResultGradient) {
  Operation *op = parse(R"(func.func @f(%x: tensor<4xf32>) {
    %0 = nn.mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return })");
  OpBuilder builder(op);
  SmallVector<Value> grads;
  EXPECT_TRUE(succeeded(
      cast<DifferentiableOpInterface>(op).buildVjp(builder, {Value()}, grads)));
  EXPECT_EQ(grads, SmallVector<Value>(2));
  EXPECT_EQ(function.front().getOperations().size(), 2u);
}

TEST_F(Interfaces, CreateInferredReportsWhatCreateWouldAbortOn) {
  Operation *op = parse(R"(func.func @f(%a: tensor<4xf32>, %b: tensor<3xf32>) {
    %0 = nn.exp %a : tensor<4xf32>
    return })");
  OpBuilder builder(op);
  EXPECT_EQ(messageOf([&] {
              EXPECT_TRUE(failed(createInferred<AddOp>(
                  builder, op->getLoc(), function.getArguments())));
            }),
            "'nn.add' op expects shapes that broadcast, but got "
            "'tensor<4xf32>' and 'tensor<3xf32>'");
  Value a = function.getArgument(0);
  EXPECT_TRUE(succeeded(createInferred<AddOp>(builder, op->getLoc(), {a, a})));
  EXPECT_TRUE(succeeded(createInferred<ReduceSumOp>(
      builder, op->getLoc(), a,
      {builder.getNamedAttr("axes", builder.getDenseI64ArrayAttr({0}))})));
}

/// By looking at every element of every window.
static bool looksEmpty(int64_t image, int64_t low, int64_t outputs,
                       int64_t kernel, int64_t stride, int64_t dilation) {
  for (int64_t output = 0; output < outputs; ++output) {
    bool isEmpty = true;
    for (int64_t k = 0; k < kernel && isEmpty; ++k) {
      int64_t position = output * stride + k * dilation - low;
      isEmpty = position < 0 || position >= image;
    }
    if (isEmpty)
      return true;
  }
  return false;
}

TEST(Windows, EmptyOnesAreFoundWithoutLookingAtEach) {
  int64_t found = 0;
  for (int64_t image = 1; image <= 6; ++image)
    for (int64_t low = 0; low <= 7; ++low)
      for (int64_t high = 0; high <= 7; ++high)
        for (int64_t kernel = 1; kernel <= 4; ++kernel)
          for (int64_t stride = 1; stride <= 5; ++stride)
            for (int64_t dilation = 1; dilation <= 8; ++dilation) {
              int64_t span = image + low + high - (kernel - 1) * dilation - 1;
              if (span < 0)
                continue;
              int64_t outputs = span / stride + 1;
              bool expected =
                  looksEmpty(image, low, outputs, kernel, stride, dilation);
              ASSERT_EQ(
                  hasEmptyWindow(image, low, outputs, kernel, stride, dilation),
                  expected)
                  << image << " " << low << " " << high << " " << kernel << " "
                  << stride << " " << dilation;
              found += expected;
            }
  EXPECT_GT(found, 1000);
  EXPECT_FALSE(hasEmptyWindow(int64_t(1) << 40, 1, int64_t(1) << 40, 3, 1, 1));
}

TEST(Limits, SizesOfTensorsAreNumbers) {
  EXPECT_EQ(problemOfSize({}), "");
  EXPECT_EQ(problemOfSize({int64_t(1) << 20, int64_t(1) << 20}), "");
  EXPECT_EQ(problemOfSize({int64_t(1) << 39, 0, int64_t(1) << 39}), "");
  EXPECT_NE(problemOfSize({int64_t(1) << 20, int64_t(1) << 20, 2}), "");
  EXPECT_NE(problemOfSize({int64_t(1) << 40, int64_t(1) << 40, 0, -1}), "");
  EXPECT_NE(problemOfSize({INT64_MAX, INT64_MAX}), "");
  EXPECT_NE(problemOfSize({-1}), "");
  EXPECT_NE(problemOfSize(SmallVector<int64_t>(65, 1)), "");
}

} // namespace
