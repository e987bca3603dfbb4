//===- PlanWorks.h - Reads the works of a plan ------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANWORKS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANWORKS_H

#include "passes/schedules/files/PlanFile.h"
#include "passes/schedules/files/PlanValues.h"

namespace pipewright::schedules::plan {

/// What ranks do together, into `plan.timedWorks`; its schedule is read before.
llvm::Error readWorks(const llvm::json::Value &value, const JsonPath &place,
                      PlanFile &plan);

} // namespace pipewright::schedules::plan

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANWORKS_H
