//===- ZBV.cpp - No bubble in the memory of 1F1B ----------------*- C++ -*-===//
//
// Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024 (arXiv 2401.10241),
// section 6, "ZB-V": two stages per rank, there and back as a V, so that the
// loss is on rank 0. 2 ranks, 3 micro-batches, cells are stage.micro-batch:
//
//   rank 0 | F0.0 F0.1 F0.2 F3.0 I3.0 W3.0 F3.1 I3.1 W3.1 I0.0
//   rank 1 |      F1.0 F2.0 F1.1 F2.1 I2.0 W2.0 F1.2 I1.0 W1.0
//
//   rank 0 | W0.0 F3.2 I3.2 W3.2 I0.1 W0.1 I0.2 W0.2
//   rank 1 | F2.2 I2.1 W2.1 I1.1 I2.2 I1.2 W1.1 W2.2 W1.2
//
// When F, I and W take the same time, each rank works without a pause between
// its first task and its last: the span has no bubble at all. Ranks start and
// end P-1 tasks apart, which is a bubble wherever a step begins for all at
// once. Every rank keeps P micro-batches of its two stages, as much as 1F1B on
// rank 0; the traffic is twice that of 1F1B.
//
// The order is the one of PyTorch's ScheduleZBVZeroBubble: that of at least
// 2P-1 micro-batches, of which those that do not exist are left out. The
// authors' own program plans anew from measured times; this order is best for
// equal ones.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

/// Appends the tasks of one rank: each kind takes the micro-batches of either
/// stage one after the other.
class VeeOrder {
public:
  VeeOrder(const Schedule &schedule, int32_t rank)
      : microBatches(schedule.microBatches),
        stages{rank, static_cast<int32_t>(schedule.stages) - 1 - rank} {}

  /// `way` is 0 for the stage on the way there, 1 for the one on the way back.
  void add(TaskKind kind, int way) {
    int32_t microBatch = count(kind, way)++;
    if (microBatch < microBatches)
      tasks.push_back({kind, stages[way], microBatch});
  }
  void addBackward(int way) {
    add(TaskKind::InputGradient, way);
    add(TaskKind::WeightGradient, way);
  }
  int32_t &count(TaskKind kind, int way) {
    return counts[way][static_cast<unsigned>(kind)];
  }

  std::vector<Task> tasks;

private:
  int64_t microBatches;
  int32_t stages[2];
  int32_t counts[2][numTaskKinds] = {};
};

class ZBV final : public Policy {
public:
  llvm::StringRef name() const override { return "zb-v"; }
  llvm::StringRef summary() const override {
    return "zero bubble on two stages per rank, there and back; stashes as "
           "1f1b, spread evenly";
  }
  llvm::StringRef paper() const override {
    return "Qi et al., ICLR 2024 (arXiv 2401.10241), section 6";
  }
  llvm::StringRef bubbleFormula() const override {
    return "(P-1)tF/2, span 0, if tF = tI = tW and M >= 2P-1";
  }
  llvm::StringRef memoryFormula() const override {
    return "min(P, M) stashes of each of two stages on every rank";
  }
  ScheduleOptions example() const override { return {2, 4, 3}; }
  int64_t defaultLoops() const override { return 2; }
  bool splitsBackward() const override { return true; }

  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    return slotsTime(options, times, /*least=*/options.ranks - 1);
  }
  std::optional<double> spanTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    return slotsTime(options, times, /*least=*/0);
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    return 2 * std::min(options.ranks, options.microBatches);
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (llvm::Error error = checkLoops(options, 2))
      return error;
    return veePlacement(options.ranks);
  }

  std::vector<Task> orderOfRank(const Schedule &schedule,
                                const ScheduleOptions &options,
                                int32_t rank) const override {
    constexpr TaskKind forward = TaskKind::Forward;
    int32_t ranks = schedule.ranks;
    int64_t full = std::max(2 * schedule.ranks - 1, schedule.microBatches);
    VeeOrder order(schedule, rank);
    for (int32_t i = 0; i < 2 * (ranks - rank) - 1; ++i)
      order.add(forward, 0);
    for (int32_t i = 0; i < rank; ++i) {
      order.add(forward, 1);
      order.add(forward, 0);
    }
    for (int32_t i = 0; i < ranks - rank; ++i) {
      order.add(forward, 1);
      order.addBackward(1);
    }
    while (order.count(forward, 1) < full) {
      if (order.count(forward, 0) < full)
        order.add(forward, 0);
      order.addBackward(0);
      order.add(forward, 1);
      order.addBackward(1);
    }
    for (int32_t i = 0; i < rank; ++i) {
      order.add(TaskKind::InputGradient, 0);
      order.add(TaskKind::InputGradient, 1);
    }
    for (int32_t i = 0; i < ranks - rank; ++i)
      order.addBackward(0);
    for (int way : {1, 0})
      while (order.count(TaskKind::WeightGradient, way) < full)
        order.add(TaskKind::WeightGradient, way);
    return std::move(order.tasks);
  }

private:
  /// The work of a rank and its bubble, at least `least` slots: with few
  /// micro-batches, the first one's way over all stages is longest.
  static std::optional<double> slotsTime(const ScheduleOptions &options,
                                         const UnitTimes &times,
                                         int64_t least) {
    if (times.inputGradient != times.forward ||
        times.weightGradient != times.forward)
      return std::nullopt;
    int64_t bubble = 4 * options.ranks - 2 - 2 * options.microBatches;
    return (6 * options.microBatches + std::max(bubble, least)) * times.forward;
  }
};

} // namespace

const Policy &pipewright::schedules::zbVPolicy() {
  static const ZBV policy;
  return policy;
}
