//===- StepOrder.cpp - The order that the IR says -------------------------===//
//
// See StepOrder.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/StepOrder.h"

#include <map>
#include <set>

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
  return schedule;
}

using TaskSet = std::set<std::tuple<schedules::TaskKind, int32_t, int32_t>>;

static TaskSet tasksOf(const schedules::Schedule &schedule) {
  TaskSet tasks;
  for (const std::vector<schedules::Task> &order : schedule.order)
    for (const schedules::Task &task : order)
      tasks.insert({task.kind, task.stage, task.microBatch});
  return tasks;
}

/// Adds the missing gradients and updates of one rank where its stages would
/// have them: later forwards may have to wait for an update.
static void completeUpdates(schedules::Schedule &schedule,
                            std::vector<schedules::Task> &order,
                            const TaskSet &present) {
  using schedules::Task, schedules::TaskKind;
  int64_t share = schedule.microBatches / (schedule.copies * schedule.updates);
  std::map<std::pair<int32_t, int32_t>, int64_t> summed;
  auto isMissing = [&](TaskKind kind, int32_t stage, int32_t number) {
    return !present.count({kind, stage, number});
  };
  std::vector<Task> all;
  for (Task task : order) {
    all.push_back(task);
    if (task.kind == TaskKind::Forward &&
        isMissing(TaskKind::InputGradient, task.stage, task.microBatch) &&
        isMissing(TaskKind::Backward, task.stage, task.microBatch)) {
      task = Task::backward(task.stage, task.microBatch);
      all.push_back(task);
    }
    if (!task.endsStash())
      continue;
    int32_t update = schedule.updateOf(task.microBatch);
    if (++summed[{task.stage, update}] == share &&
        isMissing(TaskKind::Update, task.stage, update))
      all.push_back(Task::update(task.stage, update));
  }
  order = std::move(all);
}

void pipewright::pipe::completeSchedule(schedules::Schedule &schedule) {
  using schedules::Task;
  TaskSet present = tasksOf(schedule);
  if (schedule.updates > 1 && !schedule.forwardOnly) {
    for (std::vector<Task> &order : schedule.order)
      completeUpdates(schedule, order, present);
    present = tasksOf(schedule);
  }
  auto addMissing = [&](Task task) {
    if (!present.count({task.kind, task.stage, task.microBatch}))
      schedule.order[schedule.rankOfStage[task.stage]].push_back(task);
  };
  for (int32_t stage = 0; stage < schedule.stages; ++stage)
    for (int32_t m = 0; m < schedule.microBatches; ++m) {
      if (!schedule.runs(stage, m))
        continue;
      addMissing(Task::forward(stage, m));
      if (!schedule.forwardOnly &&
          !present.count({schedules::TaskKind::InputGradient, stage, m}))
        addMissing(Task::backward(stage, m));
    }
  if (schedule.forwardOnly)
    return;
  for (int32_t stage = 0; stage < schedule.stages; ++stage)
    for (int32_t number = 0; number < schedule.updates; ++number)
      addMissing(Task::update(stage, number));
}
