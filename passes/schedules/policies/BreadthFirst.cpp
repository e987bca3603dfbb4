//===- BreadthFirst.cpp - All micro-batches, loop by loop -------*- C++ -*-===//
//
// Lamy-Poirier, "Breadth-First Pipeline Parallelism", MLSys 2023 (arXiv
// 2211.05953): stage s is on rank s mod P, and each rank takes its stages one
// after the other with all micro-batches. 2 ranks, 2 loops, 3 micro-batches,
// cells are stage.micro-batch:
//
//   rank 0 | F0.0 F0.1 F0.2 F2.0 F2.1 F2.2           B2.0 ... B0.0 B0.1 B0.2
//   rank 1 |      F1.0 F1.1 F1.2 F3.0 F3.1 F3.2 B3.0 B3.1 ... B1.1 B1.2
//
// The bubble of GPipe, divided by the number of loops; in return stashes of
// all micro-batches, and loops times the traffic. Backwards run in ascending
// order of micro-batches.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/Story.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class BreadthFirst final : public Policy {
public:
  llvm::StringRef name() const override { return "breadth-first"; }
  llvm::StringRef summary() const override {
    return "gpipe over several loops of stages; smaller bubble, keeps all "
           "stashes";
  }
  llvm::StringRef paper() const override {
    return "Lamy-Poirier, MLSys 2023 (arXiv 2211.05953)";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P-1)(tF+tB)/v, if M >= P";
  }
  llvm::StringRef memoryFormula() const override {
    return "M stashes of every stage, M*v on every rank";
  }
  ScheduleOptions example() const override { return {4, 8, 4}; }

  /// With fewer micro-batches than ranks, each loop but the last waits for
  /// the previous loop's first micro-batch to come round.
  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    int64_t loops = options.stages / options.ranks;
    int64_t slots =
        (loops - 1) * std::max(options.microBatches, options.ranks) +
        options.microBatches + options.ranks - 1;
    return slots * (times.forward + times.backward());
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    return options.microBatches * options.stages / options.ranks;
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (options.stages % options.ranks == 0)
      return loopPlacement(options.stages, options.ranks);
    return refuse("breadth-first needs ranks x loops stages, but got {0} "
                  "stages on {1} ranks",
                  options.stages, options.ranks);
  }

  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    int32_t ranks = schedule.ranks, microBatches = schedule.microBatches;
    int32_t loops = schedule.stages / schedule.ranks;
    std::vector<Task> order;
    order.reserve(2 * int64_t(loops) * microBatches + loops);
    for (int32_t loop = 0; loop < loops; ++loop)
      for (int32_t m = 0; m < microBatches; ++m)
        order.push_back(Task::forward(loop * ranks + rank, m));
    for (int32_t loop = loops - 1; loop >= 0; --loop)
      for (int32_t m = 0; m < microBatches; ++m)
        order.push_back(Task::backward(loop * ranks + rank, m));
    return order;
  }
};

} // namespace

const Policy &pipewright::schedules::breadthFirstPolicy() {
  static const BreadthFirst policy;
  return policy;
}
