//===- WorkOrder.h - Where works stand between tasks ------------*- C++ -*-===//
//
// Turns a schedule and the works of its step into one instruction list per
// rank. All works of a step are put in one order, that of the times at which
// they could begin if none had to wait for another, and each rank posts its
// part as soon as it can in that order.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_WORKORDER_H
#define PIPEWRIGHT_PASSES_SCHEDULES_WORKORDER_H

#include "passes/schedules/MessageOrder.h"

namespace pipewright::schedules {

struct OrderedWork {
  /// In the order in which they begin, each behind and before so many tasks of
  /// its members as the lists say.
  std::vector<Work> works;
  /// Parallel to them: which of the given works each is.
  std::vector<int32_t> numbers;
  /// Tasks, transfers and works of each rank.
  InstructionLists lists;
  /// Those that instructions name by number.
  std::vector<RankGroup> groups;
};

/// Of `works`, `posted` says how many tasks of a member have to be over before
/// its post, and `waited` how many may come before its wait. Tasks that wait
/// for works may be needed by other ranks: nobody waits in a circle, as long as
/// tasks and works do not need each other, which is refused. Costs need not be
/// exact, as for `orderMessages`.
llvm::Expected<OrderedWork>
orderWork(const Schedule &schedule, const TaskCosts &costs,
          llvm::ArrayRef<StageEdge> edges, llvm::ArrayRef<Work> works,
          ChannelLayout layout = ChannelLayout::Link);

/// Simulates a schedule with the works of its moves, and others, in their
/// places.
llvm::Expected<Simulation> simulateWithMoves(const Schedule &schedule,
                                             const TaskCosts &costs,
                                             llvm::ArrayRef<StageEdge> edges,
                                             llvm::ArrayRef<Work> others = {});

/// The number of each work's group in `groups`, which gets those that are new;
/// -1 for works on links.
std::vector<int32_t> numberGroups(llvm::ArrayRef<Work> works,
                                  std::vector<RankGroup> &groups);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_WORKORDER_H
