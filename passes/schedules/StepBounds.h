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

/// A rank begins when the forwards of all stages before its first one have
/// passed; and where backwards are whole, its last task is that stage's, and
/// all stages before it follow.
double leastStep(llvm::ArrayRef<int32_t> rankOfStage, int64_t ranks,
                 int64_t microBatches, const TaskCosts &costs, bool splits);

/// Where each rank keeps at most so many bytes of stashes at a time, and none
/// is moved to another rank. By Little's law: a stash is kept until all stages
/// behind its own have seen its micro-batch twice, and the sum of these times
/// is at most what a step has room for. No bound comes from a rank with no room
/// at all.
double leastStepWithin(llvm::ArrayRef<double> bytesOfRank,
                       llvm::ArrayRef<int32_t> rankOfStage,
                       int64_t microBatches, const TaskCosts &costs,
                       bool splits);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_STEPBOUNDS_H
