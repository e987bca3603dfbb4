//===- StashMeter.h - What one rank keeps, task by task ---------*- C++ -*-===//
//
// The one definition of how stashes grow and shrink; simulators and checker
// stand on it. It needs the order of a rank's tasks and no times.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_STASHMETER_H
#define PIPEWRIGHT_PASSES_SCHEDULES_STASHMETER_H

#include "passes/schedules/Pairs.h"
#include "passes/schedules/Simulator.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <vector>

namespace pipewright::schedules {

/// What a rank has of a stage and a micro-batch.
enum class StashForm {
  Whole,
  /// Without what R makes again.
  Recomputed,
  /// While I makes what W needs: the larger of both.
  InputGradient,
  /// What W needs.
  WeightGradient
};
inline constexpr size_t numStashForms = 4;

inline int64_t bytesOf(const StageCosts &stage, StashForm form) {
  const int64_t forW =
      stage.weightStashBytes < 0 ? stage.stashBytes : stage.weightStashBytes;
  switch (form) {
  case StashForm::Whole:
    return stage.stashBytes;
  case StashForm::Recomputed:
    return stage.keptBytes < 0 ? stage.stashBytes : stage.keptBytes;
  case StashForm::InputGradient:
    return std::max(stage.stashBytes, forW);
  case StashForm::WeightGradient:
    return forW;
  }
  llvm_unreachable("a form of a stash");
}

/// Calls `add(stage, form, count)` of `Derived` as stashes come and go, and
/// `notePeak()` where there may be more than before.
template <typename Derived>
class StashWalk {
public:
  explicit StashWalk(const Schedule &schedule) : schedule(&schedule) {}

  /// The tasks of the rank, one call for each in turn.
  void run(const Task &task) {
    begin(task);
    end(task);
  }
  /// What one of an overlapped pair frees is of no use to the other.
  void runPair(const Task &first, const Task &second) {
    begin(first);
    begin(second);
    end(first);
    end(second);
  }
  /// The task at a position, which may be one of a pair.
  void runAt(llvm::ArrayRef<Task> tasks, size_t position) {
    if (isFirstOfPair(tasks, position))
      runPair(tasks[position], tasks[position + 1]);
    else if (!isSecondOfPair(tasks, position))
      run(tasks[position]);
  }

private:
  Derived &derived() { return *static_cast<Derived *>(this); }

  bool keeps(const Task &task) const {
    return !schedule->forwardOnly && schedule->tasksOf(task.stage).backward;
  }
  bool isMadeAgain(const Task &task) const {
    return schedule->recomputes(task.stage, task.microBatch);
  }

  void turn(const Task &task, StashForm from, StashForm to) {
    derived().add(task.stage, from, -1);
    derived().add(task.stage, to, 1);
  }

  void begin(const Task &task) {
    if (!keeps(task))
      return;
    if (task.kind == TaskKind::Forward)
      derived().add(task.stage, StashForm::Whole, 1);
    else if (task.kind == TaskKind::Recompute && isMadeAgain(task))
      turn(task, StashForm::Recomputed, StashForm::Whole);
    else if (task.kind == TaskKind::InputGradient)
      turn(task, StashForm::Whole, StashForm::InputGradient);
    derived().notePeak();
  }

  void end(const Task &task) {
    if (!keeps(task))
      return;
    if (task.kind == TaskKind::Forward && isMadeAgain(task))
      turn(task, StashForm::Whole, StashForm::Recomputed);
    else if (task.kind == TaskKind::Backward)
      derived().add(task.stage, StashForm::Whole, -1);
    else if (task.kind == TaskKind::InputGradient)
      turn(task, StashForm::InputGradient, StashForm::WeightGradient);
    else if (task.kind == TaskKind::WeightGradient)
      derived().add(task.stage, StashForm::WeightGradient, -1);
  }

  const Schedule *schedule;
};

class StashMeter : public StashWalk<StashMeter> {
public:
  StashMeter(const Schedule &schedule, const TaskCosts &costs)
      : StashWalk(schedule), costs(&costs) {}

  /// As in StashWalk, with the transfers before it.
  void runAt(llvm::ArrayRef<Task> tasks, size_t position) {
    for (; !transfers.empty() &&
           std::get<0>(transfers.back()) <= static_cast<int64_t>(position);
         transfers.pop_back()) {
      auto [place, count, size] = transfers.back();
      bytes += count * size;
      pairs += count;
      notePeak();
    }
    StashWalk::runAt(tasks, position);
  }

  /// Stashes that come to the rank and go, of works whose places are known.
  void addTransfers(llvm::ArrayRef<Work> works, int32_t rank) {
    for (const Work &work : works) {
      if (!work.stash)
        continue;
      if (const auto *giver = work.giver(); giver && giver->rank == rank)
        transfers.push_back({giver->waited, -1, work.bytes});
      if (const auto *taker = work.receiver(); taker && taker->rank == rank)
        transfers.push_back({taker->posted, 1, work.bytes});
    }
    llvm::sort(transfers, std::greater<>());
  }

  int64_t peakBytes() const { return peak; }
  /// Pairs of stage and micro-batch, see `RankSummary`.
  int64_t peakInFlight() const { return peakPairs; }

private:
  friend StashWalk;

  void add(int32_t stage, StashForm form, int64_t count) {
    bytes += count * bytesOf(costs->stages[stage], form);
    pairs += count;
  }
  void notePeak() {
    peak = std::max(peak, bytes);
    peakPairs = std::max(peakPairs, pairs);
  }

  const TaskCosts *costs;
  int64_t bytes = 0, peak = 0, pairs = 0, peakPairs = 0;
  /// How many tasks come before; whether one comes (1) or is gone (-1); its
  /// bytes. The next one last; what goes makes room for what comes.
  std::vector<std::tuple<int64_t, int64_t, int64_t>> transfers;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_STASHMETER_H
