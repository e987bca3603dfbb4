//===- HtmlPage.h - What is the same in every page --------------*- C++ -*-===//
//
// Style and script of the pages that Html.h makes.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_HTMLPAGE_H
#define PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_HTMLPAGE_H

namespace pipewright::schedules {

/// CSS.
extern const char *const pageStyle;
/// The body's elements, which the script fills.
extern const char *const pageBody;
/// JavaScript; reads the constant `data` (Html.cpp).
extern const char *const pageScript;

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_HTMLPAGE_H
