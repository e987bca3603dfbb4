//===- ScheduleOutput.h - Schedules written to files ------------*- C++ -*-===//
//
// What `pipewright check` and `pipewright schedules` write with --write.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULEOUTPUT_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULEOUTPUT_H

#include "passes/schedules/files/PlanFile.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace pipewright::tool {

/// To a .csv in PyTorch's format or a .json, by the name of the file; fails on
/// other names, and on what a CSV cannot say.
llvm::Error writeSchedule(schedules::PlanFile plan, llvm::StringRef path,
                          bool withMessages, bool withSendWaits);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_SCHEDULEOUTPUT_H
