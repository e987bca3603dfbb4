//===- VeePattern.cpp - One pattern, repeated for each micro-batch -*- C++ -*-//
//
// See VeePattern.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/VeePattern.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

/// Every task of a micro-batch comes once in so many slots: F, I and W of two
/// stages.
constexpr int64_t period = 6;

struct PatternTask {
  TaskKind kind;
  int32_t stage;
  int64_t slot;
};

} // namespace

/// The first slot after `slot` in which none of `tasks` runs, whatever the
/// micro-batches.
static int64_t firstFreeSlot(int64_t slot, llvm::ArrayRef<PatternTask> tasks) {
  auto isTaken = [&](int64_t candidate) {
    return llvm::any_of(tasks, [&](const PatternTask &task) {
      return (candidate - task.slot) % period == 0;
    });
  };
  do
    ++slot;
  while (isTaken(slot));
  return slot;
}

std::optional<double> VeePattern::stepTime(const ScheduleOptions &options,
                                           const UnitTimes &times) const {
  std::optional<int64_t> slots = bubble(options.ranks, options.microBatches);
  if (!slots || times.inputGradient != times.forward ||
      times.weightGradient != times.forward)
    return std::nullopt;
  return (period * options.microBatches + *slots) * times.forward;
}

int64_t VeePattern::maxInFlight(const ScheduleOptions &options,
                                int64_t rank) const {
  return 2 * std::min(maxMicroBatches(options.ranks), options.microBatches);
}

llvm::Expected<Placement>
VeePattern::placeStages(const ScheduleOptions &options) const {
  if (llvm::Error error = checkLoops(options, 2))
    return error;
  return veePlacement(options.ranks);
}

std::vector<Task> VeePattern::orderOfRank(const Schedule &schedule,
                                          const ScheduleOptions &options,
                                          int32_t rank) const {
  int32_t there = rank, back = schedule.stages - 1 - rank;
  Slots slots = slotsOf(rank, schedule.ranks);
  llvm::SmallVector<PatternTask, period> pattern = {
      {TaskKind::Forward, there, slots.forwardThere},
      {TaskKind::Forward, back, slots.forwardBack},
      {TaskKind::InputGradient, back, slots.gradientBack},
      {TaskKind::InputGradient, there, slots.gradientThere}};
  pattern.push_back({TaskKind::WeightGradient, back,
                     firstFreeSlot(slots.gradientBack, pattern)});
  pattern.push_back({TaskKind::WeightGradient, there,
                     firstFreeSlot(slots.gradientThere, pattern)});

  // Slot by slot within a period, each with the micro-batch that it is of by
  // then; before the first and after the last there is none.
  llvm::sort(pattern, [](const PatternTask &a, const PatternTask &b) {
    return a.slot % period < b.slot % period;
  });
  int64_t periods = 0;
  for (const PatternTask &task : pattern)
    periods = std::max(periods, task.slot / period);
  std::vector<Task> order;
  order.reserve(period * schedule.microBatches + 2);
  for (int64_t at = 0; at < periods + schedule.microBatches; ++at)
    for (const PatternTask &task : pattern) {
      int64_t microBatch = at - task.slot / period;
      if (microBatch >= 0 && microBatch < schedule.microBatches)
        order.push_back(
            {task.kind, task.stage, static_cast<int32_t>(microBatch)});
    }
  return order;
}
