//===- StepOrder.cpp - The order that the IR says -------------------------===//
//
// See StepOrder.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/StepOrder.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

schedules::Task pipewright::pipe::plainTask(const Stages &stages, TaskOp task) {
  return {scheduleKindOf(task.getKind()), stages.numberOf(task.getStage()),
          static_cast<int32_t>(
              task.getMicroBatch().value_or(task.getNumber().value_or(0)))};
}

void TaskIndex::add(const Stages &stages, TaskOp task) {
  schedules::Task plain = plainTask(stages, task);
  tasks[{static_cast<unsigned>(plain.kind), plain.stage, plain.microBatch}] =
      task;
}

TaskOp TaskIndex::lookup(schedules::TaskKind kind, int32_t stage,
                         int64_t microBatch) const {
  return tasks.lookup({static_cast<unsigned>(kind), stage, microBatch});
}

std::map<int32_t, SmallVector<TaskOp>>
pipewright::pipe::tasksOfRanks(StepOp step, const Stages &stages,
                               ArrayRef<int32_t> rankOfStage) {
  std::map<int32_t, SmallVector<TaskOp>> tasks;
  for (auto task : step.getBody()->getOps<TaskOp>())
    tasks[rankOfStage[stages.numberOf(task.getStage())]].push_back(task);
  return tasks;
}

int64_t pipewright::pipe::numRanks(ModuleOp module,
                                   ArrayRef<int32_t> rankOfStage) {
  int64_t ranks = programOf(module).ranks.value_or(1);
  for (int32_t rank : rankOfStage)
    ranks = std::max<int64_t>(ranks, rank + 1);
  return ranks;
}

/// What versions tell of the rule: if weights are one update behind, the first
/// forwards of a step read version -1; otherwise none does.
static void noteRule(schedules::Schedule &schedule, TaskOp task) {
  using schedules::WeightRule;
  if (!task.getVersion() || schedule.weightRule == WeightRule::DelayedByOne)
    return;
  schedule.weightRule = static_cast<int64_t>(*task.getVersion()) < 0
                            ? WeightRule::DelayedByOne
                            : WeightRule::Newest;
}

/// Which tasks the model has of each stage, where it has not all.
static void noteTasks(schedules::Schedule &schedule, const Stages &stages) {
  for (int32_t stage = 0; stage < stages.size(); ++stage) {
    StageOp op = stages[stage];
    if (schedule.forwardOnly)
      schedule.stageTasks.push_back({.forward = op.getEvaluate() != nullptr});
    else
      schedule.stageTasks.push_back({.backward = op.getBackward() != nullptr,
                                     .update = stages.hasUpdate(stage)});
  }
  if (llvm::all_of(schedule.stageTasks,
                   [](const auto &has) { return has.isAll(); }))
    schedule.stageTasks.clear();
}

FailureOr<schedules::Schedule>
pipewright::pipe::readSchedule(ModuleOp module, const Stages &stages,
                               StepMode mode) {
  FailureOr<SmallVector<int32_t>> ranks = stages.ranks();
  FailureOr<int64_t> microBatches = microBatchesOf(module);
  if (failed(ranks) || failed(microBatches))
    return failure();
  schedules::Schedule schedule;
  schedule.ranks = numRanks(module, *ranks);
  schedule.stages = stages.size();
  schedule.microBatches = *microBatches;
  schedule.rankOfStage = *ranks;
  // Evaluation goes through the first copy, with all micro-batches.
  if (mode == StepMode::train)
    schedule.copies = stages.copies();
  if (mode == StepMode::train)
    schedule.updates = programOf(module).updates;
  schedule.forwardOnly = mode == StepMode::evaluate;
  schedule.order.resize(schedule.ranks);
  noteTasks(schedule, stages);

  auto add = [&](std::vector<schedules::Task> &order, TaskOp task) {
    order.push_back(plainTask(stages, task));
    noteRule(schedule, task);
  };
  bool found = false;
  for (auto step : module.getOps<StepOp>()) {
    if (step.getMode() != mode)
      continue;
    found = true;
    for (auto task : step.getBody()->getOps<TaskOp>())
      add(schedule.order[(*ranks)[stages.numberOf(task.getStage())]], task);
  }
  for (auto rank : module.getOps<RankOp>()) {
    if (rank.getMode() != mode)
      continue;
    if (static_cast<int64_t>(rank.getRank()) >= schedule.ranks)
      return rank.emitOpError("is beyond the module's ")
             << schedule.ranks << " ranks";
    found = true;
    for (auto task : rank.getBody()->getOps<TaskOp>())
      add(schedule.order[rank.getRank()], task);
  }
  if (!found)
    return module.emitError("has no step of mode '")
           << stringifyStepMode(mode) << "'; run pipe-unroll-microbatches";
  schedules::noteRecomputes(schedule);
  return schedule;
}
