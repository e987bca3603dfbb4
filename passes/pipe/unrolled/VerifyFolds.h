//===- VerifyFolds.h - Which gradients are added as a tree -----*- C++ -*-===//
//
// A part of verifyTasks (VerifyTasks.h).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYFOLDS_H
#define PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYFOLDS_H

#include "passes/step/Stages.h"

namespace pipewright::pipe {

/// Where gradients of a stage are folded (`pipe.fold_gradients`), those of all
/// stages are: the groups in their order, each behind the last of its
/// micro-batches, as many for each group, and all of them. `ops` are those of a
/// step, in the order of each rank. Reports the first op that does otherwise.
mlir::LogicalResult verifyFolds(const Stages &stages, int64_t microBatches,
                                llvm::ArrayRef<mlir::Operation *> ops);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYFOLDS_H
