//===- Dependences.h - What each task waits for -----------------*- C++ -*-===//
//
// The one definition of data dependence between tasks, and one way to run
// through a schedule in an order that respects it. Simulator, checker and
// message order all stand on this; flat arrays only, as schedules may hold
// millions of tasks.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_DEPENDENCES_H
#define PIPEWRIGHT_PASSES_SCHEDULES_DEPENDENCES_H

#include "passes/schedules/Instruction.h"
#include "passes/schedules/Schedule.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace pipewright::schedules {

/// Which edges enter and leave each stage.
class EdgeIndex {
public:
  EdgeIndex(int64_t stages, llvm::ArrayRef<StageEdge> edges);

  /// Indices of edges, ascending.
  llvm::ArrayRef<int32_t> into(int32_t stage) const {
    return row(incoming, incomingBegin, stage);
  }
  llvm::ArrayRef<int32_t> outOf(int32_t stage) const {
    return row(outgoing, outgoingBegin, stage);
  }

private:
  static llvm::ArrayRef<int32_t> row(llvm::ArrayRef<int32_t> values,
                                     llvm::ArrayRef<int32_t> begin,
                                     int32_t stage) {
    return values.slice(begin[stage], begin[stage + 1] - begin[stage]);
  }

  std::vector<int32_t> incoming, incomingBegin, outgoing, outgoingBegin;
};

/// The directed links between ranks that edges and their gradients use.
class LinkIndex {
public:
  struct Link {
    int32_t from, to;
    auto operator<=>(const Link &) const = default;
  };

  LinkIndex(const Schedule &schedule, llvm::ArrayRef<StageEdge> edges);

  llvm::ArrayRef<Link> links() const { return all; }
  /// The link of an edge in one direction, -1 where it stays on its rank or
  /// has no gradient.
  int32_t linkOf(TransferKind kind, int32_t edge) const {
    return kind == TransferKind::Forward ? forward[edge] : gradient[edge];
  }

private:
  std::vector<Link> all;
  std::vector<int32_t> forward, gradient;
};

/// A schedule together with its edges, after both were found well-formed.
class Dependences {
public:
  /// Fails on a schedule or edges that are not well-formed: counts, ranges,
  /// tasks that are missing, double or on the wrong rank.
  static llvm::Expected<Dependences> build(const Schedule &schedule,
                                           llvm::ArrayRef<StageEdge> edges);

  const EdgeIndex &edgeIndex() const { return index; }
  /// The given edges, or a plain chain if none were given.
  llvm::ArrayRef<StageEdge> edges() const { return edgeList; }

  /// Something that a task waits for: a kind of result of one stage for one
  /// micro-batch, over an edge or (-1) on the own stage. A gradient result is
  /// named Backward, whether B or I makes it; `microBatch` of an update is its
  /// number.
  struct Need {
    TaskKind kind;
    int32_t stage;
    int32_t microBatch;
    int32_t edge;
  };

  /// Calls `visit` for each need of `task` until one returns false.
  template <typename Visit>
  void forEachNeed(const Task &task, Visit visit) const;

  /// Calls `visit(rank, position)` for every task, each after its needs and
  /// after its rank's earlier tasks, the first of an overlapped pair after the
  /// needs of both; fails with a story where that cannot be.
  llvm::Error
  run(llvm::function_ref<void(int32_t rank, int64_t position)> visit) const;

  bool hasKind(TaskKind kind, int32_t stage, int32_t microBatch) const {
    return present[stage * schedule->microBatches + microBatch] &
           (1u << static_cast<unsigned>(kind));
  }

private:
  Dependences(const Schedule &schedule, llvm::ArrayRef<StageEdge> edges);
  llvm::Error registerTask(int32_t rank, const Task &task);
  llvm::Error findMissingTasks() const;
  std::string deadlockStory(llvm::ArrayRef<int64_t> position,
                            llvm::ArrayRef<uint8_t> done) const;
  bool findUnmet(const Task &task, llvm::ArrayRef<uint8_t> done,
                 Need &unmet) const;

  const Schedule *schedule;
  std::vector<StageEdge> edgeList;
  EdgeIndex index;
  /// A bit per kind, by stage and micro-batch.
  std::vector<uint8_t> present;
};

template <typename Visit>
void Dependences::forEachNeed(const Task &task, Visit visit) const {
  int32_t stage = task.stage, m = task.microBatch;
  switch (task.kind) {
  case TaskKind::Forward:
    for (int32_t edge : index.into(stage))
      if (!visit(Need{TaskKind::Forward, edgeList[edge].from, m, edge}))
        return;
    if (schedule->weightRule == WeightRule::DelayedByOne &&
        schedule->updateOf(m) >= 2)
      visit(Need{TaskKind::Update, stage, schedule->updateOf(m) - 2, -1});
    return;
  case TaskKind::Recompute:
    visit(Need{TaskKind::Forward, stage, m, -1});
    return;
  case TaskKind::Backward:
  case TaskKind::InputGradient:
    if (!visit(Need{TaskKind::Forward, stage, m, -1}))
      return;
    if (hasKind(TaskKind::Recompute, stage, m) &&
        !visit(Need{TaskKind::Recompute, stage, m, -1}))
      return;
    for (int32_t edge : index.outOf(stage))
      if (edgeList[edge].hasGradient &&
          !visit(Need{TaskKind::Backward, edgeList[edge].to, m, edge}))
        return;
    return;
  case TaskKind::WeightGradient:
    visit(Need{TaskKind::Backward, stage, m, -1});
    return;
  case TaskKind::Update: {
    // Its own micro-batches: `m` is the number of the update.
    int64_t each = schedule->microBatches / schedule->updates;
    for (int32_t of = m * each; of < (m + 1) * each; ++of) {
      if (!schedule->runs(stage, of))
        continue;
      bool isSplit = hasKind(TaskKind::WeightGradient, stage, of);
      if (!visit(Need{isSplit ? TaskKind::WeightGradient : TaskKind::Backward,
                      stage, of, -1}))
        return;
    }
    // Updates of a stage stand on each other.
    if (m > 0)
      visit(Need{TaskKind::Update, stage, m - 1, -1});
    return;
  }
  }
}

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_DEPENDENCES_H
