//===- BreadthFirst.cpp - All micro-batches, loop by loop -------*- C++ -*-===//
//
// Lamy-Poirier, "Breadth-First Pipeline Parallelism", MLSys 2023 (arXiv
// 2211.05953): stage s is on rank s mod P, and each rank takes its stages one
// after the other with all micro-batches. 2 ranks, 2 loops, 2 micro-batches,
// cells are stage.micro-batch:
//
//   rank 0 | F0.0 F0.1 F2.0 F2.1           B2.0 B2.1 B0.0 B0.1
//   rank 1 |      F1.0 F1.1 F3.0 F3.1 B3.0 B3.1 B1.0 B1.1
//
// The bubble of GPipe, divided by the number of loops; in return stashes of
// all micro-batches, and loops times the traffic. Each stage's weights are in
// use once per direction, which is what sharded weights want.
//
// Backwards run in ascending order of micro-batches, as in Fast-LLM. PyTorch's
// ScheduleLoopedBFS runs them descending, here `breadth-first:descending`; the
// time is the same, gradients round differently.
//
// Fast-LLM also splits the micro-batches in depth-first groups,
// `breadth-first:groups=2`: each group runs forward and backward before the
// next begins, which keeps fewer stashes and pays the bubble once per group.
// With g groups, group i has micro-batches i, g+i, 2g+i, ..., so gradients are
// summed in another order here as well.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/policies/Switch.h"

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
    return "(P-1)(tF+tB)/v, if M >= P; once per group";
  }
  llvm::StringRef memoryFormula() const override {
    return "M stashes of every stage, M*v on every rank; divided by the number "
           "of groups";
  }
  llvm::ArrayRef<PolicyParameter> parameters() const override {
    static constexpr PolicyParameter all[] = {
        {"groups", "parts of the micro-batches, each run forward and backward "
                   "before the next (default 1); gradients round differently"},
        {"descending", "backwards from the last micro-batch to the first; "
                       "gradients round differently"}};
    return all;
  }
  /// With one, it is gpipe.
  int64_t defaultLoops() const override { return 2; }
  ScheduleOptions example() const override { return {4, 8, 4}; }

  /// With fewer micro-batches than ranks, each loop but the last waits for
  /// the previous loop's first micro-batch to come round.
  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    int64_t loops = options.stages / options.ranks;
    int64_t groups = groupsOf(options);
    int64_t microBatches = options.microBatches / groups;
    int64_t slots = (loops - 1) * std::max(microBatches, options.ranks) +
                    microBatches + options.ranks - 1;
    return groups * slots * (times.forward + times.backward());
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    return options.microBatches / groupsOf(options) * options.stages /
           options.ranks;
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (llvm::Error error = checkLoops(options, 0))
      return error;
    if (llvm::Error error = checkSwitch(*this, options, "descending"))
      return error;
    int64_t groups = groupsOf(options);
    if (groups < 1 || options.microBatches % groups != 0)
      return refuse("breadth-first needs a number of groups that divides the "
                    "micro-batches, but got {0} groups of {1} micro-batches",
                    groups, options.microBatches);
    return loopPlacement(options.stages, options.ranks);
  }

  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    std::vector<Task> order;
    order.reserve(2 * schedule.stages / schedule.ranks * schedule.microBatches +
                  schedule.stages / schedule.ranks);
    for (int32_t group = 0; group < groupsOf(options); ++group)
      appendGroup(order, schedule, options, rank, group);
    return order;
  }

private:
  static int64_t groupsOf(const ScheduleOptions &options) {
    return options.parameter("groups", 1);
  }

  static void appendGroup(std::vector<Task> &order, const Schedule &schedule,
                          const ScheduleOptions &options, int32_t rank,
                          int32_t group) {
    int32_t ranks = schedule.ranks, loops = schedule.stages / schedule.ranks;
    int32_t groups = groupsOf(options), size = schedule.microBatches / groups;
    bool descends = isOn(options, "descending");
    for (int32_t loop = 0; loop < loops; ++loop)
      for (int32_t i = 0; i < size; ++i)
        order.push_back(Task::forward(loop * ranks + rank, i * groups + group));
    for (int32_t loop = loops - 1; loop >= 0; --loop)
      for (int32_t i = 0; i < size; ++i)
        order.push_back(
            Task::backward(loop * ranks + rank,
                           (descends ? size - 1 - i : i) * groups + group));
  }
};

} // namespace

const Policy &pipewright::schedules::breadthFirstPolicy() {
  static const BreadthFirst policy;
  return policy;
}
