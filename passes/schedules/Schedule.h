//===- Schedule.h - An order of tasks for each rank -------------*- C++ -*-===//
//
// What a policy makes and what everything else in this folder reads: which
// rank has which stage, and which task each rank runs after which. Times and
// transfers are not part of it; they follow from it (Simulator.h,
// MessageOrder.h).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_SCHEDULE_H
#define PIPEWRIGHT_PASSES_SCHEDULES_SCHEDULE_H

#include "passes/schedules/Task.h"

#include "llvm/ADT/SmallVector.h"

#include <vector>

namespace pipewright::schedules {

struct Schedule {
  int64_t ranks = 0;
  int64_t stages = 0;
  int64_t microBatches = 0;
  /// Indexed by stage.
  llvm::SmallVector<int32_t> rankOfStage;
  /// Indexed by rank: its tasks, run one after the other.
  std::vector<std::vector<Task>> order;
};

/// A tensor that the forward of stage `from` hands to the forward of stage
/// `to`. `from` is always smaller than `to`, but not always its neighbour:
/// a skip connection over several stages is an edge like any other. Two
/// tensors between the same stages are two edges.
struct StageEdge {
  int32_t from = 0;
  int32_t to = 0;
  int64_t bytes = 0;
  /// Whether a gradient of the same size comes back; false for masks, token
  /// ids and other values that are not differentiated.
  bool hasGradient = true;
};

/// Stage s feeds stage s+1 and no other, with `bytes` each.
std::vector<StageEdge> linearEdges(int64_t stages, int64_t bytes = 0);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_SCHEDULE_H
