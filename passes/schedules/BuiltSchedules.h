//===- BuiltSchedules.h - Schedules that were built already -----*- C++ -*-===//
//
// Who compares policies and `auto`, which compares the same ones, builds and
// simulates each of them once.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_BUILTSCHEDULES_H
#define PIPEWRIGHT_PASSES_SCHEDULES_BUILTSCHEDULES_H

#include "passes/schedules/Policy.h"

#include <map>
#include <memory>
#include <string>

namespace pipewright::schedules {

/// A schedule and what it takes.
struct BuiltSchedule {
  Schedule schedule;
  /// Without the times of tasks and idle intervals.
  Simulation simulation;
};

/// Builds a policy's schedule and simulates it with its moves; the options have
/// costs.
llvm::Expected<BuiltSchedule> buildAndSimulate(const Policy &policy,
                                               const ScheduleOptions &options);

/// Schedules of as many ranks and stages, with the same costs and edges.
class BuiltSchedules {
public:
  /// Keeps it, unless it has too many tasks.
  llvm::Expected<std::shared_ptr<const BuiltSchedule>>
  of(const Policy &policy, const ScheduleOptions &options);

private:
  std::map<std::string, std::shared_ptr<const BuiltSchedule>> known;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_BUILTSCHEDULES_H
