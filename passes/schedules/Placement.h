//===- Placement.h - Which rank has which stage -----------------*- C++ -*-===//
//
// The placements of the published schedules, as plain vectors indexed by
// stage.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_PLACEMENT_H
#define PIPEWRIGHT_PASSES_SCHEDULES_PLACEMENT_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace pipewright::schedules {

using Placement = llvm::SmallVector<int32_t>;

/// Consecutive stages share a rank, as evenly as possible: with as many
/// stages as ranks, stage s is on rank s; with one rank, all are on rank 0.
Placement linearPlacement(int64_t stages, int64_t ranks);

/// Stage s is on rank s mod `ranks`: round and round.
Placement loopPlacement(int64_t stages, int64_t ranks);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_PLACEMENT_H
