//===- VerifyTasks.cpp - Every task once, with the right operands ---------===//
//
// See VerifyTasks.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/unrolled/VerifyTasks.h"
#include "passes/pipe/unrolled/VerifyFolds.h"
#include "passes/pipe/unrolled/VerifyReplicas.h"
#include "passes/pipe/unrolled/VerifySums.h"
#include "passes/step/Buckets.h"
#include "passes/step/StepOrder.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <set>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

class TaskVerifier {
public:
  TaskVerifier(const Stages &stages, StepMode mode, int64_t microBatches,
               Operation *where, ArrayRef<Operation *> ops)
      : stages(stages), mode(mode), microBatches(microBatches),
        updates(programOf(where->getParentOfType<ModuleOp>()).updates),
        where(where), ops(ops), summing(stages.size()) {}

  LogicalResult verify() {
    for (Operation *op : ops)
      collect(op);
    if (failed(result))
      return result;
    for (Operation *op : ops)
      for (OpOperand &operand : op->getOpOperands())
        verifyOperand(operand);
    for (int32_t stage = 0; stage < stages.size(); ++stage) {
      verifyStage(stage);
      if (mode == StepMode::train)
        verifyChain(stage);
    }
    for (auto [position, op] : llvm::enumerate(ops))
      if (auto task = dyn_cast<TaskOp>(op); task && task.getOverlapsNext())
        verifyPair(task, ops.drop_front(position + 1));
    // Copies of weights are made equal on the way to ranks
    // (pipe-synchronize-weights), all of them at once.
    bool isSynchronized = llvm::any_of(ops, [](Operation *op) {
      return isa<AddGradientOp, CollectiveOp, ClipGradientsOp>(op);
    });
    isSynchronized |= isa<RankOp>(where);
    isSynchronized &= mode == StepMode::train;
    if (failed(verifyReplicas(stages, isSynchronized, where, ops)))
      result = failure();
    if (mode == StepMode::train && succeeded(result) &&
        (failed(verifySums(stages, microBatches, ops, isSynchronized)) ||
         failed(verifyFolds(stages, microBatches, ops))))
      result = failure();
    if (isSynchronized) {
      verifyTiedWeights();
      verifyClipping();
    }
    return result;
  }

private:
  InFlightDiagnostic report(Operation *op) {
    result = failure();
    return op->emitOpError();
  }
  void collect(Operation *op);
  void verifyOperand(OpOperand &operand);
  bool isNewestStash(OpOperand &operand) const;
  void verifyStage(int32_t stage);
  void verifyBackward(int32_t stage, int64_t microBatch, bool expected);
  void verifyChain(int32_t stage);
  SmallVector<TaskOp> summingTasks(int32_t stage) const;
  void verifyVersion(TaskOp task, int32_t stage, int64_t microBatch);
  void verifyHolders(CollectiveOp together);
  void verifyTiedWeights();
  void verifyClipping();
  void verifyPair(TaskOp first, ArrayRef<Operation *> behind);
  void expectTask(TaskKind kind, int32_t stage, int64_t microBatch,
                  bool expected);

  const Stages &stages;
  StepMode mode;
  int64_t microBatches, updates;
  Operation *where;
  ArrayRef<Operation *> ops;
  std::map<std::tuple<TaskKind, int32_t, int64_t>, TaskOp> tasks;
  /// By stage, the tasks that add to its gradients, as they stand in the ops.
  std::vector<SmallVector<TaskOp>> summing;
  LogicalResult result = success();
};

} // namespace

void TaskVerifier::collect(Operation *op) {
  auto stage = op->getAttrOfType<FlatSymbolRefAttr>("stage");
  if (stage && stages.numberOf(stage) < 0) {
    report(op) << "names '" << stage.getValue()
               << "', which is no stage of the module";
    return;
  }
  auto task = dyn_cast<TaskOp>(op);
  if (!task)
    return;
  int64_t batch = task.getMicroBatch().value_or(task.getNumber().value_or(0));
  if (batch >= microBatches) {
    report(op) << "is for micro-batch " << batch << ", but the step has "
               << microBatches;
    return;
  }
  auto [known, isNew] =
      tasks.insert({{task.getKind(), stages.numberOf(stage), batch}, task});
  if (isNew) {
    if (isa_and_present<BackwardOp, WeightGradientOp>(
            stages[stages.numberOf(stage)].bodyOf(task.getKind())))
      summing[stages.numberOf(stage)].push_back(task);
    return;
  }
  InFlightDiagnostic diagnostic = report(op);
  diagnostic << "runs a task for the second time";
  diagnostic.attachNote(known->second.getLoc()) << "first run here";
}

void TaskVerifier::verifyOperand(OpOperand &operand) {
  // A replica may have no part of a weight that its stage updates.
  Type type = operand.get().getType();
  auto gradient = dyn_cast<GradientOfOp>(operand.getOwner());
  const WeightGroup *group =
      gradient ? stages.groupOf(gradient.getWeightAttr()) : nullptr;
  const bool isLent =
      group && !group->isUpdatedIn(stages.numberOf(gradient.getStageAttr()));
  if (isa<WeightOfOp, GradientOfOp>(operand.getOwner()) && !isLent &&
      stateOfReplicas(type) == ReplicaState::split)
    report(operand.getOwner()) << "expects a whole range, but takes " << type;
  if (isa<WaitReceiveOp>(operand.get().getDefiningOp()))
    return; // Transfers are compared at both ends.
  auto user = cast<StepOpInterface>(operand.getOwner());
  std::optional<Content> wanted = user.getWantedContent(operand, stages);
  if (!wanted)
    return;
  auto value = cast<OpResult>(operand.get());
  std::optional<Content> got =
      cast<StepOpInterface>(value.getOwner()).getContent(value, stages);
  if (got == wanted && isNewestStash(operand))
    return;
  if (got == wanted) {
    report(user) << "expects " << wanted->describe()
                 << " as its task 'recompute' makes it";
    return;
  }
  report(user) << "expects " << wanted->describe() << " as operand "
               << operand.getOperandNumber() << ", but got "
               << (got ? got->describe() : "a value that means nothing here");
}

/// Whether an operand is no stash, or one that no task makes again, or the one
/// that such a task has made.
bool TaskVerifier::isNewestStash(OpOperand &operand) const {
  auto task = dyn_cast<TaskOp>(operand.getOwner());
  auto maker = operand.get().getDefiningOp<TaskOp>();
  if (!task || !maker || !isa<StashType>(operand.get().getType()) ||
      maker.getKind() == TaskKind::recompute)
    return true;
  return !tasks.count({TaskKind::recompute,
                       stages.numberOf(task.getStageAttr()),
                       static_cast<int64_t>(*task.getMicroBatch())}) ||
         !stages.stageOf(task.getStageAttr()).getKeeps();
}

void TaskVerifier::expectTask(TaskKind kind, int32_t stage, int64_t microBatch,
                              bool expected) {
  bool found = tasks.count({kind, stage, microBatch});
  if (found == expected)
    return;
  InFlightDiagnostic diagnostic = report(where);
  diagnostic << (expected ? "has no" : "has a needless") << " task '"
             << stringifyTaskKind(kind) << "' of stage '@"
             << stages[stage].getSymName() << "'";
  if (kind != TaskKind::update)
    diagnostic << ", micro-batch " << microBatch;
  else if (updates > 1)
    diagnostic << ", number " << microBatch;
}

void TaskVerifier::verifyStage(int32_t stage) {
  StageOp op = stages[stage];
  bool isTraining = mode == StepMode::train;
  // Until its size is decided, all keep their stash.
  const schedules::StashWindow window = stashWindowOf(op);
  const bool recomputes =
      op.getRecompute() && (window.count == 0 || window.size > 0);
  for (int64_t m = 0; m < microBatches; ++m) {
    bool trains = isTraining && stages.runs(stage, m, microBatches);
    expectTask(TaskKind::forward, stage, m, trains);
    verifyBackward(stage, m, trains && op.getBackward());
    expectTask(TaskKind::recompute, stage, m,
               trains && recomputes && !window.keeps(m));
    expectTask(TaskKind::evaluate, stage, m, !isTraining && op.getEvaluate());
  }
  // No update is beyond those that are expected: they are numbered like
  // micro-batches, of which there are more.
  for (int64_t number = 0; number < microBatches; ++number)
    expectTask(TaskKind::update, stage, number,
               isTraining && stages.hasUpdate(stage) && number < updates);
}

/// A backward is there whole or in halves.
void TaskVerifier::verifyBackward(int32_t stage, int64_t microBatch,
                                  bool expected) {
  bool isSplit = tasks.count({TaskKind::input_gradient, stage, microBatch}) ||
                 tasks.count({TaskKind::weight_gradient, stage, microBatch});
  expectTask(TaskKind::backward, stage, microBatch, expected && !isSplit);
  for (TaskKind half : {TaskKind::input_gradient, TaskKind::weight_gradient})
    expectTask(half, stage, microBatch, expected && isSplit);
  for (TaskKind kind : {TaskKind::backward, TaskKind::input_gradient,
                        TaskKind::weight_gradient, TaskKind::recompute}) {
    auto found = tasks.find({kind, stage, microBatch});
    if (found != tasks.end())
      verifyVersion(found->second, stage, microBatch);
  }
}

/// The tasks that add to a stage's gradients, in the order in which they must;
/// empty where one is missing, which is reported already.
SmallVector<TaskOp> TaskVerifier::summingTasks(int32_t stage) const {
  SmallVector<TaskOp> chain = summing[stage];
  if (static_cast<int64_t>(chain.size()) != microBatches / stages.copies())
    return {};
  // A schedule that sums in its own order says so; then the order of the
  // program is right, and what is left to see is that all are in the chain.
  auto module = where->getParentOfType<ModuleOp>();
  if (!programOf(module).sumsInScheduleOrder)
    llvm::sort(chain, [](TaskOp a, TaskOp b) {
      return *a.getMicroBatch() < *b.getMicroBatch();
    });
  return chain;
}

/// A backward reads the version of the weights that its forward read.
void TaskVerifier::verifyVersion(TaskOp task, int32_t stage,
                                 int64_t microBatch) {
  auto forward = tasks.find({TaskKind::forward, stage, microBatch});
  if (forward == tasks.end() ||
      forward->second.getVersionAttr() == task.getVersionAttr())
    return;
  auto versionOf = [](TaskOp of) {
    return of.getVersion() ? std::to_string(int64_t(*of.getVersion())) : "none";
  };
  report(task) << "expects the version of the weights that its forward read, "
               << versionOf(forward->second) << ", but got " << versionOf(task);
}

/// The gradients that were summed and kept, or put aside, to make `sum`; itself
/// if they were not.
static Value keptOf(Value sum) {
  if (auto fold = sum ? sum.getDefiningOp<FoldGradientsOp>() : nullptr)
    return fold.getGradients();
  auto keep = sum ? sum.getDefiningOp<KeepGradientsOp>() : KeepGradientsOp();
  if (!keep)
    return sum;
  Value gradients = keep.getGradients();
  while (CollectiveOp together = behindParts(gradients))
    gradients = together.getValue();
  return gradients == keep.getGradients() ? sum : gradients;
}

/// The gradients of a stage pass through all its backward and weight-gradient
/// tasks, in order, and through the updates between them; or through sums over
/// replicas, a part of which is kept.
void TaskVerifier::verifyChain(int32_t stage) {
  if (!stages.hasGradients(stage))
    return;
  SmallVector<TaskOp> chain = summingTasks(stage);
  auto updateOf = [&](TaskOp task) {
    return static_cast<int64_t>(*task.getMicroBatch()) * updates / microBatches;
  };
  // What the next task adds to, and the task that made it.
  TaskOp previous;
  for (auto [position, task] : llvm::enumerate(chain)) {
    Value sum = task.getSummed();
    if (task.getNumResults() == 0 ||
        !isa<GradientType>(task.getResults().back().getType())) {
      report(task) << "expects a result with the stage's summed gradients";
      return;
    }
    Value expected = previous ? previous.getResults().back() : Value();
    if (keptOf(sum) != expected) {
      if (!previous)
        report(task) << "is the first of its stage, and expects no gradients";
      else if (previous.getKind() == TaskKind::update)
        report(task) << "expects the gradients that update "
                     << previous.getNumber().value_or(0) << " cleared";
      else
        report(task) << "expects the gradients summed up to micro-batch "
                     << *previous.getMicroBatch();
      return;
    }
    previous = task;
    bool endsUpdate = position + 1 == chain.size() ||
                      updateOf(chain[position + 1]) != updateOf(task);
    auto update = tasks.find({TaskKind::update, stage, updateOf(task)});
    if (!endsUpdate || update == tasks.end())
      continue;
    previous = update->second;
  }
}

/// Holders add in the order of the stages, in place: each sum goes on with what
/// the one before has made.
void TaskVerifier::verifyHolders(CollectiveOp together) {
  for (Operation *user : together.getValue().getUsers())
    if (isa<CollectiveOp>(user) && user->isBeforeInBlock(together))
      report(together) << "takes gradients that another collective has taken";
  for (const WeightGroup *group : weightsOf(stages, together)) {
    if (!group->isTied() || !group->isAllReduced())
      continue;
    SmallVector<int64_t> ranks;
    for (int32_t stage : group->stages)
      ranks.push_back(stages[stage].getRank().value_or(-1));
    // The sum of two is the same either way.
    if (ranks.size() == 2)
      llvm::sort(ranks);
    if (together.getOver().getRanks() != ArrayRef(ranks))
      report(together) << "sums gradients of '@" << group->weight.getSymName()
                       << "' over ranks [" << together.getOver().getRanks()
                       << "], but its holders are on [" << ranks << "]";
  }
}

void TaskVerifier::verifyTiedWeights() {
  for (Operation *op : ops) {
    auto together = dyn_cast<CollectiveOp>(op);
    if (together && together.isOfGradients() &&
        !together.getOver().isOfReplicas())
      verifyHolders(together);
    if (!isa<AddGradientOp, SetWeightOp>(op))
      continue;
    auto name = op->getAttrOfType<FlatSymbolRefAttr>("weight");
    if (const WeightGroup *group = stages.groupOf(name);
        group && group->isTied() && group->isAllReduced())
      report(op) << "is for weights that an owner updates for all, but '@"
                 << name.getValue() << "' is all-reduced";
  }
  for (const WeightGroup &group : stages.weights()) {
    if (!group.isTied() || group.isAllReduced())
      continue;
    llvm::StringRef name = group.weight.getSymName();
    for (int32_t stage : ArrayRef(group.stages).drop_front()) {
      bool isSet = llvm::any_of(ops, [&](Operation *op) {
        auto set = dyn_cast<SetWeightOp>(op);
        return set && set.getWeight() == name &&
               stages.numberOf(set.getStage()) == stage;
      });
      if (!isSet)
        report(where) << "never sets the tied weight '" << name
                      << "' in stage '@" << stages[stage].getSymName() << "'";
    }
  }
}

/// If gradients are clipped, each rank takes part once, with all gradients that
/// its updates use, as they use them; if not, nobody does.
void TaskVerifier::verifyClipping() {
  const bool clips =
      programOf(where->getParentOfType<ModuleOp>()).clipNorm != nullptr;
  std::set<int64_t> all, present;
  for (int32_t stage = 0; stage < stages.size(); ++stage)
    if (std::optional<uint64_t> rank = stages[stage].getRank())
      all.insert(static_cast<int64_t>(*rank));
  for (Operation *op : ops) {
    auto clip = dyn_cast<ClipGradientsOp>(op);
    if (!clip)
      continue;
    if (!clips)
      report(op) << "clips gradients, but the program has no 'clip_norm'";
    int32_t stage = stages.numberOf(clip.getStageAttr());
    if (stage < 0)
      report(op) << "is of a stage that the module has not";
    else if (!present.insert(stages[stage].getRank().value_or(-1)).second)
      report(op) << "is the second one of its rank";
    ArrayRef<int64_t> over = clip.getOver().getRanks();
    if (std::set<int64_t>(over.begin(), over.end()) != all)
      report(op) << "is over " << clip.getOver().describe()
                 << ", but expects all " << all.size()
                 << " ranks, whose gradients the norm is of";
    for (Value clipped : clip.getClipped())
      if (llvm::any_of(clipped.getUsers(), [](Operation *user) {
            return isa<AddGradientOp, CollectiveOp, GradientOfOp>(user);
          }))
        report(op) << "is not the last of what happens to " << clipped.getType()
                   << " before its update";
  }
  if (!clips)
    return;
  for (auto &[key, task] : tasks)
    if (task.getKind() == TaskKind::update &&
        !task.getOperand(0).getDefiningOp<ClipGradientsOp>())
      report(task) << "expects clipped gradients";
  if (present != all)
    report(where) << "clips the gradients of " << present.size() << " of "
                  << all.size() << " ranks";
}

/// The partner of a task is the next one of its rank, and neither of another
/// pair nor in need of the first.
void TaskVerifier::verifyPair(TaskOp first, ArrayRef<Operation *> behind) {
  auto rankOf = [&](TaskOp task) {
    return stages[stages.numberOf(task.getStageAttr())].getRank();
  };
  TaskOp second;
  for (Operation *op : behind) {
    auto task = dyn_cast<TaskOp>(op);
    if (!task || rankOf(task) != rankOf(first))
      continue;
    second = task;
    break;
  }
  if (!second || !second.getMicroBatch()) {
    report(first) << "overlaps the next task of its rank, but there is none "
                     "that it could overlap";
    return;
  }
  auto reportBoth = [&](StringRef what) {
    InFlightDiagnostic diagnostic = report(first);
    diagnostic << what;
    diagnostic.attachNote(second.getLoc()) << "the next task is here";
  };
  if (second.getOverlapsNext())
    reportBoth("overlaps a task that overlaps another one, but expects pairs");
  else if (llvm::is_contained(first->getUsers(), second))
    reportBoth("overlaps a task that needs its results");
}

LogicalResult pipewright::pipe::verifyTasks(const Stages &stages, StepMode mode,
                                            int64_t microBatches,
                                            Operation *where,
                                            ArrayRef<Operation *> ops) {
  return TaskVerifier(stages, mode, microBatches, where, ops).verify();
}
