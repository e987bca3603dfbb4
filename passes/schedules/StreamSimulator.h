//===- StreamSimulator.h - Schedules too large to write out -----*- C++ -*-===//
//
// Schedules, checks and simulates in one go: the order of a rank is packed into
// about a byte per task as soon as the policy has made it, and a message is
// forgotten as soon as it is consumed. A hundred million tasks fit into a few
// hundred megabytes. The figures are those of Simulator.h, bit for bit.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_STREAMSIMULATOR_H
#define PIPEWRIGHT_PASSES_SCHEDULES_STREAMSIMULATOR_H

#include "passes/schedules/Policy.h"
#include "passes/schedules/Simulator.h"

namespace pipewright::schedules {

/// What `Simulation` says, without what it says of single tasks.
struct StreamSimulation {
  double globalStepTime = 0;
  double spanStepTime = 0;
  std::vector<RankSummary> ranks;
  int64_t tasks = 0;
  /// The size of the packed orders.
  int64_t orderBytes = 0;
  /// The most messages that were made and not yet consumed at one time.
  int64_t peakMessages = 0;
};

/// Refuses what `Policy::build`, `checkSchedule` and `simulate` refuse, with
/// the same messages.
llvm::Expected<StreamSimulation>
simulateStream(const Policy &policy, const ScheduleOptions &options,
               const TaskCosts &costs, llvm::ArrayRef<StageEdge> edges = {});

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_STREAMSIMULATOR_H
