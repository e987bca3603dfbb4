//===- DualPipe.cpp - Two copies, both ways at once -------------*- C++ -*-===//
//
// DeepSeek-AI, "DeepSeek-V3 Technical Report" (arXiv 2412.19437), section
// 3.2.1; the order is that of the repository deepseek-ai/DualPipe. Rank r has
// stage r of one copy of the model and stage P-1-r of another; half of the
// micro-batches goes through either, from both ends of the pipeline. 4 ranks, 8
// micro-batches, cells are stage.micro-batch; stages of the second copy are
// numbered from P on:
//
//   rank 0 | F0.0 F0.1 F0.2 F7.4 I7.4 W7.4 F7.5 F0.3&B7.5-----      F7.6&B0.0-
//   rank 1 |      F1.0 F6.4 F1.1 F6.5 F1.2 B6.4----- F6.6&B1.0----- F1.3&B6.5-
//   rank 2 |      F5.4 F2.0 F5.5 F2.1 F5.6 B2.0----- F2.2&B5.4----- F5.7&B2.1-
//   rank 3 | F4.4 F4.5 F4.6 F3.0 I3.0 W3.0 F3.1 F4.7&B3.1-----      F3.2&B4.4-
//
//   rank 0 | ---- B7.6-----      F7.7&B0.1----- B7.7----- I0.2 W0.2 I0.3 W0.3
//   rank 1 | ---- F6.7&B1.1----- B6.6----- B1.2-----      I6.7 I1.3 W6.7 W1.3
//   rank 2 | ---- F2.3&B5.5----- B2.2----- B5.6-----      I2.3 I5.7 W2.3 W5.7
//   rank 3 | ---- B3.2-----      F3.3&B4.5----- B3.3----- I4.6 W4.6 I4.7 W4.7
//
// The point is the pairs (`F0.3&B7.5`): a forward and a backward of different
// micro-batches have no need of each other, so the messages of one can travel
// while the other computes. Where they cannot overlap, a pair is one after the
// other, and what is left is the smaller bubble. Gradients of the two copies
// are summed before the update.
//
// The repository gives the bubble as (P/2-1)(F&B + B - 3W), where F&B is the
// time of a pair. With a pair as long as its two tasks that is the same as the
// formula here where I takes as long as F and W no longer; the one here is
// exact for all times.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/Refusal.h"
#include "passes/schedules/policies/TwoWaySteps.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class DualPipe final : public Policy {
public:
  llvm::StringRef name() const override { return "dualpipe"; }
  llvm::StringRef summary() const override {
    return "two copies of the model, forwards of one overlapped with "
           "backwards of the other";
  }
  llvm::StringRef paper() const override {
    return "DeepSeek-AI, 2024 (arXiv 2412.19437), section 3.2.1";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P/2-1)(2tF + max(0, tI-tW)), if tI <= tF and a pair takes tF+tB";
  }
  llvm::StringRef memoryFormula() const override {
    return "P+1 stashes on every rank, of two stages; two copies of the "
           "weights";
  }
  ScheduleOptions example() const override { return {4, 4, 8}; }
  bool splitsBackward() const override { return true; }
  int64_t copies() const override { return 2; }

  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    return options.microBatches * (times.forward + times.backward()) +
           bubbleOfTwoWaySteps(options.ranks / 2 - 1, times);
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    return options.ranks + 1;
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (llvm::Error error = checkLoops(options, 1))
      return error;
    if (options.ranks % 2 != 0)
      return refuse("dualpipe needs an even number of ranks, but got {0}",
                    options.ranks);
    if (options.microBatches < 2 * options.ranks ||
        options.microBatches % 2 != 0)
      return refuse("dualpipe needs an even number of micro-batches, at least "
                    "2P, which is {0} on {1} ranks, but got {2}",
                    2 * options.ranks, options.ranks, options.microBatches);
    return mirrorPlacement(options.ranks);
  }

  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    int32_t ranks = schedule.ranks, half = schedule.microBatches / 2;
    TwoWaySteps steps;
    steps.near = {rank, 0};
    steps.far = {2 * ranks - 1 - rank, half};
    // The other half of the ranks is nearer to the start of the other copy.
    if (rank >= ranks / 2)
      std::swap(steps.near, steps.far);
    steps.fromStart = std::min(rank, ranks - 1 - rank);
    steps.toTurn = ranks / 2 - 1 - steps.fromStart;
    steps.microBatches = half;
    return steps.order();
  }
};

} // namespace

const Policy &pipewright::schedules::dualPipePolicy() {
  static const DualPipe policy;
  return policy;
}
