//===- Svg.h - A schedule as a picture --------------------------*- C++ -*-===//
//
// Time to scale, a lane per rank. One file that any browser shows, on light and
// on dark backgrounds, and that goes into a paper.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVG_H
#define PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVG_H

#include "passes/schedules/drawing/Picture.h"

#include <optional>
#include <string>

namespace pipewright::schedules {

struct SvgStyle {
  /// Above the picture; unless given, what is drawn. An empty one leaves out
  /// all words above the legend.
  std::optional<std::string> title;
  bool hasLegend = true;
  /// Of the whole picture, in pixels, of which an inch has 96; 0: what the
  /// numbers of tasks need.
  double width = 0;
  /// Lightness tells kinds, and a bar at the foot of a box the stages of a
  /// rank, so that nothing is lost in print without colours.
  bool isGrey = false;
};

/// One schedule with what each rank keeps below, or the lanes of several on one
/// time axis. Schedules too large to draw each task are drawn by what ranks
/// spend their time with: a box for a run of alike tasks, split by kind. The
/// text is the same for the same pictures.
std::string drawSvg(llvm::ArrayRef<Picture> pictures,
                    const SvgStyle &style = {});

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVG_H
