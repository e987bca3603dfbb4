//===- StepBounds.h - What no step takes less than --------------*- C++ -*-===//
//
// Known from costs and places of stages alone, before any order is made: of
// synchronous schedules of one copy of the model, whose stages depend on each
// other in their order.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_STEPBOUNDS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_STEPBOUNDS_H

#include "passes/schedules/Simulator.h"

#include "llvm/ADT/ArrayRef.h"

namespace pipewright::schedules {

/// How backwards run: each whole, or each in halves.
enum class BackwardForm : uint8_t { Whole, Halves };

/// A rank begins when forwards have passed on the way to one of its stages; and
/// where backwards are whole, its last task is one, and others follow on the
/// way back. `edges` may be none, which is a chain; of wrong ones comes no
/// bound. What R tasks compute again counts where all micro-batches have them.
double leastStep(llvm::ArrayRef<int32_t> rankOfStage, int64_t ranks,
                 int64_t microBatches, const TaskCosts &costs,
                 llvm::ArrayRef<StageEdge> edges, BackwardForm form);

/// Where each rank keeps at most so many bytes of stashes at a time, and none
/// is moved to another rank. By Little's law: a stash is kept until the stages
/// on a way behind its own have seen its micro-batch twice, and the sum of
/// these times is at most what a step has room for, less what is empty while a
/// rank's first forwards fill it and its last backwards empty it. No bound
/// comes from a rank with no room at all, or from wrong edges.
double leastStepWithin(llvm::ArrayRef<double> bytesOfRank,
                       llvm::ArrayRef<int32_t> rankOfStage,
                       int64_t microBatches, const TaskCosts &costs,
                       llvm::ArrayRef<StageEdge> edges, BackwardForm form);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_STEPBOUNDS_H
