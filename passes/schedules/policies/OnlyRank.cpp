//===- OnlyRank.cpp - Policies without a pipeline ---------------*- C++ -*-===//
//
// See OnlyRank.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/OnlyRank.h"

using namespace pipewright::schedules;

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
