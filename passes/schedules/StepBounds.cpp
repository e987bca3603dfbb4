//===- StepBounds.cpp - What no step takes less than ----------------------===//

#include "passes/schedules/StepBounds.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <vector>

using namespace pipewright::schedules;

namespace {

/// Edges of stages, those into lower stages first; nobody has checked them yet.
class Ways {
public:
  Ways(llvm::ArrayRef<StageEdge> given, int64_t stages)
      : edges(given.empty() ? linearEdges(stages) : given.vec()) {
    llvm::sort(edges, [](const StageEdge &a, const StageEdge &b) {
      return a.to < b.to;
    });
    isKnown = llvm::all_of(edges, [&](const StageEdge &edge) {
      return edge.from >= 0 && edge.from < edge.to && edge.to < stages;
    });
  }

  bool isKnown = false;
  std::vector<StageEdge> edges;
};

/// Of a micro-batch on a rank.
class Stashes {
public:
  void add(double bytes, double forward, double backward, double kept) {
    room += bytes * kept;
    all += bytes;
    largest = std::max(largest, bytes);
    if (bytes > 0) {
      filling = std::max(filling, bytes / forward);
      emptying = std::max(emptying, bytes / backward);
    }
  }

  /// What a step takes at least; 0 where nothing is kept, or there is no room.
  double stepWithin(double bytes, double microBatches) const {
    if (bytes <= 0 || all <= 0)
      return 0;
    bytes = std::min(bytes, all * microBatches);
    // As much is there after the first forwards as these have made, and before
    // the end as the last backwards need.
    const double rise = std::max(0.0, bytes - largest);
    const double lost = rise * rise / 2 * (1 / filling + 1 / emptying);
    return (microBatches * room + lost) / bytes;
  }

private:
  /// Bytes times seconds, bytes, and bytes for each second of a forward and of
  /// a backward.
  double room = 0, all = 0, largest = 0, filling = 0, emptying = 0;
};

} // namespace

/// What other stages wait for.
static double backwardOf(const StageCosts &stage, BackwardForm form) {
  return form == BackwardForm::Whole ? stage.backward : stage.inputGradient;
}

/// All tasks of a micro-batch.
static double tasksOf(const StageCosts &stage, BackwardForm form) {
  const bool recomputes = stage.recomputesEarly && stage.window.count == 0;
  return stage.forward + (recomputes ? stage.recompute : 0) +
         (form == BackwardForm::Whole
              ? stage.backward
              : stage.inputGradient + stage.weightGradient);
}

double pipewright::schedules::leastStep(llvm::ArrayRef<int32_t> rankOfStage,
                                        int64_t ranks, int64_t microBatches,
                                        const TaskCosts &costs,
                                        llvm::ArrayRef<StageEdge> edges,
                                        BackwardForm form) {
  const size_t stages = costs.stages.size();
  const Ways ways(edges, static_cast<int64_t>(stages));
  if (!ways.isKnown)
    return 0;
  // A task may take less as one of a pair.
  const double factor = std::min(1.0, costs.pairFactor);
  // By stage: the forwards before its first one, the backwards behind its last.
  std::vector<double> before(stages, 0), behind(stages, 0);
  for (const StageEdge &edge : ways.edges) {
    const StageCosts &from = costs.stages[edge.from];
    before[edge.to] =
        std::max(before[edge.to], before[edge.from] + from.forward * factor);
    if (edge.hasGradient && form == BackwardForm::Whole)
      behind[edge.to] =
          std::max(behind[edge.to], behind[edge.from] + from.backward * factor);
  }
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<double> work(ranks, 0), updates(ranks, 0), first(ranks, never),
      last(ranks, never);
  for (auto [stage, each] : llvm::enumerate(costs.stages)) {
    const int32_t rank = rankOfStage[stage];
    work[rank] += tasksOf(each, form) * factor;
    updates[rank] += each.update;
    first[rank] = std::min(first[rank], before[stage]);
    last[rank] = std::min(last[rank], behind[stage]);
  }
  double least = 0;
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (work[rank] > 0)
      least = std::max(
          least, first[rank] + work[rank] * static_cast<double>(microBatches) +
                     std::max(last[rank], updates[rank]));
  return least;
}

double pipewright::schedules::leastStepWithin(
    llvm::ArrayRef<double> bytesOfRank, llvm::ArrayRef<int32_t> rankOfStage,
    int64_t microBatches, const TaskCosts &costs,
    llvm::ArrayRef<StageEdge> edges, BackwardForm form) {
  const size_t stages = costs.stages.size();
  const Ways ways(edges, static_cast<int64_t>(stages));
  if (!ways.isKnown)
    return 0;
  const double factor = std::min(1.0, costs.pairFactor);
  // By stage: how long a micro-batch is in it and behind it.
  std::vector<double> passing(stages), behind(stages, 0);
  for (auto [stage, each] : llvm::enumerate(costs.stages))
    passing[stage] = (each.forward + backwardOf(each, form)) * factor;
  for (const StageEdge &edge : llvm::reverse(ways.edges))
    if (edge.hasGradient)
      behind[edge.from] =
          std::max(behind[edge.from], passing[edge.to] + behind[edge.to]);
  std::vector<Stashes> stashes(bytesOfRank.size());
  for (auto [stage, each] : llvm::enumerate(costs.stages)) {
    const double kept = static_cast<double>(
        each.keptBytes < 0 ? each.stashBytes
                           : std::min(each.keptBytes, each.stashBytes));
    stashes[rankOfStage[stage]].add(kept, each.forward * factor,
                                    backwardOf(each, form) * factor,
                                    passing[stage] + behind[stage]);
  }
  double least = 0;
  for (auto [rank, bytes] : llvm::zip_equal(stashes, bytesOfRank))
    least = std::max(least,
                     rank.stepWithin(bytes, static_cast<double>(microBatches)));
  return least;
}
