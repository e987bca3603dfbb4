//===- ShareGradients.cpp - Stages make room for others' gradients --------===//
//
// Stages of a rank take turns in a few ranges for their gradients. One that is
// done with its backwards when another wants its range updates first; one that
// is not has what it has summed over replicas, keeps its part of that, and
// begins anew later, where that takes less memory than the ranges save. With
// ZeRO-1 no memory is shared, but updates move likewise: their weights are
// gathered beside what follows.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/schedules/SharedRanges.h"
#include "passes/step/StepOrder.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPESHAREGRADIENTS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// A stage of a rank that shares.
struct StageUse {
  TaskOp update;
  /// Parts of earlier sums are kept.
  bool keeps = false;
};

/// One rank of a step.
class RangeSharer {
public:
  RangeSharer(ModuleOp module, const Stages &stages, ArrayRef<TaskOp> tasks,
              int64_t numRanges);

  void run();
  /// Lets those that are done when another wants their range update first.
  void advanceUpdates();

private:
  /// Behind a turn, the range's next one begins with `task`.
  void makeRoom(const schedules::RangeTurn &turn, TaskOp task);
  Value createKeep(StageUse &use, Value sum);

  const Stages &stages;
  ArrayRef<TaskOp> tasks;
  const int64_t replicas;
  OpBuilder builder;
  std::map<int32_t, StageUse> uses;
  schedules::RangeOfStage ranges;
  std::vector<schedules::RangeTurn> turns;
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

RangeSharer::RangeSharer(ModuleOp module, const Stages &stages,
                         ArrayRef<TaskOp> tasks, int64_t numRanges)
    : stages(stages), tasks(tasks), replicas(programOf(module).replicas),
      builder(module.getContext()) {
  for (TaskOp task : tasks)
    if (task.getKind() == TaskKind::update &&
        !hasTiedWeights(stages, stages.numberOf(task.getStage())))
      uses[stages.numberOf(task.getStage())].update = task;
  SmallVector<int32_t> adders;
  for (TaskOp task : tasks) {
    const schedules::Task plain = plainTask(stages, task);
    const bool adds = plain.endsStash() && uses.contains(plain.stage);
    adders.push_back(adds ? plain.stage : -1);
  }
  ranges = schedules::rangesInTurns(adders, numRanges);
  turns = schedules::turnsOf(adders, schedules::rangesOf(adders, ranges));
}

Value RangeSharer::createKeep(StageUse &use, Value sum) {
  use.keeps = true;
  return KeepGradientsOp::create(builder, use.update.getLoc(), sum.getType(),
                                 use.update.getStageAttr(), sum);
}

void RangeSharer::makeRoom(const schedules::RangeTurn &turn, TaskOp task) {
  StageUse &use = uses[turn.stage];
  if (!turn.comesBack && !use.keeps)
    return moveBefore(use.update, task);
  builder.setInsertionPoint(task);
  if (!turn.comesBack) {
    Value sum = use.update.getOperand(0);
    moveBefore(sum.getDefiningOp(), task);
    use.update.setOperand(0, createKeep(use, sum));
    return;
  }
  // Its sums of the end of the step, one for each bucket, of what there is so
  // far.
  SmallVector<CollectiveOp> ofEnd;
  for (auto sum = use.update.getOperand(0).getDefiningOp<CollectiveOp>(); sum;
       sum = sum.getValue().getDefiningOp<CollectiveOp>())
    ofEnd.push_back(sum);
  Value soFar = TaskOp(tasks[turn.tasks.back()]).getResults().back();
  Value made = soFar;
  Operation *first = nullptr;
  for (CollectiveOp sum : llvm::reverse(ofEnd)) {
    Operation *together = builder.clone(*sum);
    together->setOperand(0, made);
    made = together->getResult(0);
    first = first ? first : together;
  }
  Value kept = createKeep(use, made);
  soFar.replaceAllUsesExcept(kept, first);
}

void RangeSharer::advanceUpdates() {
  for (const schedules::RangeTurn &turn : turns)
    if (turn.next >= 0 && !turn.comesBack)
      moveBefore(uses[turn.stage].update, tasks[turn.next]);
}

void RangeSharer::run() {
  schedules::BytesOfStage bytes;
  for (const auto &[stage, range] : ranges)
    bytes[stage] =
        llvm::alignTo(stages.updatedBytes(stage), replicas * kShardAlignment);
  if (!schedules::savesMemory(turns, ranges, bytes, replicas))
    return advanceUpdates();
  // In the order in which turns end.
  std::map<int64_t, const schedules::RangeTurn *> ends;
  for (const schedules::RangeTurn &turn : turns)
    if (turn.next >= 0)
      ends[turn.next] = &turn;
  for (auto [next, turn] : ends)
    makeRoom(*turn, tasks[next]);
  // What has its range to the end.
  for (auto &[stage, use] : uses) {
    Value sum = use.update.getOperand(0);
    if (!use.keeps || sum.getDefiningOp<KeepGradientsOp>())
      continue;
    builder.setInsertionPoint(use.update);
    use.update.setOperand(0, createKeep(use, sum));
  }
}

namespace {

class ShareGradients
    : public pipe::impl::PipeShareGradientsBase<ShareGradients> {
public:
  using PipeShareGradientsBase::PipeShareGradientsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (ranges < 1) {
      module.emitError("pipe-share-gradients expects ranges of at least 1, but "
                       "got ")
          << ranges.getValue();
      return signalPassFailure();
    }
    const ProgramFields program = programOf(module);
    if (program.zero == 0 || program.clipNorm)
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
      const bool isDone = !step.getBody()->getOps<KeepGradientsOp>().empty();
      if (step.getMode() != StepMode::train || isDone)
        continue;
      for (auto &[rank, ofRank] : tasksOfRanks(step, *stages, *rankOf)) {
        RangeSharer sharer(module, *stages, ofRank, ranges);
        if (program.zero == 1)
          sharer.advanceUpdates();
        else
          sharer.run();
      }
    }
  }
};

} // namespace
