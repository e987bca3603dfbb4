//===- ListBudget.h - What the stages of a rank may keep --------*- C++ -*-===//
//
// The room that an order is made in: whether a task may start, and how little
// is enough for a step.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_LISTBUDGET_H
#define PIPEWRIGHT_PASSES_SCHEDULES_LISTBUDGET_H

#include "passes/schedules/Task.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <vector>

namespace pipewright::schedules {

/// How far a stage is: its forwards, backwards and W below these numbers have
/// started. W counts with B where the backward is whole.
struct ListProgress {
  int64_t forwards = 0;
  int64_t backwards = 0;
  int64_t weights = 0;
};

/// What the stages of one rank may keep, in one unit: pairs or bytes.
class ListBudget {
public:
  struct Stage {
    /// Kept after the forward, and between I and W.
    int64_t stash = 0;
    int64_t weightStash = 0;
  };

  /// A negative limit is none.
  ListBudget(int64_t limit, std::vector<Stage> stages);

  /// The room that one micro-batch takes there and back.
  int64_t leastLimit() const { return least; }
  bool isTooSmall() const { return limit >= 0 && limit < least; }

  /// Whether the rest of the step stays possible when a task of the rank's
  /// `stage`-th stage starts.
  bool allows(llvm::ArrayRef<ListProgress> progress, size_t stage,
              const Task &task) const;
  void start(size_t stage, const Task &task) {
    used += change(stage, task.kind);
  }

private:
  int64_t change(size_t stage, TaskKind kind) const;
  /// The most that one micro-batch holds on its way through some stages.
  int64_t peakOfOne(llvm::function_ref<bool(size_t)> takes) const;
  /// What micro-batches after `microBatch` hold.
  int64_t heldAfter(llvm::ArrayRef<ListProgress> progress,
                    int64_t microBatch) const;

  int64_t limit;
  std::vector<Stage> stages;
  int64_t least;
  int64_t used = 0;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_LISTBUDGET_H
