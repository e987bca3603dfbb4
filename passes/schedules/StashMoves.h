//===- StashMoves.h - Stashes that another rank keeps -----------*- C++ -*-===//
//
// BPipe: Kim et al., "BPipe: Memory-Balanced Pipeline Parallelism for Training
// Large Language Models", ICML 2023. Under 1F1B the first ranks keep many
// stashes and the last ones few, so rank r sends some to rank P-1-r and fetches
// each before its backward.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_STASHMOVES_H
#define PIPEWRIGHT_PASSES_SCHEDULES_STASHMOVES_H

#include "passes/schedules/Schedule.h"
#include "passes/schedules/Work.h"

#include "llvm/Support/Error.h"

namespace pipewright::schedules {

struct TaskCosts;

/// What moves so that no rank keeps more than `limit` stashes at a time, those
/// on their way counted on both ranks. Before a forward that would be one too
/// many, its rank has sent the newest stash that was there a task earlier;
/// behind a backward it fetches that of the next one, if it is away. Fails if
/// some rank cannot keep within the limit, which is at least 2.
llvm::Expected<std::vector<StashMove>> movesWithin(const Schedule &schedule,
                                                   int64_t limit);

/// Two works for each move of the schedule, one behind the other: the stash
/// goes to its keeper, and comes back. Where they stand is not said.
std::vector<Work> worksOfMoves(const Schedule &schedule,
                               const TaskCosts &costs);

/// Whether works that move stashes move what is there: each stash leaves its
/// own rank behind its forward, once, and is back from where it went before its
/// backward. The error names the first one that is not.
llvm::Error checkMoves(const Schedule &schedule, llvm::ArrayRef<Work> works);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_STASHMOVES_H
