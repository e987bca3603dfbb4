//===- StepOrder.cpp - The order that the IR says -------------------------===//
//
// See StepOrder.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/StepOrder.h"

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
  tasks[{plain.kind, plain.stage, plain.microBatch}] = task;
}

TaskOp TaskIndex::lookup(schedules::TaskKind kind, int32_t stage,
                         int64_t microBatch) const {
  auto found = tasks.find({kind, stage, microBatch});
  return found == tasks.end() ? TaskOp() : found->second;
}

int64_t pipewright::pipe::numRanks(ModuleOp module,
                                   ArrayRef<int32_t> rankOfStage) {
  int64_t ranks = 1;
  if (auto given = module->getAttrOfType<IntegerAttr>(PipeDialect::kRanks))
    ranks = given.getInt();
  for (int32_t rank : rankOfStage)
    ranks = std::max<int64_t>(ranks, rank + 1);
  return ranks;
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
    schedule.updates = updatesOf(module);
  schedule.forwardOnly = mode == StepMode::evaluate;
  schedule.order.resize(schedule.ranks);

  bool found = false;
  for (auto step : module.getOps<StepOp>()) {
    if (step.getMode() != mode)
      continue;
    found = true;
    for (auto task : step.getBody()->getOps<TaskOp>()) {
      schedules::Task plain = plainTask(stages, task);
      schedule.order[schedule.rankOfStage[plain.stage]].push_back(plain);
    }
  }
  for (auto rank : module.getOps<RankOp>()) {
    if (rank.getMode() != mode)
      continue;
    if (static_cast<int64_t>(rank.getRank()) >= schedule.ranks)
      return rank.emitOpError("is beyond the module's ")
             << schedule.ranks << " ranks";
    found = true;
    for (auto task : rank.getBody()->getOps<TaskOp>())
      schedule.order[rank.getRank()].push_back(plainTask(stages, task));
  }
  if (!found)
    return module.emitError("has no step of mode '")
           << stringifyStepMode(mode) << "'; run pipe-unroll-microbatches";
  return schedule;
}

void pipewright::pipe::completeSchedule(schedules::Schedule &schedule) {
  using schedules::Task;
  std::set<std::tuple<schedules::TaskKind, int32_t, int32_t>> present;
  for (std::vector<Task> &order : schedule.order)
    for (const Task &task : order)
      present.insert({task.kind, task.stage, task.microBatch});
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
