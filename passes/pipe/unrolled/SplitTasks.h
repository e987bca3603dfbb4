//===- SplitTasks.h - Tasks of halves in place of backwards -----*- C++ -*-===//
//
// The part of `pipe-schedule` that changes which tasks a step has, and in which
// order they add to gradients. Everything else about a step stays.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_UNROLLED_SPLITTASKS_H
#define PIPEWRIGHT_PASSES_PIPE_UNROLLED_SPLITTASKS_H

#include "passes/step/Stages.h"

namespace pipewright::pipe {

/// Replaces a backward task by an input-gradient and a weight-gradient task
/// where `schedule` has these. Fails, with a diagnostic, where the stage has no
/// halves, or where a task was split already that the schedule wants whole.
mlir::LogicalResult splitTasks(StepOp step, const Stages &stages,
                               const schedules::Schedule &schedule);

/// Of stages that keep some stashes, gives a task that makes it again to those
/// micro-batches that the schedule has an R task for, and to no other.
void placeRecomputes(StepOp step, const Stages &stages,
                     const schedules::Schedule &schedule);

/// Threads the gradients of each stage through its backward and weight-gradient
/// tasks: by micro-batch, or (`asScheduled`) in the order of `schedule`.
void threadGradients(StepOp step, const Stages &stages,
                     const schedules::Schedule &schedule, bool asScheduled);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_UNROLLED_SPLITTASKS_H
