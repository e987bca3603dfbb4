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
#include "passes/step/StepOrder.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

#include <set>

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPESHAREGRADIENTS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// What one stage of a rank does with the range of its gradients.
struct StageUse {
  TaskOp update;
  TaskOp lastBackward;
  /// Of the stages with the same number, one at a time has the range.
  int64_t range = 0;
  int64_t bytes = 0;
  /// What the last backward so far has made.
  Value sum;
  /// Parts of earlier sums are kept.
  bool keeps = false;

  bool isDoneBefore(TaskOp task) const {
    return TaskOp(lastBackward)->isBeforeInBlock(task);
  }
};

/// One rank of a step.
class RangeSharer {
public:
  RangeSharer(ModuleOp module, const Stages &stages, ArrayRef<TaskOp> tasks,
              int64_t ranges);

  void run();
  /// Lets those that are done when another wants their range update first.
  void advanceUpdates();

private:
  bool savesMemory();
  void forEachTurn(llvm::function_ref<void(StageUse &, TaskOp)> ends);
  void makeRoom(StageUse &use, TaskOp task);
  Value createKeep(StageUse &use, Value sum);

  const Stages &stages;
  ArrayRef<TaskOp> tasks;
  const int64_t replicas;
  OpBuilder builder;
  /// By stage: those that share.
  std::map<int32_t, StageUse> uses;
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
                         ArrayRef<TaskOp> tasks, int64_t ranges)
    : stages(stages), tasks(tasks), replicas(programOf(module).replicas),
      builder(module.getContext()) {
  for (TaskOp task : tasks)
    if (task.getKind() == TaskKind::update &&
        !hasTiedWeights(stages, stages.numberOf(task.getStage())))
      uses[stages.numberOf(task.getStage())].update = task;
  int64_t begun = 0;
  for (TaskOp task : tasks) {
    const schedules::Task plain = plainTask(stages, task);
    auto use = uses.find(plain.stage);
    if (!plain.endsStash() || use == uses.end())
      continue;
    if (!use->second.lastBackward)
      use->second.range = begun++ % ranges;
    use->second.lastBackward = task;
  }
  for (auto &[stage, use] : uses)
    use.bytes =
        llvm::alignTo(stages.updatedBytes(stage), replicas * kShardAlignment);
}

Value RangeSharer::createKeep(StageUse &use, Value sum) {
  use.keeps = true;
  return KeepGradientsOp::create(builder, use.update.getLoc(), sum.getType(),
                                 use.update.getStageAttr(), sum);
}

/// `task` is the first one of another stage to add to the range.
void RangeSharer::makeRoom(StageUse &use, TaskOp task) {
  const bool isDone = use.isDoneBefore(task);
  if (isDone && !use.keeps)
    return moveBefore(use.update, task);
  builder.setInsertionPoint(task);
  if (isDone) {
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
  Value made = use.sum;
  Operation *first = nullptr;
  for (CollectiveOp sum : llvm::reverse(ofEnd)) {
    Operation *together = builder.clone(*sum);
    together->setOperand(0, made);
    made = together->getResult(0);
    first = first ? first : together;
  }
  Value kept = createKeep(use, made);
  use.sum.replaceAllUsesExcept(kept, first);
}

/// Calls `ends` for each stage that has a range when another begins to add to
/// it, with the task of that one.
void RangeSharer::forEachTurn(
    llvm::function_ref<void(StageUse &, TaskOp)> ends) {
  std::map<int64_t, StageUse *> holders;
  for (TaskOp task : tasks) {
    const schedules::Task plain = plainTask(stages, task);
    auto found = uses.find(plain.stage);
    if (!plain.endsStash() || found == uses.end())
      continue;
    StageUse *&holder = holders[found->second.range];
    if (holder && holder != &found->second)
      ends(*holder, task);
    holder = &found->second;
    holder->sum = task.getResults().back();
  }
}

/// Whether ranges, parts that are kept, and what others send to add to them
/// take less than a range for each stage. Sums in the middle of a step stand
/// where its activations are; one at a time for each range.
bool RangeSharer::savesMemory() {
  std::set<StageUse *> keep;
  forEachTurn([&](StageUse &use, TaskOp task) {
    if (!use.isDoneBefore(task))
      keep.insert(&use);
  });
  struct Needs {
    int64_t range = 0, fromOthers = 0;
  };
  std::map<int64_t, Needs> needs;
  int64_t apart = 0, shared = 0;
  for (auto &[stage, use] : uses) {
    Needs &most = needs[use.range];
    const int64_t part = use.bytes / replicas;
    apart += use.bytes;
    most.range = std::max(most.range, use.bytes);
    if (keep.contains(&use)) {
      most.fromOthers = std::max(most.fromOthers, use.bytes - part);
      shared += part;
    }
  }
  for (const auto &[range, most] : needs)
    shared += most.range + most.fromOthers;
  return shared < apart;
}

void RangeSharer::advanceUpdates() {
  forEachTurn([](StageUse &use, TaskOp task) {
    if (use.isDoneBefore(task))
      moveBefore(use.update, task);
  });
}

void RangeSharer::run() {
  if (!savesMemory())
    return advanceUpdates();
  forEachTurn([&](StageUse &use, TaskOp task) { makeRoom(use, task); });
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
