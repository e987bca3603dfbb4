//===- VeePattern.h - One pattern, repeated for each micro-batch -*- C++ -*-==//
//
// V-Half and V-Min differ in four numbers and what follows from them. Both
// repeat a pattern of six slots per micro-batch on two stages per rank: given
// the slots in which a micro-batch's two forwards and two input gradients run,
// the two weight gradients take what is left.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_VEEPATTERN_H
#define PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_VEEPATTERN_H

#include "passes/schedules/Policy.h"

namespace pipewright::schedules {

class VeePattern : public Policy {
public:
  llvm::StringRef paper() const override {
    return "Qi et al., NeurIPS 2024 (arXiv 2405.15362)";
  }
  ScheduleOptions example() const override { return {2, 4, 3}; }
  int64_t defaultLoops() const override { return 2; }
  bool splitsBackward() const override { return true; }

  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override;
  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override;

protected:
  /// The slots of the first micro-batch. "There" is the rank's stage in the
  /// first half of the model, "back" the one in the second. No two are equal
  /// modulo 6.
  struct Slots {
    int64_t forwardThere, forwardBack, gradientBack, gradientThere;
  };
  virtual Slots slotsOf(int64_t rank, int64_t ranks) const = 0;
  /// The bubble in slots, when all tasks take one; none without a formula.
  virtual std::optional<int64_t> bubble(int64_t ranks,
                                        int64_t microBatches) const = 0;
  /// The most micro-batches in flight, of two stages each.
  virtual int64_t maxMicroBatches(int64_t ranks) const = 0;

  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override;
  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_VEEPATTERN_H
