//===- VerifyFolds.cpp - Which gradients are added as a tree --------------===//
//
// See VerifyFolds.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/unrolled/VerifyFolds.h"
#include "passes/step/StepOrder.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {
/// What a stage has added so far.
struct Added {
  int64_t tasks = 0, groups = 0;
};
} // namespace

LogicalResult pipewright::pipe::verifyFolds(const Stages &stages,
                                            int64_t microBatches,
                                            ArrayRef<Operation *> ops) {
  auto *first = llvm::find_if(ops, llvm::IsaPred<FoldGradientsOp>);
  if (first == ops.end())
    return success();
  const auto groups =
      static_cast<int64_t>(cast<FoldGradientsOp>(*first).getGroups());
  if (microBatches % groups != 0)
    return (*first)->emitOpError("expects groups that divide ")
           << microBatches << " micro-batches";
  const int64_t inGroup = microBatches / groups;
  std::map<int32_t, Added> added;
  for (Operation *op : ops) {
    if (auto fold = dyn_cast<FoldGradientsOp>(op)) {
      Added &so = added[stages.numberOf(fold.getStageAttr())];
      if (static_cast<int64_t>(fold.getGroups()) != groups ||
          static_cast<int64_t>(fold.getGroup()) != so.groups ||
          so.tasks != (so.groups + 1) * inGroup)
        return fold.emitOpError("is of group ")
               << fold.getGroup() << " of " << fold.getGroups()
               << ", where its stage has added gradients of " << so.tasks
               << " micro-batches in " << so.groups << " groups of " << inGroup;
      ++so.groups;
    }
    auto task = dyn_cast<TaskOp>(op);
    if (!task)
      continue;
    const schedules::Task plain = plainTask(stages, task);
    Added &so = added[plain.stage];
    if (plain.endsStash() && stages.hasGradients(plain.stage))
      ++so.tasks;
    if (task.getKind() == TaskKind::update && so.groups != groups)
      return task.emitOpError("expects all ")
             << groups << " groups of gradients, but only " << so.groups
             << " are added";
  }
  return success();
}
