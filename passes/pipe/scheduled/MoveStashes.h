//===- MoveStashes.h - Stashes that are elsewhere ---------------*- C++ -*-===//

#ifndef PIPEWRIGHT_PASSES_PIPE_SCHEDULED_MOVESTASHES_H
#define PIPEWRIGHT_PASSES_PIPE_SCHEDULED_MOVESTASHES_H

#include "passes/step/StepOrder.h"

namespace pipewright::pipe {

/// Undoes what an earlier schedule moved.
void keepStashes(StepOp step);

/// Writes the moves of a schedule (passes/schedules/StashMoves.h) into a step
/// of training that is in its order: a `pipe.hold` each for the bytes, for the
/// rank that keeps them, and for what comes back; of those that the host keeps
/// a `pipe.move` there and one back. Warns if stages stash nothing; fails, with
/// a diagnostic, where a stash that moves is in two ranges.
mlir::LogicalResult moveStashes(StepOp step, const Stages &stages,
                                const schedules::Schedule &schedule);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_SCHEDULED_MOVESTASHES_H
