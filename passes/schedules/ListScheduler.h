//===- ListScheduler.h - An order out of times, limits, a rule --*- C++ -*-===//
//
// Where nobody wrote the order down: given what tasks and messages take, what
// a rank may keep, and which task it prefers, an order for each rank. Runs
// through the step in time, as the simulator will; a rank that is free takes
// the best task whose data is there and for which it has room. Deterministic,
// linear in the number of tasks but for a heap of the ranks' next events.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_LISTSCHEDULER_H
#define PIPEWRIGHT_PASSES_SCHEDULES_LISTSCHEDULER_H

#include "passes/schedules/Schedule.h"
#include "passes/schedules/Simulator.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <limits>
#include <vector>

namespace pipewright::schedules {

/// What one rank may keep at a time, counted as the simulator counts; -1 is no
/// limit.
struct RankLimit {
  /// (stage, micro-batch) pairs between forward and end of backward.
  int64_t inFlight = -1;
  int64_t stashBytes = -1;
};

/// The smaller value goes first; of equals, the lower stage. Need not be told
/// that the tasks of a kind ascend on each stage: they always do.
using ListPriority = std::function<int64_t(const Task &)>;

/// Backwards first, oldest micro-batch first; then the deepest forward, as it
/// is nearest to a backward; W when there is nothing else.
ListPriority preferBackward();
/// The same, but forwards by groups of micro-batches, within a group stage by
/// stage, as interleaved schedules have them.
ListPriority preferBackwardInGroups(int64_t microBatches);
/// Tasks in the order of another schedule with the same placement, which need
/// not have all of them: what it lacks goes last. Its ranks then overtake where
/// the next task's data is late.
ListPriority preferAsIn(const Schedule &schedule);

/// A task that is the next of its kind and stage, and whose data is there or
/// known to come.
struct ListCandidate {
  Task task;
  double seconds = 0;
  /// How long the rank would wait for the data.
  double wait = 0;
  /// Whether the rank has room for it.
  bool fits = true;
};

/// Decides for all ranks; the form for heuristics that a priority cannot say.
class ListRule {
public:
  virtual ~ListRule() = default;

  /// The candidate, one that fits, which `rank` runs next, even if it has to
  /// wait; -1 to be asked again when something arrives. Whoever waits for
  /// nothing is given the task with the shortest wait.
  virtual int choose(int32_t rank, double now,
                     llvm::ArrayRef<ListCandidate> candidates) = 0;
  virtual void started(int32_t rank, const Task &task, double start,
                       double end) {}
};

struct ListOptions {
  /// Null: forward, I and W take the same time and messages none.
  const TaskCosts *costs = nullptr;
  /// Empty: stage s feeds stage s+1.
  llvm::ArrayRef<StageEdge> edges = {};
  /// Indexed by rank; empty: no limits.
  std::vector<RankLimit> limits = {};
  /// Whether backwards are I and W tasks instead of B.
  bool splitsBackward = false;
  ListPriority priority = preferBackward();
  /// A task that a rank prefers goes first even if the rank has to wait for
  /// it, but no longer than this share of the other task's time.
  double patience = 0;
  /// An order that takes longer without updates, in seconds, is given up, and
  /// left empty.
  double most = std::numeric_limits<double>::infinity();
};

/// What `most` may be off by, after sums over all tasks.
inline constexpr double kListRounding = 1 + 1e-9;

/// Fills the order of a schedule that has everything else, but for updates.
/// Fails if a limit is less than what one micro-batch takes, which is all that
/// it needs: with more, no choice of tasks can get stuck.
llvm::Error orderByList(Schedule &schedule, const ListOptions &options);
/// The same with a rule in place of priority and patience.
llvm::Error orderByRule(Schedule &schedule, const ListOptions &options,
                        ListRule &rule);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_LISTSCHEDULER_H
