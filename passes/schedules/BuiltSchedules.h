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

/// Schedules of as many ranks and stages, with the same costs and edges.
class BuiltSchedules {
public:
  /// The schedule, simulated with its moves by the costs of the options; kept,
  /// unless it has too many tasks.
  llvm::Expected<std::shared_ptr<const BuiltSchedule>>
  of(const Policy &policy, const ScheduleOptions &options);

private:
  std::map<std::string, std::shared_ptr<const BuiltSchedule>> known;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_BUILTSCHEDULES_H
