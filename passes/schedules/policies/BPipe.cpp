//===- BPipe.cpp - 1F1B whose last ranks keep for the first -----*- C++ -*-===//
//
// Kim et al., "BPipe: Memory-Balanced Pipeline Parallelism for Training Large
// Language Models", ICML 2023. 4 ranks, 6 micro-batches, the order of 1F1B:
//
//   rank 0 | F0 F1 F2 F3          B0 F4 B1 F5 B2    B3    B4    B5
//   rank 1 |    F0 F1 F2       B0 F3 B1 F4 B2 F5 B3    B4    B5
//   rank 2 |       F0 F1    B0 F2 B1 F3 B2 F4 B3 F5 B4    B5
//   rank 3 |          F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5
//
// Rank r sends stashes to rank P-1-r and gets them back: rank 0 that of F1,
// which leaves during F2 and comes back during F4, and that of F3, which leaves
// during B0 and comes back between B2 and B3.
//
// Under 1F1B rank r keeps P-r stashes, so two ranks of a pair keep P+1; with
// one place more on each for a stash on its way, no rank keeps more than
// ceil((P+2)/2). Rank r sends about (K-L)/(K-2) of its micro-batches' stashes,
// where K = P-r and L is the limit: 1/2 on rank 0 of 8 ranks. The paper sends
// the newest stash; here that is the newest one of which the forward is a task
// ago, so that it leaves while a task runs.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/OneStagePerRank.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class BPipe final : public OneStagePerRank {
public:
  llvm::StringRef name() const override { return "bpipe"; }
  llvm::StringRef summary() const override {
    return "1f1b; the last ranks keep stashes for the first ones";
  }
  llvm::StringRef paper() const override { return "Kim et al., ICML 2023"; }
  llvm::StringRef bubbleFormula() const override { return "(P-1)(tF+tB)"; }
  llvm::StringRef memoryFormula() const override {
    return "min(P-r, M, ceil((P+2)/2)) stashes of its own on rank r, and "
           "others' "
           "up to ceil((P+2)/2)";
  }
  ScheduleOptions example() const override { return {6, 6, 10}; }
  llvm::ArrayRef<PolicyParameter> parameters() const override {
    static constexpr PolicyParameter known[] = {
        {"limit", "the most stashes of a rank; ceil((P+2)/2) unless given"}};
    return known;
  }

  std::optional<int64_t>
  stashLimit(const ScheduleOptions &options) const override {
    if (options.ranks == 1)
      return std::nullopt;
    return options.parameter("limit", (options.ranks + 3) / 2);
  }
  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    if (options.ranks == 1)
      return options.stages;
    return std::min(*stashLimit(options), options.microBatches + 1);
  }

protected:
  std::vector<Task> orderInPipeline(const Schedule &schedule,
                                    int32_t rank) const override {
    return orderOneFOneB(schedule, rank, schedule.ranks - rank);
  }
};

} // namespace

const Policy &pipewright::schedules::bPipePolicy() {
  static const BPipe policy;
  return policy;
}
