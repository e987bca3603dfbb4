//===- Html.h - Schedules as a page to explore ------------------*- C++ -*-===//
//
// One file that needs nothing else and no network: zoom, pan, and ask any task
// or idle interval for its times and its cause; the chain of tasks that the
// step's time comes from; a measured run below the predicted one where there is
// one.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_HTML_H
#define PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_HTML_H

#include "passes/schedules/drawing/Picture.h"

#include "llvm/Support/Error.h"

namespace pipewright::schedules {

/// Several are drawn one below the other on one time axis; their times are all
/// seconds or all plain numbers. Fails on schedules of more tasks than a
/// browser holds, and on a measured trace of another schedule.
llvm::Expected<std::string> drawHtml(llvm::ArrayRef<Picture> pictures);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_HTML_H
