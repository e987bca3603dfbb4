//===- InterleaveSums.cpp - Sums begin inside the backward ----------------===//
//
// The last backward of a stage makes one bucket of its gradients whole after
// the other. Where a rank's program sums them over replicas right behind it, it
// is cut into parts, and the sum of each bucket begins behind the part with
// which its gradients are whole. Posting earlier what the same ranks post in
// the same order holds nobody up; pipe-verify-schedule proves it anew.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/step/BackwardParts.h"

#include "mlir/IR/Builders.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEINTERLEAVESUMS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

/// The sums over replicas, bucket by bucket, that stand right behind a task and
/// are of what it has made; empty where another task or another collective
/// comes before them.
static SmallVector<CollectiveOp> sumsBehind(TaskOp task) {
  Value made = task.getResults().back();
  SmallVector<CollectiveOp> sums;
  for (Operation *next = task->getNextNode(); next && !isa<TaskOp>(next);
       next = next->getNextNode()) {
    auto sum = dyn_cast<CollectiveOp>(next);
    if (!sum && isa<GroupOpInterface>(next))
      break;
    if (!sum)
      continue;
    if (!sum.getBucket() || !sum.isOfGradients() || sum.getValue() != made ||
        !sum.getOver().isOfReplicas())
      break;
    sums.push_back(sum);
    made = sum.getResult();
  }
  return sums;
}

/// Cuts the task, and puts each sum behind the part that it needs. Those of the
/// last part stay where they are.
static void interleaveParts(TaskOp task, ArrayRef<CollectiveOp> sums,
                            const BackwardParts &parts) {
  OpBuilder builder(task->getContext());
  task.setPartsAttr(builder.getI64IntegerAttr(parts.count()));
  Value made = task.getResults().back();
  Operation *last = task;
  const CollectiveOp *next = sums.begin();
  for (int64_t part = 0; part < parts.count(); ++part) {
    if (part > 0) {
      builder.setInsertionPointAfter(last);
      auto resume = ResumeOp::create(builder, task.getLoc(), made.getType(),
                                     task.getStageAttr(), made,
                                     builder.getI64IntegerAttr(part));
      last = resume;
      made = resume.getResult();
    }
    for (; part + 1 < parts.count() && next != sums.end() &&
           parts.partOfBucket[*CollectiveOp(*next).getBucket()] <= part;
         ++next) {
      CollectiveOp sum = *next;
      sum->moveAfter(last);
      sum.getValueMutable().assign(made);
      last = sum;
      made = sum.getResult();
    }
  }
  // What was made of the gradients so far is now made of those of the last
  // part.
  auto resume = cast<ResumeOp>(task.getLastPart());
  resume.getGradients().replaceUsesWithIf(
      resume.getResult(), [&](OpOperand &use) {
        return !isa<WaitCollectiveOp, ResumeOp>(use.getOwner());
      });
}

namespace {

class InterleaveSums
    : public pipe::impl::PipeInterleaveSumsBase<InterleaveSums> {
public:
  using PipeInterleaveSumsBase::PipeInterleaveSumsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!programOf(module).bucketSize)
      return;
    FailureOr<Stages> stages = Stages::read(module);
    if (failed(stages))
      return signalPassFailure();
    for (auto program : module.getOps<RankOp>())
      for (TaskOp task : llvm::to_vector(program.getBody()->getOps<TaskOp>())) {
        const bool adds = task.getKind() == TaskKind::backward ||
                          task.getKind() == TaskKind::weight_gradient;
        if (!adds || task.getParts() || task.getOverlapsNext() ||
            task.getNumResults() == 0 ||
            !isa<GradientType>(task.getResults().back().getType()))
          continue;
        const SmallVector<CollectiveOp> sums = sumsBehind(task);
        if (sums.empty())
          continue;
        const BackwardParts parts = backwardParts(
            *stages, stages->numberOf(task.getStageAttr()), task.getKind());
        if (parts.count() > 1 && sums.size() == parts.partOfBucket.size())
          interleaveParts(task, sums, parts);
      }
  }
};

} // namespace
