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

#include <algorithm>
#include <functional>
#include <tuple>
#include <vector>

namespace pipewright::schedules {

class StashMeter {
public:
  StashMeter(const Schedule &schedule, const TaskCosts &costs)
      : schedule(&schedule), costs(&costs) {}

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
    for (; !transfers.empty() &&
           std::get<0>(transfers.back()) <= static_cast<int64_t>(position);
         transfers.pop_back()) {
      auto [place, count, size] = transfers.back();
      bytes += count * size;
      pairs += count;
      notePeak();
    }
    if (isFirstOfPair(tasks, position))
      runPair(tasks[position], tasks[position + 1]);
    else if (!isSecondOfPair(tasks, position))
      run(tasks[position]);
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
  bool keeps(const Task &task) const {
    return !schedule->forwardOnly && schedule->tasksOf(task.stage).backward;
  }

  void begin(const Task &task) {
    if (!keeps(task))
      return;
    const StageCosts &stage = costs->stages[task.stage];
    if (task.kind == TaskKind::Forward) {
      bytes += stage.stashBytes;
      ++pairs;
    } else if (task.kind == TaskKind::Recompute) {
      bytes += madeAgain(task);
    } else if (task.kind == TaskKind::InputGradient) {
      // What W needs is made while the stash is still there, where it is more.
      bytes += std::max<int64_t>(keptForW(stage) - stage.stashBytes, 0);
    }
    notePeak();
  }

  void notePeak() {
    peak = std::max(peak, bytes);
    peakPairs = std::max(peakPairs, pairs);
  }

  void end(const Task &task) {
    if (!keeps(task))
      return;
    const StageCosts &stage = costs->stages[task.stage];
    if (task.kind == TaskKind::Forward)
      bytes -= madeAgain(task);
    else if (task.kind == TaskKind::Backward)
      bytes -= stage.stashBytes;
    else if (task.kind == TaskKind::InputGradient)
      bytes += std::min<int64_t>(keptForW(stage) - stage.stashBytes, 0);
    else if (task.kind == TaskKind::WeightGradient)
      bytes -= keptForW(stage);
    pairs -= task.endsStash();
  }

  /// What a forward makes and does not keep, because R makes it again.
  int64_t madeAgain(const Task &task) const {
    const StageCosts &stage = costs->stages[task.stage];
    return stage.keptBytes >= 0 &&
                   schedule->recomputes(task.stage, task.microBatch)
               ? stage.stashBytes - stage.keptBytes
               : 0;
  }

  static int64_t keptForW(const StageCosts &stage) {
    return stage.weightStashBytes < 0 ? stage.stashBytes
                                      : stage.weightStashBytes;
  }

  const Schedule *schedule;
  const TaskCosts *costs;
  int64_t bytes = 0, peak = 0, pairs = 0, peakPairs = 0;
  /// How many tasks come before; whether one comes (1) or is gone (-1); its
  /// bytes. The next one last; what goes makes room for what comes.
  std::vector<std::tuple<int64_t, int64_t, int64_t>> transfers;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_STASHMETER_H
