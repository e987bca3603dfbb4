//===- TaskTimes.h - Measured times in a module -----------------*- C++ -*-===//
//
// `task_times` of the module's program: what the tasks of each stage took in a
// run of the same program. Whoever predicts or plans with times lets it have
// the last word.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_TASKTIMES_H
#define PIPEWRIGHT_PASSES_STEP_TASKTIMES_H

#include "passes/schedules/files/ChromeTrace.h"

#include "mlir/IR/BuiltinOps.h"

namespace pipewright::pipe {

/// Sets the attribute; one entry per stage. Without any there are none.
void setTaskTimes(mlir::ModuleOp module,
                  llvm::ArrayRef<schedules::MeasuredTimes> stages);

/// Fails, with a diagnostic, on times of another number of stages.
mlir::LogicalResult verifyTaskTimes(mlir::ModuleOp module, int64_t stages);

/// Replaces the times that the module has measured ones of.
void applyTaskTimes(mlir::ModuleOp module, schedules::TaskCosts &costs);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_TASKTIMES_H
