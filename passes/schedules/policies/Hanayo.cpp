//===- Hanayo.cpp - Waves over the ranks ------------------------*- C++ -*-===//
//
// Liu et al., "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced
// Large Model Training Efficiency", SC 2023 (arXiv 2308.15762): 2W stages on
// each rank, placed there and back, W times, so that a micro-batch runs over
// the ranks in waves and turns round without a transfer. 2 ranks, 1 wave, 2
// micro-batches, cells are stage.micro-batch:
//
//   rank 0 | F0.0 F0.1      F3.0 B3.0 F3.1 B3.1 B0.0      B0.1
//   rank 1 |      F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1
//
// The paper gives lists of actions for M = P; here they come out of the list
// scheduler for any M: backward first, then the deepest forward, stashes of at
// most P micro-batches. At M = P its bubble is smaller than the paper's, but
// for W = 4 as large or 1 % larger. Planned for tB = 2tF and links that take
// no time, whatever the real costs are: `auto` plans with those.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/ListScheduler.h"
#include "passes/schedules/Refusal.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

class Hanayo final : public Policy {
public:
  llvm::StringRef name() const override { return "hanayo"; }
  llvm::StringRef summary() const override {
    return "waves: stages there and back over the ranks, several times; small "
           "bubble for few micro-batches";
  }
  llvm::StringRef paper() const override {
    return "Liu et al., SC 2023 (arXiv 2308.15762)";
  }
  llvm::StringRef bubbleFormula() const override {
    return "of the step, about (2P-2)/(3PW+P-1) with W = v/2 waves, if M = P "
           "and tB = 2tF";
  }
  llvm::StringRef memoryFormula() const override {
    return "min(P, M) stashes of every stage, times v on every rank";
  }
  ScheduleOptions example() const override { return {2, 4, 2}; }
  int64_t defaultLoops() const override { return 2; }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    return std::min(options.ranks, options.microBatches) * options.stages /
           options.ranks;
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (llvm::Error error = checkLoops(options, 0))
      return error;
    if (int64_t loops = options.stages / options.ranks; loops % 2 != 0)
      return refuse("hanayo needs an even number of stages per rank, but got "
                    "{0}; use --loops {1}",
                    loops, loops + 1);
    return zigzagPlacement(options.stages, options.ranks);
  }

  llvm::Error orderRanks(Schedule &schedule,
                         const ScheduleOptions &options) const override {
    TaskCosts costs = TaskCosts::uniform(schedule.stages, 1, 2);
    ListOptions list;
    list.costs = &costs;
    list.priority = preferBackward();
    for (int64_t rank = 0; rank < options.ranks; ++rank)
      list.limits.push_back({maxInFlight(options, rank)});
    return orderByList(schedule, list);
  }
};

} // namespace

const Policy &pipewright::schedules::hanayoPolicy() {
  static const Hanayo policy;
  return policy;
}
