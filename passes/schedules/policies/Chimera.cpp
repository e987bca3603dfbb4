//===- Chimera.cpp - Two copies that fill each other's holes ----*- C++ -*-===//
//
// Li and Hoefler, "Chimera: Efficiently Training Large-Scale Neural Networks
// with Bidirectional Pipelines", SC 2021 (arXiv 2107.06925), section 3. Rank r
// has stage r of one copy of the model and stage P-1-r of another. A unit is P
// micro-batches, half of them down and half up; in slots as long as a forward
// and as a backward, the tasks of one direction fall into the holes of the
// other. 4 ranks, 4 micro-batches, cells are stage.micro-batch; stages of the
// second copy are numbered from P on:
//
//   rank 0 | F0.0 F0.1      F7.2 B7.2 F7.3 B7.3 B0.0      B0.1
//   rank 1 |      F1.0 F6.2 F1.1 F6.3 B6.2 B1.0 B6.3 B1.1
//   rank 2 |      F5.2 F2.0 F5.3 F2.1 B2.0 B5.2 B2.1 B5.3
//   rank 3 | F4.2 F4.3      F3.0 B3.0 F3.1 B3.1 B4.2      B4.3
//
// More micro-batches are more units, each begun 2P slots after the one before,
// which is the paper's "direct concatenation" and fits without a hole where F
// and B take the same time. Where B takes longer, each unit pays again: then
// zero-bubble schedules do better from two units on. The paper's "forward
// doubling" and "backward halving", which run two micro-batches as one or one
// as two, are not here; nor are more than two copies. Gradients of the two
// copies are summed before the update.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/Refusal.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class Chimera final : public Policy {
public:
  llvm::StringRef name() const override { return "chimera"; }
  llvm::StringRef summary() const override {
    return "two copies of the model in opposite directions; half the bubble "
           "of 1f1b for one unit of P micro-batches";
  }
  llvm::StringRef paper() const override {
    return "Li and Hoefler, SC 2021 (arXiv 2107.06925), section 3";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P-2)(u max(tF, tB) - (u-1) min(tF, tB)) with u = M/P units";
  }
  llvm::StringRef memoryFormula() const override {
    return "P/2+1+min(r, P-1-r) stashes on rank r; two copies of the weights";
  }
  int64_t copies() const override { return 2; }

  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    int64_t units = options.microBatches / options.ranks;
    auto [shorter, longer] = std::minmax(times.forward, times.backward());
    return options.microBatches * (times.forward + times.backward()) +
           (options.ranks - 2) * (units * longer - (units - 1) * shorter);
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    return options.ranks / 2 + 1 + std::min(rank, options.ranks - 1 - rank);
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (llvm::Error error = checkLoops(options, 1))
      return error;
    if (options.ranks % 2 != 0)
      return refuse("chimera needs an even number of ranks, but got {0}",
                    options.ranks);
    if (options.microBatches % options.ranks != 0)
      return refuse("chimera needs a multiple of P micro-batches, which is {0} "
                    "ranks, but got {1}",
                    options.ranks, options.microBatches);
    return mirrorPlacement(options.ranks);
  }

  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    int32_t ranks = schedule.ranks, half = schedule.microBatches / 2;
    std::vector<std::pair<int64_t, Task>> slots;
    slots.reserve(2 * schedule.microBatches);
    for (int32_t copy : {0, 1}) {
      int32_t depth = copy == 0 ? rank : ranks - 1 - rank;
      int32_t stage = copy * ranks + depth;
      for (int32_t i = 0; i < half; ++i) {
        // Within a unit, a micro-batch of this copy starts every second slot.
        int32_t unit = i / (ranks / 2), inUnit = i % (ranks / 2);
        int64_t start = 2 * int64_t(ranks) * unit + 2 * inUnit;
        int32_t microBatch = copy * half + i;
        slots.emplace_back(start + depth, Task::forward(stage, microBatch));
        slots.emplace_back(start + 2 * ranks - 1 - depth,
                           Task::backward(stage, microBatch));
      }
    }
    // No two tasks of a rank have the same slot.
    llvm::sort(slots, llvm::less_first());
    std::vector<Task> order;
    order.reserve(slots.size() + 2);
    for (const auto &[slot, task] : slots)
      order.push_back(task);
    return order;
  }
};

} // namespace

const Policy &pipewright::schedules::chimeraPolicy() {
  static const Chimera policy;
  return policy;
}
