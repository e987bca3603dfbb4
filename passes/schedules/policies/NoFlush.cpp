//===- NoFlush.cpp - 1F1B with updates on the way ---------------*- C++ -*-===//
//
// See NoFlush.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/NoFlush.h"

#include <algorithm>

using namespace pipewright::schedules;

std::vector<Task>
pipewright::schedules::orderWithoutFlush(const Schedule &schedule,
                                         int32_t rank) {
  int32_t microBatches = schedule.microBatches;
  int32_t perUpdate = microBatches / schedule.updates;
  int32_t stages = schedule.stages / schedule.ranks;
  int32_t first = rank * stages, end = first + stages;
  int32_t warmUp = std::min<int64_t>(schedule.ranks - rank, microBatches);
  std::vector<Task> order;
  order.reserve(stages * (2 * schedule.microBatches + schedule.updates));
  auto addForward = [&](int32_t microBatch) {
    for (int32_t stage = first; stage < end; ++stage)
      order.push_back(Task::forward(stage, microBatch));
  };
  for (int32_t m = 0; m < warmUp; ++m)
    addForward(m);
  for (int32_t m = 0; m < microBatches; ++m) {
    for (int32_t stage = end - 1; stage >= first; --stage) {
      order.push_back(Task::backward(stage, m));
      if ((m + 1) % perUpdate == 0)
        order.push_back(Task::update(stage, m / perUpdate));
    }
    if (warmUp + m < microBatches)
      addForward(warmUp + m);
  }
  return order;
}
