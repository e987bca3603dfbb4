//===- ZBH2.cpp - No bubble, for twice the stashes --------------*- C++ -*-===//
//
// Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024 (arXiv 2401.10241),
// section 2.2: as many forwards ahead as keep every rank busy until its first
// backward. 3 ranks, 6 micro-batches:
//
//   rank 0 | F0 F1 F2 F3 F4 I0 W0 F5 I1 W1 I2 W2 I3 W3 I4 W4 I5 W5
//   rank 1 |    F0 F1 F2 I0 F3 I1 F4 I2 W0 F5 I3 W1 I4 W2 I5 W3 W4 W5
//   rank 2 |       F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 F5 I5 W1 W2 W3 W4 W5
//
// Each rank is busy from its first task to its last, if all tasks take the same
// time: the bubble of the span is 0. Of the global step time it is not, as the
// last rank begins and ends P-1 forwards later; so the steps must overlap,
// which an update that waits for all ranks (a global norm of gradients)
// forbids. The paper updates optimistically and takes it back if need be, which
// Pipewright does not. Rank r is 2r weight gradients late.
//
// Fewer than 2P-1 micro-batches work, but leave bubbles. PyTorch has no such
// schedule.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/OneStagePerRank.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class ZBH2 final : public OneStagePerRank {
public:
  llvm::StringRef name() const override { return "zb-h2"; }
  llvm::StringRef summary() const override {
    return "split backwards and twice the stashes of 1f1b; ranks do not idle "
           "within their span";
  }
  llvm::StringRef paper() const override {
    return "Qi et al., ICLR 2024 (arXiv 2401.10241), section 2.2";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P-1)max(tF, tF+tI-2tW), in the span (P-1)max(0, tF+tI-2tW), if "
           "M >= 2P-1 and tW <= tF";
  }
  llvm::StringRef memoryFormula() const override {
    return "min(2P-1, M) stashes on every rank, held until W";
  }
  ScheduleOptions example() const override { return {4, 4, 8}; }
  bool splitsBackward() const override { return true; }

  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    return timeWithBubble(options, times, times.forward);
  }
  std::optional<double> spanTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    return timeWithBubble(options, times, 0);
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    if (options.ranks == 1)
      return options.stages;
    return std::min(2 * options.ranks - 1, options.microBatches);
  }

protected:
  std::vector<Task> orderInPipeline(const Schedule &schedule,
                                    int32_t rank) const override {
    int32_t microBatches = schedule.microBatches, late = 2 * rank;
    int32_t warmUp =
        std::min<int64_t>(2 * (schedule.ranks - rank) - 1, microBatches);
    std::vector<Task> order;
    order.reserve(3 * int64_t(microBatches) + 1);
    for (int32_t m = 0; m < warmUp; ++m)
      order.push_back(Task::forward(rank, m));
    for (int32_t m = 0; m < microBatches; ++m) {
      order.push_back(Task::inputGradient(rank, m));
      if (m >= late)
        order.push_back(Task::weightGradient(rank, m - late));
      if (warmUp + m < microBatches)
        order.push_back(Task::forward(rank, warmUp + m));
    }
    for (int32_t m = std::max(0, microBatches - late); m < microBatches; ++m)
      order.push_back(Task::weightGradient(rank, m));
    return order;
  }

private:
  /// What the first micro-batch needs to go there and back is filled with two
  /// W per rank, up to `least`; a W longer than a forward fills no more.
  static std::optional<double> timeWithBubble(const ScheduleOptions &options,
                                              const UnitTimes &times,
                                              double least) {
    double each = times.forward + times.backward();
    if (options.ranks == 1)
      return options.microBatches * options.stages * each;
    if (options.microBatches < 2 * options.ranks - 1)
      return std::nullopt;
    double bubble = times.forward + times.inputGradient -
                    2 * std::min(times.forward, times.weightGradient);
    return options.microBatches * each +
           (options.ranks - 1) * std::max(least, bubble);
  }
};

} // namespace

const Policy &pipewright::schedules::zbH2Policy() {
  static const ZBH2 policy;
  return policy;
}
