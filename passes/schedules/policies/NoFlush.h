//===- NoFlush.h - 1F1B with updates on the way -----------------*- C++ -*-===//
//
// The order of PipeDream and PipeDream-2BW: 1F1B, and each update right after
// the last backward whose gradient goes into it, while later micro-batches are
// on their way.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_NOFLUSH_H
#define PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_NOFLUSH_H

#include "passes/schedules/Schedule.h"

#include <vector>

namespace pipewright::schedules {

/// One stage per rank, or any number on a single one.
std::vector<Task> orderWithoutFlush(const Schedule &schedule, int32_t rank);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_NOFLUSH_H
