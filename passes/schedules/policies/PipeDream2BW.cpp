//===- PipeDream2BW.cpp - Batches follow without a pause --------*- C++ -*-===//
//
// Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", ICML
// 2021 (arXiv 2006.09503), section 3.1, "double-buffered weight updates": the
// order of 1F1B over several batches without a flush between them. The update
// of a batch comes after its last backward, when forwards of the next have
// begun; so each batch reads weights that are one update behind, of which two
// versions are enough. A step holds G batches, `pipedream-2bw:batches=2`. 4
// ranks, 8 micro-batches, with updates, not drawn, after B3 and B7:
//
//   rank 0 | F0 F1 F2 F3          B0 F4 B1 F5 B2 F6 B3 F7 B4    B5    B6    B7
//   rank 1 |    F0 F1 F2       B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5    B6    B7
//   rank 2 |       F0 F1    B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6    B7
//   rank 3 |          F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7
//
// What it computes, exactly. Say that W(t) are the weights after t updates,
// counted over all steps, and W(-1) = W(0). The micro-batches of the batch with
// number t read W(t-1), forward and backward, and with the mean gradient g(t)
// of its M/G micro-batches,
//
//   W(t+1) = update(W(t), g(t)).
//
// Both versions live on from a step of the program to the next, so that where
// steps begin makes no difference to the result. The pipeline drains at the end
// of each step, though, which the paper's never does: the more batches in a
// step, the smaller the bubble. The paper's planner also chooses replicas and
// recomputation, which is not a matter of the order.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Refusal.h"
#include "passes/schedules/policies/NoFlush.h"
#include "passes/schedules/policies/OneStagePerRank.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class PipeDream2BW final : public OneStagePerRank {
public:
  llvm::StringRef name() const override { return "pipedream-2bw"; }
  llvm::StringRef summary() const override {
    return "1f1b over several batches without a flush; weights one update "
           "behind";
  }
  llvm::StringRef paper() const override {
    return "Narayanan et al., ICML 2021 (arXiv 2006.09503), section 3.1";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P-1)(tF+tB) once per step of G updates";
  }
  llvm::StringRef memoryFormula() const override {
    return "P-r stashes and two versions of the weights on rank r";
  }
  llvm::ArrayRef<PolicyParameter> parameters() const override {
    static constexpr PolicyParameter all[] = {
        {"batches", "batches, and so updates, in one step (default 2)"}};
    return all;
  }
  ScheduleOptions example() const override { return {4, 4, 8}; }
  WeightRule weightRule() const override { return WeightRule::DelayedByOne; }
  int64_t updates(const ScheduleOptions &options) const override {
    return options.parameter("batches", 2);
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    return options.ranks == 1 ? options.stages : options.ranks - rank;
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    int64_t batches = updates(options);
    if (batches < 1)
      return refuse("pipedream-2bw needs at least 1 batch in a step, but got "
                    "batches={0}",
                    batches);
    if (options.microBatches % batches != 0 ||
        options.microBatches / batches < options.ranks)
      return refuse("pipedream-2bw needs as many micro-batches in each of its "
                    "{0} batch{1}, at least P, but got {2} micro-batch{3} on "
                    "{4} rank{5}; use a multiple of {0} from {6} on, or "
                    "pipedream-2bw:batches=N",
                    batches, batches == 1 ? "" : "es", options.microBatches,
                    options.microBatches == 1 ? "" : "es", options.ranks,
                    options.ranks == 1 ? "" : "s", batches * options.ranks);
    return placeOneStagePerRank(options);
  }

  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    return orderWithoutFlush(schedule, rank);
  }
};

} // namespace

const Policy &pipewright::schedules::pipeDream2BWPolicy() {
  static const PipeDream2BW policy;
  return policy;
}
