//===- OnlyRank.h - Policies without a pipeline -----------------*- C++ -*-===//
//
// What the policies of one stage per rank do when there is one rank with any
// number of stages: nobody is waited for, so each micro-batch goes there and
// back at once.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_ONLYRANK_H
#define PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_ONLYRANK_H

#include "passes/schedules/Schedule.h"

#include <vector>

namespace pipewright::schedules {

/// All of `schedule` on rank 0; with `splits`, I and W instead of B.
std::vector<Task> orderOfOnlyRank(const Schedule &schedule, bool splits);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_ONLYRANK_H
