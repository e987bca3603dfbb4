//===- LaneRuns.h - Runs of alike tasks on a rank ---------------*- C++ -*-===//
//
// What remains of a lane when its tasks are too many to be drawn: runs in
// which the rank divides its time between kinds in the same way.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_LANERUNS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_LANERUNS_H

#include "passes/schedules/drawing/Picture.h"

#include <map>

namespace pipewright::schedules {

struct LaneRun {
  double start = 0, end = 0;
  /// How long tasks of a kind and a stage run in it; the rest is idle.
  std::map<std::pair<TaskKind, int32_t>, double> seconds;
};

/// The runs of a rank; none is shorter than `shortest` where tasks can be
/// joined, and idle intervals of that length stay between runs.
std::vector<LaneRun> findRuns(const Picture &picture, int32_t rank,
                              double shortest);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_LANERUNS_H
