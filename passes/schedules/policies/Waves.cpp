//===- Waves.cpp - GPipe with as many micro-batches as ranks ----*- C++ -*-===//
//
// A step of GPipe (Huang et al., NeurIPS 2019, arXiv 1811.06965) for each P
// micro-batches, whose gradients are added up: gradient accumulation around a
// pipeline. 2 ranks, 4 micro-batches:
//
//   rank 0 | F0 F1       B0 B1 F2 F3       B2 B3
//   rank 1 |    F0 F1 B0 B1       F2 F3 B2 B3
//
// No rank keeps more than P stashes, but each wave fills and drains the
// pipeline: 1f1b keeps no more and does so once.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/OneStagePerRank.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class Waves final : public OneStagePerRank {
public:
  llvm::StringRef name() const override { return "waves"; }
  llvm::StringRef summary() const override {
    return "gpipe for each P micro-batches; P stashes, a bubble for each wave";
  }
  llvm::StringRef paper() const override {
    return "Huang et al., NeurIPS 2019 (arXiv 1811.06965), with accumulation";
  }
  llvm::StringRef bubbleFormula() const override {
    return "ceil(M/P)(P-1)(tF+tB)";
  }
  llvm::StringRef memoryFormula() const override {
    return "min(P, M) stashes on every rank";
  }
  ScheduleOptions example() const override { return {2, 2, 4}; }

  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    if (options.ranks == 1)
      return OneStagePerRank::stepTime(options, times);
    int64_t waves = llvm::divideCeil(options.microBatches, options.ranks);
    return (options.microBatches + waves * (options.ranks - 1)) *
           (times.forward + times.backward());
  }
  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    if (options.ranks == 1)
      return options.stages;
    return std::min(options.ranks, options.microBatches);
  }

protected:
  std::vector<Task> orderInPipeline(const Schedule &schedule,
                                    int32_t rank) const override {
    std::vector<Task> order;
    for (int32_t first = 0; first < schedule.microBatches;
         first += schedule.ranks) {
      int32_t end = std::min(first + schedule.ranks, schedule.microBatches);
      for (int32_t m = first; m < end; ++m)
        order.push_back(Task::forward(rank, m));
      for (int32_t m = first; m < end; ++m)
        order.push_back(Task::backward(rank, m));
    }
    return order;
  }
};

} // namespace

const Policy &pipewright::schedules::wavesPolicy() {
  static const Waves policy;
  return policy;
}
