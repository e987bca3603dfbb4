//===- Simulator.h - When each task runs ------------------------*- C++ -*-===//
//
// Given an order and a cost model, the timeline: a task starts when its rank
// is free and its data is there. A directed link carries one message at a
// time, in production order. Linear in the number of tasks.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_SIMULATOR_H
#define PIPEWRIGHT_PASSES_SCHEDULES_SIMULATOR_H

#include "passes/schedules/Hosts.h"
#include "passes/schedules/Instruction.h"
#include "passes/schedules/Schedule.h"
#include "passes/schedules/StashWindow.h"
#include "passes/schedules/Work.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <limits>
#include <map>
#include <string>
#include <utility>

namespace pipewright::schedules {

/// Seconds per task of one stage. `recompute` is the time of an R task; a
/// backward that recomputes inside itself has that time in `backward`.
struct StageCosts {
  double forward = 1;
  double backward = 1;
  double inputGradient = 0.5;
  double weightGradient = 0.5;
  double recompute = 1;
  /// Whether backwards have what needs no gradient recomputed by R tasks, which
  /// policies put in front of them.
  bool recomputesEarly = false;
  /// Micro-batches that R tasks leave alone, because they keep their stash. Its
  /// size follows from the order.
  StashWindow window = {};
  double update = 0;
  /// What one forward keeps for its backward.
  int64_t stashBytes = 0;
  /// What it keeps where R makes the rest again, until R does; -1: `stashBytes`
  /// does not count what R makes.
  int64_t keptBytes = -1;
  /// What of that, and of the gradients that I received and made, W still needs
  /// after I; -1: all of the stash and nothing else.
  int64_t weightStashBytes = -1;

  bool operator==(const StageCosts &) const = default;
};

struct TaskCosts {
  /// Indexed by stage.
  std::vector<StageCosts> stages;
  /// The costs of every directed link within a host that `links` does not name.
  double linkLatency = 0;
  double linkBandwidth = std::numeric_limits<double>::infinity();
  /// Keyed by the ranks, from and to.
  std::map<std::pair<int32_t, int32_t>, LinkCosts> links;
  Hosts hosts;
  /// Between a GPU and its host, one copy at a time each way; the latency is of
  /// the engine.
  LinkCosts hostLink;
  /// Bytes that a rank has for stashes on its host.
  double hostMemory = std::numeric_limits<double>::infinity();
  /// The time of an overlapped pair, as a share of the sum of its two tasks.
  double pairFactor = 1;

  /// Every stage alike; the two halves of the backward are equal.
  static TaskCosts uniform(int64_t stages, double forward = 1,
                           double backward = 1);

  double secondsOf(const Task &task) const;
  LinkCosts linkBetween(int32_t from, int32_t to) const;
  /// Between copies of a rank in two pipelines.
  LinkCosts linkBetweenReplicas() const;
  /// Of so many bytes between a GPU and its host.
  double secondsOfCopy(int64_t bytes) const {
    return hostLink.latency + static_cast<double>(bytes) / hostLink.bandwidth;
  }
};

struct TaskTime {
  double start = 0;
  double end = 0;
};

/// A rank that does nothing, and why: `next`, the task that ends the interval,
/// waited for `cause` on `causeRank`. At the end of the step there is no next
/// task: the rank waits for `causeRank`, which ends last.
struct IdleInterval {
  int32_t rank = 0;
  int32_t causeRank = 0;
  double start = 0;
  double end = 0;
  bool atEndOfStep = false;
  Task next;
  Task cause;
  /// Where these are in the orders of their ranks; no cause is at -1: the work
  /// begins with the step.
  int64_t nextPosition = 0;
  int64_t causePosition = 0;
  /// The part of the interval in which `cause` was done, but its message was
  /// queued or on its way, or the work went on.
  double transferSeconds = 0;
  /// Where `next` waited for a work, and `cause` came to it last: the number of
  /// that in `Simulation::works`; -1: for a message.
  int32_t work = -1;

  /// `rank 1 waits at B1.0 for B2.0 on rank 2`
  std::string describe() const;
  /// Whether it is a task that was waited for.
  bool hasCause() const { return !atEndOfStep && causePosition >= 0; }
};

/// A task on a chain that nothing on it could have ended earlier.
struct PathStep {
  int32_t rank = 0;
  /// In the order of the rank.
  int64_t position = 0;
  Task task;
  TaskTime time;
  /// Between the end of the step before and this one's start: its message was
  /// queued or on its way. Zero for steps of one rank after each other.
  double transferSeconds = 0;

  /// `B1.0 on rank 1 from 2 to 3, 0.5 after its message was sent`
  std::string describe() const;
};

/// When it runs: for all its ranks at once, beside their tasks.
struct TimedWork {
  Work work;
  TaskTime time;
};

struct RankSummary {
  double busySeconds = 0;
  /// In which it has nothing to do before a work is over, whoever is late.
  double workWaitSeconds = 0;
  /// Idle share of the global step time.
  double bubbleFraction = 0;
  int64_t peakStashBytes = 0;
  /// Peak number of (stage, micro-batch) pairs between the start of the
  /// forward and the end of the backward (of W, where it is split).
  int64_t peakInFlight = 0;
};

struct Simulation {
  /// Parallel to `Schedule::order`.
  std::vector<std::vector<TaskTime>> times;
  /// Last end minus first start over all ranks.
  double globalStepTime = 0;
  /// The longest rank, from its own first start to its own last end.
  double spanStepTime = 0;
  /// How much sooner the step would end without works.
  double exposedSeconds = 0;
  std::vector<RankSummary> ranks;
  /// Sorted by rank, then by time.
  std::vector<IdleInterval> idle;
  std::vector<TimedWork> works;

  /// Of the rank that waits longest for works.
  double longestWorkWait() const;

  /// Why a rank ends when it does: the chain of tasks and messages from the
  /// begin of the step to its last task, in order and without a gap. Where
  /// several chains are as long, the one that stays on its rank. Takes the
  /// schedule that was simulated.
  std::vector<PathStep> criticalPath(const Schedule &schedule,
                                     int32_t rank) const;
};

/// Fails on costs that are negative, not a number or of another number of
/// stages.
llvm::Error checkCosts(const Schedule &schedule, const TaskCosts &costs);

/// Fails, with the checker's message, on a schedule or works that cannot run,
/// and on costs that are negative, not a number or of another number of stages.
/// An empty list of edges means that stage s feeds stage s+1. Works of one
/// resource run one after the other, in their order here.
llvm::Expected<Simulation> simulate(const Schedule &schedule,
                                    const TaskCosts &costs,
                                    llvm::ArrayRef<StageEdge> edges = {},
                                    llvm::ArrayRef<Work> works = {});

/// The same where works of one rank may run beside each other: what each would
/// do if it had not to wait for its turn.
llvm::Expected<Simulation> simulateUnordered(const Schedule &schedule,
                                             const TaskCosts &costs,
                                             llvm::ArrayRef<StageEdge> edges,
                                             llvm::ArrayRef<Work> works);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_SIMULATOR_H
