//===- ZBH1.cpp - Weight gradients fill the bubble of 1F1B ------*- C++ -*-===//
//
// Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024 (arXiv 2401.10241),
// section 2.1. The backward is split: I makes the gradient of the stage's
// inputs, which the stage before waits for, W that of its weights, for which
// nobody waits. 4 ranks, 6 micro-batches:
//
//   rank 0 | F0 F1 F2 F3          I0 W0 F4 I1 W1 F5 I2 W2 I3 W3 I4 W4 I5 W5
//   rank 1 |    F0 F1 F2       I0 F3 I1 W0 F4 I2 W1 F5 I3 W2 I4 W3 I5 W4 W5
//   rank 2 |       F0 F1    I0 F2 I1 F3 I2 W0 F4 I3 W1 F5 I4 W2 I5 W3 W4 W5
//   rank 3 |          F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 F5 I5 W2 W3 W4 W5
//
// Rank r is r weight gradients late, which is what it has room for: every rank
// keeps the P stashes that rank 0 of 1F1B keeps. That counts a stash as held
// until W; if W needs only M_W of the M_B bytes that F leaves, the paper's
// (P-r)M_B + r*M_W is less.
//
// The order is PyTorch's, where ScheduleInterleavedZeroBubble with one stage
// per rank is this schedule: forward, then I, then W, with P-1-r forwards
// ahead. Fewer micro-batches than ranks work, but leave little W to fill with.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/OneStagePerRank.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class ZBH1 final : public OneStagePerRank {
public:
  llvm::StringRef name() const override { return "zb-h1"; }
  llvm::StringRef summary() const override {
    return "1f1b with split backwards; a third of its bubble, same worst "
           "memory";
  }
  llvm::StringRef paper() const override {
    return "Qi et al., ICLR 2024 (arXiv 2401.10241), section 2.1";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P-1)(tF+tI-tW), if M >= P and tW <= tF, tI";
  }
  llvm::StringRef memoryFormula() const override {
    return "min(P, M) stashes on every rank, held until W";
  }
  ScheduleOptions example() const override { return {4, 4, 6}; }
  bool splitsBackward() const override { return true; }

  /// F and I of one micro-batch go there and back over P-1 ranks; in that time
  /// the rank does W of as many others, and a W fills no more than the F or I
  /// of another rank beside it. Holds for all task times.
  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    double each = times.forward + times.backward();
    if (options.ranks == 1)
      return options.microBatches * options.stages * each;
    double filled =
        std::min({times.forward, times.inputGradient, times.weightGradient});
    return options.microBatches * each +
           (options.ranks - 1) * (times.forward + times.inputGradient) -
           (std::min(options.ranks, options.microBatches) - 1) * filled;
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
    int32_t microBatches = schedule.microBatches;
    int32_t warmUp = std::min<int64_t>(schedule.ranks - 1 - rank, microBatches);
    std::vector<Task> order;
    order.reserve(3 * int64_t(microBatches) + 1);
    for (int32_t m = 0; m < warmUp; ++m)
      order.push_back(Task::forward(rank, m));
    for (int32_t m = 0; m < microBatches; ++m) {
      if (warmUp + m < microBatches)
        order.push_back(Task::forward(rank, warmUp + m));
      order.push_back(Task::inputGradient(rank, m));
      if (m >= rank)
        order.push_back(Task::weightGradient(rank, m - rank));
    }
    for (int32_t m = std::max(0, microBatches - rank); m < microBatches; ++m)
      order.push_back(Task::weightGradient(rank, m));
    return order;
  }
};

} // namespace

const Policy &pipewright::schedules::zbH1Policy() {
  static const ZBH1 policy;
  return policy;
}
