//===- OneStagePerRank.cpp - Policies with stage r on rank r ----*- C++ -*-===//
//
// See OneStagePerRank.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/OneStagePerRank.h"

#include <algorithm>

using namespace pipewright::schedules;

std::optional<double> OneStagePerRank::stepTime(const ScheduleOptions &options,
                                                const UnitTimes &times) const {
  int64_t slots = options.ranks == 1 ? options.microBatches * options.stages
                                     : options.microBatches + options.ranks - 1;
  return slots * (times.forward + times.backward());
}

llvm::Expected<Placement>
OneStagePerRank::placeStages(const ScheduleOptions &options) const {
  return placeOneStagePerRank(options);
}

std::vector<Task> OneStagePerRank::orderOfRank(const Schedule &schedule,
                                               const ScheduleOptions &options,
                                               int32_t rank) const {
  if (schedule.ranks == 1)
    return orderOfOnlyRank(schedule, splitsBackward());
  return orderInPipeline(schedule, rank);
}

std::vector<Task> pipewright::schedules::orderOneFOneB(const Schedule &schedule,
                                                       int32_t rank,
                                                       int64_t ahead) {
  int32_t microBatches = schedule.microBatches;
  int32_t warmUp = std::min<int64_t>(ahead, microBatches);
  std::vector<Task> order;
  order.reserve(2 * int64_t(microBatches) + 1);
  for (int32_t m = 0; m < warmUp; ++m)
    order.push_back(Task::forward(rank, m));
  for (int32_t m = 0; m < microBatches; ++m) {
    order.push_back(Task::backward(rank, m));
    if (warmUp + m < microBatches)
      order.push_back(Task::forward(rank, warmUp + m));
  }
  return order;
}

std::vector<Task>
pipewright::schedules::orderOfOnlyRank(const Schedule &schedule, bool splits) {
  int32_t stages = schedule.stages;
  std::vector<Task> order;
  order.reserve((splits ? 3 : 2) * schedule.stages * schedule.microBatches +
                stages);
  for (int32_t m = 0; m < schedule.microBatches; ++m) {
    for (int32_t stage = 0; stage < stages; ++stage)
      order.push_back(Task::forward(stage, m));
    for (int32_t stage = stages - 1; stage >= 0; --stage)
      if (splits) {
        order.push_back(Task::inputGradient(stage, m));
        order.push_back(Task::weightGradient(stage, m));
      } else {
        order.push_back(Task::backward(stage, m));
      }
  }
  return order;
}
