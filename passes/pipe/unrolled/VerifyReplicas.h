//===- VerifyReplicas.h - What replicas do together -------------*- C++ -*-===//
//
// A part of verifyTasks (VerifyTasks.h).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYREPLICAS_H
#define PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYREPLICAS_H

#include "passes/step/Stages.h"

namespace pipewright::pipe {

/// `op` if it is a collective over replicas that is about all that a stage
/// updates; else null.
CollectiveOp overReplicas(mlir::Operation *op);
/// That which made a value, in front of parts of a task that went on with it.
CollectiveOp behindParts(mlir::Value made);

/// The ops of one step, in the order of each rank: weights that are loaded for
/// tasks are taken by those that read them; where the step `isSynchronized`,
/// updates take sums over all replicas and their weights are put together, and
/// running statistics are made one. Reports every violation; what is missing at
/// `where`.
mlir::LogicalResult verifyReplicas(const Stages &stages, bool isSynchronized,
                                   mlir::Operation *where,
                                   llvm::ArrayRef<mlir::Operation *> ops);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYREPLICAS_H
