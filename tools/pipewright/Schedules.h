//===- Schedules.h - The list of schedules, drawn ---------------*- C++ -*-===//
//
// `pipewright schedules`: everything here is what the policies say of
// themselves, and what the simulator finds.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULES_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULES_H

#include "tools/pipewright/Draw.h"
#include "tools/pipewright/SimulatedSchedule.h"

#include <string>
#include <vector>

namespace pipewright::tool {

/// The options of `pipewright schedules` besides drawings.
struct ListOptions {
  /// The schedules to print; empty for all.
  std::vector<std::string> names;
  ScheduleSizes sizes;
  /// Whether texts are printed as one JSON list, for scripts, and nothing is
  /// drawn or simulated.
  bool asJson = false;
  ScheduleTimes times;
  /// What the table of figures is printed as, instead of drawings; empty for
  /// drawings, with a table below where there are several.
  std::string table;
  /// The file to write the only schedule to; empty for none.
  std::string write;
};

const std::vector<OptionRow<ListOptions>> &listRows();

/// Prints, draws and writes the schedules that are named (`zb-v`,
/// `interleaved:group=8`), or prints all.
llvm::Error runSchedules(const ListOptions &options,
                         const DrawOptions &drawings);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULES_H
