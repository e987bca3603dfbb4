//===- OptimizerKernelTests.cpp - compiled updates follow their formulas --===//

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

/// One step of an optimizer's formula on all elements of one weight; `s` are
/// its states.
void updateLikeFormula(const nn::OptimizerChoice &choice,
                       std::vector<double> &w, const std::vector<double> &g,
                       std::vector<std::vector<double>> &s, const double *h) {
  const nn::UpdateRule rule = choice.row->rule;
  // Muon's is of matrices; this is of what is none.
  const bool isMuon = rule == nn::UpdateRule::Muon;
  const double lr = h[0] * (isMuon ? choice.get("adamw_lr_factor") : 1),
               decay =
                   choice.get(isMuon ? "adamw_weight_decay" : "weight_decay");
  const double momentum = choice.get("momentum"), eps = choice.get("eps");
  const double beta1 = choice.get("beta1"), beta2 = choice.get("beta2");
  const double alpha = choice.get("alpha");
  const double scale = h[choice.row->positionOf("GradientScale")];
  const bool isCoupled = rule == nn::UpdateRule::Sgd ||
                         rule == nn::UpdateRule::Adam ||
                         rule == nn::UpdateRule::Rmsprop;
  std::vector<double> d;
  double weightLength = 0, length = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    double scaled = g[i] * scale + (isCoupled ? decay * w[i] : 0);
    double way = scaled;
    if (rule == nn::UpdateRule::Sgd && momentum != 0) {
      s[0][i] = momentum * s[0][i] + scaled;
      way = choice.get("nesterov") != 0 ? scaled + momentum * s[0][i] : s[0][i];
    } else if (rule == nn::UpdateRule::Rmsprop) {
      s[0][i] = alpha * s[0][i] + (1 - alpha) * scaled * scaled;
      way = scaled / (std::sqrt(s[0][i]) + eps);
      if (momentum != 0)
        way = s[1][i] = momentum * s[1][i] + way;
    } else if (rule == nn::UpdateRule::Lion) {
      double mean = beta1 * s[0][i] + (1 - beta1) * scaled;
      way = double(mean > 0) - double(mean < 0);
      s[0][i] = beta2 * s[0][i] + (1 - beta2) * scaled;
    } else if (rule != nn::UpdateRule::Sgd) {
      s[0][i] = beta1 * s[0][i] + (1 - beta1) * scaled;
      s[1][i] = beta2 * s[1][i] + (1 - beta2) * scaled * scaled;
      way = h[1] * s[0][i] / (std::sqrt(s[1][i] * h[2]) + eps);
    }
    if (!isCoupled)
      way += decay * w[i];
    d.push_back(way);
    weightLength += w[i] * w[i];
    length += way * way;
  }
  double ratio = 1;
  if (rule == nn::UpdateRule::Lamb && weightLength > 0 && length > 0)
    ratio = std::sqrt(weightLength) / std::sqrt(length);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] -= lr * ratio * d[i];
}

std::vector<double> valuesOf(const Buffer &buffer) {
  std::vector<double> values;
  for (int64_t i = 0; i < buffer.size(); ++i)
    values.push_back(buffer.get(i));
  return values;
}

/// What a kernel takes: `fill` of a buffer's number and a place in it.
std::vector<Buffer>
argumentsOf(func::FuncOp kernel,
            llvm::function_ref<double(size_t, int64_t)> fill) {
  std::vector<Buffer> buffers;
  for (Type type : kernel.getArgumentTypes()) {
    Buffer buffer(cast<RankedTensorType>(type));
    for (int64_t i = 0; i < buffer.size(); ++i)
      buffer.set(i, fill(buffers.size(), i));
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

/// Runs the kernel of an optimizer and compares it with the formula; nothing
/// about weights and states but that `fill` makes them.
void expectLikeFormula(const std::string &optimizer,
                       llvm::ArrayRef<int64_t> shape,
                       llvm::function_ref<double(size_t, int64_t)> fill,
                       bool onGpu = false) {
  SCOPED_TRACE(optimizer + " of " + std::to_string(llvm::product_of(shape)));
  Program program("module {}");
  nn::OptimizerChoice choice = llvm::cantFail(nn::parseOptimizer(optimizer));
  func::FuncOp kernel = nn::buildUpdateKernel(
      program.module(), nn::OptimizerAttr::get(&program.getContext(), choice),
      shape);
  ASSERT_TRUE(program.compile());
  const size_t states = choice.states().size();
  ASSERT_EQ(kernel.getNumArguments(), 3 + states);
  std::vector<Buffer> buffers = argumentsOf(kernel, fill);
  std::vector<double> w = valuesOf(buffers[0]), g = valuesOf(buffers[1]);
  std::vector<double> h = valuesOf(buffers.back());
  std::vector<std::vector<double>> s;
  for (size_t state = 0; state < states; ++state)
    s.push_back(valuesOf(buffers[2 + state]));
  updateLikeFormula(choice, w, g, s, h.data());
  if (onGpu)
    program.callOnGpu(kernel.getName(), buffers);
  else
    program.call(kernel.getName(), buffers);
  for (size_t i = 0; i < w.size(); ++i) {
    ASSERT_NEAR(buffers[0].get(i), w[i], 1e-6) << "weight " << i;
    ASSERT_EQ(buffers[1].get(i), 0.0) << "gradient " << i;
    for (size_t state = 0; state < states; ++state)
      ASSERT_NEAR(buffers[2 + state].get(i), s[state][i], 1e-6)
          << "state " << state << " of " << i;
  }
}

double wave(size_t buffer, int64_t i) {
  return 0.2 + std::sin(i + 10.0 * buffer) / 6;
}

TEST(OptimizerKernels, UpdateInPlace) {
  for (const nn::Optimizer &row : nn::optimizers())
    expectLikeFormula(row.name.str() + ",weight_decay=0.1", {37}, wave);
  expectLikeFormula("sgd,weight_decay=0.1,momentum=0.9", {37}, wave);
  expectLikeFormula("sgd,weight_decay=0.1,momentum=0.9,nesterov", {37}, wave);
  expectLikeFormula("rmsprop,weight_decay=0.1,momentum=0.9", {37}, wave);
}

/// A matrix of f32 with waves in it, as a weight that is marked.
nn::WeightOp addMatrix(ModuleOp module, int64_t rows, int64_t columns,
                       nn::MatrixOutputs outputs) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  return nn::WeightOp::create(
      builder, module.getLoc(), "matrix",
      RankedTensorType::get({rows, columns}, builder.getF32Type()),
      nn::WeightRole::Parameter, /*file_rows=*/IntegerAttr(),
      /*channels_last=*/false,
      nn::MatrixOutputsAttr::get(module.getContext(), outputs));
}

// The direction has the norm 1 whatever the gradient's is, and none where that
// is 0; a step is as long as the shape says.
TEST(OptimizerKernels, MuonGoesWhereAMatrixPoints) {
  struct Case {
    std::string optimizer;
    int64_t rows, columns;
    nn::MatrixOutputs outputs;
    double reach;
  };
  for (const bool onGpu : {false, true})
    for (const double size : {1e-12, 1.0, 1e12, 0.0})
      for (const Case &c :
           {Case{"muon", 6, 11, nn::MatrixOutputs::Rows, 1},
            Case{"muon", 6, 11, nn::MatrixOutputs::Columns,
                 std::sqrt(11.0 / 6)},
            Case{"muon,nesterov=false", 11, 6, nn::MatrixOutputs::Rows,
                 std::sqrt(11.0 / 6)},
            Case{"muon,match_rms,weight_decay=0,momentum=0.5", 11, 6,
                 nn::MatrixOutputs::Rows, 0.2 * std::sqrt(11.0)},
            Case{"muon", 1, 1, nn::MatrixOutputs::Rows, 1}}) {
        SCOPED_TRACE(c.optimizer + " of " + std::to_string(c.rows) +
                     (onGpu ? " on a GPU" : "") + ", size " +
                     std::to_string(size));
        Program program("module {}");
        nn::OptimizerChoice choice =
            llvm::cantFail(nn::parseOptimizer(c.optimizer));
        auto spec = nn::OptimizerAttr::get(&program.getContext(), choice);
        nn::WeightOp matrix =
            addMatrix(program.module(), c.rows, c.columns, c.outputs);
        func::FuncOp begin = nn::buildDirectionKernel(
            program.module(), spec, matrix, /*maySkip=*/false);
        func::FuncOp end =
            nn::buildFinishKernel(program.module(), spec, matrix,
                                  /*rounds=*/false, /*maySkip=*/false);
        ASSERT_TRUE(program.compile());
        auto fill = [&](size_t buffer, int64_t i) {
          return buffer < 2 ? size * std::sin(i + 10.0 * buffer)
                            : wave(buffer, i);
        };
        auto call = [&](func::FuncOp kernel, std::vector<Buffer> &buffers) {
          if (onGpu)
            program.callOnGpu(kernel.getName(), buffers);
          else
            program.call(kernel.getName(), buffers);
        };
        // m, gradient, hyper, direction
        std::vector<Buffer> first = argumentsOf(begin, fill);
        first.push_back(Buffer(matrix.getTensorType()));
        std::vector<double> m = valuesOf(first[0]), g = valuesOf(first[1]),
                            h = valuesOf(first[2]);
        call(begin, first);
        const double momentum = choice.get("momentum");
        std::vector<double> d;
        double squares = 0;
        for (size_t i = 0; i < g.size(); ++i) {
          double scaled = g[i] * h[3];
          m[i] = momentum * m[i] + (1 - momentum) * scaled;
          d.push_back(choice.get("nesterov") != 0
                          ? (1 - momentum) * scaled + momentum * m[i]
                          : m[i]);
          squares += d[i] * d[i];
        }
        const double norm = std::max(std::sqrt(squares), 1e-7);
        for (size_t i = 0; i < g.size(); ++i) {
          ASSERT_NEAR(first[0].get(i), m[i], 1e-6 * size) << "m " << i;
          ASSERT_EQ(first[1].get(i), static_cast<float>(g[i]));
          ASSERT_NEAR(first[3].get(i), d[i] / norm, 2e-6) << "direction " << i;
        }
        // weights, gradient, direction, hyper
        std::vector<Buffer> second = argumentsOf(end, wave);
        std::vector<double> w = valuesOf(second[0]), x = valuesOf(second[2]),
                            scalars = valuesOf(second[3]);
        call(end, second);
        for (size_t i = 0; i < w.size(); ++i) {
          double expected =
              w[i] * (1 - scalars[0] * choice.get("weight_decay")) -
              scalars[0] * c.reach * x[i];
          ASSERT_NEAR(second[0].get(i), expected, 1e-6) << "weight " << i;
          ASSERT_EQ(second[1].get(i), 0);
        }
      }
}

TEST(OptimizerKernels, MuonSkipsWhereTheScaleIsNoNumber) {
  for (const bool onGpu : {false, true}) {
    Program program("module {}");
    auto spec = nn::OptimizerAttr::get(
        &program.getContext(), llvm::cantFail(nn::parseOptimizer("muon")));
    nn::WeightOp matrix =
        addMatrix(program.module(), 5, 7, nn::MatrixOutputs::Rows);
    func::FuncOp kernels[] = {
        nn::buildDirectionKernel(program.module(), spec, matrix,
                                 /*maySkip=*/true),
        nn::buildFinishKernel(program.module(), spec, matrix, /*rounds=*/true,
                              /*maySkip=*/true)};
    ASSERT_TRUE(program.compile());
    for (func::FuncOp kernel : kernels) {
      SCOPED_TRACE(kernel.getName().str());
      std::vector<Buffer> buffers = argumentsOf(kernel, wave);
      Buffer &hyper = buffers.back();
      hyper.set(3, std::numeric_limits<double>::quiet_NaN());
      // Of the step that is skipped nothing is a number.
      for (size_t other = 1; other + 1 < buffers.size(); ++other)
        for (int64_t i = 0; i < 35; ++i)
          buffers[other].set(i, std::numeric_limits<double>::quiet_NaN());
      buffers.push_back(
          Buffer(cast<RankedTensorType>(kernel.getResultTypes().back())));
      if (onGpu)
        program.callOnGpu(kernel.getName(), buffers);
      else
        program.call(kernel.getName(), buffers);
      for (int64_t i = 0; i < 35; ++i)
        ASSERT_EQ(buffers[0].get(i), static_cast<float>(wave(0, i)));
    }
  }
}

// Every optimizer, some with everything that they keep: where the scale of
// gradients is not a number, weights, states and bf16 copies stay, and the
// gradient, whatever is in it, is 0 again; else nothing is other than without.
TEST(OptimizerKernels, SkipWhereTheScaleIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::string> all = {"sgd,weight_decay=0.1,momentum=0.9,nesterov",
                                  "rmsprop,momentum=0.9"};
  for (const nn::Optimizer &row : nn::optimizers())
    all.push_back(row.name.str());
  for (const std::string &optimizer : all)
    for (const bool onGpu : {false, true}) {
      SCOPED_TRACE(optimizer + (onGpu ? " on a GPU" : ""));
      const nn::OptimizerChoice choice =
          llvm::cantFail(nn::parseOptimizer(optimizer));
      const int64_t scale = choice.row->positionOf("GradientScale");
      // Whether the kernel may skip, and does.
      auto run = [&](bool maySkip, bool skips) {
        Program program("module {}");
        func::FuncOp kernel = nn::buildUpdateKernel(
            program.module(),
            nn::OptimizerAttr::get(&program.getContext(), choice), {37},
            /*rounds=*/true, maySkip);
        EXPECT_TRUE(program.compile());
        std::vector<Buffer> buffers = argumentsOf(kernel, wave);
        const size_t hyper = buffers.size() - 1;
        for (Type type : kernel.getResultTypes().drop_front(hyper))
          buffers.emplace_back(cast<RankedTensorType>(type));
        if (skips) {
          buffers[hyper].set(scale, nan);
          for (int64_t i = 0; i < 37; i += 5)
            buffers[1].set(i, i % 2 ? nan : HUGE_VAL);
        }
        if (onGpu)
          program.callOnGpu(kernel.getName(), buffers);
        else
          program.call(kernel.getName(), buffers);
        std::vector<std::vector<double>> values;
        for (const Buffer &buffer : buffers)
          values.push_back(valuesOf(buffer));
        values.erase(values.begin() + hyper);
        return values;
      };
      EXPECT_EQ(run(true, false), run(false, false));
      const auto skipped = run(true, true);
      for (size_t buffer = 0; buffer + 1 < skipped.size(); ++buffer)
        for (int64_t i = 0; i < 37; ++i)
          ASSERT_EQ(skipped[buffer][i],
                    buffer == 1 ? 0 : static_cast<float>(wave(buffer, i)))
              << "buffer " << buffer << ", element " << i;
      for (int64_t i = 0; i < 37; ++i)
        ASSERT_NEAR(skipped.back()[i], skipped[0][i], 2e-3) << "rounded " << i;
    }
}

// A third of the weights is pulled up, a third down, and one is where it is.
TEST(OptimizerKernels, LionTakesStepsOfOneLength) {
  auto fill = [](size_t buffer, int64_t i) {
    return buffer == 1 || buffer == 2 ? double(i % 3 - 1) * wave(buffer, i)
                                      : wave(buffer, i);
  };
  for (bool onGpu : {false, true}) {
    expectLikeFormula("lion", {37}, fill, onGpu);
    expectLikeFormula("lion,weight_decay=0.1", {37}, fill, onGpu);
  }
}

// What takes norms does so over the whole weight, however it is cut into rows:
// one element, one row, rows that are too long for one loop, filters.
TEST(OptimizerKernels, LambTakesNormsOfWholeWeights) {
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{1}, {300}, {7, 129}, {2, 70000}, {5, 3, 3, 2}})
    for (bool onGpu : {false, true})
      expectLikeFormula("lamb,weight_decay=0.1", shape, wave, onGpu);
}

// The ratio of lengths is 1 where one of them is 0, also where both are.
TEST(OptimizerKernels, LambTakesPlainStepsFromZero) {
  for (bool onGpu : {false, true}) {
    expectLikeFormula(
        "lamb", {3, 40},
        [](size_t b, int64_t i) { return b == 0 ? 0 : wave(b, i); }, onGpu);
    expectLikeFormula(
        "lamb,weight_decay=0", {3, 40},
        [](size_t b, int64_t i) { return b == 1 || b == 2 ? 0 : wave(b, i); },
        onGpu);
    expectLikeFormula(
        "lamb", {3, 40},
        [](size_t b, int64_t i) { return b < 4 ? 0 : wave(b, i); }, onGpu);
  }
}

} // namespace
