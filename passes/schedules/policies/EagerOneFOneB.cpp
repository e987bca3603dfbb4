//===- EagerOneFOneB.cpp - 1F1B with twice the warm-up ----------*- C++ -*-===//
//
// Zhuang et al., "On Optimizing the Communication of Model Parallelism", MLSys
// 2023 (arXiv 2211.05322), in Alpa as `1f1b_overlap_friendly`; JaxPP has it as
// `Eager1F1B`. 3 ranks, 5 micro-batches:
//
//   rank 0 | F0 F1 F2 F3 F4 B0    B1    B2    B3    B4
//   rank 1 |    F0 F1 F2 B0 F3 B1 F4 B2    B3    B4
//   rank 2 |       F0 B0 F1 B1 F2 B2 F3 B3 F4 B4
//
// As long as 1F1B where links take no time. Rank r begins up to 2(P-r)-1
// micro-batches before its first backward, up to twice as many as under 1F1B,
// and so has what it needs a task before it is used: a hop that takes c costs
// 2(P-1)c in the whole step, as under GPipe, and nothing per micro-batch. Order
// as in JaxPP: after the warm-up, backward and forward in turn.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/OneStagePerRank.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class EagerOneFOneB final : public OneStagePerRank {
public:
  llvm::StringRef name() const override { return "eager-1f1b"; }
  llvm::StringRef summary() const override {
    return "1f1b with more forwards ahead, which hides the latency of links";
  }
  llvm::StringRef paper() const override {
    return "Zhuang et al., MLSys 2023 (arXiv 2211.05322)";
  }
  llvm::StringRef bubbleFormula() const override { return "(P-1)(tF+tB)"; }
  llvm::StringRef memoryFormula() const override {
    return "min(2(P-r)-1, M) stashes on rank r";
  }
  ScheduleOptions example() const override { return {4, 4, 8}; }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    if (options.ranks == 1)
      return options.stages;
    return std::min(2 * (options.ranks - rank) - 1, options.microBatches);
  }

protected:
  std::vector<Task> orderInPipeline(const Schedule &schedule,
                                    int32_t rank) const override {
    return orderOneFOneB(schedule, rank, 2 * (schedule.ranks - rank) - 1);
  }
};

} // namespace

const Policy &pipewright::schedules::eagerOneFOneBPolicy() {
  static const EagerOneFOneB policy;
  return policy;
}
