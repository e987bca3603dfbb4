//===- PlanCosts.h - Reads costs and times of a plan ------------*- C++ -*-===//
//
// Internal to the reader of plans.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANCOSTS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANCOSTS_H

#include "passes/schedules/files/PlanFile.h"
#include "passes/schedules/files/PlanValues.h"

namespace pipewright::schedules::plan {

/// What tasks and links cost, into `plan.costs`; its schedule is read before.
llvm::Error readCosts(const llvm::json::Value &value, const JsonPath &place,
                      PlanFile &plan);

/// When each task starts and ends, into `plan.times`.
llvm::Error readTimes(const llvm::json::Value &value, const JsonPath &place,
                      PlanFile &plan);

} // namespace pipewright::schedules::plan

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANCOSTS_H
