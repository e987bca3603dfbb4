//===- TwoWaySteps.h - The eight steps of DualPipe --------------*- C++ -*-===//
//
// DualPipe and DualPipeV run the same eight steps on the two stages of a rank;
// only the lengths differ. In the repository's words "phase 0" is what comes
// first, here the near stage: the one that fewer stages precede.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_TWOWAYSTEPS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_TWOWAYSTEPS_H

#include "passes/schedules/Policy.h"

namespace pipewright::schedules {

struct TwoWaySteps {
  /// A stage of the rank, and the first micro-batch that it runs.
  struct Direction {
    int32_t stage = 0;
    int32_t firstMicroBatch = 0;
  };
  Direction near, far;
  /// Ranks between this one and the turn, or the middle of the pipeline.
  int32_t toTurn = 0;
  /// Ranks between this one and the first of the near way.
  int32_t fromStart = 0;
  /// Micro-batches of each way.
  int32_t microBatches = 0;

  std::vector<Task> order() const;
};

/// The bubble when `ranks` lie between the start and the turn, that one not
/// counted, each stage takes `times` and a pair as long as its two tasks.
double bubbleOfTwoWaySteps(int64_t ranks, const UnitTimes &times);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_TWOWAYSTEPS_H
