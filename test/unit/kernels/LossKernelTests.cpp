//===- LossKernelTests.cpp - Cross entropy far from zero ------------------===//
//
// Logits that all are near one large number, rows that see nothing, and sums
// that are divided by a number that is given: against double, on both targets.
//
//===----------------------------------------------------------------------===//

#include "test/unit/kernels/KernelTesting.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace pipewright::codegen;
using namespace pipewright::codegen::testing;

namespace {

constexpr int64_t kRows = 4, kClasses = 5, kIgnored = -100;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Arguments and results of a kernel, zeros; of the only one if it has no name.
std::vector<Buffer> buffersOf(Program &program, StringRef name = "") {
  auto kernel = name.empty()
                    ? *program.module().getOps<func::FuncOp>().begin()
                    : program.module().lookupSymbol<func::FuncOp>(name);
  std::vector<Buffer> buffers;
  for (Type type : kernel.getArgumentTypes())
    buffers.emplace_back(cast<RankedTensorType>(type));
  for (Type type : kernel.getResultTypes())
    buffers.emplace_back(cast<RankedTensorType>(type));
  return buffers;
}

/// Compares a result with what a function of the place says.
template <class Expected>
void expectNear(const Buffer &got, double tolerance, const Expected &expected) {
  for (int64_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got.get(i), expected(i), tolerance) << "element " << i;
}

/// Cross entropy of a row, in double.
struct Row {
  Row(const Buffer &x, int64_t row) {
    for (int64_t c = 0; c < kClasses; ++c)
      largest = std::max(largest, x.get(row * kClasses + c));
    for (int64_t c = 0; c < kClasses; ++c)
      sum += std::exp(x.get(row * kClasses + c) - largest);
  }
  double logOf(double x) const { return x - largest - std::log(sum); }

  double largest = -kInfinity, sum = 0;
};

const char *const kLoss = R"mlir(
  func.func @loss(%x: tensor<4x5x$T>, %l: tensor<4xi64>, %d: tensor<f32>, %n: tensor<f32>)
      -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4x5x$T>, tensor<4x5xf32>) {
    %0:3 = nn.softmax_cross_entropy %x, %l divisor %n ignore_index = -100
      : (tensor<4x5x$T>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %1 = nn.softmax_cross_entropy_backward %d, %x, %l, %0#1, %0#2 divisor %n ignore_index = -100
      : (tensor<f32>, tensor<4x5x$T>, tensor<4xi64>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4x5x$T>
    %2 = nn.cast %x : tensor<4x5x$T> -> tensor<4x5xf32>
    %3 = nn.log_softmax %2 : tensor<4x5xf32>
    return %0#0, %0#1, %0#2, %1, %3 : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4x5x$T>, tensor<4x5xf32>
  })mlir";

std::string lossOf(const std::string &type) {
  std::string text = kLoss;
  if (type == "f32") {
    const std::string cast = "    %2 = nn.cast %x : tensor<4x5x$T> -> "
                             "tensor<4x5xf32>\n";
    text.erase(text.find(cast), cast.size());
    text.replace(text.find("log_softmax %2"), 14, "log_softmax %x");
  }
  for (size_t at; (at = text.find("$T")) != std::string::npos;)
    text.replace(at, 2, type);
  return text;
}

/// What a scalar divides the sums by is taken as it is, though one label in
/// four is ignored.
void expectLoss(std::vector<Buffer> &buffers, double tolerance) {
  const Buffer &x = buffers[0], &labels = buffers[1];
  const double seed = buffers[2].get(0), divisor = buffers[3].get(0);
  double loss = 0;
  for (int64_t row = 0; row < kRows; ++row)
    if (labels.get(row) != kIgnored)
      loss -= Row(x, row).logOf(
          x.get(row * kClasses + static_cast<int64_t>(labels.get(row))));
  EXPECT_NEAR(buffers[4].get(0), loss / divisor, 1e-6 * loss / divisor);
  expectNear(buffers[7], tolerance, [&](int64_t i) {
    const double label = labels.get(i / kClasses);
    return label == kIgnored
               ? 0
               : seed / divisor *
                     (std::exp(Row(x, i / kClasses).logOf(x.get(i))) -
                      (label == i % kClasses));
  });
  expectNear(buffers[8], 2e-6,
             [&](int64_t i) { return Row(x, i / kClasses).logOf(x.get(i)); });
}

TEST(LossKernels, CommonOffsetsOfLogitsCostNoDigits) {
  for (const char *type : {"f32", "bf16"}) {
    Program program(lossOf(type));
    ASSERT_TRUE(program.ok);
    for (const double offset : {0.0, 1e3, -1e3, 1e6, 1e9, -1e9}) {
      SCOPED_TRACE(std::string(type) + " " + std::to_string(offset));
      std::vector<Buffer> buffers = buffersOf(program);
      for (int64_t i = 0; i < kRows * kClasses; ++i)
        buffers[0].set(i, offset + std::sin(i * 1.7));
      for (int64_t row = 0; row < kRows; ++row)
        buffers[1].set(row, row == 2 ? kIgnored : row);
      buffers[2].set(0, 0.5);
      buffers[3].set(0, 1.5);
      std::vector<Buffer> onGpu = buffers;
      program.call("loss", buffers);
      expectLoss(buffers, *type == 'b' ? 2e-3 : 1e-6);
      program.callOnGpu("loss", onGpu);
      expectLoss(onGpu, *type == 'b' ? 2e-3 : 1e-6);
    }
  }
}

// What the loss is then does not matter: a call in front of it has refused
// them. A read outside of the logits would end the test.
// Each pass over a row adds the bias again, and rounds it as it would be
// stored.
TEST(LossKernels, LogitsComputedInTheKernelAreThoseOfMemory) {
  for (const std::string type : {"f32", "bf16"}) {
    std::string text = R"mlir(
  func.func @bias(%x: tensor<2x2x5x$T>, %b: tensor<5x$T>) -> tensor<2x2x5x$T> {
    %0 = nn.add %x, %b : (tensor<2x2x5x$T>, tensor<5x$T>) -> tensor<2x2x5x$T>
    return %0 : tensor<2x2x5x$T>
  }
  func.func @apart(%x: tensor<4x5x$T>, %l: tensor<4xi64>, %d: tensor<f32>, %n: tensor<f32>)
      -> (tensor<f32>, tensor<4x5x$T>) {
    %0:3 = nn.softmax_cross_entropy %x, %l divisor %n ignore_index = -100
      : (tensor<4x5x$T>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %1 = nn.softmax_cross_entropy_backward %d, %x, %l, %0#1, %0#2 divisor %n ignore_index = -100
      : (tensor<f32>, tensor<4x5x$T>, tensor<4xi64>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4x5x$T>
    return %0#0, %1 : tensor<f32>, tensor<4x5x$T>
  }
  func.func @joined(%y: tensor<2x2x5x$T>, %b: tensor<5x$T>, %l: tensor<4xi64>, %d: tensor<f32>, %n: tensor<f32>)
      -> (tensor<f32>, tensor<4x5x$T>) {
    %z = nn.add %y, %b : (tensor<2x2x5x$T>, tensor<5x$T>) -> tensor<2x2x5x$T>
    %x = nn.reshape %z : tensor<2x2x5x$T> -> tensor<4x5x$T>
    %0:3 = nn.softmax_cross_entropy %x, %l divisor %n ignore_index = -100
      : (tensor<4x5x$T>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %1 = nn.softmax_cross_entropy_backward %d, %x, %l, %0#1, %0#2 divisor %n ignore_index = -100
      : (tensor<f32>, tensor<4x5x$T>, tensor<4xi64>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4x5x$T>
    return %0#0, %1 : tensor<f32>, tensor<4x5x$T>
  })mlir";
    for (size_t at; (at = text.find("$T")) != std::string::npos;)
      text.replace(at, 2, type);
    Program program(text);
    ASSERT_TRUE(program.ok);
    for (const bool onGpu : {false, true}) {
      SCOPED_TRACE(type + (onGpu ? " on a GPU" : ""));
      auto call = [&](const std::string &name, std::vector<Buffer> &buffers) {
        onGpu ? program.callOnGpu(name, buffers) : program.call(name, buffers);
      };
      std::vector<Buffer> bias = buffersOf(program, "bias"),
                          apart = buffersOf(program, "apart"),
                          joined = buffersOf(program, "joined");
      for (int64_t i = 0; i < kRows * kClasses; ++i)
        bias[0].set(i, 3 * std::sin(i * 1.7));
      for (int64_t i = 0; i < kClasses; ++i)
        bias[1].set(i, 1 + std::cos(i * 2.3));
      call("bias", bias);
      joined[0] = bias[0];
      joined[1] = bias[1];
      for (int64_t i = 0; i < kRows * kClasses; ++i)
        apart[0].set(i, bias[2].get(i));
      for (int64_t row = 0; row < kRows; ++row) {
        apart[1].set(row, row == 2 ? kIgnored : row);
        joined[2].set(row, row == 2 ? kIgnored : row);
      }
      for (int64_t i = 0; i < 2; ++i) {
        apart[2 + i].set(0, 0.5 + i);
        joined[3 + i].set(0, 0.5 + i);
      }
      call("apart", apart);
      call("joined", joined);
      EXPECT_NE(joined[5].get(0), 0);
      EXPECT_EQ(joined[5].get(0), apart[4].get(0));
      for (int64_t i = 0; i < kRows * kClasses; ++i)
        EXPECT_EQ(joined[6].get(i), apart[5].get(i)) << "element " << i;
    }
  }
}

TEST(LossKernels, NoLabelReadsOutsideOfTheLogits) {
  Program program(lossOf("f32"));
  ASSERT_TRUE(program.ok);
  for (const double label : {5.0, -1.0, 0x1p40, -0x1p40, 0x1p62, -0x1p63}) {
    std::vector<Buffer> buffers = buffersOf(program);
    buffers[1].set(3, label);
    buffers[3].set(0, 1);
    std::vector<Buffer> onGpu = buffers;
    program.call("loss", buffers);
    program.callOnGpu("loss", onGpu);
    EXPECT_NEAR(buffers[5].get(3), 0, 0);
    EXPECT_NEAR(onGpu[5].get(3), 0, 0);
  }
}

TEST(LossKernels, SafeSoftmaxOfRowsThatSeeNothing) {
  Program program(R"mlir(
    func.func @softmax(%x: tensor<3x5xf32>, %dy: tensor<3x5xf32>)
        -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) {
      %y = nn.softmax %x safe : tensor<3x5xf32>
      %dx = nn.softmax_backward %dy, %y : tensor<3x5xf32>
      %z = nn.softmax %x : tensor<3x5xf32>
      return %y, %dx, %z : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>
    })mlir");
  ASSERT_TRUE(program.ok);
  std::vector<Buffer> buffers = buffersOf(program);
  for (int64_t i = 0; i < 15; ++i) {
    // Nothing, alike by the least number, and some.
    const double hidden =
        i / 5 == 1 ? std::numeric_limits<float>::lowest() : -kInfinity;
    buffers[0].set(i, i / 5 == 2 && i % 2 ? 0.25 * i : hidden);
    buffers[1].set(i, std::sin(i));
  }
  std::vector<Buffer> onGpu = buffers;
  program.call("softmax", buffers);
  program.callOnGpu("softmax", onGpu);
  for (std::vector<Buffer> *side : {&buffers, &onGpu})
    for (int64_t i = 0; i < 15; ++i) {
      const double y = (*side)[2].get(i);
      if (i / 5 == 0) {
        EXPECT_EQ(y, 0);
        EXPECT_EQ((*side)[3].get(i), 0);
        EXPECT_TRUE(std::isnan((*side)[4].get(i)));
      } else {
        EXPECT_NEAR(y, (*side)[4].get(i), 1e-7);
        EXPECT_TRUE(std::isfinite((*side)[3].get(i)));
      }
    }
}

} // namespace
