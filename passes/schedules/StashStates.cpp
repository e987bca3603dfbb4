//===- StashStates.cpp - The most that a rank keeps -----------------------===//

#include "passes/schedules/StashStates.h"

using namespace pipewright::schedules;

class StashStates::Walk : public StashWalk<Walk> {
public:
  Walk(const Schedule &schedule, StashStates &states)
      : StashWalk(schedule), places(schedule.stages), states(states),
        counts(states.stages.size() * numStashForms) {
    for (auto [place, stage] : llvm::enumerate(states.stages))
      places[stage] = place;
  }

private:
  friend StashWalk;

  void add(int32_t stage, StashForm form, int32_t count) {
    counts[places[stage] * numStashForms + static_cast<size_t>(form)] += count;
    isNew |= count > 0;
  }
  void notePeak() {
    if (isNew)
      states.note(counts);
    isNew = false;
  }

  std::vector<size_t> places;
  StashStates &states;
  Counts counts;
  /// Whether there is more of something than at the last peak.
  bool isNew = false;
};

StashStates StashStates::of(const Schedule &schedule, int32_t rank) {
  StashStates states;
  for (auto [stage, place] : llvm::enumerate(schedule.rankOfStage))
    if (place == rank)
      states.stages.push_back(static_cast<int32_t>(stage));
  Walk walk(schedule, states);
  const std::vector<Task> &tasks = schedule.order[rank];
  for (size_t position = 0; position < tasks.size(); ++position)
    walk.runAt(tasks, position);
  return states;
}

void StashStates::note(const Counts &counts) {
  auto holds = [](const Counts &all, const Counts &some) {
    return std::equal(all.begin(), all.end(), some.begin(),
                      std::greater_equal<>());
  };
  // Most repeat one of the last ones.
  for (const Counts &state : llvm::reverse(states))
    if (holds(state, counts))
      return;
  llvm::erase_if(states,
                 [&](const Counts &state) { return holds(counts, state); });
  if (states.size() < most)
    states.push_back(counts);
}

int64_t StashStates::peakBytes(llvm::ArrayRef<StageCosts> costs) const {
  int64_t peak = 0;
  for (const Counts &state : states) {
    int64_t bytes = 0;
    for (auto [index, count] : llvm::enumerate(state))
      if (count > 0)
        bytes +=
            count * bytesOf(costs[stages[index / numStashForms] % costs.size()],
                            static_cast<StashForm>(index % numStashForms));
    peak = std::max(peak, bytes);
  }
  return peak;
}
