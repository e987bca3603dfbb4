//===- VerifySums.h - Which gradients an update is of ----------*- C++ -*-===//
//
// Runs the sums of a step on symbols: a gradient of a weight is the set of the
// gradients that were added, by stage and micro-batch, each as often as it was.
// How it came about does not matter: by tasks of a stage, at an owner, by ranks
// together. What replicas add is in the types of values, and not looked at
// here.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYSUMS_H
#define PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYSUMS_H

#include "passes/step/Stages.h"

namespace pipewright::pipe {

/// Each update of a weight is of the gradients that one rank would add that
/// runs all stages: of each stage that trains the weight and each micro-batch
/// of the update, once. `ops` are those of a step, or of the programs of all
/// its ranks. `withTied`: also of weights that several stages hold, which a
/// step leaves alone until pipe-synchronize-weights. Reports every update that
/// is of other gradients.
mlir::LogicalResult verifySums(const Stages &stages, int64_t microBatches,
                               llvm::ArrayRef<mlir::Operation *> ops,
                               bool withTied);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_UNROLLED_VERIFYSUMS_H
