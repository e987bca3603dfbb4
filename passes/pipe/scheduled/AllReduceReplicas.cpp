//===- AllReduceReplicas.cpp - Replicas train on one batch ----------------===//
//
// Replicas run the same step, each with micro-batches of its own. What makes it
// one step is that the gradients of each stage are summed over all replicas
// before its update, which then does the same to the bit in each of them. The
// sum is in the order of the replicas; each replica's own is in the order of
// its micro-batches, which are consecutive ones of the batch.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/step/Stages.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEALLREDUCEREPLICAS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

/// What replicas would not do alike is refused.
static LogicalResult checkReplicas(ModuleOp module) {
  if (int64_t updates = updatesOf(module); updates > 1)
    return module.emitError("has ")
           << replicasOf(module) << " replicas, and a schedule that updates "
           << "weights " << updates << " times in a step: expects a schedule "
           << "with one update, or one replica";
  // Each layer has a mean and a variance, of which replicas would each have
  // their own.
  auto weights = module.getOps<nn::WeightOp>();
  auto statistics = llvm::count_if(weights, [](nn::WeightOp weight) {
    return weight.getRole() == nn::WeightRole::State;
  });
  if (int64_t layers = (statistics + 1) / 2; layers > 0)
    return module.emitError("--data-parallel ")
           << replicasOf(module) << ": not yet with batch normalization ("
           << layers << (layers == 1 ? " layer)" : " layers)");
  return success();
}

/// Puts a sum over the replicas in front of each update. All sums stand in
/// front of all updates: the gradients of a rank are whole when its first one
/// begins.
static void reduceGradients(StepOp step) {
  SmallVector<TaskOp> updates;
  for (auto task : step.getBody()->getOps<TaskOp>())
    if (task.getKind() == TaskKind::update)
      updates.push_back(task);
  if (updates.empty())
    return;
  OpBuilder builder(updates.front());
  for (TaskOp update : updates) {
    Value gradients = update.getOperand(0);
    auto known = gradients.getDefiningOp<CollectiveOp>();
    if (known && known.isOverReplicas())
      continue;
    auto sum = CollectiveOp::create(
        builder, update.getLoc(), gradients.getType(),
        CollectiveKindAttr::get(step.getContext(),
                                runtime::CollectiveKind::AllReduce),
        /*rounded=*/UnitAttr(), /*weight=*/FlatSymbolRefAttr(),
        update.getStageAttr(), gradients, /*over=*/DenseI64ArrayAttr(),
        /*root=*/IntegerAttr(), /*buffers=*/ArrayAttr(),
        /*event=*/IntegerAttr());
    // What comes behind the updates takes it, too.
    gradients.replaceUsesWithIf(sum, [&](OpOperand &use) {
      return sum->isBeforeInBlock(use.getOwner());
    });
  }
}

namespace {

class AllReduceReplicas
    : public pipe::impl::PipeAllReduceReplicasBase<AllReduceReplicas> {
public:
  using PipeAllReduceReplicasBase::PipeAllReduceReplicasBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (replicasOf(module) == 1)
      return;
    if (failed(checkReplicas(module)))
      return signalPassFailure();
    for (StepOp step : module.getOps<StepOp>())
      if (step.getMode() == StepMode::train)
        reduceGradients(step);
  }
};

} // namespace
