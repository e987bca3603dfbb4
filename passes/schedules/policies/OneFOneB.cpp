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

#include "passes/schedules/policies/OneStagePerRank.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class OneFOneB final : public OneStagePerRank {
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

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    if (options.ranks == 1)
      return options.stages;
    return std::min(options.ranks - rank, options.microBatches);
  }

protected:
  std::vector<Task> orderInPipeline(const Schedule &schedule,
                                    int32_t rank) const override {
    return orderOneFOneB(schedule, rank, schedule.ranks - rank);
  }
};

} // namespace

const Policy &pipewright::schedules::oneFOneBPolicy() {
  static const OneFOneB policy;
  return policy;
}
