//===- StepBounds.cpp - What no step takes less than ----------------------===//

#include "passes/schedules/StepBounds.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <vector>

using namespace pipewright::schedules;

double pipewright::schedules::leastStep(llvm::ArrayRef<int32_t> rankOfStage,
                                        int64_t ranks, int64_t microBatches,
                                        const TaskCosts &costs, bool splits) {
  std::vector<double> work(ranks, 0), alone(ranks, -1);
  // What comes before a stage, and behind it.
  double before = 0;
  for (auto [stage, each] : llvm::enumerate(costs.stages)) {
    const bool recomputesAll = each.recomputesEarly && each.window.count == 0;
    const double tasks =
        each.forward + (recomputesAll ? each.recompute : 0) +
        (splits ? each.inputGradient + each.weightGradient : each.backward);
    const int32_t rank = rankOfStage[stage];
    work[rank] += tasks;
    if (alone[rank] < 0)
      alone[rank] = before;
    before += each.forward + (splits ? 0 : each.backward);
  }
  const auto count = static_cast<double>(microBatches);
  double least = 0;
  for (auto [tasks, other] : llvm::zip_equal(work, alone))
    least = std::max(least, tasks * count + std::max(0.0, other));
  return least;
}

double pipewright::schedules::leastStepWithin(
    llvm::ArrayRef<double> bytesOfRank, llvm::ArrayRef<int32_t> rankOfStage,
    int64_t microBatches, const TaskCosts &costs, bool splits) {
  // Of a micro-batch: bytes times seconds.
  std::vector<double> room(bytesOfRank.size(), 0);
  double behind = 0;
  for (int64_t stage = std::ssize(costs.stages) - 1; stage >= 0; --stage) {
    const StageCosts &each = costs.stages[stage];
    behind += each.forward + (splits ? each.inputGradient : each.backward);
    const int64_t kept = each.keptBytes < 0
                             ? each.stashBytes
                             : std::min(each.keptBytes, each.stashBytes);
    room[rankOfStage[stage]] += behind * static_cast<double>(kept);
  }
  double least = 0;
  for (auto [needed, bytes] : llvm::zip_equal(room, bytesOfRank))
    if (bytes > 0)
      least =
          std::max(least, static_cast<double>(microBatches) * needed / bytes);
  return least;
}
