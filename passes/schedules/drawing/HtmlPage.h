//===- HtmlPage.h - What is the same in every page --------------*- C++ -*-===//
//
// Style and script of the pages that Html.h makes: the files of the folder
// page, which the build embeds. Everything is drawn on one canvas, so that
// schedules of many thousands of tasks stay fluent: only what is in view is
// drawn, found by bisection.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_HTMLPAGE_H
#define PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_HTMLPAGE_H

namespace pipewright::schedules {

/// CSS.
extern const char *const pageStyle;
/// The body's elements, which the script fills.
extern const char *const pageBody;
/// JavaScript, in this order: what the constant `data` (Html.cpp) says, and its
/// words; the canvas; the pointer and the head.
extern const char *const pageReading;
extern const char *const pageDrawing;
extern const char *const pageScript;

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_HTMLPAGE_H
