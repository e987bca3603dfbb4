//===- VMin.cpp - A third of the stashes of 1F1B ----------------*- C++ -*-===//
//
// Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024
// (arXiv 2405.15362), "V-Min": the stages go there and back as a V, and
// the shortest pattern that fits repeats for each micro-batch. 4 ranks, 3
// micro-batches, cells are stage.micro-batch:
//
//   rank 0 | F0.0 F0.1                          F7.0 I7.0 W7.0
//   rank 1 |      F1.0                     F6.0 F1.1      I6.0
//   rank 2 |           F2.0           F5.0           F2.1
//   rank 3 |                F3.0 F4.0                     F3.1
//
//   rank 0 | F0.2           F7.1 I7.1 I0.0 W7.1 W0.0      F7.2
//   rank 1 | W6.0      F6.1 F1.2 I1.0 I6.1 W6.1 W1.0 F6.2
//   rank 2 | I5.0 F5.1 W5.0 I2.0 F2.2 W2.0 I5.1 F5.2 W5.1 I2.1
//   rank 3 | F4.1 I4.0 I3.0 W4.0 W3.0 F3.2 F4.2 I4.1 I3.1 W4.1
//
//   rank 0 | I7.2 I0.1 W7.2 W0.1                I0.2 W0.2
//   rank 1 | I1.1 I6.2 W6.2 W1.1           I1.2 W1.2
//   rank 2 | W2.1      I5.2 W5.2      I2.2 W2.2
//   rank 3 | W3.1           I4.2 I3.2 W4.2 W3.2
//
// Each micro-batch goes all the way and back without waiting, so stashes are
// as few as they can be, about a third of what 1F1B keeps on rank 0. The price
// is a bubble of about 2P/3 micro-batches, and no slack: when F, I and W take
// different times, or links take any, every micro-batch pays for it. It is
// here as the pattern alone, each task as early as it can; the authors also
// reorder the tasks of warm-up and cool-down, and their program plans anew from
// measured times.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/VeePattern.h"

using namespace pipewright::schedules;

namespace {

class VMin final : public VeePattern {
public:
  llvm::StringRef name() const override { return "v-min"; }
  llvm::StringRef summary() const override {
    return "a third of the stashes of 1f1b for a larger bubble; needs equal "
           "task times";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(4P-5)tF/2, (4P-3)tF/2 if 3 divides P, if tF = tI = tW and M, P > "
           "1";
  }
  llvm::StringRef memoryFormula() const override {
    return "floor((P+4)/3) stashes of each of two stages on every rank";
  }

protected:
  /// Where 3 divides the ranks, the way back must wait for two slots, or two
  /// tasks would want the same one.
  static int64_t delay(int64_t ranks) { return ranks % 3 == 0 ? 2 : 0; }

  Slots slotsOf(int64_t rank, int64_t ranks) const override {
    return {rank, 2 * ranks - rank - 1, 2 * ranks + delay(ranks) + rank,
            4 * ranks + delay(ranks) - rank - 1};
  }

  std::optional<int64_t> bubble(int64_t ranks,
                                int64_t microBatches) const override {
    if (ranks == 1)
      return 0;
    // A single micro-batch does not wait for those slots.
    return 4 * ranks - 5 + (microBatches == 1 ? 0 : delay(ranks));
  }

  int64_t maxMicroBatches(int64_t ranks) const override {
    return (ranks + 4) / 3;
  }
};

} // namespace

const Policy &pipewright::schedules::vMinPolicy() {
  static const VMin policy;
  return policy;
}
