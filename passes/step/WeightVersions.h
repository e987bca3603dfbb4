//===- WeightVersions.h - Which version of the weights is where -*- C++ -*-===//
//
// With stale weights a task reads a version of its stage's weights that may be
// older than the newest. The newest is always in the weights' own place, where
// the optimizer works, evaluation reads and the runtime saves from; an update
// copies what it is about to overwrite to a slot, if anybody still needs it.
// So the slots stand the same at the start of every step, whatever the number
// of updates in a step and of slots, and nothing has to be rotated.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_WEIGHTVERSIONS_H
#define PIPEWRIGHT_PASSES_STEP_WEIGHTVERSIONS_H

#include "passes/step/Stages.h"

#include "llvm/ADT/DenseMap.h"

namespace pipewright::pipe {

/// The versions of one stage's weights in its rank's training program.
struct WeightVersions {
  /// Old versions that have to be kept at one time.
  int64_t slots = 0;
  /// The slot that a task reads, or that an update copies the weights to before
  /// it changes them. Tasks that are not here use the newest version.
  llvm::DenseMap<TaskOp, int64_t> slotOf;
};

/// Fails, with a diagnostic, where a task reads a version that is not there
/// yet or that nobody keeps.
mlir::FailureOr<WeightVersions>
planWeightVersions(RankOp program, mlir::FlatSymbolRefAttr stage,
                   int64_t updates);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_WEIGHTVERSIONS_H
