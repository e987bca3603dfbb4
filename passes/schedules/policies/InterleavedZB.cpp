//===- InterleavedZB.cpp - ZB-H1 over several loops of stages ---*- C++ -*-===//
//
// PyTorch's ScheduleInterleavedZeroBubble: the split backward of ZB-H1 (Qi et
// al., "Zero Bubble Pipeline Parallelism", ICLR 2024, arXiv 2401.10241, section
// 2.1) in the depth-first order of interleaved 1F1B (Narayanan et al., SC 2021,
// arXiv 2104.04473, section 2.2.2). 2 ranks, 2 loops, 4 micro-batches, cells
// are stage.micro-batch:
//
//   rank 0 | F0.0 F0.1 F2.0 F2.1      I2.0 W2.0 F0.2 I2.1 W2.1 F0.3 I0.0 W0.0
//   rank 1 |      F1.0 F1.1 F3.0 I3.0 F3.1 I3.1 W3.0 F1.2 I1.0 W3.1 F1.3 I1.1
//      ...
//   rank 0 | F2.2 I0.1 W0.1 F2.3 I2.2 W2.2 I2.3 W2.3 I0.2 W0.2 I0.3 W0.3
//   rank 1 | W1.0 F3.2 I3.2 W1.1 F3.3 I3.3 W3.2 I1.2 W3.3 I1.3 W1.2 W1.3
//
// Half the warm-up of interleaved 1F1B, and rank r is r weight gradients late.
// The bubble of ZB-H1 divided by the number of loops v, with the same memory if
// groups have P micro-batches: P whole shares, that is P*v stages. Task for
// task PyTorch's order; groups as in interleaved 1F1B.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/DepthFirst.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class InterleavedZB final : public DepthFirstPolicy {
public:
  llvm::StringRef name() const override { return "interleaved-zb"; }
  llvm::StringRef summary() const override {
    return "zb-h1 over several loops of stages; smaller bubble, more traffic";
  }
  llvm::StringRef paper() const override {
    return "Qi et al., ICLR 2024 (arXiv 2401.10241), section 2.1; PyTorch's "
           "ScheduleInterleavedZeroBubble";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P-1)(tF+tI-tW)/v, if M >= P and tW <= tF, tI";
  }
  llvm::StringRef memoryFormula() const override {
    return "P+(v-1)N stashes, each of one stage and held until W, on every "
           "rank, for groups of N micro-batches; at most v*M";
  }
  bool splitsBackward() const override { return true; }

  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    if (options.microBatches < options.ranks)
      return std::nullopt;
    double each = times.forward + times.backward();
    double filled =
        std::min({times.forward, times.inputGradient, times.weightGradient});
    return DepthFirst(options).numSteps() * each +
           (options.ranks - 1) * (times.forward + times.inputGradient - filled);
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    DepthFirst steps(options);
    return std::min(steps.ranks + (steps.loops - 1) * steps.group,
                    steps.numSteps());
  }

protected:
  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    DepthFirst steps(options);
    int64_t numSteps = steps.numSteps();
    int64_t warmUp = std::min(
        steps.ranks - 1 - rank + (steps.loops - 1) * steps.group, numSteps);
    std::vector<Task> order;
    order.reserve(3 * numSteps + steps.loops);
    for (int64_t step = 0; step < warmUp; ++step)
      order.push_back(steps.forward(step, rank));
    for (int64_t step = 0; step < numSteps; ++step) {
      if (warmUp + step < numSteps)
        order.push_back(steps.forward(warmUp + step, rank));
      order.push_back(steps.backward(TaskKind::InputGradient, step, rank));
      if (step >= rank)
        order.push_back(
            steps.backward(TaskKind::WeightGradient, step - rank, rank));
    }
    for (int64_t step = std::max<int64_t>(0, numSteps - rank); step < numSteps;
         ++step)
      order.push_back(steps.backward(TaskKind::WeightGradient, step, rank));
    return order;
  }
};

} // namespace

const Policy &pipewright::schedules::interleavedZBPolicy() {
  static const InterleavedZB policy;
  return policy;
}
