//===- Svg.h - A schedule as a picture --------------------------*- C++ -*-===//
//
// Time to scale, a lane per rank, what each rank keeps below. One file that
// any browser shows, on light and on dark backgrounds.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVG_H
#define PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVG_H

#include "passes/schedules/drawing/Picture.h"

#include <string>

namespace pipewright::schedules {

/// Schedules too large to draw each task are drawn by what ranks spend their
/// time with: a box for a run of alike tasks, split by kind. The text is the
/// same for the same picture.
std::string drawSvg(const Picture &picture);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVG_H
