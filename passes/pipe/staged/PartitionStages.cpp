//===- PartitionStages.cpp - pipe-partition-stages ------------------------===//
//
// Cuts the model's function into stages. Which stage each op is in is decided
// by StageAssignment, and the bodies are built by StageBodies.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"

#include "dialects/nn/NNDevices.h"
#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/pipe/staged/ModelOps.h"
#include "passes/pipe/staged/StageAssignment.h"
#include "passes/pipe/staged/StageBodies.h"

using namespace mlir;

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEPARTITIONSTAGES
#include "passes/pipe/Passes.h.inc"

namespace {

struct PartitionStages : impl::PipePartitionStagesBase<PartitionStages> {
  using PipePartitionStagesBase::PipePartitionStagesBase;

  void runOnOperation() override {
    if (failed(partition()))
      signalPassFailure();
  }

private:
  LogicalResult partition();
};

LogicalResult PartitionStages::partition() {
  ModuleOp module = getOperation();
  auto function = module.lookupSymbol<func::FuncOp>("model");
  if (!function)
    return module.emitError("pipe-partition-stages: expects a function "
                            "'@model', but the module has none");
  ModelOps model(function);
  if (failed(model.analyze()))
    return failure();
  FailureOr<StageOfOp> stageOf = assignStages(
      model, {stages, balance.getValue(), ArrayRef<int64_t>(memoryLimit),
              ArrayRef<int64_t>(rankOfStage)});
  if (failed(stageOf) || failed(buildStages(model, *stageOf, stages)))
    return failure();
  function.erase();
  module->removeAttr(nn::kConfigurations);
  module->removeAttr(PipeDialect::kLayerTimes);
  module->removeAttr(PipeDialect::kOpSeconds);
  return success();
}

} // namespace
} // namespace pipewright::pipe
