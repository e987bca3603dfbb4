//===- HostMoves.h - Stashes that the host keeps ----------------*- C++ -*-===//
//
// Offload: Wan et al., "PipeOffload: Improving Scalability of Pipeline
// Parallelism with Memory Optimization", ICML 2025. A GPU has an engine that
// copies to its host's memory and one that copies back, which run beside tasks:
// a stash leaves behind its forward and is back a task before its backward.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_HOSTMOVES_H
#define PIPEWRIGHT_PASSES_SCHEDULES_HOSTMOVES_H

#include "passes/schedules/Schedule.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <vector>

namespace pipewright::schedules {

struct TaskCosts;

/// `none`, `auto` or `50%`: the share of its stashes that a rank may have on
/// its host; `auto` is 1.
llvm::Expected<double> parseOffload(llvm::StringRef text);

/// Which stashes of each rank live on its host, at most `share` of its bytes:
/// those of the stages that keep them longest, as many as the two engines copy
/// in time and the host has memory for by these costs. None that lives for less
/// than three copies there and back, or that the rank's next backward needs.
llvm::Expected<std::vector<StashMove>>
movesToHost(const Schedule &schedule, const TaskCosts &costs,
            llvm::ArrayRef<StageEdge> edges, double share);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_HOSTMOVES_H
