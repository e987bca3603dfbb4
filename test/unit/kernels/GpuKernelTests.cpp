//===- GpuKernelTests.cpp - PTX of kernels computes what the CPU does -----===//
//
// Shapes for which GPU kernels take different ways: rows for a part of a warp,
// a warp and a block, rows that do not fit registers, several blocks and tiles,
// lengths that nothing divides.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/kernels/OptimizerKernels.h"
#include "test/unit/kernels/KernelTesting.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::codegen;
using namespace pipewright::codegen::testing;

namespace {

/// Replaces $R, $N and $T by numbers of rows and columns and a type.
std::string withShape(std::string text, int64_t rows, int64_t columns,
                      const char *type = "f32") {
  auto replace = [&](const char *from, const std::string &to) {
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, 2, to);
  };
  replace("$R", std::to_string(rows));
  replace("$N", std::to_string(columns));
  replace("$T", type);
  return text;
}

const char *const kPointwise = R"mlir(
  func.func @gelu(%x: tensor<$Rx$Nx$T>, %b: tensor<$Nx$T>) -> tensor<$Rx$Nx$T> {
    %0 = nn.add %x, %b : (tensor<$Rx$Nx$T>, tensor<$Nx$T>) -> tensor<$Rx$Nx$T>
    %1 = nn.gelu %0 approximate = none : tensor<$Rx$Nx$T>
    return %1 : tensor<$Rx$Nx$T>
  }
  func.func @flat(%x: tensor<$Rx$Nx$T>, %y: tensor<$Rx$Nx$T>) -> tensor<$Rx$Nx$T> {
    %0 = nn.sigmoid %x : tensor<$Rx$Nx$T>
    %1 = nn.mul %0, %y : (tensor<$Rx$Nx$T>, tensor<$Rx$Nx$T>) -> tensor<$Rx$Nx$T>
    return %1 : tensor<$Rx$Nx$T>
  }
  func.func @turn(%x: tensor<$Rx$Nx$T>) -> tensor<$Nx$Rx$T> {
    %0 = nn.transpose %x permutation = [1, 0] : tensor<$Rx$Nx$T> -> tensor<$Nx$Rx$T>
    return %0 : tensor<$Nx$Rx$T>
  })mlir";

TEST(GpuKernels, PointwiseOfAllLengths) {
  for (int64_t columns : {1, 3, 8, 255, 1003, 1024})
    expectGpuLikeCpu(withShape(kPointwise, 7, columns));
}

TEST(GpuKernels, Transposes) {
  const char *text = R"mlir(
    func.func @turn(%x: tensor<3x$Rx$Nxf32>) -> tensor<3x$Nx$Rxf32> {
      %0 = nn.transpose %x permutation = [0, 2, 1] : tensor<3x$Rx$Nxf32> -> tensor<3x$Nx$Rxf32>
      return %0 : tensor<3x$Nx$Rxf32>
    })mlir";
  for (auto [rows, columns] : {std::pair{32, 64}, {33, 70}, {100, 31}})
    expectGpuLikeCpu(withShape(text, rows, columns));
}

TEST(GpuKernels, PointwiseInBfloat16) {
  // At most one unit in the last of eight places.
  for (int64_t columns : {1, 3, 8, 20, 1024})
    expectGpuLikeCpu(withShape(kPointwise, 7, columns, "bf16"), 8e-3);
}

TEST(GpuKernels, RowsOfAllLengths) {
  const char *text = R"mlir(
    func.func @softmax(%x: tensor<$Rx$Nxf32>) -> tensor<$Rx$Nxf32> {
      %0 = nn.softmax %x : tensor<$Rx$Nxf32>
      return %0 : tensor<$Rx$Nxf32>
    }
    func.func @layer_norm(%x: tensor<$Rx$Nxf32>, %s: tensor<$Nxf32>, %b: tensor<$Nxf32>)
        -> (tensor<$Rx$Nxf32>, tensor<$Rxf32>, tensor<$Rxf32>) {
      %y, %mean, %rstd = nn.layer_norm %x, %s, %b epsilon = 1.0e-5
        : (tensor<$Rx$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>) -> (tensor<$Rx$Nxf32>, tensor<$Rxf32>, tensor<$Rxf32>)
      return %y, %mean, %rstd : tensor<$Rx$Nxf32>, tensor<$Rxf32>, tensor<$Rxf32>
    }
    func.func @cross_entropy(%x: tensor<$Rx$Nxf32>, %l: tensor<$Rxi64> {test.below = 2 : i64})
        -> (tensor<f32>, tensor<$Rxf32>, tensor<$Rxf32>) {
      %0:3 = nn.softmax_cross_entropy %x, %l ignore_index = -100 : (tensor<$Rx$Nxf32>, tensor<$Rxi64>) -> (tensor<f32>, tensor<$Rxf32>, tensor<$Rxf32>)
      return %0#0, %0#1, %0#2 : tensor<f32>, tensor<$Rxf32>, tensor<$Rxf32>
    })mlir";
  for (int64_t columns : {2, 10, 100, 768, 1023, 1600, 2049, 9000, 20000})
    expectGpuLikeCpu(withShape(text, 3, columns));
  expectGpuLikeCpu(withShape(text, 1, 50257));
  expectGpuLikeCpu(withShape(text, 70, 64));
}

/// Rows that shared memory keeps from pass to pass, with and without whole
/// chunks at the end, and one that is too long for it.
/// Rows of which all or the beginning stays in shared memory.
TEST(GpuKernels, LossAndGradientOfLongRows) {
  const char *text = R"mlir(
    func.func @cross_entropy(%x: tensor<$Rx$Nx$T>, %l: tensor<$Rxi64> {test.below = 2 : i64}, %d: tensor<f32>)
        -> (tensor<f32>, tensor<$Rxf32>, tensor<$Rx$Nx$T>) {
      %0:3 = nn.softmax_cross_entropy %x, %l ignore_index = 1 : (tensor<$Rx$Nx$T>, tensor<$Rxi64>) -> (tensor<f32>, tensor<$Rxf32>, tensor<$Rxf32>)
      %1 = nn.softmax_cross_entropy_backward %d, %x, %l, %0#1, %0#2 ignore_index = 1
        : (tensor<f32>, tensor<$Rx$Nx$T>, tensor<$Rxi64>, tensor<$Rxf32>, tensor<$Rxf32>) -> tensor<$Rx$Nx$T>
      return %0#0, %0#1, %1 : tensor<f32>, tensor<$Rxf32>, tensor<$Rx$Nx$T>
    })mlir";
  for (auto [columns, type, sharedBytes] : {std::tuple{50304, "bf16", 100608},
                                            {16387, "bf16", 32784},
                                            {17000, "f32", 68000},
                                            {50304, "f32", 98304},
                                            {33001, "f32", 98304}}) {
    expectGpuLikeCpu(withShape(text, 2, columns, type),
                     *type == 'b' ? 8e-3 : 2e-6);
    Program program(withShape(text, 2, columns, type));
    ASSERT_TRUE(program.ok);
    EXPECT_EQ(program.onGpu().kernels[0].launches[1].sharedBytes, sharedBytes);
  }
}

const char *const kLayerNormBackward = R"mlir(
  func.func @layer_norm_backward(%dy: tensor<$Rx$Nx$T>, %x: tensor<$Rx$Nx$T>,
      %s: tensor<$Nx$T>, %m: tensor<$Rxf32>, %r: tensor<$Rxf32>)
      -> (tensor<$Rx$Nx$T>, tensor<$Nxf32>, tensor<$Nxf32>) {
    %0:3 = nn.layer_norm_backward %dy, %x, %s, %m, %r
        : (tensor<$Rx$Nx$T>, tensor<$Rx$Nx$T>, tensor<$Nx$T>, tensor<$Rxf32>, tensor<$Rxf32>)
        -> (tensor<$Rx$Nx$T>, tensor<$Nxf32>, tensor<$Nxf32>)
    return %0#0, %0#1, %0#2 : tensor<$Rx$Nx$T>, tensor<$Nxf32>, tensor<$Nxf32>
  })mlir";

TEST(GpuKernels, RowsAndColumnsAtOnce) {
  for (auto [rows, columns] : {std::pair{3, 4},
                               {200, 100},
                               {70, 768},
                               {40, 1023},
                               {17, 1600},
                               {33, 2049}})
    expectGpuLikeCpu(withShape(kLayerNormBackward, rows, columns), 4e-6);
  // Too long for registers: the sums over rows get launches of their own.
  expectGpuLikeCpu(withShape(kLayerNormBackward, 19, 20000), 4e-6);
}

TEST(GpuKernels, SumsOverRows) {
  const char *text = R"mlir(
    func.func @bias(%dy: tensor<$Rx$Nxf32>, %x: tensor<$Rx$Nxf32>) -> (tensor<$Rx$Nxf32>, tensor<$Nxf32>) {
      %0 = nn.gelu_backward %dy, %x approximate = tanh : tensor<$Rx$Nxf32>
      %1 = nn.reduce_sum %0 axes = [0] : tensor<$Rx$Nxf32> -> tensor<$Nxf32>
      return %0, %1 : tensor<$Rx$Nxf32>, tensor<$Nxf32>
    }
    func.func @largest(%x: tensor<$Rx$Nxf32>) -> tensor<$Nxf32> {
      %0 = nn.reduce_max %x axes = [0] : tensor<$Rx$Nxf32> -> tensor<$Nxf32>
      return %0 : tensor<$Nxf32>
    }
    func.func @all(%x: tensor<$Rx$Nxf32>) -> tensor<f32> {
      %0 = nn.reduce_sum %x axes = [0, 1] : tensor<$Rx$Nxf32> -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func @middle(%x: tensor<3x$Rx$Nxf32>) -> tensor<3x$Nxf32> {
      %0 = nn.reduce_sum %x axes = [1] : tensor<3x$Rx$Nxf32> -> tensor<3x$Nxf32>
      return %0 : tensor<3x$Nxf32>
    })mlir";
  for (auto [rows, columns] : {std::pair{1, 4},
                               {33, 10},
                               {200, 130},
                               {100, 1024},
                               {65, 1030},
                               {40, 2048}})
    expectGpuLikeCpu(withShape(text, rows, columns), 5e-6);
}

/// Several kinds of launches for one nest.
TEST(GpuKernels, NestsOfManyParts) {
  const char *text = R"mlir(
    func.func @rows_and_elements(%x: tensor<$Rx$Nxf32>, %y: tensor<$Rxf32>) -> (tensor<$Rx$Nxf32>, tensor<$Rxf32>) {
      %0 = nn.exp %x : tensor<$Rx$Nxf32>
      %1 = nn.tanh %y : tensor<$Rxf32>
      return %0, %1 : tensor<$Rx$Nxf32>, tensor<$Rxf32>
    }
    func.func @other_dimensions(%x: tensor<5x$Rx$Nxf32>) -> (tensor<$Rx$Nxf32>, tensor<5x$Nxf32>, tensor<$Nxf32>) {
      %0 = nn.reduce_sum %x axes = [0] : tensor<5x$Rx$Nxf32> -> tensor<$Rx$Nxf32>
      %1 = nn.reduce_sum %x axes = [1] : tensor<5x$Rx$Nxf32> -> tensor<5x$Nxf32>
      %2 = nn.reduce_max %x axes = [0, 1] : tensor<5x$Rx$Nxf32> -> tensor<$Nxf32>
      return %0, %1, %2 : tensor<$Rx$Nxf32>, tensor<5x$Nxf32>, tensor<$Nxf32>
    }
    func.func @many_sums(%x: tensor<$Rx$Nxf32>, %y: tensor<$Rx$Nxf32>)
        -> (tensor<$Rx$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>) {
      %p = nn.softmax %x : tensor<$Rx$Nxf32>
      %a = nn.mul %p, %y : (tensor<$Rx$Nxf32>, tensor<$Rx$Nxf32>) -> tensor<$Rx$Nxf32>
      %b = nn.add %p, %y : (tensor<$Rx$Nxf32>, tensor<$Rx$Nxf32>) -> tensor<$Rx$Nxf32>
      %0 = nn.reduce_sum %p axes = [0] : tensor<$Rx$Nxf32> -> tensor<$Nxf32>
      %1 = nn.reduce_sum %a axes = [0] : tensor<$Rx$Nxf32> -> tensor<$Nxf32>
      %2 = nn.reduce_sum %b axes = [0] : tensor<$Rx$Nxf32> -> tensor<$Nxf32>
      %3 = nn.reduce_max %a axes = [0] : tensor<$Rx$Nxf32> -> tensor<$Nxf32>
      %4 = nn.reduce_sum %x axes = [0] : tensor<$Rx$Nxf32> -> tensor<$Nxf32>
      return %a, %0, %1, %2, %3, %4 : tensor<$Rx$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>
    })mlir";
  for (auto [rows, columns] :
       {std::pair{3, 7}, {40, 12}, {35, 768}, {20, 1100}})
    expectGpuLikeCpu(withShape(text, rows, columns), 4e-6);
}

TEST(GpuKernels, BatchNormOfImages) {
  expectGpuLikeCpu(R"mlir(
    func.func @forward(%x: tensor<5x6x9x10xf32>, %s: tensor<6xf32>, %b: tensor<6xf32>)
        -> (tensor<5x6x9x10xf32>, tensor<6xf32>, tensor<6xf32>) {
      %0:3 = nn.batch_norm %x, %s, %b epsilon = 1.0e-5 momentum = 9.0e-1
        : (tensor<5x6x9x10xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<5x6x9x10xf32>, tensor<6xf32>, tensor<6xf32>)
      return %0#0, %0#1, %0#2 : tensor<5x6x9x10xf32>, tensor<6xf32>, tensor<6xf32>
    }
    func.func @backward(%dy: tensor<5x6x7x7xf32>, %x: tensor<5x6x7x7xf32>, %s: tensor<6xf32>,
        %m: tensor<6xf32>, %v: tensor<6xf32> {test.positive})
        -> (tensor<5x6x7x7xf32>, tensor<6xf32>, tensor<6xf32>) {
      %0:3 = nn.batch_norm_backward %dy, %x, %s, %m, %v epsilon = 1.0e-5
        : (tensor<5x6x7x7xf32>, tensor<5x6x7x7xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
        -> (tensor<5x6x7x7xf32>, tensor<6xf32>, tensor<6xf32>)
      return %0#0, %0#1, %0#2 : tensor<5x6x7x7xf32>, tensor<6xf32>, tensor<6xf32>
    })mlir",
                   5e-6);
}

TEST(GpuKernels, GroupNorm) {
  const char *text = R"mlir(
    func.func @forward(%x: tensor<2x6x$Rx$Nx$T>, %s: tensor<6xf32>, %b: tensor<6xf32>)
        -> (tensor<2x6x$Rx$Nx$T>, tensor<2x3xf32>, tensor<2x3xf32>) {
      %0:3 = nn.group_norm %x, %s, %b groups = 3 epsilon = 1.0e-5
        : (tensor<2x6x$Rx$Nx$T>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x6x$Rx$Nx$T>, tensor<2x3xf32>, tensor<2x3xf32>)
      %g = nn.sigmoid %0#0 : tensor<2x6x$Rx$Nx$T>
      %a = nn.mul %0#0, %g : (tensor<2x6x$Rx$Nx$T>, tensor<2x6x$Rx$Nx$T>) -> tensor<2x6x$Rx$Nx$T>
      return %a, %0#1, %0#2 : tensor<2x6x$Rx$Nx$T>, tensor<2x3xf32>, tensor<2x3xf32>
    }
    func.func @backward(%dy: tensor<2x6x$Rx$Nx$T>, %x: tensor<2x6x$Rx$Nx$T>, %s: tensor<6xf32>,
        %m: tensor<2x3xf32>, %v: tensor<2x3xf32> {test.positive})
        -> (tensor<2x6x$Rx$Nx$T>, tensor<6xf32>, tensor<6xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
      %0:5 = nn.group_norm_backward %dy, %x, %s, %m, %v epsilon = 1.0e-5
        : (tensor<2x6x$Rx$Nx$T>, tensor<2x6x$Rx$Nx$T>, tensor<6xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
        -> (tensor<2x6x$Rx$Nx$T>, tensor<6xf32>, tensor<6xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
      return %0#0, %0#1, %0#2, %0#3, %0#4
        : tensor<2x6x$Rx$Nx$T>, tensor<6xf32>, tensor<6xf32>, tensor<2x3xf32>, tensor<2x3xf32>
    })mlir";
  for (auto [rows, columns] : {std::pair{1, 3}, {20, 10}, {30, 64}, {11, 100}})
    expectGpuLikeCpu(withShape(text, rows, columns), 5e-6);
  expectGpuLikeCpu(withShape(text, 30, 64, "bf16"), 1.6e-2);
}

TEST(GpuKernels, BatchNormWithChannelsLast) {
  const char *text = R"mlir(
    func.func @forward(%x: tensor<2x$Rx5x$Nx$T>, %s: tensor<$Nxf32>, %b: tensor<$Nxf32>)
        -> (tensor<2x$Rx5x$Nx$T>, tensor<$Nxf32>, tensor<$Nxf32>) {
      %0:3 = nn.batch_norm %x, %s, %b epsilon = 1.0e-5 momentum = 9.0e-1 channels_last
        : (tensor<2x$Rx5x$Nx$T>, tensor<$Nxf32>, tensor<$Nxf32>) -> (tensor<2x$Rx5x$Nx$T>, tensor<$Nxf32>, tensor<$Nxf32>)
      return %0#0, %0#1, %0#2 : tensor<2x$Rx5x$Nx$T>, tensor<$Nxf32>, tensor<$Nxf32>
    }
    func.func @backward(%dy: tensor<2x$Rx5x$Nx$T>, %x: tensor<2x$Rx5x$Nx$T>, %s: tensor<$Nxf32>,
        %m: tensor<$Nxf32>, %v: tensor<$Nxf32> {test.positive})
        -> (tensor<2x$Rx5x$Nx$T>, tensor<$Nxf32>, tensor<$Nxf32>) {
      %0:3 = nn.batch_norm_backward %dy, %x, %s, %m, %v epsilon = 1.0e-5 channels_last
        : (tensor<2x$Rx5x$Nx$T>, tensor<2x$Rx5x$Nx$T>, tensor<$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>)
        -> (tensor<2x$Rx5x$Nx$T>, tensor<$Nxf32>, tensor<$Nxf32>)
      return %0#0, %0#1, %0#2 : tensor<2x$Rx5x$Nx$T>, tensor<$Nxf32>, tensor<$Nxf32>
    })mlir";
  // Groups of half a warp and of a whole one, one block and several.
  for (auto [rows, columns] : {std::pair{1, 3}, {20, 10}, {30, 64}, {11, 100}})
    expectGpuLikeCpu(withShape(text, rows, columns), 5e-6);
  expectGpuLikeCpu(withShape(text, 30, 64, "bf16"), 1.6e-2);
}

TEST(GpuKernels, OlderArchitecture) {
  expectGpuLikeCpu(withShape(kPointwise, 5, 24), 2e-6, 80);
  expectGpuLikeCpu(withShape(kPointwise, 5, 24, "bf16"), 8e-3, 80);
  expectGpuLikeCpu(withShape(kLayerNormBackward, 20, 100, "bf16"), 1.6e-2, 80);
}

/// Sums over rows of the same numbers: alone, beside results by element, and
/// beside sums of rows.
TEST(GpuKernels, SumsDoNotDependOnFusion) {
  for (int64_t columns : {64, 100, 1600}) {
    Program program(withShape(R"mlir(
      func.func @alone(%x: tensor<70x$Nxf32>) -> tensor<$Nxf32> {
        %0 = nn.reduce_sum %x axes = [0] : tensor<70x$Nxf32> -> tensor<$Nxf32>
        return %0 : tensor<$Nxf32>
      }
      func.func @elements(%x: tensor<70x$Nxf32>) -> (tensor<70x$Nxf32>, tensor<$Nxf32>) {
        %0 = nn.reduce_sum %x axes = [0] : tensor<70x$Nxf32> -> tensor<$Nxf32>
        %1 = nn.relu %x : tensor<70x$Nxf32>
        return %1, %0 : tensor<70x$Nxf32>, tensor<$Nxf32>
      }
      func.func @rows(%x: tensor<70x$Nxf32>) -> (tensor<70x$Nxf32>, tensor<$Nxf32>, tensor<70xf32>) {
        %0 = nn.reduce_sum %x axes = [0] : tensor<70x$Nxf32> -> tensor<$Nxf32>
        %1 = nn.softmax %x : tensor<70x$Nxf32>
        %2 = nn.reduce_sum %x axes = [1] : tensor<70x$Nxf32> -> tensor<70xf32>
        return %1, %0, %2 : tensor<70x$Nxf32>, tensor<$Nxf32>, tensor<70xf32>
      }
      func.func @softmax(%x: tensor<70x$Nxf32>) -> (tensor<70x$Nxf32>, tensor<70xf32>) {
        %1 = nn.softmax %x : tensor<70x$Nxf32>
        %2 = nn.reduce_sum %x axes = [1] : tensor<70x$Nxf32> -> tensor<70xf32>
        return %1, %2 : tensor<70x$Nxf32>, tensor<70xf32>
      })mlir",
                              0, columns));
    ASSERT_TRUE(program.ok);
    Type f32 = Float32Type::get(&program.getContext());
    Buffer x(RankedTensorType::get({70, columns}, f32));
    for (int64_t i = 0; i < x.size(); ++i)
      x.set(i, std::sin(1.7 * i));
    Buffer full(x.type), sums(RankedTensorType::get(columns, f32));
    Buffer rows(RankedTensorType::get(70, f32));
    std::vector<Buffer> alone{x, sums}, elements{x, full, sums};
    std::vector<Buffer> both{x, full, sums, rows}, softmax{x, full, rows};
    program.callOnGpu("alone", alone);
    program.callOnGpu("elements", elements);
    program.callOnGpu("rows", both);
    program.callOnGpu("softmax", softmax);
    EXPECT_EQ(alone[1].bytes, elements[2].bytes);
    EXPECT_EQ(alone[1].bytes, both[2].bytes);
    EXPECT_EQ(both[1].bytes, softmax[1].bytes);
    EXPECT_EQ(both[3].bytes, softmax[2].bytes);
  }
}

/// The whole sum is added to what is there: the same bits as in two steps, for
/// sums of one block and of many, over rows, columns and both.
TEST(GpuKernels, SumsAddedToGradients) {
  std::string text = withShape(std::string(kLayerNormBackward) + R"mlir(
    func.func @rows(%x: tensor<$Rx$Nxf32>) -> tensor<$Rxf32> {
      %0 = nn.reduce_sum %x axes = [1] : tensor<$Rx$Nxf32> -> tensor<$Rxf32>
      return %0 : tensor<$Rxf32>
    }
    func.func @all(%x: tensor<$Rx$Nxf32>) -> tensor<f32> {
      %0 = nn.reduce_sum %x axes = [0, 1] : tensor<$Rx$Nxf32> -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func @columns(%x: tensor<3x$Nxf32>) -> tensor<$Nxf32> {
      %0 = nn.reduce_sum %x axes = [0] : tensor<3x$Nxf32> -> tensor<$Nxf32>
      return %0 : tensor<$Nxf32>
    })mlir",
                               70, 768);
  Program program(text);
  ASSERT_TRUE(program.ok);
  OwningOpRef<ModuleOp> changed(program.module().clone());
  for (auto kernel : changed->getOps<func::FuncOp>())
    for (unsigned i = kernel.getNumResults() == 3; i < kernel.getNumResults();
         ++i)
      kernel.setResultAttr(i, "nn.added", UnitAttr::get(kernel.getContext()));
  for (auto kernel : program.module().getOps<func::FuncOp>()) {
    std::vector<Buffer> plain;
    for (Type type : kernel.getArgumentTypes()) {
      plain.emplace_back(cast<RankedTensorType>(type));
      for (int64_t i = 0; i < plain.back().size(); ++i)
        plain.back().set(i, std::sin(1.7 * i + plain.size()));
    }
    for (Type type : kernel.getResultTypes()) {
      plain.emplace_back(cast<RankedTensorType>(type));
      for (int64_t i = 0; i < plain.back().size(); ++i)
        plain.back().set(i, 0.3 + i % 5);
    }
    std::vector<Buffer> added = plain, before = plain;
    program.callOnGpu(kernel.getName(), plain);
    program.callOnGpu(*changed, kernel.getName(), added);
    unsigned first = kernel.getNumArguments();
    for (unsigned r = 0; r < kernel.getNumResults(); ++r) {
      bool isAdded = r > 0 || kernel.getNumResults() == 1;
      for (int64_t i = 0; i < added[first + r].size(); ++i) {
        auto sum = static_cast<float>(plain[first + r].get(i));
        if (isAdded)
          sum = static_cast<float>(before[first + r].get(i)) + sum;
        ASSERT_EQ(added[first + r].get(i), sum)
            << kernel.getName().str() << " result " << r << " at " << i;
      }
    }
  }
}

/// The kernel of an optimizer, as the command line names it.
static func::FuncOp buildUpdate(Program &program, const char *optimizer,
                                int64_t size) {
  nn::OptimizerChoice choice = llvm::cantFail(nn::parseOptimizer(optimizer));
  return nn::buildUpdateKernel(
      program.module(), nn::OptimizerAttr::get(&program.getContext(), choice),
      size);
}

/// Optimizers of flat ranges run in place, in one launch.
TEST(GpuKernels, UpdatesInPlace) {
  for (const char *optimizer :
       {"sgd,momentum=0.9,weight_decay=0.1", "adam,weight_decay=0.1",
        "adamw,weight_decay=0.1", "rmsprop,momentum=0.9,weight_decay=0.1"}) {
    Program program("module {}");
    func::FuncOp kernel = buildUpdate(program, optimizer, 1003);
    ASSERT_TRUE(program.compile());
    const GpuKernel &onGpu = program.onGpu().kernels[0];
    EXPECT_EQ(onGpu.launches.size(), 1u) << onGpu.name;
    EXPECT_EQ(onGpu.scratchBytes, 0) << onGpu.name;
    std::vector<Buffer> cpu;
    for (Type type : kernel.getArgumentTypes()) {
      cpu.emplace_back(cast<RankedTensorType>(type));
      for (int64_t i = 0; i < cpu.back().size(); ++i)
        cpu.back().set(i, 0.2 + std::sin(i + 10.0 * cpu.size()) / 6);
    }
    std::vector<Buffer> gpu = cpu;
    program.call(kernel.getName(), cpu);
    program.callOnGpu(kernel.getName(), gpu);
    for (size_t b = 0; b < cpu.size(); ++b)
      for (int64_t i = 0; i < cpu[b].size(); ++i)
        ASSERT_NEAR(cpu[b].get(i), gpu[b].get(i), 1e-6)
            << optimizer << " buffer " << b << " at " << i;
  }
}

TEST(GpuKernels, PositionsBeyond32Bits) {
  // A stage of three thousand million weights: too large to run here.
  Program program("module {}");
  buildUpdate(program, "sgd", 3000000000);
  FailureOr<GpuKernels> gpu = compileGpuKernels(program.module(), 80);
  ASSERT_TRUE(succeeded(gpu));
  EXPECT_EQ(gpu->kernels[0].launches[0].grid, 3000000000 / 4 / 256 + 1);
  EXPECT_NE(gpu->ptx[0].text.find("mul.wide.u32"), std::string::npos);
}

/// Fills a kernel's parameters and results.
static std::vector<Buffer> makeArguments(func::FuncOp kernel) {
  std::vector<Buffer> buffers;
  for (ArrayRef<Type> types :
       {kernel.getArgumentTypes(), kernel.getResultTypes()})
    for (Type type : types) {
      buffers.emplace_back(cast<RankedTensorType>(type));
      for (int64_t i = 0; i < buffers.back().size(); ++i)
        buffers.back().set(i, 0.2 + std::sin(i + 10.0 * buffers.size()) / 6);
    }
  return buffers;
}

TEST(GpuKernels, PositionsOf64BitsGiveTheSameBits) {
  const char *transpose = R"mlir(
  func.func @transpose(%x: tensor<$Rx$Nxf32>) -> tensor<$Nx$Rxf32> {
    %0 = nn.transpose %x permutation = [1, 0] : tensor<$Rx$Nxf32> -> tensor<$Nx$Rxf32>
    return %0 : tensor<$Nx$Rxf32>
  })mlir";
  for (const std::string &text : {withShape(kLayerNormBackward, 40, 1023),
                                  withShape(kLayerNormBackward, 19, 20000),
                                  withShape(transpose, 70, 41)}) {
    Program program(text);
    ASSERT_TRUE(program.ok);
    FailureOr<GpuKernels> compiled =
        compileGpuKernels(program.module(), 90, /*widePositions=*/true);
    ASSERT_TRUE(succeeded(compiled));
    EXPECT_NE(compiled->ptx[0].text, program.onGpu().ptx[0].text);
    for (auto kernel : program.module().getOps<func::FuncOp>()) {
      std::vector<Buffer> narrow = makeArguments(kernel), wide = narrow;
      program.callOnGpu(kernel.getName(), narrow);
      program.callOnGpu(program.module(), kernel.getName(), wide,
                        /*widePositions=*/true);
      for (size_t b = 0; b < narrow.size(); ++b)
        for (int64_t i = 0; i < narrow[b].size(); ++i)
          ASSERT_EQ(narrow[b].get(i), wide[b].get(i))
              << kernel.getName().str() << " buffer " << b << " at " << i;
    }
  }
}

TEST(GpuKernels, FunctionsKnowInfinitiesAndNans) {
  std::string text;
  const std::vector<std::pair<const char *, double (*)(double)>> functions{
      {"exp", [](double x) { return std::exp(x); }},
      {"log", [](double x) { return std::log(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"erf", [](double x) { return std::erf(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"reciprocal", [](double x) { return 1.0 / x; }}};
  for (auto [name, function] : functions)
    text += std::string("func.func @") + name +
            "(%x: tensor<2000xf32>) -> tensor<2000xf32> {\n  %0 = nn." + name +
            " %x : tensor<2000xf32>\n  return %0 : tensor<2000xf32>\n}\n";
  Program program(text);
  ASSERT_TRUE(program.ok);
  auto type =
      RankedTensorType::get(2000, Float32Type::get(&program.getContext()));
  const double inf = std::numeric_limits<double>::infinity();
  Buffer x(type);
  const double special[] = {0.0, inf, -inf, NAN, 88.6, -86.0, 1e30, -1e30};
  for (int64_t i = 0; i < x.size(); ++i)
    x.set(i, i < 8 ? special[i] : 0.041 * (i - 1000));
  for (auto [name, function] : functions) {
    std::vector<Buffer> buffers{x, Buffer(type)};
    program.callOnGpu(name, buffers);
    for (int64_t i = 0; i < x.size(); ++i) {
      double expected = static_cast<float>(function(x.get(i)));
      double actual = buffers[1].get(i);
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(actual)) << name << "(" << x.get(i) << ")";
      else if (std::isinf(expected))
        EXPECT_EQ(actual, expected) << name << "(" << x.get(i) << ")";
      else
        EXPECT_NEAR(actual, expected, 6e-7 * std::fabs(expected) + 1e-37)
            << name << "(" << x.get(i) << ")";
    }
  }
}

TEST(GpuKernels, RowsInBfloat16) {
  expectGpuLikeCpu(withShape(kLayerNormBackward, 40, 768, "bf16"), 1.6e-2);
  expectGpuLikeCpu(withShape(kLayerNormBackward, 20, 1023, "bf16"), 1.6e-2);
}

} // namespace
