//===- VjpTests.cpp - Gradients against finite differences ----------------===//
//
// For each differentiable op: its VJP is built as IR, both are run by the
// reference interpreter, and every gradient is compared with the central
// difference of the op itself. Double precision leaves about 8 digits.
//
//===----------------------------------------------------------------------===//

#include "dialects/call/CallDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "test/unit/nn/Reference.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::nn;
using namespace pipewright::nn::reference;

namespace {

/// One op on function arguments; it is the last op before the return.
struct Case {
  const char *name;
  const char *arguments;
  const char *body;
};

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  return info.param.name;
}

/// Numbers in [0.5, 1.5): no op has a kink or a pole there, and no two are
/// equal. Integers count from 0.
Tensor makeInput(RankedTensorType type, uint64_t &state) {
  Tensor tensor(type.getShape());
  for (auto [index, element] : llvm::enumerate(tensor.data)) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double random = static_cast<double>(state >> 11) / (1ull << 53);
    element = type.getElementType().isF32()        ? 0.5 + random
              : type.getElementType().isInteger(1) ? (index * 7 % 3 == 0)
                                                   : index % 3;
  }
  return tensor;
}

class Vjp : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    context.loadDialect<NNDialect, call::CallDialect, func::FuncDialect>();
    std::string text = std::string("func.func @f(") + GetParam().arguments +
                       ") {\n" + GetParam().body + "\nreturn\n}";
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    function = *module->getOps<func::FuncOp>().begin();
    op = function.front().getTerminator()->getPrevNode();
    uint64_t state = 1;
    for (BlockArgument argument : function.getArguments())
      inputs[argument] =
          makeInput(cast<RankedTensorType>(argument.getType()), state);
  }

  /// Runs the ops up to and without `end`.
  Values run(Values values, Operation *end) {
    for (Operation &each : function.front()) {
      if (&each == end)
        break;
      EXPECT_TRUE(evaluate(&each, values))
          << each.getName().getStringRef().str();
    }
    return values;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  Operation *op = nullptr;
  Values inputs;
};

TEST_P(Vjp, AgreesWithFiniteDifferences) {
  Value result = op->getResult(0);
  Operation *terminator = function.front().getTerminator();
  // A gradient of the result: another argument.
  BlockArgument dy =
      function.front().addArgument(result.getType(), op->getLoc());
  OpBuilder builder(terminator);
  SmallVector<Value> resultGrads(op->getNumResults()), operandGrads;
  resultGrads[0] = dy;
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  ASSERT_TRUE(differentiable);
  ASSERT_TRUE(
      succeeded(differentiable.buildVjp(builder, resultGrads, operandGrads)));
  ASSERT_EQ(operandGrads.size(), op->getNumOperands());
  for (Operation &each : function.front())
    if (&each != terminator)
      ASSERT_TRUE(succeeded(verify(&each)));

  uint64_t state = 2;
  Values start = inputs;
  start[dy] = makeInput(cast<RankedTensorType>(dy.getType()), state);
  Values values = run(start, terminator);
  auto project = [&](const Values &at) {
    double sum = 0.0;
    for (auto [y, weight] : llvm::zip(at.at(result).data, start[dy].data))
      sum += y * weight;
    return sum;
  };
  constexpr double kStep = 1e-5;
  int64_t compared = 0;
  for (auto [operand, grad] : llvm::zip(op->getOperands(), operandGrads)) {
    if (!grad || !isa<BlockArgument>(operand))
      continue;
    ASSERT_EQ(grad.getType(), operand.getType());
    for (int64_t i = 0; i < values[operand].size(); ++i) {
      Values above = inputs, below = inputs;
      above[operand].data[i] += kStep;
      below[operand].data[i] -= kStep;
      double expected = (project(run(above, op->getNextNode())) -
                         project(run(below, op->getNextNode()))) /
                        (2.0 * kStep);
      double got = values[grad].data[i];
      // Operands that stand twice in the op get both gradients.
      for (auto [other, second] : llvm::zip(op->getOperands(), operandGrads))
        if (second && second != grad && other == operand)
          got += values[second].data[i];
      EXPECT_NEAR(got, expected, 1e-6 * std::max(1.0, std::abs(expected)))
          << "element " << i << " of a gradient";
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

#define X "%x: tensor<2x3xf32>"
#define UNARY(op) Case{#op, X, "%0 = nn." #op " %x : tensor<2x3xf32>"}
#define BINARY(name, op, a, b, r)                                              \
  Case{name, "%a: tensor<" a ">, %b: tensor<" b ">",                           \
       "%0 = nn." op " %a, %b : (tensor<" a ">, tensor<" b ">) -> tensor<" r   \
       ">"}

const Case kElementwise[] = {
    UNARY(neg),
    UNARY(exp),
    UNARY(expm1),
    UNARY(log),
    UNARY(log1p),
    UNARY(sqrt),
    UNARY(rsqrt),
    UNARY(reciprocal),
    UNARY(abs),
    UNARY(erf),
    UNARY(sin),
    UNARY(cos),
    UNARY(atan),
    UNARY(tanh),
    UNARY(sigmoid),
    UNARY(relu),
    UNARY(softplus),
    UNARY(softmax),
    UNARY(log_softmax),
    {"gelu_erf", X, "%0 = nn.gelu %x approximate = none : tensor<2x3xf32>"},
    {"gelu_tanh", X, "%0 = nn.gelu %x approximate = tanh : tensor<2x3xf32>"},
    BINARY("add", "add", "2x3xf32", "3xf32", "2x3xf32"),
    BINARY("sub_scalar", "sub", "2x3xf32", "f32", "2x3xf32"),
    BINARY("mul_both_stretch", "mul", "2x1xf32", "1x3xf32", "2x3xf32"),
    BINARY("div", "div", "3xf32", "2x3xf32", "2x3xf32"),
    BINARY("pow", "pow", "2x3xf32", "2x1xf32", "2x3xf32"),
    BINARY("maximum", "maximum", "2x3xf32", "2x3xf32", "2x3xf32"),
    BINARY("minimum", "minimum", "2x3xf32", "3xf32", "2x3xf32"),
    {"pow_square", X,
     "%e = nn.constant dense<2.0> : tensor<f32>\n"
     "%0 = nn.pow %x, %e : (tensor<2x3xf32>, tensor<f32>) "
     "-> tensor<2x3xf32>"},
    {"pow_root", X,
     "%e = nn.constant dense<0.5> : tensor<f32>\n"
     "%0 = nn.pow %x, %e : (tensor<2x3xf32>, tensor<f32>) "
     "-> tensor<2x3xf32>"},
    {"pow_constants", X,
     "%e = nn.constant dense<[1.0, 2.0, 3.0]> : "
     "tensor<3xf32>\n%0 = nn.pow %x, %e : "
     "(tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>"},
    {"where", "%p: tensor<2x1xi1>, %a: tensor<3xf32>, %b: tensor<2x3xf32>",
     "%0 = nn.where %p, %a, %b : (tensor<2x1xi1>, tensor<3xf32>, "
     "tensor<2x3xf32>) -> tensor<2x3xf32>"},
};
INSTANTIATE_TEST_SUITE_P(Elementwise, Vjp, testing::ValuesIn(kElementwise),
                         nameOf);

const Case kShape[] = {
    {"reshape", X, "%0 = nn.reshape %x : tensor<2x3xf32> -> tensor<6xf32>"},
    {"transpose", "%x: tensor<2x3x4xf32>",
     "%0 = nn.transpose %x permutation = [2, 0, 1] : tensor<2x3x4xf32> -> "
     "tensor<4x2x3xf32>"},
    {"slice", "%x: tensor<4x5xf32>",
     "%0 = nn.slice %x starts = [1, 2] sizes = [2, 3] steps = [1, 1] : "
     "tensor<4x5xf32> -> tensor<2x3xf32>"},
    {"slice_every_second", "%x: tensor<7x5xf32>",
     "%0 = nn.slice %x starts = [1, 0] sizes = [3, 2] steps = [2, 4] : "
     "tensor<7x5xf32> -> tensor<3x2xf32>"},
    {"slice_backwards", "%x: tensor<7x5xf32>",
     "%0 = nn.slice %x starts = [6, 3] sizes = [3, 3] steps = [-3, -1] : "
     "tensor<7x5xf32> -> tensor<3x3xf32>"},
    {"slice_one", "%x: tensor<7x5xf32>",
     "%0 = nn.slice %x starts = [6, 4] sizes = [1, 1] steps = [-9, 9] : "
     "tensor<7x5xf32> -> tensor<1x1xf32>"},
    {"pad", X,
     "%0 = nn.pad %x low = [1, 0] high = [0, 2] : tensor<2x3xf32> -> "
     "tensor<3x5xf32>"},
    {"concat", "%x: tensor<2x3xf32>, %y: tensor<2x1xf32>",
     "%0 = nn.concat %x, %y axis = 1 : (tensor<2x3xf32>, tensor<2x1xf32>) -> "
     "tensor<2x4xf32>"},
    {"broadcast_to", "%x: tensor<3x1xf32>",
     "%0 = nn.broadcast_to %x : tensor<3x1xf32> -> tensor<2x3x4xf32>"},
    {"embedding", "%t: tensor<3x2xf32>, %i: tensor<2x2xi64>",
     "%0 = nn.embedding %t, %i : (tensor<3x2xf32>, tensor<2x2xi64>) -> "
     "tensor<2x2x2xf32>"},
    {"embedding_backward", "%d: tensor<2x2x2xf32>, %i: tensor<2x2xi64>",
     "%0 = nn.embedding_backward %d, %i : (tensor<2x2x2xf32>, "
     "tensor<2x2xi64>) -> tensor<3x2xf32>"},
    {"reduce_sum", X,
     "%0 = nn.reduce_sum %x axes = [0] : tensor<2x3xf32> -> "
     "tensor<3xf32>"},
    {"reduce_mean", X,
     "%0 = nn.reduce_mean %x axes = [0, 1] : "
     "tensor<2x3xf32> -> tensor<f32>"},
    {"reduce_max", X,
     "%0 = nn.reduce_max %x axes = [1] keep_dims : "
     "tensor<2x3xf32> -> tensor<2x1xf32>"},
};
INSTANTIATE_TEST_SUITE_P(Shape, Vjp, testing::ValuesIn(kShape), nameOf);

#define MATMUL(name, flags, a, b, r)                                           \
  Case{name, "%a: tensor<" a ">, %b: tensor<" b ">",                           \
       "%0 = nn.matmul %a, %b " flags " : (tensor<" a ">, tensor<" b           \
       ">) -> tensor<" r ">"}
#define CONV "strides = [2, 1] pads = [1, 0, 1, 2] dilations = [1, 2] "
const Case kLinear[] = {
    MATMUL("matmul", "", "2x3xf32", "3x4xf32", "2x4xf32"),
    MATMUL("matmul_ta", "transpose_a", "3x2xf32", "3x4xf32", "2x4xf32"),
    MATMUL("matmul_tb", "transpose_b", "2x3xf32", "4x3xf32", "2x4xf32"),
    MATMUL("matmul_ta_tb", "transpose_a transpose_b", "3x2xf32", "4x3xf32",
           "2x4xf32"),
    MATMUL("batched", "", "2x2x3xf32", "2x3x4xf32", "2x2x4xf32"),
    MATMUL("batched_ta_tb", "transpose_a transpose_b", "2x3x2xf32", "2x4x3xf32",
           "2x2x4xf32"),
    MATMUL("shared", "", "2x5x3xf32", "3x4xf32", "2x5x4xf32"),
    MATMUL("shared_ta", "transpose_a", "2x3x5xf32", "3x4xf32", "2x5x4xf32"),
    MATMUL("shared_tb", "transpose_b", "2x5x3xf32", "4x3xf32", "2x5x4xf32"),
    MATMUL("shared_ta_tb", "transpose_a transpose_b", "2x3x5xf32", "4x3xf32",
           "2x5x4xf32"),
    {"conv",
     "%x: tensor<2x2x4x5xf32>, %w: tensor<3x2x2x2xf32>, "
     "%b: tensor<3xf32>",
     "%0 = nn.conv %x, %w bias %b " CONV "groups = 1 : (tensor<2x2x4x5xf32>, "
     "tensor<3x2x2x2xf32>, tensor<3xf32>) -> tensor<2x3x3x5xf32>"},
    {"conv_groups", "%x: tensor<1x4x4x5xf32>, %w: tensor<2x2x2x2xf32>",
     "%0 = nn.conv %x, %w " CONV "groups = 2 : (tensor<1x4x4x5xf32>, "
     "tensor<2x2x2x2xf32>) -> tensor<1x2x3x5xf32>"},
    {"conv_channels_last",
     "%x: tensor<1x4x5x4xf32>, %w: tensor<2x2x2x2xf32>, %b: tensor<2xf32>",
     "%0 = nn.conv %x, %w bias %b " CONV "groups = 2 channels_last : "
     "(tensor<1x4x5x4xf32>, tensor<2x2x2x2xf32>, tensor<2xf32>) -> "
     "tensor<1x3x5x2xf32>"},
    {"conv_backward_data", "%x: tensor<1x4x3x5xf32>, %w: tensor<4x2x2x2xf32>",
     "%0 = nn.conv_backward_data %x, %w " CONV "groups = 2 : "
     "(tensor<1x4x3x5xf32>, tensor<4x2x2x2xf32>) -> tensor<1x4x5x5xf32>"},
    {"conv_backward_data_channels_last",
     "%x: tensor<1x3x5x2xf32>, %w: tensor<2x2x2x2xf32>",
     "%0 = nn.conv_backward_data %x, %w " CONV "groups = 2 channels_last : "
     "(tensor<1x3x5x2xf32>, tensor<2x2x2x2xf32>) -> tensor<1x4x5x4xf32>"},
    {"max_pool", "%x: tensor<1x2x5x5xf32>",
     "%y, %w = nn.max_pool %x kernel = [3, 2] strides = [2, 2] pads = "
     "[1, 0, 1, 0] dilations = [1, 1] : tensor<1x2x5x5xf32> -> "
     "(tensor<1x2x3x2xf32>, tensor<1x2x3x2xi8>)"},
    {"max_pool_channels_last", "%x: tensor<1x5x4x2xf32>",
     "%y, %w = nn.max_pool %x kernel = [3, 2] strides = [2, 2] pads = "
     "[1, 0, 1, 0] dilations = [1, 1] channels_last : tensor<1x5x4x2xf32> -> "
     "(tensor<1x3x2x2xf32>, tensor<1x3x2x2xi8>)"},
    {"average_pool_channels_last", "%x: tensor<1x5x4x2xf32>",
     "%0 = nn.average_pool %x kernel = [3, 2] strides = [2, 2] pads = "
     "[1, 0, 1, 0] channels_last : tensor<1x5x4x2xf32> -> "
     "tensor<1x3x2x2xf32>"},
    {"average_pool", "%x: tensor<1x2x5x5xf32>",
     "%0 = nn.average_pool %x kernel = [3, 2] strides = [2, 2] pads = "
     "[1, 0, 1, 0] : tensor<1x2x5x5xf32> -> tensor<1x2x3x2xf32>"},
    {"average_pool_counts_padding", "%x: tensor<1x2x5x5xf32>",
     "%0 = nn.average_pool %x kernel = [3, 2] strides = [2, 2] pads = "
     "[1, 0, 1, 0] count_include_pad : tensor<1x2x5x5xf32> -> "
     "tensor<1x2x3x2xf32>"},
};
INSTANTIATE_TEST_SUITE_P(Linear, Vjp, testing::ValuesIn(kLinear), nameOf);

#define QKV "tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>"
#define QKV_ARGUMENTS                                                          \
  "%q: tensor<2x2x3x2xf32>, %k: tensor<2x2x3x2xf32>, %v: tensor<2x2x3x2xf32>"
const Case kRows[] = {
    {"layer_norm",
     "%x: tensor<2x2x4xf32>, %s: tensor<4xf32>, %b: "
     "tensor<4xf32>",
     "%y, %m, %r = nn.layer_norm %x, %s, %b epsilon = 0.001 : "
     "(tensor<2x2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> "
     "(tensor<2x2x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>)"},
    {"batch_norm",
     "%x: tensor<3x2x2x2xf32>, %s: tensor<2xf32>, %b: "
     "tensor<2xf32>",
     "%y, %m, %v = nn.batch_norm %x, %s, %b epsilon = 0.001 momentum = 0.9 : "
     "(tensor<3x2x2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> "
     "(tensor<3x2x2x2xf32>, tensor<2xf32>, tensor<2xf32>)"},
    {"batch_norm_channels_last",
     "%x: tensor<3x2x2x4xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>",
     "%y, %m, %v = nn.batch_norm %x, %s, %b epsilon = 0.001 momentum = 0.9 "
     "channels_last : (tensor<3x2x2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> "
     "(tensor<3x2x2x4xf32>, tensor<4xf32>, tensor<4xf32>)"},
    {"group_norm",
     "%x: tensor<2x4x3x2xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>",
     "%y, %m, %v = nn.group_norm %x, %s, %b groups = 2 epsilon = 0.001 : "
     "(tensor<2x4x3x2xf32>, tensor<4xf32>, tensor<4xf32>) -> "
     "(tensor<2x4x3x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)"},
    {"instance_norm",
     "%x: tensor<2x3x5xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>",
     "%y, %m, %v = nn.group_norm %x, %s, %b groups = 3 epsilon = 0.001 : "
     "(tensor<2x3x5xf32>, tensor<3xf32>, tensor<3xf32>) -> "
     "(tensor<2x3x5xf32>, tensor<2x3xf32>, tensor<2x3xf32>)"},
    {"softmax_cross_entropy", "%x: tensor<4x3xf32>, %l: tensor<4xi64>",
     "%loss, %largest, %sum = nn.softmax_cross_entropy %x, %l ignore_index = 1 "
     ": "
     "(tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, "
     "tensor<4xf32>)"},
    {"softmax_cross_entropy_divisor",
     "%x: tensor<4x3xf32>, %l: tensor<4xi64>, %n: tensor<f32>",
     "%loss, %largest, %sum = nn.softmax_cross_entropy %x, %l divisor %n "
     "ignore_index = 1 : (tensor<4x3xf32>, tensor<4xi64>, "
     "tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)"},
    {"attention_causal", QKV_ARGUMENTS,
     "%o, %stats = nn.attention %q, %k, %v scale = 0.5 causal dropout_rate = "
     "0.0 dropout_id = 0 : (" QKV ") -> (tensor<2x2x3x2xf32>, "
     "tensor<2x2x3x2xf32>)"},
    {"attention_mask", QKV_ARGUMENTS ", %m: tensor<2x1x1x3xf32>",
     "%o, %stats = nn.attention %q, %k, %v mask %m scale = 0.5 dropout_rate = "
     "0.0 dropout_id = 0 : (" QKV ", tensor<2x1x1x3xf32>) -> "
     "(tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>)"},
    {"attention_rows_first", QKV_ARGUMENTS,
     "%o, %stats = call.attention %q, %k, %v scale = 0.5 causal "
     "dropout_rate = 0.0 dropout_id = 0 : (" QKV ") -> (tensor<2x2x3x2xf32>, "
     "tensor<2x3x2x2xf32>)"},
    {"attention_shared_keys",
     "%q: tensor<2x4x3x2xf32>, %k: tensor<2x2x3x2xf32>, "
     "%v: tensor<2x2x3x2xf32>, %m: tensor<2x4x3x3xf32>",
     "%o, %stats = nn.attention %q, %k, %v mask %m scale = 0.5 causal "
     "dropout_rate = 0.0 dropout_id = 0 : (tensor<2x4x3x2xf32>, "
     "tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>, tensor<2x4x3x3xf32>) -> "
     "(tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>)"},
    {"attention_one_key_head_rows_first",
     "%q: tensor<2x3x4x5xf32>, %k: tensor<2x3x1x5xf32>, "
     "%v: tensor<2x3x1x5xf32>",
     "%o, %stats = call.attention %q, %k, %v scale = 0.5 dropout_rate = 0.0 "
     "dropout_id = 0 : (tensor<2x3x4x5xf32>, tensor<2x3x1x5xf32>, "
     "tensor<2x3x1x5xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x4x3x2xf32>)"},
    {"attention_softcap", QKV_ARGUMENTS ", %m: tensor<2x1x1x3xf32>",
     "%o, %stats = nn.attention %q, %k, %v mask %m scale = 2.0 softcap = 1.5 "
     "dropout_rate = 0.0 dropout_id = 0 : (" QKV ", tensor<2x1x1x3xf32>) -> "
     "(tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>)"},
    {"attention_mask_gradient", QKV_ARGUMENTS ", %m: tensor<2x3x3xf32>",
     "%o, %stats = nn.attention %q, %k, %v mask %m mask_gradient scale = 0.5 "
     "softcap = 0.7 causal dropout_rate = 0.0 dropout_id = 0 : (" QKV
     ", tensor<2x3x3xf32>) -> (tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>)"},
    {"attention_rows_first_mask_gradient",
     "%q: tensor<2x3x3x4xf32>, %k: tensor<2x3x3x4xf32>, "
     "%v: tensor<2x3x3x4xf32>, %m: tensor<1x3x3x3xf32>",
     "%o, %stats = call.attention %q, %k, %v mask %m mask_gradient scale = 0.5 "
     "softcap = 0.9 dropout_rate = 0.0 dropout_id = 0 : "
     "(tensor<2x3x3x4xf32>, tensor<2x3x3x4xf32>, tensor<2x3x3x4xf32>, "
     "tensor<1x3x3x3xf32>) -> (tensor<2x3x3x4xf32>, tensor<2x3x3x2xf32>)"},
    {"packed_attention_mask_gradient",
     "%x: tensor<2x3x3x2x2xf32>, %m: tensor<2x1x3x3xf32>",
     "%o, %stats = call.packed_attention %x mask %m mask_gradient scale = 0.5 "
     "softcap = 0.9 causal dropout_rate = 0.0 dropout_id = 0 : "
     "(tensor<2x3x3x2x2xf32>, tensor<2x1x3x3xf32>) -> (tensor<2x3x2x2xf32>, "
     "tensor<2x2x3x2xf32>)"},
    {"packed_attention", "%x: tensor<2x3x3x2x2xf32>, %m: tensor<2x1x1x3xf32>",
     "%o, %stats = call.packed_attention %x mask %m scale = 0.5 causal "
     "dropout_rate = 0.0 dropout_id = 0 : (tensor<2x3x3x2x2xf32>, "
     "tensor<2x1x1x3xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x2x3x2xf32>)"},
};
INSTANTIATE_TEST_SUITE_P(Rows, Vjp, testing::ValuesIn(kRows), nameOf);

} // namespace
