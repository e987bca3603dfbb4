//===- Draw.h - Pictures, pages and traces of schedules ---------*- C++ -*-===//
//
// What `pipewright plan`, `schedules` and `check` write besides text.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAW_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAW_H

#include "passes/schedules/drawing/Svg.h"
#include "tools/pipewright/OptionTable.h"
#include "tools/pipewright/SimulatedSchedule.h"

namespace pipewright::tool {

/// The files to write; empty for none.
struct DrawOptions {
  std::string svg, pdf, html, trace;
  /// How --svg and --pdf look.
  schedules::SvgStyle style;
  /// A Chrome trace to show beside the prediction.
  std::string measured;

  bool hasPicture() const { return !svg.empty() || !pdf.empty(); }
  bool any() const { return hasPicture() || !html.empty() || !trace.empty(); }
};

/// Pictures and pages for all that draw, traces for the one that has times in
/// seconds.
const std::vector<OptionRow<DrawOptions>> &drawRows();

/// One picture and one page of all, or a trace of the only one.
llvm::Error writeDrawings(llvm::MutableArrayRef<schedules::Picture> pictures,
                          const DrawOptions &options);

/// Draws schedules that were simulated without a model.
llvm::Error drawSchedules(llvm::ArrayRef<SimulatedSchedule> all,
                          const DrawOptions &options);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_DRAW_H
