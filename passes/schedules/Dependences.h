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
#include "passes/schedules/Work.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <deque>

namespace pipewright::schedules {

/// Whether numbers, placement and edges of a schedule go together, whatever its
/// order.
llvm::Error checkFrame(const Schedule &schedule,
                       llvm::ArrayRef<StageEdge> edges);

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

/// The directed links between ranks that edges and their gradients, and works
/// on links, use.
class LinkIndex {
public:
  struct Link {
    int32_t from, to;
    auto operator<=>(const Link &) const = default;
  };

  LinkIndex(const Schedule &schedule, llvm::ArrayRef<StageEdge> edges,
            llvm::ArrayRef<Work> works = {});

  llvm::ArrayRef<Link> links() const { return all; }
  /// The link of an edge in one direction, -1 where it stays on its rank or
  /// has no gradient.
  int32_t linkOf(TransferKind kind, int32_t edge) const {
    return kind == TransferKind::Forward ? forward[edge] : gradient[edge];
  }
  /// The link of a work, by its number; -1 where it is on no link.
  int32_t linkOfWork(int32_t work) const { return ofWork[work]; }

private:
  std::vector<Link> all;
  std::vector<int32_t> ofWork;
  std::vector<int32_t> forward, gradient;
};

/// A schedule together with its edges, after both were found well-formed.
class Dependences {
public:
  /// Fails on a schedule or edges that are not well-formed: counts, ranges,
  /// tasks that are missing, double or on the wrong rank.
  static llvm::Expected<Dependences> build(const Schedule &schedule,
                                           llvm::ArrayRef<StageEdge> edges);

  /// The same in steps, for schedules whose orders are never in memory at one
  /// time: everything but the orders, then each rank's, then what is missing.
  static llvm::Expected<Dependences> begin(const Schedule &shape,
                                           llvm::ArrayRef<StageEdge> edges);
  llvm::Error addRank(int32_t rank, llvm::ArrayRef<Task> tasks);
  llvm::Error findMissingTasks() const;

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
  /// needs of both; fails with the cycle where that cannot be.
  llvm::Error
  run(llvm::function_ref<void(int32_t rank, int64_t position)> visit) const;

  using VisitWork = llvm::function_ref<void(int32_t work)>;
  /// The same of tasks and works: calls `visitWork` with the number of each
  /// work after the tasks before its posts and the works that it needs, and
  /// before the tasks behind its waits.
  llvm::Error
  run(llvm::function_ref<void(int32_t rank, int64_t position)> visit,
      llvm::ArrayRef<Work> works, VisitWork visitWork) const;

  /// The same for orders of any form: `cursor.task(rank)` is the rank's next
  /// task and `cursor.partner(rank)` the one after it, null at the end;
  /// `cursor.advance(rank)` goes on. Calls `visit(rank)` before that.
  template <typename Cursor, typename Visit>
  llvm::Error runOrders(Cursor &cursor, Visit visit) const {
    WorkProgress none(schedule->ranks, {});
    return runOrders(cursor, visit, none, [](int32_t) {});
  }
  template <typename Cursor, typename Visit>
  llvm::Error runOrders(Cursor &cursor, Visit visit, WorkProgress &works,
                        VisitWork visitWork) const;

  bool hasKind(TaskKind kind, int32_t stage, int32_t microBatch) const {
    return present[pairOf(stage, microBatch)] & bitOf(kind);
  }

private:
  Dependences(const Schedule &schedule, llvm::ArrayRef<StageEdge> edges);
  llvm::Error registerTask(int32_t rank, const Task &task);
  /// A task of a rank that cannot start, and the one that has to start with it;
  /// the work that holds them, where one does.
  struct Blocked {
    const Task *task = nullptr;
    const Task *partner = nullptr;
    int32_t work = -1;
  };
  std::string describeDeadlock(llvm::ArrayRef<Blocked> blocked,
                               llvm::ArrayRef<uint8_t> done,
                               const WorkProgress &works) const;
  bool findUnmet(const Task &task, const Task *partner,
                 llvm::ArrayRef<uint8_t> done, Need &unmet) const;

  int64_t pairOf(int32_t stage, int32_t microBatch) const {
    return stage * schedule->microBatches + microBatch;
  }
  static uint8_t bitOf(TaskKind kind) {
    return 1u << static_cast<unsigned>(kind);
  }

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
        schedule->updateOf(m) >= 2 && schedule->tasksOf(stage).update)
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
      if (!schedule->runs(stage, of) || !schedule->tasksOf(stage).backward)
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

template <typename Cursor, typename Visit>
llvm::Error Dependences::runOrders(Cursor &cursor, Visit visit,
                                   WorkProgress &works,
                                   VisitWork visitWork) const {
  // Ranks take turns, so that none makes much more than the others have used.
  constexpr int turn = 64;
  std::vector<uint8_t> done(present.size());
  constexpr int64_t held = -2;
  // The pair of stage and micro-batch that a rank waits for; `held` by a work,
  // or -1.
  std::vector<int64_t> waitsFor(schedule->ranks, -1);
  std::vector<int64_t> position(schedule->ranks);
  std::deque<int32_t> ready;
  for (int32_t rank = 0; rank < schedule->ranks; ++rank)
    ready.push_back(rank);
  auto wake = [&](int32_t stage, int64_t pair) {
    int32_t rank = schedule->rankOfStage[stage];
    if (waitsFor[rank] == pair) {
      waitsFor[rank] = -1;
      ready.push_back(rank);
    }
  };

  auto begin = [&](int32_t work) {
    visitWork(work);
    for (const Work::Member &member : works.works()[work].members)
      if (waitsFor[member.rank] == held) {
        waitsFor[member.rank] = -1;
        ready.push_back(member.rank);
      }
  };
  auto heldBy = [&](int32_t rank, const Task *partner) {
    return works.heldBy(rank, position[rank] + (partner ? 1 : 0));
  };
  for (int32_t rank = 0; rank < schedule->ranks; ++rank)
    works.advance(rank, 0, begin);

  while (!ready.empty()) {
    int32_t rank = ready.front();
    ready.pop_front();
    for (int steps = 0;; ++steps) {
      const Task *task = cursor.task(rank);
      if (!task)
        break;
      if (steps >= turn) {
        ready.push_back(rank);
        break;
      }
      Need unmet;
      const Task *partner = task->overlapsNext ? cursor.partner(rank) : nullptr;
      if (heldBy(rank, partner) >= 0) {
        waitsFor[rank] = held;
        break;
      }
      if (findUnmet(*task, partner, done, unmet)) {
        waitsFor[rank] = pairOf(unmet.stage, unmet.microBatch);
        break;
      }
      visit(rank);
      int64_t pair = pairOf(task->stage, task->microBatch);
      done[pair] |= bitOf(task->kind);
      // Only neighbours wait for what other ranks make.
      if (task->kind == TaskKind::Forward)
        for (int32_t edge : index.outOf(task->stage))
          wake(edgeList[edge].to, pair);
      else if (task->producesGradient())
        for (int32_t edge : index.into(task->stage))
          wake(edgeList[edge].from, pair);
      cursor.advance(rank);
      works.advance(rank, ++position[rank], begin);
    }
  }

  std::vector<Blocked> blocked(schedule->ranks);
  bool isStuck = false;
  for (int32_t rank = 0; rank < schedule->ranks; ++rank)
    if (const Task *task = cursor.task(rank)) {
      isStuck = true;
      blocked[rank].task = task;
      blocked[rank].partner =
          task->overlapsNext ? cursor.partner(rank) : nullptr;
      blocked[rank].work = heldBy(rank, blocked[rank].partner);
    }
  if (!isStuck)
    return llvm::Error::success();
  return llvm::createStringError(describeDeadlock(blocked, done, works));
}

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_DEPENDENCES_H
