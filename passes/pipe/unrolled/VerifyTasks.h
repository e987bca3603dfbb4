//===- VerifyTasks.h - Every task once, with the right operands -*- C++ -*-===//
//
// What `pipe-verify-unrolled` and `pipe-verify-schedule` have in common.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYTASKS_H
#define PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYTASKS_H

#include "passes/step/Stages.h"

namespace pipewright::pipe {

/// The ops of one step, in any order: every task there is, once; what it
/// reads is what it wants, unless it was received; gradients of a stage summed
/// in ascending order, or in any if the module says so; each update of the
/// gradients that it should be of (VerifySums.h). Reports every violation.
/// `where` is the op that diagnostics about missing tasks name.
mlir::LogicalResult verifyTasks(const Stages &stages, StepMode mode,
                                int64_t microBatches, mlir::Operation *where,
                                llvm::ArrayRef<mlir::Operation *> ops);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYTASKS_H
