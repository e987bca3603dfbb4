//===- KernelTests.cpp - compiled kernels compute what ops mean -----------===//

#include "passes/nn/kernels/OptimizerKernels.h"
#include "test/unit/kernels/KernelTesting.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::codegen;
using namespace pipewright::codegen::testing;

namespace {

/// Replaces every $N in `text`.
std::string withSize(std::string text, int64_t size) {
  for (size_t at; (at = text.find("$N")) != std::string::npos;)
    text.replace(at, 2, std::to_string(size));
  return text;
}

/// Row lengths around the length of vectors, and longer ones.
const int64_t kSizes[] = {1, 2, 15, 16, 31, 33, 200};

TEST(Kernels, UnaryOps) {
  const char *ops[] = {"neg",  "exp",     "expm1", "abs",     "erf",
                       "tanh", "sigmoid", "relu",  "softplus"};
  std::string text;
  for (const char *op : ops)
    text += std::string("func.func @") + op +
            "(%x: tensor<3x$Nxf32>) -> tensor<3x$Nxf32> {\n %y = nn." + op +
            " %x : tensor<3x$Nxf32>\n return %y : tensor<3x$Nxf32>\n}\n";
  for (const char *op : {"log", "log1p", "sqrt", "rsqrt", "reciprocal"})
    text += std::string("func.func @") + op +
            "(%x: tensor<3x$Nxf32> {test.positive}) -> tensor<3x$Nxf32> {\n"
            " %y = nn." +
            op + " %x : tensor<3x$Nxf32>\n return %y : tensor<3x$Nxf32>\n}\n";
  for (int64_t size : {1, 33})
    expectLikeReference(withSize(text, size), 4e-7);
}

TEST(Kernels, Gelu) {
  for (int64_t size : {1, 33, 100})
    expectLikeReference(withSize(R"mlir(
      func.func @gelu(%x: tensor<3x$Nxf32>, %b: tensor<$Nxf32>)
          -> (tensor<3x$Nxf32>, tensor<3x$Nxf32>) {
        %h = nn.add %x, %b : (tensor<3x$Nxf32>, tensor<$Nxf32>) -> tensor<3x$Nxf32>
        %0 = nn.gelu %h approximate = none : tensor<3x$Nxf32>
        %1 = nn.gelu %h approximate = tanh : tensor<3x$Nxf32>
        return %0, %1 : tensor<3x$Nxf32>, tensor<3x$Nxf32>
      }
      func.func @gelu_backward(%dy: tensor<3x$Nxf32>, %x: tensor<3x$Nxf32>)
          -> (tensor<3x$Nxf32>, tensor<3x$Nxf32>, tensor<$Nxf32>) {
        %0 = nn.gelu_backward %dy, %x approximate = none : tensor<3x$Nxf32>
        %1 = nn.gelu_backward %dy, %x approximate = tanh : tensor<3x$Nxf32>
        %2 = nn.reduce_sum %0 axes = [0] : tensor<3x$Nxf32> -> tensor<$Nxf32>
        return %0, %1, %2 : tensor<3x$Nxf32>, tensor<3x$Nxf32>, tensor<$Nxf32>
      })mlir",
                                 size));
}

TEST(Kernels, BinaryOpsBroadcast) {
  std::string text;
  for (const char *op :
       {"add", "sub", "mul", "div", "maximum", "minimum", "pow"})
    text +=
        std::string("func.func @") + op + R"mlir((
        %a: tensor<2x1x$Nxf32> {test.positive},
        %b: tensor<3x1xf32> {test.positive},
        %c: tensor<f32> {test.positive})
        -> (tensor<2x3x$Nxf32>, tensor<2x1x$Nxf32>) {
      %0 = nn.)mlir" +
        op +
        R"mlir( %a, %b : (tensor<2x1x$Nxf32>, tensor<3x1xf32>) -> tensor<2x3x$Nxf32>
      %1 = nn.)mlir" +
        op +
        R"mlir( %c, %a : (tensor<f32>, tensor<2x1x$Nxf32>) -> tensor<2x1x$Nxf32>
      return %0, %1 : tensor<2x3x$Nxf32>, tensor<2x1x$Nxf32>
    })mlir";
  for (int64_t size : {1, 5, 33})
    expectLikeReference(withSize(text, size));
}

TEST(Kernels, IntegersAndTruthValues) {
  expectLikeReference(R"mlir(
    func.func @integers(%a: tensor<5x7xi64>, %b: tensor<7xi64>)
        -> (tensor<5x7xi64>, tensor<5x7xi64>, tensor<5x7xi1>, tensor<5x7xf32>) {
      %0 = nn.add %a, %b : (tensor<5x7xi64>, tensor<7xi64>) -> tensor<5x7xi64>
      %1 = nn.mul %0, %b : (tensor<5x7xi64>, tensor<7xi64>) -> tensor<5x7xi64>
      %2 = nn.compare %a, %b predicate = lt : (tensor<5x7xi64>, tensor<7xi64>) -> tensor<5x7xi1>
      %3 = nn.cast %1 : tensor<5x7xi64> -> tensor<5x7xf32>
      %4 = nn.neg %1 : tensor<5x7xi64>
      return %1, %4, %2, %3 : tensor<5x7xi64>, tensor<5x7xi64>, tensor<5x7xi1>, tensor<5x7xf32>
    }
    func.func @masks(%m: tensor<1x33xi1>, %x: tensor<4x33xf32>, %k: tensor<4x33xi1>)
        -> (tensor<4x33xi1>, tensor<4x33xf32>, tensor<4x33xi1>, tensor<4x33xf32>) {
      %zero = nn.constant dense<-3.0> : tensor<f32>
      %0 = nn.logical_and %m, %k : (tensor<1x33xi1>, tensor<4x33xi1>) -> tensor<4x33xi1>
      %1 = nn.logical_or %m, %k : (tensor<1x33xi1>, tensor<4x33xi1>) -> tensor<4x33xi1>
      %2 = nn.logical_not %0 : tensor<4x33xi1>
      %3 = nn.where %2, %x, %zero : (tensor<4x33xi1>, tensor<4x33xf32>, tensor<f32>) -> tensor<4x33xf32>
      %4 = nn.cast %m : tensor<1x33xi1> -> tensor<1x33xf32>
      %5 = nn.add %3, %4 : (tensor<4x33xf32>, tensor<1x33xf32>) -> tensor<4x33xf32>
      %6 = nn.compare %x, %zero predicate = ge : (tensor<4x33xf32>, tensor<f32>) -> tensor<4x33xi1>
      return %1, %3, %6, %5 : tensor<4x33xi1>, tensor<4x33xf32>, tensor<4x33xi1>, tensor<4x33xf32>
    }
    func.func @constants(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x2xi1>) {
      %c = nn.constant dense<[1.0, 2.5, -4.0]> : tensor<3xf32>
      %m = nn.constant dense<[[true, false], [false, true]]> : tensor<2x2xi1>
      %0 = nn.mul %x, %c : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
      return %0, %m : tensor<2x3xf32>, tensor<2x2xi1>
    })mlir");
}

TEST(Kernels, MovingElements) {
  expectLikeReference(R"mlir(
    func.func @heads(%x: tensor<2x5x12xf32>) -> tensor<2x3x5x4xf32> {
      %0 = nn.reshape %x : tensor<2x5x12xf32> -> tensor<2x5x3x4xf32>
      %1 = nn.transpose %0 permutation = [0, 2, 1, 3] : tensor<2x5x3x4xf32> -> tensor<2x3x5x4xf32>
      return %1 : tensor<2x3x5x4xf32>
    }
    func.func @query(%x: tensor<2x5x36xf32>, %b: tensor<36xf32>) -> tensor<2x3x5x4xf32> {
      %a = nn.add %x, %b : (tensor<2x5x36xf32>, tensor<36xf32>) -> tensor<2x5x36xf32>
      %s = nn.slice %a starts = [0, 0, 12] sizes = [2, 5, 12] steps = [1, 1, 1] : tensor<2x5x36xf32> -> tensor<2x5x12xf32>
      %0 = nn.reshape %s : tensor<2x5x12xf32> -> tensor<2x5x3x4xf32>
      %1 = nn.transpose %0 permutation = [0, 2, 1, 3] : tensor<2x5x3x4xf32> -> tensor<2x3x5x4xf32>
      return %1 : tensor<2x3x5x4xf32>
    }
    func.func @last(%x: tensor<7x33xf32>) -> tensor<33x7xf32> {
      %1 = nn.transpose %x permutation = [1, 0] : tensor<7x33xf32> -> tensor<33x7xf32>
      return %1 : tensor<33x7xf32>
    }
    func.func @slices(%x: tensor<6x35xf32>) -> (tensor<6x7xf32>, tensor<3x12xf32>, tensor<6x35xf32>, tensor<2x3x7xf32>) {
      %0 = nn.slice %x starts = [0, 21] sizes = [6, 7] steps = [1, 1] : tensor<6x35xf32> -> tensor<6x7xf32>
      %1 = nn.slice %x starts = [1, 0] sizes = [3, 12] steps = [2, 3] : tensor<6x35xf32> -> tensor<3x12xf32>
      %2 = nn.slice %x starts = [5, 34] sizes = [6, 35] steps = [-1, -1] : tensor<6x35xf32> -> tensor<6x35xf32>
      %3 = nn.reshape %0 : tensor<6x7xf32> -> tensor<2x3x7xf32>
      return %0, %1, %2, %3 : tensor<6x7xf32>, tensor<3x12xf32>, tensor<6x35xf32>, tensor<2x3x7xf32>
    }
    func.func @pad(%x: tensor<3x5xf32>) -> tensor<4x8xf32> {
      %0 = nn.pad %x low = [0, 1] high = [1, 2] : tensor<3x5xf32> -> tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    func.func @concat(%a: tensor<3x5xf32>, %b: tensor<3x2xf32>, %c: tensor<2x7xf32>) -> (tensor<5x7xf32>) {
      %0 = nn.concat %a, %b axis = 1 : (tensor<3x5xf32>, tensor<3x2xf32>) -> tensor<3x7xf32>
      %1 = nn.concat %0, %c axis = 0 : (tensor<3x7xf32>, tensor<2x7xf32>) -> tensor<5x7xf32>
      return %1 : tensor<5x7xf32>
    }
    func.func @thirds(%a: tensor<2x3x5x4xf32>, %b: tensor<2x5x12xf32>, %c: tensor<2x5x12xf32>) -> (tensor<2x5x36xf32>, tensor<36xf32>) {
      %t = nn.transpose %a permutation = [0, 2, 1, 3] : tensor<2x3x5x4xf32> -> tensor<2x5x3x4xf32>
      %r = nn.reshape %t : tensor<2x5x3x4xf32> -> tensor<2x5x12xf32>
      %0 = nn.concat %r, %b, %c axis = 2 : (tensor<2x5x12xf32>, tensor<2x5x12xf32>, tensor<2x5x12xf32>) -> tensor<2x5x36xf32>
      %1 = nn.reduce_sum %0 axes = [0, 1] : tensor<2x5x36xf32> -> tensor<36xf32>
      return %0, %1 : tensor<2x5x36xf32>, tensor<36xf32>
    }
    func.func @channels(%a: tensor<2x3x4x4xf32>, %b: tensor<2x1x4x4xf32>) -> (tensor<2x4x4x4xf32>) {
      %0 = nn.concat %a, %b axis = 1 : (tensor<2x3x4x4xf32>, tensor<2x1x4x4xf32>) -> tensor<2x4x4x4xf32>
      return %0 : tensor<2x4x4x4xf32>
    }
    func.func @broadcast(%x: tensor<3x1xf32>) -> tensor<2x3x33xf32> {
      %0 = nn.broadcast_to %x : tensor<3x1xf32> -> tensor<2x3x33xf32>
      return %0 : tensor<2x3x33xf32>
    }
    func.func @copies(%x: tensor<3x4xf32>) -> (tensor<12xf32>, tensor<3x4xf32>, tensor<1x1xf32>) {
      %0 = nn.reshape %x : tensor<3x4xf32> -> tensor<12xf32>
      %1 = nn.constant dense<2.0> : tensor<f32>
      %2 = nn.reshape %1 : tensor<f32> -> tensor<1x1xf32>
      return %0, %x, %2 : tensor<12xf32>, tensor<3x4xf32>, tensor<1x1xf32>
    })mlir");
}

TEST(Kernels, Reductions) {
  std::string text;
  int number = 0;
  for (const char *op : {"sum", "mean", "max"})
    for (auto [axes, shape] :
         std::initializer_list<std::pair<const char *, const char *>>{
             {"0", "1x4x$N"},
             {"1", "3x1x$N"},
             {"2", "3x4x1"},
             {"0, 1", "1x1x$N"},
             {"0, 2", "1x4x1"},
             {"1, 2", "3x1x1"},
             {"0, 1, 2", "1x1x1"}})
      text += "func.func @r" + std::to_string(number++) +
              "(%x: tensor<3x4x$Nxf32>) -> tensor<" + shape +
              "xf32> {\n %y = nn.reduce_" + op + " %x axes = [" + axes +
              "] keep_dims : tensor<3x4x$Nxf32> -> tensor<" + shape +
              "xf32>\n return %y : tensor<" + shape + "xf32>\n}\n";
  for (int64_t size : kSizes)
    expectLikeReference(withSize(text, size));
}

TEST(Kernels, Softmax) {
  for (int64_t size : kSizes)
    expectLikeReference(withSize(R"mlir(
      func.func @softmax(%x: tensor<2x3x$Nxf32>) -> tensor<2x3x$Nxf32> {
        %y = nn.softmax %x : tensor<2x3x$Nxf32>
        return %y : tensor<2x3x$Nxf32>
      }
      func.func @log_softmax(%x: tensor<2x3x$Nxf32>) -> tensor<2x3x$Nxf32> {
        %y = nn.log_softmax %x : tensor<2x3x$Nxf32>
        return %y : tensor<2x3x$Nxf32>
      }
      func.func @softmax_backward(%dy: tensor<2x3x$Nxf32>, %y: tensor<2x3x$Nxf32>)
          -> (tensor<2x3x$Nxf32>, tensor<2x3x$Nxf32>) {
        %0 = nn.softmax_backward %dy, %y : tensor<2x3x$Nxf32>
        %1 = nn.log_softmax_backward %dy, %y : tensor<2x3x$Nxf32>
        return %0, %1 : tensor<2x3x$Nxf32>, tensor<2x3x$Nxf32>
      })mlir",
                                 size));
}

TEST(Kernels, LayerNorm) {
  for (int64_t size : kSizes)
    expectLikeReference(withSize(R"mlir(
      func.func @layer_norm(%x: tensor<2x3x$Nxf32>, %r: tensor<2x3x$Nxf32>, %s: tensor<$Nxf32>, %b: tensor<$Nxf32>)
          -> (tensor<2x3x$Nxf32>, tensor<2x3x$Nxf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
        %h = nn.add %x, %r : (tensor<2x3x$Nxf32>, tensor<2x3x$Nxf32>) -> tensor<2x3x$Nxf32>
        %y, %mean, %rstd = nn.layer_norm %h, %s, %b epsilon = 1.0e-2
          : (tensor<2x3x$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>) -> (tensor<2x3x$Nxf32>, tensor<2x3xf32>, tensor<2x3xf32>)
        return %h, %y, %mean, %rstd : tensor<2x3x$Nxf32>, tensor<2x3x$Nxf32>, tensor<2x3xf32>, tensor<2x3xf32>
      }
      func.func @layer_norm_backward(%dy: tensor<2x3x$Nxf32>, %x: tensor<2x3x$Nxf32>, %s: tensor<$Nxf32>, %mean: tensor<2x3xf32>, %rstd: tensor<2x3xf32> {test.positive})
          -> (tensor<2x3x$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>) {
        %dx, %ds, %db = nn.layer_norm_backward %dy, %x, %s, %mean, %rstd
          : (tensor<2x3x$Nxf32>, tensor<2x3x$Nxf32>, tensor<$Nxf32>, tensor<2x3xf32>, tensor<2x3xf32>)
          -> (tensor<2x3x$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>)
        return %dx, %ds, %db : tensor<2x3x$Nxf32>, tensor<$Nxf32>, tensor<$Nxf32>
      })mlir",
                                 size),
                        4e-6);
}

TEST(Kernels, BatchNorm) {
  for (const char *shape : {"4x3", "2x3x$N", "2x3x4x$N"})
    for (int64_t size : {1, 7, 33}) {
      std::string text = R"mlir(
        func.func @batch_norm(%x: tensor<$Sxf32>, %s: tensor<3xf32>, %b: tensor<3xf32>)
            -> (tensor<$Sxf32>, tensor<$Sxf32>, tensor<3xf32>, tensor<3xf32>) {
          %y, %mean, %variance = nn.batch_norm %x, %s, %b epsilon = 1.0e-1 momentum = 0.9
            : (tensor<$Sxf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<$Sxf32>, tensor<3xf32>, tensor<3xf32>)
          %r = nn.relu %y : tensor<$Sxf32>
          return %y, %r, %mean, %variance : tensor<$Sxf32>, tensor<$Sxf32>, tensor<3xf32>, tensor<3xf32>
        }
        func.func @batch_norm_backward(%dy: tensor<$Sxf32>, %x: tensor<$Sxf32>, %s: tensor<3xf32>, %mean: tensor<3xf32>, %variance: tensor<3xf32> {test.positive})
            -> (tensor<$Sxf32>, tensor<3xf32>, tensor<3xf32>) {
          %dx, %ds, %db = nn.batch_norm_backward %dy, %x, %s, %mean, %variance epsilon = 1.0e-1
            : (tensor<$Sxf32>, tensor<$Sxf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<$Sxf32>, tensor<3xf32>, tensor<3xf32>)
          return %dx, %ds, %db : tensor<$Sxf32>, tensor<3xf32>, tensor<3xf32>
        })mlir";
      for (size_t at; (at = text.find("$S")) != std::string::npos;)
        text.replace(at, 2, shape);
      expectLikeReference(withSize(text, size), 4e-6);
    }
}

TEST(Kernels, GroupNorm) {
  for (const char *shape : {"2x6x$N", "2x6x3x$N"})
    for (int64_t size : {1, 7, 33, 300})
      for (const char *groups : {"1", "2", "6"}) {
        std::string text = R"mlir(
          func.func @group_norm(%x: tensor<$Sxf32>, %s: tensor<6xf32>, %b: tensor<6xf32>)
              -> (tensor<$Sxf32>, tensor<$Sxf32>, tensor<2x$Gxf32>, tensor<2x$Gxf32>) {
            %y, %mean, %variance = nn.group_norm %x, %s, %b groups = $G epsilon = 1.0e-1
              : (tensor<$Sxf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<$Sxf32>, tensor<2x$Gxf32>, tensor<2x$Gxf32>)
            %g = nn.sigmoid %y : tensor<$Sxf32>
            %a = nn.mul %y, %g : (tensor<$Sxf32>, tensor<$Sxf32>) -> tensor<$Sxf32>
            return %y, %a, %mean, %variance : tensor<$Sxf32>, tensor<$Sxf32>, tensor<2x$Gxf32>, tensor<2x$Gxf32>
          }
          func.func @group_norm_backward(%dy: tensor<$Sxf32>, %x: tensor<$Sxf32>, %s: tensor<6xf32>,
              %mean: tensor<2x$Gxf32>, %variance: tensor<2x$Gxf32> {test.positive})
              -> (tensor<$Sxf32>, tensor<6xf32>, tensor<6xf32>, tensor<2x$Gxf32>, tensor<2x$Gxf32>) {
            %0:5 = nn.group_norm_backward %dy, %x, %s, %mean, %variance epsilon = 1.0e-1
              : (tensor<$Sxf32>, tensor<$Sxf32>, tensor<6xf32>, tensor<2x$Gxf32>, tensor<2x$Gxf32>)
              -> (tensor<$Sxf32>, tensor<6xf32>, tensor<6xf32>, tensor<2x$Gxf32>, tensor<2x$Gxf32>)
            return %0#0, %0#1, %0#2, %0#3, %0#4
              : tensor<$Sxf32>, tensor<6xf32>, tensor<6xf32>, tensor<2x$Gxf32>, tensor<2x$Gxf32>
          })mlir";
        for (auto [mark, word] : {std::pair{"$S", shape}, {"$G", groups}})
          for (size_t at; (at = text.find(mark)) != std::string::npos;)
            text.replace(at, 2, word);
        expectLikeReference(withSize(text, size), 4e-6);
      }
}

TEST(Kernels, CrossEntropyIgnoresRows) {
  for (int64_t size : {7, 33, 100})
    expectLikeReference(withSize(R"mlir(
      func.func @forward(%x: tensor<37x$Nxf32>, %l: tensor<37xi64>) -> (tensor<f32>, tensor<37xf32>, tensor<37xf32>) {
        %loss, %largest, %sum = nn.softmax_cross_entropy %x, %l ignore_index = 3
          : (tensor<37x$Nxf32>, tensor<37xi64>) -> (tensor<f32>, tensor<37xf32>, tensor<37xf32>)
        return %loss, %largest, %sum : tensor<f32>, tensor<37xf32>, tensor<37xf32>
      }
      func.func @backward(%d: tensor<f32>, %x: tensor<37x$Nxf32>, %l: tensor<37xi64>, %largest: tensor<37xf32>, %sum: tensor<37xf32>) -> tensor<37x$Nxf32> {
        %dx = nn.softmax_cross_entropy_backward %d, %x, %l, %largest, %sum ignore_index = 3
          : (tensor<f32>, tensor<37x$Nxf32>, tensor<37xi64>, tensor<37xf32>, tensor<37xf32>) -> tensor<37x$Nxf32>
        return %dx : tensor<37x$Nxf32>
      })mlir",
                                 size));
}

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

TEST(Kernels, CausalMaskIsTrueUpToTheDiagonal) {
  Program program(R"mlir(
    func.func @causal(%x: tensor<2x3x35x35xf32>) -> tensor<2x3x35x35xf32> {
      %mask = nn.causal_mask : tensor<1x1x35x35xi1>
      %zero = nn.constant dense<0.0> : tensor<f32>
      %0 = nn.where %mask, %x, %zero
        : (tensor<1x1x35x35xi1>, tensor<2x3x35x35xf32>, tensor<f32>) -> tensor<2x3x35x35xf32>
      return %0 : tensor<2x3x35x35xf32>
    })mlir");
  ASSERT_TRUE(program.ok);
  auto type = RankedTensorType::get({2, 3, 35, 35},
                                    Float32Type::get(&program.getContext()));
  std::vector<Buffer> buffers(2, Buffer(type));
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    buffers[0].set(i, 1.0);
  program.call("causal", buffers);
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    EXPECT_EQ(buffers[1].get(i), i % 35 <= i / 35 % 35 ? 1.0 : 0.0);
}

TEST(Kernels, MaskedSoftmaxHasNoNans) {
  Program program(R"mlir(
    func.func @masked(%x: tensor<2x40xf32>, %m: tensor<2x40xf32>) -> tensor<2x40xf32> {
      %0 = nn.add %x, %m : (tensor<2x40xf32>, tensor<2x40xf32>) -> tensor<2x40xf32>
      %1 = nn.softmax %0 : tensor<2x40xf32>
      return %1 : tensor<2x40xf32>
    })mlir");
  ASSERT_TRUE(program.ok);
  auto type = cast<RankedTensorType>(
      (*program.module().getOps<func::FuncOp>().begin()).getArgumentTypes()[0]);
  std::vector<Buffer> buffers(3, Buffer(type));
  for (int i = 0; i < 80; ++i) {
    buffers[0].set(i, 0.1 * i);
    double mask = i < 40 ? -std::numeric_limits<float>::infinity()
                         : -std::numeric_limits<float>::max();
    buffers[1].set(i, i % 3 ? mask : 0.0);
  }
  program.call("masked", buffers);
  for (int row = 0; row < 2; ++row) {
    double sum = 0.0;
    for (int i = 0; i < 40; ++i) {
      double value = buffers[2].get(row * 40 + i);
      if ((row * 40 + i) % 3)
        EXPECT_EQ(value, 0.0);
      sum += value;
    }
    EXPECT_NEAR(sum, 1.0, 1e-6);
  }
}

TEST(Kernels, ResultsDoNotDependOnFusion) {
  // The same norm alone, and amid ops that share its loops.
  Program program(R"mlir(
    func.func @alone(%x: tensor<5x200xf32>, %r: tensor<5x200xf32>, %s: tensor<200xf32>) -> tensor<5x200xf32> {
      %h = nn.mul %x, %r : (tensor<5x200xf32>, tensor<5x200xf32>) -> tensor<5x200xf32>
      %y, %mean, %rstd = nn.layer_norm %h, %s, %s epsilon = 1.0e-5
        : (tensor<5x200xf32>, tensor<200xf32>, tensor<200xf32>) -> (tensor<5x200xf32>, tensor<5xf32>, tensor<5xf32>)
      return %y : tensor<5x200xf32>
    }
    func.func @fused(%x: tensor<5x200xf32>, %r: tensor<5x200xf32>, %s: tensor<200xf32>)
        -> (tensor<5x200xf32>, tensor<5x200xf32>, tensor<5x200xf32>, tensor<200xf32>, tensor<5xf32>) {
      %h = nn.mul %x, %r : (tensor<5x200xf32>, tensor<5x200xf32>) -> tensor<5x200xf32>
      %y, %mean, %rstd = nn.layer_norm %h, %s, %s epsilon = 1.0e-5
        : (tensor<5x200xf32>, tensor<200xf32>, tensor<200xf32>) -> (tensor<5x200xf32>, tensor<5xf32>, tensor<5xf32>)
      %e = nn.softmax %h : tensor<5x200xf32>
      %c = nn.reduce_sum %e axes = [0] : tensor<5x200xf32> -> tensor<200xf32>
      return %y, %h, %e, %c, %mean : tensor<5x200xf32>, tensor<5x200xf32>, tensor<5x200xf32>, tensor<200xf32>, tensor<5xf32>
    })mlir");
  ASSERT_TRUE(program.ok);
  Type f32 = Float32Type::get(&program.getContext());
  auto full = RankedTensorType::get({5, 200}, f32);
  auto columns = RankedTensorType::get({200}, f32);
  std::vector<Buffer> alone{Buffer(full), Buffer(full), Buffer(columns),
                            Buffer(full)};
  for (int b = 0; b < 3; ++b)
    for (int64_t i = 0; i < alone[b].size(); ++i)
      alone[b].set(i, std::sin(1.7 * i + b));
  std::vector<Buffer> fused = alone;
  fused.insert(fused.end(), {Buffer(full), Buffer(full), Buffer(columns),
                             Buffer(RankedTensorType::get({5}, f32))});
  program.call("alone", alone);
  program.call("fused", fused);
  EXPECT_EQ(alone[3].bytes, fused[3].bytes);
}

TEST(Kernels, FunctionsKnowInfinitiesAndNans) {
  Program program(R"mlir(
    func.func @exp(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = nn.exp %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func @log(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = nn.log %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func @tanh(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = nn.tanh %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func @erf(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = nn.erf %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func @relu(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = nn.relu %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    })mlir");
  ASSERT_TRUE(program.ok);
  const float inf = std::numeric_limits<float>::infinity();
  const float inputs[8] = {0.0f, inf, -inf, NAN, 88.5f, -80.0f, 100.0f, 3e38f};
  auto type =
      RankedTensorType::get({8}, Float32Type::get(&program.getContext()));
  auto check = [&](const char *name, auto function) {
    std::vector<Buffer> buffers(2, Buffer(type));
    for (int i = 0; i < 8; ++i)
      buffers[0].set(i, inputs[i]);
    program.call(name, buffers);
    for (int i = 0; i < 8; ++i) {
      float expected = function(inputs[i]);
      float actual = buffers[1].get(i);
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(actual)) << name << "(" << inputs[i] << ")";
      else if (std::isinf(expected))
        EXPECT_EQ(actual, expected) << name << "(" << inputs[i] << ")";
      else
        EXPECT_NEAR(actual, expected, 1e-6 * std::fabs(expected))
            << name << "(" << inputs[i] << ")";
    }
  };
  check("exp", [](float x) { return std::exp(x); });
  check("log", [](float x) { return std::log(x); });
  check("tanh", [](float x) { return std::tanh(x); });
  check("erf", [](float x) { return std::erf(x); });
  check("relu", [](float x) { return std::isnan(x) ? x : std::fmax(x, 0.0f); });
}

TEST(Kernels, LongSumsAreAccurate) {
  Program program(R"mlir(
    func.func @sum(%x: tensor<1000003xf32>) -> tensor<f32> {
      %0 = nn.reduce_sum %x axes = [0] : tensor<1000003xf32> -> tensor<f32>
      return %0 : tensor<f32>
    })mlir");
  ASSERT_TRUE(program.ok);
  Type f32 = Float32Type::get(&program.getContext());
  std::vector<Buffer> buffers{Buffer(RankedTensorType::get({1000003}, f32)),
                              Buffer(RankedTensorType::get({}, f32))};
  double expected = 0.0;
  for (int64_t i = 0; i < buffers[0].size(); ++i) {
    buffers[0].set(i, 0.1f + 1e-3f * (i % 17));
    expected += buffers[0].get(i);
  }
  program.call("sum", buffers);
  EXPECT_NEAR(buffers[1].get(0) / expected, 1.0, 2e-5);
}

TEST(Kernels, HeaderDeclaresParameters) {
  Program program(R"mlir(
    func.func private @positive_2x3(%x: tensor<2x3xf32>, %l: tensor<i64>) -> tensor<2x3xi1> {
      %zero = nn.constant dense<0.0> : tensor<f32>
      %0 = nn.compare %x, %zero predicate = gt : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xi1>
      return %0 : tensor<2x3xi1>
    })mlir");
  ASSERT_TRUE(program.ok);
  nn::OptimizerChoice adam = llvm::cantFail(nn::parseOptimizer("adam"));
  nn::buildUpdateKernel(program.module(),
                        nn::OptimizerAttr::get(&program.getContext(), adam), 8);
  std::string text;
  llvm::raw_string_ostream os(text);
  writeKernelHeader(program.module(), os);
  EXPECT_NE(text.find("void positive_2x3(const float *x0, const int64_t *x1, "
                      "uint8_t *y0);"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("void adam_8(float *weights, float *gradient, float *m, "
                      "float *v, const float *hyper);"),
            std::string::npos)
      << text;
}

} // namespace
