//===- VHalf.cpp - Half the stashes of 1F1B ---------------------*- C++ -*-===//
//
// Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024
// (arXiv 2405.15362), "V-Half": the stages go there and back as a V, and
// a fixed pattern repeats for each micro-batch. 3 ranks, 3 micro-batches, cells
// are stage.micro-batch:
//
//   rank 0 | F0.0 F0.1                F5.0 I5.0 W5.0 F0.2      F5.1 I5.1 W5.1
//   rank 1 |      F1.0           F4.0 F1.1      I4.0 W4.0 F4.1 F1.2 I1.0 I4.1
//   rank 2 |           F2.0 F3.0           F2.1 F3.1 I3.0 W3.0 I2.0 W2.0 F2.2
//
//   rank 0 | I0.0 W0.0 F5.2 I5.2 W5.2 I0.1 W0.1                I0.2 W0.2
//   rank 1 | W4.1 F4.2 W1.0      I1.1 I4.2 W4.2 W1.1      I1.2 W1.2
//   rank 2 | F3.2 I3.1 W3.1 I2.1 W2.1      I3.2 W3.2 I2.2 W2.2
//
// What a micro-batch is kept for in a rank's stage there and its stage back
// adds up to about the same on every rank: half of what 1F1B keeps on rank 0.
// The price is a bubble of about P/2 micro-batches, of whatever number, as long
// as tW + 2tI >= 2tF and tW + 2tF >= 2tI; otherwise each micro-batch pays.
//
// It is here as the pattern alone, each task as early as it can; the authors
// also reorder the tasks of warm-up and cool-down, which makes the bubble
// smaller, and their program plans anew from measured times.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/VeePattern.h"

using namespace pipewright::schedules;

namespace {

class VHalf final : public VeePattern {
public:
  llvm::StringRef name() const override { return "v-half"; }
  llvm::StringRef summary() const override {
    return "half the stashes of 1f1b for a bubble of half a pipeline";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(7P-4)tF/4 if P is even, 7(P-1)tF/4 if P is odd, if tF = tI = tW "
           "and M > P/2";
  }
  llvm::StringRef memoryFormula() const override {
    return "floor((P+2)/2) stashes of each of two stages on every rank";
  }

protected:
  Slots slotsOf(int64_t rank, int64_t ranks) const override {
    int64_t delay = ranks % 2 == 0 ? 3 : 0;
    return {2 * rank, 3 * ranks - rank - 2, 3 * ranks + delay + 2 * rank - 1,
            6 * ranks + delay - rank - 2};
  }

  std::optional<int64_t> bubble(int64_t ranks,
                                int64_t microBatches) const override {
    if (2 * microBatches <= ranks)
      return std::nullopt;
    return ranks % 2 == 0 ? 7 * ranks / 2 - 2 : 7 * (ranks - 1) / 2;
  }

  int64_t maxMicroBatches(int64_t ranks) const override {
    return (ranks + 2) / 2;
  }
};

} // namespace

const Policy &pipewright::schedules::vHalfPolicy() {
  static const VHalf policy;
  return policy;
}
