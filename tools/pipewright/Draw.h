//===- Draw.h - Pictures, pages and traces of schedules ---------*- C++ -*-===//
//
// What `pipewright plan` and `pipewright schedules` write besides text.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAW_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAW_H

#include "tools/pipewright/OptionTable.h"
#include "tools/pipewright/SimulatedSchedule.h"

namespace pipewright::tool {

/// The files to write; empty for none.
struct DrawOptions {
  std::string svg, html, trace;
  /// A Chrome trace to show beside the prediction.
  std::string measured;

  bool any() const { return !svg.empty() || !html.empty() || !trace.empty(); }
};

/// Pictures and pages for both commands, traces for the one that has times in
/// seconds.
const std::vector<OptionRow<DrawOptions>> &drawRows();

llvm::Error writeDrawings(schedules::Picture picture,
                          const DrawOptions &options);

/// Draws schedules that were simulated without a model: one picture of all, or
/// a page of the only one.
llvm::Error drawSchedules(llvm::ArrayRef<SimulatedSchedule> all,
                          const DrawOptions &options);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAW_H
