//===- BFloat16KernelTests.cpp - compiled kernels round bf16 once ---------===//

#include "passes/nn/kernels/OptimizerKernels.h"
#include "test/unit/kernels/KernelTesting.h"

#include "runtime/core/BFloat16.h"
#include "gtest/gtest.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::codegen;
using namespace pipewright::codegen::testing;

namespace {

std::vector<Buffer> argumentsOf(func::FuncOp kernel) {
  std::vector<Buffer> buffers;
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                            kernel.getResultTypes())) {
    Buffer buffer(cast<RankedTensorType>(type));
    for (int64_t i = 0; i < buffer.size(); ++i)
      buffer.set(i, 1.5 * std::sin(1.7 * i + 3.0 * buffers.size()));
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

/// The arguments of all kernels of a module after a call of each; all take the
/// same values. Types of buffers live as long as the program.
struct Calls {
  explicit Calls(StringRef text) : program(text) {
    EXPECT_TRUE(program.ok);
    if (!program.ok)
      return;
    for (auto kernel : program.module().getOps<func::FuncOp>()) {
      results.push_back(argumentsOf(kernel));
      program.call(kernel.getName(), results.back());
    }
  }

  std::vector<Buffer> &operator[](size_t i) { return results[i]; }
  size_t size() const { return results.size(); }

  Program program;
  std::vector<std::vector<Buffer>> results;
};

void expectSameBits(const Buffer &got, const Buffer &expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (int64_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint64_t>(got.get(i)),
              std::bit_cast<uint64_t>(expected.get(i)))
        << "element " << i << ": got " << got.get(i) << ", expected "
        << expected.get(i);
}

TEST(BFloat16Kernels, ConversionsRoundAsTheRuntimeDoes) {
  Program program(R"mlir(
    func.func @narrow(%x: tensor<70xf32>) -> tensor<70xbf16> {
      %y = nn.cast %x : tensor<70xf32> -> tensor<70xbf16>
      return %y : tensor<70xbf16>
    }
    func.func @widen(%x: tensor<70xbf16>) -> tensor<70xf32> {
      %y = nn.cast %x : tensor<70xbf16> -> tensor<70xf32>
      return %y : tensor<70xf32>
    })mlir");
  ASSERT_TRUE(program.ok);
  auto f32 =
      RankedTensorType::get({70}, Float32Type::get(&program.getContext()));
  auto bf16 =
      RankedTensorType::get({70}, BFloat16Type::get(&program.getContext()));
  std::vector<Buffer> narrowed{Buffer(f32), Buffer(bf16)};
  auto *values = reinterpret_cast<float *>(narrowed[0].bytes.data());
  const float special[] = {0.0f,
                           -0.0f,
                           1.0f + 0x1p-8f,
                           1.0f + 3 * 0x1p-8f,
                           0x1p-133f,
                           0x1.8p-134f,
                           -0x1p-140f,
                           std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity()};
  for (int i = 0; i < 70; ++i)
    values[i] = i < 10 ? special[i] : std::sin(1.0f * i) * std::exp(i - 40.0f);
  values[69] = std::numeric_limits<float>::quiet_NaN();
  program.call("narrow", narrowed);
  const auto *shorts =
      reinterpret_cast<const uint16_t *>(narrowed[1].bytes.data());
  for (int i = 0; i < 69; ++i)
    EXPECT_EQ(shorts[i], pipewright::runtime::narrow(values[i])) << values[i];
  EXPECT_TRUE(std::isnan(narrowed[1].get(69)));
  std::vector<Buffer> widened{narrowed[1], Buffer(f32)};
  program.call("widen", widened);
  for (int i = 0; i < 69; ++i)
    EXPECT_EQ(widened[1].get(i), narrowed[1].get(i));
  EXPECT_TRUE(std::isnan(widened[1].get(69)));
}

TEST(BFloat16Kernels, OpsComputeInFloatsAndRoundTheResult) {
  // One op on bf16 against the same op on widened values, rounded.
  Calls results(R"mlir(
    func.func @narrow(%x: tensor<5x200xbf16>, %s: tensor<200xbf16>)
        -> (tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5xf32>) {
      %0 = nn.gelu %x approximate = tanh : tensor<5x200xbf16>
      %1 = nn.add %x, %s : (tensor<5x200xbf16>, tensor<200xbf16>) -> tensor<5x200xbf16>
      %2 = nn.softmax %x : tensor<5x200xbf16>
      %3, %mean, %rstd = nn.layer_norm %x, %s, %s epsilon = 1.0e-5
        : (tensor<5x200xbf16>, tensor<200xbf16>, tensor<200xbf16>) -> (tensor<5x200xbf16>, tensor<5xf32>, tensor<5xf32>)
      return %0, %1, %2, %3, %rstd : tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5xf32>
    }
    func.func @wide(%x16: tensor<5x200xbf16>, %s16: tensor<200xbf16>)
        -> (tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5xf32>) {
      %x = nn.cast %x16 : tensor<5x200xbf16> -> tensor<5x200xf32>
      %s = nn.cast %s16 : tensor<200xbf16> -> tensor<200xf32>
      %0 = nn.gelu %x approximate = tanh : tensor<5x200xf32>
      %1 = nn.add %x, %s : (tensor<5x200xf32>, tensor<200xf32>) -> tensor<5x200xf32>
      %2 = nn.softmax %x : tensor<5x200xf32>
      %3, %mean, %rstd = nn.layer_norm %x, %s, %s epsilon = 1.0e-5
        : (tensor<5x200xf32>, tensor<200xf32>, tensor<200xf32>) -> (tensor<5x200xf32>, tensor<5xf32>, tensor<5xf32>)
      %4 = nn.cast %0 : tensor<5x200xf32> -> tensor<5x200xbf16>
      %5 = nn.cast %1 : tensor<5x200xf32> -> tensor<5x200xbf16>
      %6 = nn.cast %2 : tensor<5x200xf32> -> tensor<5x200xbf16>
      %7 = nn.cast %3 : tensor<5x200xf32> -> tensor<5x200xbf16>
      return %4, %5, %6, %7, %rstd : tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5x200xbf16>, tensor<5xf32>
    })mlir");
  ASSERT_EQ(results.size(), 2u);
  for (int result = 2; result < 7; ++result)
    expectSameBits(results[0][result], results[1][result]);
}

TEST(BFloat16Kernels, FusionRoundsEveryOp) {
  // An op that reads another's result in the same kernel reads it rounded.
  Calls results(R"mlir(
    func.func @fused(%x: tensor<4x70xbf16>, %b: tensor<70xbf16>)
        -> (tensor<4x70xbf16>, tensor<70xf32>) {
      %0 = nn.add %x, %b : (tensor<4x70xbf16>, tensor<70xbf16>) -> tensor<4x70xbf16>
      %1 = nn.gelu %0 approximate = none : tensor<4x70xbf16>
      %2 = nn.cast %1 : tensor<4x70xbf16> -> tensor<4x70xf32>
      %3 = nn.reduce_sum %2 axes = [0] : tensor<4x70xf32> -> tensor<70xf32>
      return %1, %3 : tensor<4x70xbf16>, tensor<70xf32>
    }
    func.func @sum(%x: tensor<4x70xbf16>, %b: tensor<70xbf16>) -> tensor<4x70xbf16> {
      %0 = nn.add %x, %b : (tensor<4x70xbf16>, tensor<70xbf16>) -> tensor<4x70xbf16>
      return %0 : tensor<4x70xbf16>
    })mlir");
  ASSERT_EQ(results.size(), 2u);
  Program rest(R"mlir(
    func.func @gelu(%x: tensor<4x70xbf16>) -> tensor<4x70xbf16> {
      %0 = nn.gelu %x approximate = none : tensor<4x70xbf16>
      return %0 : tensor<4x70xbf16>
    }
    func.func @columns(%x: tensor<4x70xbf16>) -> tensor<70xf32> {
      %0 = nn.cast %x : tensor<4x70xbf16> -> tensor<4x70xf32>
      %1 = nn.reduce_sum %0 axes = [0] : tensor<4x70xf32> -> tensor<70xf32>
      return %1 : tensor<70xf32>
    })mlir");
  ASSERT_TRUE(rest.ok);
  std::vector<Buffer> gelu{results[1][2], results[1][2]};
  rest.call("gelu", gelu);
  expectSameBits(results[0][2], gelu[1]);
  std::vector<Buffer> columns{gelu[1], results[0][3]};
  rest.call("columns", columns);
  expectSameBits(results[0][3], columns[1]);
}

TEST(BFloat16Kernels, MovedElementsKeepTheirBits) {
  Calls results(R"mlir(
    func.func @move(%x: tensor<4x6xbf16>) -> (tensor<6x4xbf16>, tensor<4x8xbf16>, tensor<4x12xbf16>) {
      %0 = nn.transpose %x permutation = [1, 0] : tensor<4x6xbf16> -> tensor<6x4xbf16>
      %1 = nn.pad %x low = [0, 1] high = [0, 1] : tensor<4x6xbf16> -> tensor<4x8xbf16>
      %2 = nn.concat %x, %x axis = 1 : (tensor<4x6xbf16>, tensor<4x6xbf16>) -> tensor<4x12xbf16>
      return %0, %1, %2 : tensor<6x4xbf16>, tensor<4x8xbf16>, tensor<4x12xbf16>
    })mlir");
  ASSERT_EQ(results.size(), 1u);
  const std::vector<Buffer> &all = results[0];
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t column = 0; column < 6; ++column) {
      const double x = all[0].get(row * 6 + column);
      EXPECT_EQ(all[1].get(column * 4 + row), x);
      EXPECT_EQ(all[2].get(row * 8 + column + 1), x);
      EXPECT_EQ(all[3].get(row * 12 + column + 6), x);
    }
  EXPECT_EQ(all[2].get(0), 0.0);
}

TEST(BFloat16Kernels, LikeTheReference) {
  // Two roundings of 2^-9 each, and what the ops make of them.
  expectLikeReference(R"mlir(
    func.func @norm(%x: tensor<6x65xbf16>, %dy: tensor<6x65xbf16>, %s: tensor<65xbf16>)
        -> (tensor<6x65xbf16>, tensor<65xf32>, tensor<65xf32>) {
      %y, %mean, %rstd = nn.layer_norm %x, %s, %s epsilon = 1.0e-5
        : (tensor<6x65xbf16>, tensor<65xbf16>, tensor<65xbf16>) -> (tensor<6x65xbf16>, tensor<6xf32>, tensor<6xf32>)
      %dx, %ds, %db = nn.layer_norm_backward %dy, %x, %s, %mean, %rstd
        : (tensor<6x65xbf16>, tensor<6x65xbf16>, tensor<65xbf16>, tensor<6xf32>, tensor<6xf32>)
          -> (tensor<6x65xbf16>, tensor<65xf32>, tensor<65xf32>)
      return %dx, %ds, %db : tensor<6x65xbf16>, tensor<65xf32>, tensor<65xf32>
    }
    func.func @loss(%x: tensor<7x33xbf16>, %l: tensor<7xi64> {test.below = 33}, %d: tensor<f32>)
        -> (tensor<f32>, tensor<7xf32>, tensor<7xf32>, tensor<7x33xbf16>) {
      %loss, %largest, %sum = nn.softmax_cross_entropy %x, %l ignore_index = -100
        : (tensor<7x33xbf16>, tensor<7xi64>) -> (tensor<f32>, tensor<7xf32>, tensor<7xf32>)
      %dx = nn.softmax_cross_entropy_backward %d, %x, %l, %largest, %sum ignore_index = -100
        : (tensor<f32>, tensor<7x33xbf16>, tensor<7xi64>, tensor<7xf32>, tensor<7xf32>) -> tensor<7x33xbf16>
      return %loss, %largest, %sum, %dx : tensor<f32>, tensor<7xf32>, tensor<7xf32>, tensor<7x33xbf16>
    })mlir",
                      8e-3);
}

TEST(BFloat16Kernels, OptimizersWriteTheCopyToo) {
  constexpr int64_t kSize = 77;
  Program program("module {}");
  auto adamw = nn::OptimizerAttr::get(
      &program.getContext(), llvm::cantFail(nn::parseOptimizer("adamw")));
  func::FuncOp plain = nn::buildUpdateKernel(program.module(), adamw, kSize);
  func::FuncOp rounding = nn::buildUpdateKernel(program.module(), adamw, kSize,
                                                /*rounds=*/true);
  func::FuncOp round = nn::buildRoundingKernel(program.module(), kSize);
  EXPECT_EQ(rounding.getName(), "adamw_bf16_77");
  ASSERT_TRUE(program.compile());
  std::vector<Buffer> buffers;
  for (Type type : plain.getArgumentTypes()) {
    Buffer buffer(cast<RankedTensorType>(type));
    for (int64_t i = 0; i < buffer.size(); ++i)
      buffer.set(i, 0.2 + std::sin(i + 10.0 * buffers.size()) / 6);
    buffers.push_back(std::move(buffer));
  }
  std::vector<Buffer> both = buffers;
  both.emplace_back(
      cast<RankedTensorType>(round.getFunctionType().getResult(0)));
  program.call(plain.getName(), buffers);
  program.call(rounding.getName(), both);
  for (size_t i = 0; i < buffers.size(); ++i)
    EXPECT_EQ(both[i].bytes, buffers[i].bytes) << i;
  std::vector<Buffer> rounded{buffers[0], both.back()};
  rounded[1].bytes.assign(rounded[1].bytes.size(), 0);
  program.call(round.getName(), rounded);
  EXPECT_EQ(both.back().bytes, rounded[1].bytes);
  for (int64_t i = 0; i < kSize; ++i)
    EXPECT_NEAR(rounded[1].get(i), buffers[0].get(i),
                std::fabs(buffers[0].get(i)) * 0x1p-8);
  std::string text;
  llvm::raw_string_ostream os(text);
  writeKernelHeader(program.module(), os);
  EXPECT_NE(
      text.find("void round_77(const float *weights, uint16_t *rounded);"),
      std::string::npos)
      << text;
}

} // namespace
