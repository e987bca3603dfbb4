//===- StageEstimateTests.cpp - Estimates against stages that were made ---===//

#include "passes/pipelines/StageEstimates.h"

#include "dialects/pipe/PipeDialect.h"
#include "frontends/Frontends.h"
#include "passes/planning/NamedMachines.h"
#include "passes/step/CostModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace pipewright;

namespace {

struct Model {
  const char *file;
  const char *loss;
  std::optional<int64_t> microBatchSize;
};

class StageEstimate : public ::testing::TestWithParam<Model> {
protected:
  StageEstimate() {
    context.loadDialect<nn::NNDialect, pipe::PipeDialect, func::FuncDialect>();
  }
  ModuleOp import();
  schedules::TaskCosts costsOfMade(int64_t stages, llvm::StringRef remat);
  schedules::TaskCosts estimate(int64_t stages, llvm::StringRef remat,
                                double &slack, double &keptSlack);
  void setOptions(StagedPipelineOptions &options, int64_t stages,
                  llvm::StringRef remat) const {
    options.stages = stages;
    options.remat = remat.str();
    options.formKernels = true;
    options.splitBackward = true;
  }

  MLIRContext context;
  frontend::ImportedModel model;
  const MachineModel machine = *machineNamed("cpu");
};

} // namespace

ModuleOp StageEstimate::import() {
  if (model.module)
    return *model.module;
  frontend::ImportOptions options;
  options.modelPath =
      std::string(PIPEWRIGHT_TEST_INPUTS "/models/") + GetParam().file;
  options.loss = GetParam().loss;
  options.microBatchSize = GetParam().microBatchSize;
  auto imported = frontend::importModel(options, context);
  EXPECT_TRUE(succeeded(imported));
  if (failed(imported))
    return {};
  model = std::move(*imported);
  pipe::changeProgram(*model.module, [&](pipe::ProgramFields &program) {
    program.microBatches = 8;
    program.ranks = 4;
    program.machine = StringAttr::get(&context, "cpu");
  });
  ImportPipelineOptions passes;
  PassManager pm(&context);
  buildImportPipeline(pm, passes);
  EXPECT_TRUE(succeeded(pm.run(*model.module)));
  return *model.module;
}

schedules::TaskCosts StageEstimate::costsOfMade(int64_t stages,
                                                llvm::StringRef remat) {
  OwningOpRef<ModuleOp> made = import().clone();
  StagedPipelineOptions options;
  setOptions(options, stages, remat);
  PassManager pm(&context);
  buildStagedPipeline(pm, options);
  EXPECT_TRUE(succeeded(pm.run(*made)));
  return predictCosts(*made, machine);
}

schedules::TaskCosts StageEstimate::estimate(int64_t stages,
                                             llvm::StringRef remat,
                                             double &slack, double &keptSlack) {
  StagedPipelineOptions options;
  setOptions(options, 1, remat);
  std::optional<StageEstimates> ops =
      StageEstimates::of(import(), options, machine);
  EXPECT_TRUE(ops);
  pipe::StageCut cut;
  cut.stages = stages;
  auto model = pipe::cutModel(import(), cut);
  EXPECT_TRUE(succeeded(model));
  if (!ops || failed(model))
    return {};
  slack = ops->slack();
  keptSlack = ops->keptSlack();
  return ops->ofCut(*model, costsOfLinks(import(), machine));
}

/// The stage that takes longest, and all of them: what bounds a step.
static std::pair<double, double> worstAndAll(const schedules::TaskCosts &costs,
                                             bool splits) {
  double worst = 0, all = 0;
  for (const schedules::StageCosts &stage : costs.stages) {
    const double seconds =
        stage.forward +
        (splits ? stage.inputGradient + stage.weightGradient : stage.backward);
    worst = std::max(worst, seconds);
    all += seconds;
  }
  return {worst, all};
}

TEST_P(StageEstimate, IsCloseToWhatStagesTake) {
  for (llvm::StringRef remat : {"none", "pointwise", "keep:75", "keep:50",
                                "keep:25", "every:1", "every:2", "full"})
    for (int64_t stages : {2, 3, 4}) {
      double slack = 1, keptSlack = 1;
      const schedules::TaskCosts made = costsOfMade(stages, remat),
                                 guess =
                                     estimate(stages, remat, slack, keptSlack);
      ASSERT_EQ(made.stages.size(), guess.stages.size());
      for (bool splits : {false, true}) {
        const auto [worst, all] = worstAndAll(made, splits);
        const auto [worstGuess, allGuess] = worstAndAll(guess, splits);
        SCOPED_TRACE(testing::Message()
                     << GetParam().file << ", " << remat.str() << ", " << stages
                     << (splits ? " split" : " whole") << ": " << worst
                     << " and " << all << " s, estimated as " << worstGuess
                     << " and " << allGuess << " s");
        EXPECT_GE(worst, slack * worstGuess);
        EXPECT_GE(all, slack * allGuess);
        EXPECT_LE(all, 1.35 * allGuess);
      }
      int64_t kept = 0, keptGuess = 0;
      for (auto [a, b] : llvm::zip(made.stages, guess.stages)) {
        kept += a.stashBytes;
        keptGuess += b.stashBytes;
      }
      EXPECT_GE(kept, keptSlack * keptGuess)
          << GetParam().file << ", " << remat.str() << ", " << stages;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Models, StageEstimate,
    ::testing::Values(Model{"mlp.train.onnx", "softmax-cross-entropy", 8},
                      Model{"lenet.train.onnx", "softmax-cross-entropy", {}},
                      Model{"vgg19.train.onnx", "softmax-cross-entropy", {}},
                      Model{"resnet18.train.onnx", "softmax-cross-entropy", 2},
                      Model{"bert.train.onnx", "softmax-cross-entropy", {}},
                      Model{"gpt2_loss.train.onnx", "", {}},
                      Model{"byte-gpt.onnx", "softmax-cross-entropy", 2}));
