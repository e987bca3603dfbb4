//===- PlainExecution.h - Plans run as they are defined ---------*- C++ -*-===//
//
// Executes schedules and instruction lists naively: from the definitions, in a
// random order, with nothing shared with the checker but the plain data.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_SCHEDULES_PLAINEXECUTION_H
#define PIPEWRIGHT_TEST_UNIT_SCHEDULES_PLAINEXECUTION_H

#include "passes/schedules/Checker.h"

#include <random>
#include <vector>

namespace pipewright::schedules::testing {

using Random = std::mt19937;

inline int below(Random &random, size_t limit) {
  return static_cast<int>(random() % limit);
}

/// Whether a schedule's tasks are all there and can run.
bool runsPlainly(const Schedule &schedule, const std::vector<StageEdge> &edges,
                 Random &random);

/// Whether the instruction lists of a good schedule reach their end with every
/// task fed.
bool arrivePlainly(const Schedule &schedule, const InstructionLists &lists,
                   const std::vector<StageEdge> &edges,
                   const Channels &channels, Random &random);

} // namespace pipewright::schedules::testing

#endif // PIPEWRIGHT_TEST_UNIT_SCHEDULES_PLAINEXECUTION_H
