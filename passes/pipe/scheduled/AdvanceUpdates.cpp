//===- AdvanceUpdates.cpp - Updates make room for other gradients ---------===//
//
// Stages of a rank share a few ranges for their gradients where each is done
// with its backwards before others begin theirs. A stage that wants the range
// of another one makes that one update first; until then its sum over replicas
// has time to run beside other tasks.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/step/StepOrder.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEADVANCEUPDATES
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// When a stage uses the range of its gradients; no update: to the end.
struct GradientLife {
  TaskOp lastBackward, update;
};

class AdvanceUpdates
    : public pipe::impl::PipeAdvanceUpdatesBase<AdvanceUpdates> {
public:
  using PipeAdvanceUpdatesBase::PipeAdvanceUpdatesBase;

  void runOnOperation() override;

private:
  void advance(ArrayRef<TaskOp> tasks, const Stages &stages);
};

} // namespace

/// Moves an op, and what it takes, to before `place`.
static void moveBefore(Operation *op, Operation *place) {
  if (op->isBeforeInBlock(place))
    return;
  for (Value operand : op->getOperands())
    moveBefore(operand.getDefiningOp(), place);
  op->moveBefore(place);
}

/// Whether gradients of a stage's weights go to other stages, or come from
/// such.
static bool hasTiedWeights(const Stages &stages, int32_t stage) {
  return llvm::any_of(stages.weights(), [&](const WeightGroup &group) {
    return group.isTied() && llvm::is_contained(group.stages, stage);
  });
}

void AdvanceUpdates::advance(ArrayRef<TaskOp> tasks, const Stages &stages) {
  std::map<int32_t, GradientLife> ofStage;
  for (TaskOp task : tasks) {
    schedules::Task plain = plainTask(stages, task);
    if (plain.endsStash())
      ofStage[plain.stage].lastBackward = task;
    else if (plain.kind == schedules::TaskKind::Update &&
             !hasTiedWeights(stages, plain.stage))
      ofStage[plain.stage].update = task;
  }
  // In the order in which they came to use a range.
  SmallVector<int32_t> inUse;
  for (TaskOp task : tasks) {
    schedules::Task plain = plainTask(stages, task);
    if (!plain.endsStash() || !ofStage[plain.stage].update ||
        llvm::is_contained(inUse, plain.stage))
      continue;
    auto done = llvm::find_if(inUse, [&](int32_t stage) {
      return ofStage[stage].lastBackward->isBeforeInBlock(task);
    });
    if (static_cast<int64_t>(inUse.size()) >= ranges && done != inUse.end()) {
      moveBefore(ofStage[*done].update, task);
      inUse.erase(done);
    }
    inUse.push_back(plain.stage);
  }
}

void AdvanceUpdates::runOnOperation() {
  ModuleOp module = getOperation();
  if (programOf(module).zero < 2)
    return;
  FailureOr<Stages> stages = Stages::read(module);
  if (failed(stages))
    return signalPassFailure();
  if (stages->copies() > 1)
    return;
  FailureOr<SmallVector<int32_t>> rankOf = stages->ranks();
  if (failed(rankOf))
    return signalPassFailure();
  for (auto step : module.getOps<StepOp>()) {
    std::map<int32_t, SmallVector<TaskOp>> tasks;
    for (auto task : step.getBody()->getOps<TaskOp>())
      tasks[(*rankOf)[stages->numberOf(task.getStage())]].push_back(task);
    for (auto &[rank, ofRank] : tasks)
      advance(ofRank, *stages);
  }
}
