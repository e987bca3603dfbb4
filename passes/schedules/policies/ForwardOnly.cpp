//===- ForwardOnly.cpp - Evaluation -----------------------------*- C++ -*-===//
//
// No backwards, no updates, no stashes. Stage s is on rank s mod P; groups of
// micro-batches go through all loops one after the other, in the forward order
// of interleaved 1F1B (Narayanan et al., SC 2021, arXiv 2104.04473, section
// 2.2.2), so that few results wait to come round again. 2 ranks, 2 loops, 4
// micro-batches, cells are stage.micro-batch:
//
//   rank 0 | F0.0 F0.1 F2.0 F2.1 F0.2 F0.3 F2.2 F2.3
//   rank 1 |      F1.0 F1.1 F3.0 F3.1 F1.2 F1.3 F3.2 F3.3
//
// Nothing is faster: each rank works without a pause once its first input is
// there. PyTorch evaluates in the order of the schedule that trains.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/policies/DepthFirst.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class ForwardOnly final : public Policy {
public:
  llvm::StringRef name() const override { return "forward-only"; }
  llvm::StringRef summary() const override {
    return "evaluation: forwards alone, any number of loops";
  }
  llvm::StringRef paper() const override {
    return "forward order of Narayanan et al., SC 2021 (arXiv 2104.04473)";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P-1)tF/v, if M >= P";
  }
  llvm::StringRef memoryFormula() const override { return "no stash"; }
  ScheduleOptions example() const override { return {2, 4, 4}; }
  bool trains() const override { return false; }

  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    return DepthFirst(options).numSlots() * times.forward;
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    return 0;
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (llvm::Error error = checkLoops(options, 0))
      return error;
    return loopPlacement(options.stages, options.ranks);
  }

  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    DepthFirst steps(options);
    std::vector<Task> order;
    order.reserve(steps.numSteps());
    for (int64_t step = 0; step < steps.numSteps(); ++step)
      order.push_back(steps.forward(step, rank));
    return order;
  }
};

} // namespace

const Policy &pipewright::schedules::forwardOnlyPolicy() {
  static const ForwardOnly policy;
  return policy;
}
