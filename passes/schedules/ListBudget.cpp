//===- ListBudget.cpp - What the stages of a rank may keep ----------------===//
//
// Why limits never get the list scheduler stuck. Call the way of a micro-batch
// on a rank what is left of it there in the plainest order: pending W, forwards
// upwards, then downwards each backward with its W at once. For each rank and
// each micro-batch that is not done there, what younger ones hold and the most
// that its own way holds at a time must fit the limit together. At the start
// this holds if one micro-batch fits. A task lets its micro-batch hold more
// against older ones only, so those are asked before it starts; whatever ends
// or frees does no harm. Now let no task run, and take the oldest micro-batch
// that is not done everywhere. The next task of its way has its data, as ways
// are the same on all ranks and older ones are done; nobody older objects; and
// that it has room is what was kept true all the time. So one task can start.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/ListBudget.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace pipewright::schedules;

ListBudget::ListBudget(int64_t limit, std::vector<Stage> stages)
    : limit(limit), stages(std::move(stages)),
      least(peakOfOne([](size_t) { return true; })) {}

int64_t ListBudget::change(size_t stage, TaskKind kind) const {
  const Stage &kept = stages[stage];
  switch (kind) {
  case TaskKind::Forward:
    return kept.stash;
  case TaskKind::InputGradient:
    return kept.weightStash - kept.stash;
  case TaskKind::WeightGradient:
    return -kept.weightStash;
  default:
    return -kept.stash;
  }
}

int64_t ListBudget::peakOfOne(llvm::function_ref<bool(size_t)> takes) const {
  int64_t below = 0, peak = 0;
  for (size_t i = 0; i < stages.size(); ++i)
    if (takes(i)) {
      peak = std::max(peak,
                      below + std::max(stages[i].stash, stages[i].weightStash));
      below += stages[i].stash;
    }
  return peak;
}

int64_t ListBudget::heldAfter(llvm::ArrayRef<ListProgress> progress,
                              int64_t microBatch) const {
  int64_t held = 0;
  for (auto [stage, at] : llvm::zip(stages, progress)) {
    held += stage.stash *
            std::max<int64_t>(0, at.forwards -
                                     std::max(at.backwards, microBatch + 1));
    held += stage.weightStash *
            std::max<int64_t>(0, at.backwards -
                                     std::max(at.weights, microBatch + 1));
  }
  return held;
}

bool ListBudget::allows(llvm::ArrayRef<ListProgress> progress, size_t stage,
                        const Task &task) const {
  int64_t more = change(stage, task.kind);
  if (limit < 0 || more <= 0 || used + more + least <= limit)
    return true;
  if (used + more > limit)
    return false;
  // An older micro-batch lacks the backwards that have not come to it yet.
  // The further back it is, the fewer it lacks and the more is held by younger
  // ones: the first of those that lack the same backwards speaks for all.
  int64_t asked = -1;
  for (const ListProgress &at : progress) {
    int64_t older = at.backwards;
    if (older >= task.microBatch || older == asked)
      continue;
    asked = older;
    int64_t own =
        peakOfOne([&](size_t i) { return progress[i].backwards <= older; });
    if (heldAfter(progress, older) + more + own > limit)
      return false;
  }
  return true;
}
