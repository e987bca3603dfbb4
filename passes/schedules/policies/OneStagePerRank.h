//===- OneStagePerRank.h - Policies with stage r on rank r ------*- C++ -*-===//
//
// What these policies have in common. With a single rank, which may have any
// number of stages, there is no pipeline: nobody is waited for, so each
// micro-batch goes there and back at once.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_ONESTAGEPERRANK_H
#define PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_ONESTAGEPERRANK_H

#include "passes/schedules/Policy.h"

#include <vector>

namespace pipewright::schedules {

class OneStagePerRank : public Policy {
public:
  /// The pipeline fills and drains once: M + P - 1 slots of F and B.
  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override;

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override;
  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override;

  /// The order of one of several ranks. A policy overrides this one, or
  /// orderOfRank if it has an order for a single rank, too.
  virtual std::vector<Task> orderInPipeline(const Schedule &schedule,
                                            int32_t rank) const {
    return {};
  }
};

/// `ahead` forwards, then a backward and a forward by turns.
std::vector<Task> orderOneFOneB(const Schedule &schedule, int32_t rank,
                                int64_t ahead);

/// All of `schedule` on rank 0; with `splits`, I and W instead of B.
std::vector<Task> orderOfOnlyRank(const Schedule &schedule, bool splits);

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_POLICIES_ONESTAGEPERRANK_H
