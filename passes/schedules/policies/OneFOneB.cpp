//===- OneFOneB.cpp - A backward as soon as there is one --------*- C++ -*-===//
//
// "PipeDream-flush" in Narayanan et al., "Memory-Efficient Pipeline-Parallel
// DNN Training", ICML 2021 (arXiv 2006.09503), section 3.2; "DAPPLE" in Fan et
// al., PPoPP 2021. 4 ranks, 4 micro-batches:
//
//   rank 0 | F0 F1 F2 F3          B0    B1    B2    B3
//   rank 1 |    F0 F1 F2       B0 F3 B1    B2    B3
//   rank 2 |       F0 F1    B0 F2 B1 F3 B2    B3
//   rank 3 |          F0 B0 F1 B1 F2 B2 F3 B3
//
// As long as GPipe, but rank r keeps at most P-r stashes. There is no slack
// for latency: with c seconds per hop, a micro-batch takes tF+tB+2c(P-1)/P
// instead of tF+tB, as B(m) on the last rank leads down to F(m+P) on the first
// and up again, which is P micro-batches of work and 2(P-1) hops. eager-1f1b
// keeps more stashes and has the slack.
//
// Megatron counts min(P-r-1, M) forwards and then pairs (F, B), PyTorch P-r and
// then pairs (B, F), which is the same order. PyTorch's Schedule1F1B refuses
// fewer micro-batches than ranks; here they are welcome.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/policies/OnlyRank.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class OneFOneB final : public Policy {
public:
  llvm::StringRef name() const override { return "1f1b"; }
  llvm::StringRef summary() const override {
    return "one forward, one backward in turn; as fast as gpipe, fewest "
           "stashes";
  }
  llvm::StringRef paper() const override {
    return "Narayanan et al., ICML 2021 (arXiv 2006.09503), section 3.2; Fan "
           "et al., PPoPP 2021";
  }
  llvm::StringRef bubbleFormula() const override { return "(P-1)(tF+tB)"; }
  llvm::StringRef memoryFormula() const override {
    return "min(P-r, M) stashes on rank r";
  }

  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    int64_t slots = options.ranks == 1
                        ? options.microBatches * options.stages
                        : options.microBatches + options.ranks - 1;
    return slots * (times.forward + times.backward());
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    if (options.ranks == 1)
      return options.stages;
    return std::min(options.ranks - rank, options.microBatches);
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    return placeOneStagePerRank(options);
  }

  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    if (schedule.ranks == 1)
      return orderOfOnlyRank(schedule, splitsBackward());
    int32_t microBatches = schedule.microBatches;
    int32_t warmUp = std::min<int64_t>(schedule.ranks - rank, microBatches);
    std::vector<Task> order;
    order.reserve(2 * int64_t(microBatches) + 1);
    for (int32_t m = 0; m < warmUp; ++m)
      order.push_back(Task::forward(rank, m));
    for (int32_t m = 0; m < microBatches; ++m) {
      order.push_back(Task::backward(rank, m));
      if (warmUp + m < microBatches)
        order.push_back(Task::forward(rank, warmUp + m));
    }
    return order;
  }
};

} // namespace

const Policy &pipewright::schedules::oneFOneBPolicy() {
  static const OneFOneB policy;
  return policy;
}
