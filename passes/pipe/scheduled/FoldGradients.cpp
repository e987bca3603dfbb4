//===- FoldGradients.cpp - Sums that do not depend on replicas ------------===//
//
// Gradients of groups of micro-batches are added as a binary tree. Replicas
// hold its lower nodes, and what they do together makes the upper ones.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/step/StepOrder.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <map>

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEFOLDGRADIENTS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

class FoldGradients : public pipe::impl::PipeFoldGradientsBase<FoldGradients> {
public:
  using PipeFoldGradientsBase::PipeFoldGradientsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (groups == 0)
      return;
    FailureOr<Stages> stages = Stages::read(module);
    if (failed(stages) || failed(verify(module, *stages)))
      return signalPassFailure();
    const int64_t each = groups / programOf(module).replicas;
    for (auto program : module.getOps<RankOp>()) {
      const bool isDone = !program.getBody()->getOps<FoldGradientsOp>().empty();
      if (each > 1 && program.getMode() == StepMode::train && !isDone &&
          failed(fold(program, *stages, each)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult verify(ModuleOp module, const Stages &stages);
  LogicalResult fold(RankOp program, const Stages &stages, int64_t each);
};

} // namespace

LogicalResult FoldGradients::verify(ModuleOp module, const Stages &stages) {
  const ProgramFields program = programOf(module);
  const FailureOr<int64_t> ofReplica = microBatchesOf(module);
  if (failed(ofReplica))
    return failure();
  const int64_t microBatches = *ofReplica * program.replicas;
  auto fail = [&](const Twine &why) {
    return module.emitError("--sum-groups ")
           << groups.getValue() << " (pipe-fold-gradients) expects " << why;
  };
  if (groups < 1 || !llvm::isPowerOf2_64(groups) || microBatches % groups != 0)
    return fail("a power of two that divides all " + Twine(microBatches) +
                " micro-batches of a step");
  if (groups % program.replicas != 0)
    return fail("a whole number of groups for each of " +
                Twine(program.replicas) + " replicas");
  if (program.sumsInScheduleOrder)
    return fail("gradients that are added in the order of micro-batches, but "
                "the schedule has an order of its own");
  if (program.updates > 1)
    return fail("one update in a step, but the schedule has " +
                Twine(program.updates));
  if (stages.copies() > 1)
    return fail("one copy of the model, but the schedule has two, each of "
                "which adds up half of the micro-batches");
  for (const WeightGroup &group : stages.weights())
    if (groups != program.replicas && group.isTied() && group.isTrained() &&
        !group.isAllReduced())
      return fail("weights that their stages sum together, but one stage "
                  "updates '@" +
                  group.weight.getSymName() +
                  "' for others; leave out --tied-weights owner, and choose a "
                  "rank for each of these stages, or use as many groups as "
                  "replicas");
  // What a holder adds would be a part of each replica's sum.
  for (auto rank : module.getOps<RankOp>())
    for (auto together : rank.getBody()->getOps<CollectiveOp>())
      if (together.isOfGradients() && !together.getOver().isOfReplicas() &&
          stateOfReplicas(together.getValue().getType()) ==
              ReplicaState::partial)
        return together.emitOpError(
            "sums what a replica has, which --sum-groups "
            "(pipe-fold-gradients) cannot add as a tree: a sum over replicas "
            "has to come first");
  return success();
}

/// Puts an op behind the last task of each group.
LogicalResult FoldGradients::fold(RankOp program, const Stages &stages,
                                  int64_t each) {
  const FailureOr<int64_t> microBatches = microBatchesOf(getOperation());
  if (failed(microBatches))
    return failure();
  const int64_t inGroup = *microBatches / each;
  std::map<int32_t, int64_t> seen;
  for (TaskOp task : llvm::to_vector(program.getBody()->getOps<TaskOp>())) {
    const schedules::Task plain = plainTask(stages, task);
    if (!plain.endsStash() || !stages.hasGradients(plain.stage))
      continue;
    const int64_t number = seen[plain.stage]++;
    Value gradients = task.getResults().back();
    if (llvm::any_of(gradients.getUsers(), [](Operation *user) {
          return isa<KeepGradientsOp>(user) ||
                 (isa<CollectiveOp>(user) &&
                  llvm::any_of(user->getUsers(),
                               llvm::IsaPred<KeepGradientsOp>));
        }))
      return task.emitOpError(
          "has its gradients summed over replicas before the last of them is "
          "there (--zero 2 or 3), which --sum-groups (pipe-fold-gradients) "
          "cannot add as a tree");
    if ((number + 1) % inGroup != 0)
      continue;
    if (task.getOverlapsNext())
      return task.emitOpError("overlaps the next task, where --sum-groups "
                              "(pipe-fold-gradients) would add its gradients");
    OpBuilder builder(task->getContext());
    builder.setInsertionPointAfter(task);
    auto folded = FoldGradientsOp::create(
        builder, task.getLoc(), gradients.getType(), task.getStageAttr(),
        gradients, builder.getI64IntegerAttr(number / inGroup),
        builder.getI64IntegerAttr(each));
    gradients.replaceAllUsesExcept(folded.getResult(), folded);
  }
  return success();
}
