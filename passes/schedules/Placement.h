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

/// There and back, again and again: 0 1 2 2 1 0 0 1 2 ... Every second pass
/// over the ranks goes down, so the turns stay on one rank. With two stages
/// per rank this is the papers' "V" (`veePlacement`).
Placement zigzagPlacement(int64_t stages, int64_t ranks);

/// The zigzag of two stages per rank: stage s and stage 2P-1-s on rank s.
Placement veePlacement(int64_t ranks);

/// Two copies of a chain with one stage per rank, both ways at once: stage s
/// of the first copy on rank s, stage s of the second (number P+s) on rank
/// P-1-s.
Placement mirrorPlacement(int64_t ranks);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_PLACEMENT_H
