//===- DualPipeV.cpp - DualPipe cut in half ---------------------*- C++ -*-===//
//
// Sea AI Lab, "DualPipe could be better without the Dual", 2025, and the
// repository deepseek-ai/DualPipe: one half of DualPipe's ranks, each with the
// two stages that the pair of ranks had, so that one copy of the model is
// enough. The stages go there and back as a V (DualPipe itself: DeepSeek-V3,
// arXiv 2412.19437, section 3.2.1). 2 ranks, 4 micro-batches, cells are
// stage.micro-batch:
//
//   rank 0 | F0.0 F0.1 F0.2 F3.0 I3.0 W3.0 F3.1 F0.3&B3.1-----      F3.2&B0.0-
//   rank 1 |      F1.0 F2.0 F1.1 F2.1 F1.2 B2.0----- F2.2&B1.0----- F1.3&B2.1-
//
//   rank 0 | ---- B3.2-----      F3.3&B0.1----- B3.3----- I0.2 W0.2 I0.3 W0.3
//   rank 1 | ---- F2.3&B1.1----- B2.2----- B1.2-----      I2.3 I1.3 W2.3 W1.3
//
// A pair (`F0.3&B3.1`) is a forward and a backward that have no need of each
// other, so the messages of one can travel while the other computes. Where
// they cannot overlap, a pair is one after the other, and zb-v has a smaller
// bubble with fewer stashes.
//
// Same order as PyTorch's ScheduleDualPipeV, which refuses fewer micro-batches
// than stages as well. JaxPP decides for each backward near the end on its own
// whether to split it; the repository, and this, split all from half-way on.
// The repository gives the bubble as (P-1)(F&B + B - 3W) in times of one stage;
// see DualPipe.cpp.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/Refusal.h"
#include "passes/schedules/policies/TwoWaySteps.h"

using namespace pipewright::schedules;

namespace {

class DualPipeV final : public Policy {
public:
  llvm::StringRef name() const override { return "dualpipev"; }
  llvm::StringRef summary() const override {
    return "dualpipe with one copy of the model, there and back; forwards "
           "overlapped with backwards";
  }
  llvm::StringRef paper() const override {
    return "Sea AI Lab, \"DualPipe could be better without the Dual\", 2025; "
           "DeepSeek-AI, 2024 (arXiv 2412.19437)";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P-1)(tF + max(0, tI-tW)/2), if tI <= tF and a pair takes tF+tB";
  }
  llvm::StringRef memoryFormula() const override {
    return "2P+1 stashes of half a rank's share on every rank";
  }
  ScheduleOptions example() const override { return {2, 4, 4}; }
  int64_t defaultLoops() const override { return 2; }
  bool splitsBackward() const override { return true; }

  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    return 2 * options.microBatches * (times.forward + times.backward()) +
           bubbleOfTwoWaySteps(options.ranks - 1, times);
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    return 2 * options.ranks + 1;
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (llvm::Error error = checkLoops(options, 2))
      return error;
    if (options.microBatches < 2 * options.ranks)
      return refuse("dualpipev needs at least 2P micro-batches, which is {0} "
                    "on {1} rank{2}, but got {3}",
                    2 * options.ranks, options.ranks,
                    options.ranks == 1 ? "" : "s", options.microBatches);
    return veePlacement(options.ranks);
  }

  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    int32_t ranks = schedule.ranks;
    TwoWaySteps steps;
    steps.near = {rank, 0};
    steps.far = {2 * ranks - 1 - rank, 0};
    steps.fromStart = rank;
    steps.toTurn = ranks - 1 - rank;
    steps.microBatches = schedule.microBatches;
    return steps.order();
  }
};

} // namespace

const Policy &pipewright::schedules::dualPipeVPolicy() {
  static const DualPipeV policy;
  return policy;
}
