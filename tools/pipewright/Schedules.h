//===- Schedules.h - The list of schedules, drawn ---------------*- C++ -*-===//
//
// `pipewright schedules`: everything here is what the policies say of
// themselves, and what the simulator finds.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULES_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULES_H

#include "tools/pipewright/OptionTable.h"

#include "passes/schedules/Policy.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright::tool {

/// What to draw instead of the policy's own example.
struct ScheduleSizes {
  std::optional<int64_t> ranks, loops, microBatches;
};

/// The options of `pipewright schedules` besides drawings.
struct ListOptions {
  /// The schedules to print; empty for all.
  std::vector<std::string> names;
  ScheduleSizes sizes;
  /// Whether texts are printed as one JSON list, for scripts, and nothing is
  /// drawn or simulated.
  bool asJson = false;
};

const std::vector<OptionRow<ListOptions>> &listRows();

/// The policy's own example, with what the user asks for in its place.
schedules::ScheduleOptions sizedOptions(const schedules::PolicyChoice &choice,
                                        const ScheduleSizes &sizes);

/// Prints the schedules that are named (`zb-v`, `interleaved:group=8`), or all,
/// each with its drawing, formulas and simulated figures.
llvm::Error printSchedules(const ListOptions &options);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULES_H
