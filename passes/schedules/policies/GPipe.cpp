//===- GPipe.cpp - All forwards, then all backwards -------------*- C++ -*-===//
//
// Huang et al., "GPipe: Efficient Training of Giant Neural Networks using
// Pipeline Parallelism", NeurIPS 2019 (arXiv 1811.06965), section 2.2. 4 ranks,
// 4 micro-batches:
//
//   rank 0 | F0 F1 F2 F3                   B0 B1 B2 B3
//   rank 1 |    F0 F1 F2 F3             B0 B1 B2 B3
//   rank 2 |       F0 F1 F2 F3       B0 B1 B2 B3
//   rank 3 |          F0 F1 F2 F3 B0 B1 B2 B3
//
// The paper and torchgpipe run backwards in descending micro-batch order, here
// `gpipe:descending`; the time is the same. Ascending, as by default and in
// PyTorch's ScheduleGPipe, gradients are summed in the same order as in every
// other schedule; descending, their sums round differently. The paper also
// recomputes activations, which here is a matter of the stages, not of the
// order.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/OneStagePerRank.h"
#include "passes/schedules/policies/Switch.h"

using namespace pipewright::schedules;

namespace {

class GPipe final : public OneStagePerRank {
public:
  llvm::StringRef name() const override { return "gpipe"; }
  llvm::StringRef summary() const override {
    return "all forwards, then all backwards; simplest, keeps all stashes";
  }
  llvm::StringRef paper() const override {
    return "Huang et al., NeurIPS 2019 (arXiv 1811.06965), section 2.2";
  }
  llvm::StringRef bubbleFormula() const override { return "(P-1)(tF+tB)"; }
  llvm::StringRef memoryFormula() const override {
    return "M stashes on every rank";
  }
  llvm::ArrayRef<PolicyParameter> parameters() const override {
    static constexpr PolicyParameter all[] = {
        {"descending", "backwards from the last micro-batch to the first, as "
                       "in the paper; gradients round differently"}};
    return all;
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    return options.microBatches * options.stages / options.ranks;
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (llvm::Error error = checkSwitch(*this, options, "descending"))
      return error;
    return placeOneStagePerRank(options);
  }

  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    int32_t microBatches = schedule.microBatches;
    int32_t perRank = schedule.stages / schedule.ranks;
    int32_t first = rank * perRank, last = first + perRank - 1;
    bool descends = isOn(options, "descending");
    std::vector<Task> order;
    order.reserve(2 * int64_t(perRank) * microBatches + perRank);
    for (int32_t stage = first; stage <= last; ++stage)
      for (int32_t m = 0; m < microBatches; ++m)
        order.push_back(Task::forward(stage, m));
    for (int32_t stage = last; stage >= first; --stage)
      for (int32_t m = 0; m < microBatches; ++m)
        order.push_back(
            Task::backward(stage, descends ? microBatches - 1 - m : m));
    return order;
  }
};

} // namespace

const Policy &pipewright::schedules::gpipePolicy() {
  static const GPipe policy;
  return policy;
}
