//===- Schedule.h - An order of tasks for each rank -------------*- C++ -*-===//
//
// What a policy makes and what everything else in this folder reads: which
// rank has which stage, and which task each rank runs after which. Times and
// transfers are not part of it; they follow from it (Simulator.h,
// MessageOrder.h).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_SCHEDULE_H
#define PIPEWRIGHT_PASSES_SCHEDULES_SCHEDULE_H

#include "passes/schedules/Task.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright::schedules {

/// Which version of its weights a forward reads. A backward reads the version
/// that its forward read.
enum class WeightRule : uint8_t {
  /// One update ends the step; all forwards read what the last step left.
  Synchronous,
  /// Each forward reads the newest there is (PipeDream's weight stashing).
  Newest,
  /// It is one update behind: forwards of the step's update u read what update
  /// u-2 left, or the one before it across the step's begin (PipeDream-2BW).
  DelayedByOne,
};

/// Which copy of the model a stage is part of, and whether it works on a
/// micro-batch: the copies share the micro-batches evenly, in their order.
struct ModelCopies {
  int64_t count = 1;
  /// The stages of all copies together.
  int64_t stages = 0;

  int64_t copyOf(int64_t stage) const { return stage * count / stages; }
  bool runs(int64_t stage, int64_t microBatch, int64_t microBatches) const {
    return count == 1 || microBatch * count / microBatches == copyOf(stage);
  }
};

/// Which tasks a model has of a stage: none goes backward through a stage that
/// no gradient reaches, and none updates weights that it does not have.
struct StageTasks {
  bool forward = true, backward = true, update = true;

  bool isAll() const { return forward && backward && update; }
};

/// Who keeps a stash that is away from its rank: another rank, or the memory of
/// its own rank's host.
struct Keeper {
  /// None: the host.
  std::optional<int32_t> rank = std::nullopt;

  static Keeper host() { return {}; }
  bool isHost() const { return !rank; }
};

/// A stash that is elsewhere for a while (StashMoves.h, HostMoves.h). Positions
/// count the tasks of its own rank that come before.
struct StashMove {
  int32_t stage = 0;
  int32_t microBatch = 0;
  Keeper keeper;
  /// Where it is sent, and where it is gone: with the end of the task behind,
  /// unless its host keeps it.
  int64_t sent = 0;
  int64_t gone = 0;
  /// From where on it may come back.
  int64_t fetched = 0;
  /// The number of a move whose place on the keeper it takes, and which is back
  /// before; -1: none.
  int32_t after = -1;
};

struct Schedule {
  int64_t ranks = 0;
  /// All copies counted: with two copies of the model, stage s + stages/2 is
  /// the same part of it as stage s.
  int64_t stages = 0;
  int64_t microBatches = 0;
  /// Indexed by stage.
  llvm::SmallVector<int32_t> rankOfStage;
  /// Indexed by rank: its tasks, run one after the other.
  std::vector<std::vector<Task>> order;

  /// Copies of the model's weights, 1 or 2. The first half of the micro-batches
  /// goes through the first copy.
  int64_t copies = 1;
  /// Updates of each stage in a step; they divide the micro-batches evenly.
  int64_t updates = 1;
  WeightRule weightRule = WeightRule::Synchronous;
  /// No backwards and no updates: evaluation.
  bool forwardOnly = false;
  /// Indexed by stage; empty: each stage has all of them.
  std::vector<StageTasks> stageTasks;
  /// Stashes that do not stay on their rank.
  std::vector<StashMove> moves;
  /// By stage, then by micro-batch: whether an R task computes the forward
  /// again (noteRecomputes); empty: none does.
  std::vector<bool> recomputed;
  /// What a policy that had a choice chose, for people to read: "zb-v".
  std::string origin;

  StageTasks tasksOf(int32_t stage) const {
    return stageTasks.empty() ? StageTasks() : stageTasks[stage];
  }

  /// The copy of the model that a stage is part of.
  int64_t copyOf(int32_t stage) const {
    return ModelCopies{copies, stages}.copyOf(stage);
  }
  /// Whether a stage works on a micro-batch: always, with one copy.
  bool runs(int32_t stage, int32_t microBatch) const {
    return ModelCopies{copies, stages}.runs(stage, microBatch, microBatches);
  }
  bool recomputes(int32_t stage, int32_t microBatch) const {
    return !recomputed.empty() && recomputed[stage * microBatches + microBatch];
  }
  /// The update that a micro-batch's gradients go into.
  int32_t updateOf(int32_t microBatch) const {
    return static_cast<int32_t>(microBatch * updates / microBatches);
  }
};

/// For each micro-batch, the number of updates of `stage` in this step that
/// the version read by its forward has seen; -1 is the version before the one
/// that the last step left.
std::vector<int32_t> weightVersions(const Schedule &schedule, int32_t stage);

/// How many versions of its weights a stage has to keep at one time.
int64_t keptVersions(const Schedule &schedule, int32_t stage);

/// Whether B (and W) of each stage run in ascending order of micro-batches, so
/// that gradients round as under every other such schedule.
bool sumsAscending(const Schedule &schedule);

/// A tensor that the forward of stage `from` hands to the forward of stage
/// `to`. `from` is always smaller than `to`, but not always its neighbour:
/// a skip connection over several stages is an edge like any other. Two
/// tensors between the same stages are two edges.
struct StageEdge {
  int32_t from = 0;
  int32_t to = 0;
  int64_t bytes = 0;
  /// Whether a gradient of the same size comes back; false for masks, token
  /// ids and other values that are not differentiated.
  bool hasGradient = true;
};

/// Stage s feeds stage s+1 and no other, with `bytes` each; no edge leads from
/// one copy of the model to another.
std::vector<StageEdge> linearEdges(int64_t stages, int64_t bytes = 0,
                                   int64_t copies = 1);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_SCHEDULE_H
