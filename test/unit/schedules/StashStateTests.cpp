//===- StashStateTests.cpp - The most that a rank keeps -------------------===//

#include "passes/schedules/StashStates.h"

#include "test/unit/schedules/ScheduleTesting.h"

#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

/// Stages of any sizes; W needs less than the whole stash, or more.
static TaskCosts drawCosts(int64_t stages, bool recomputes,
                           std::mt19937 &random) {
  TaskCosts costs = TaskCosts::uniform(stages, 1, 2);
  for (StageCosts &stage : costs.stages) {
    stage.stashBytes = random() % 100 + 20;
    stage.weightStashBytes = random() % 120;
    stage.recomputesEarly = recomputes && random() % 3 > 0;
    if (stage.recomputesEarly)
      stage.keptBytes = random() % 20;
    stage.window = {static_cast<int64_t>(random() % 2), 0, random() % 2 == 0};
  }
  return costs;
}

/// What simulations find, by rank.
static std::vector<int64_t> simulatedPeaks(const Schedule &schedule,
                                           const TaskCosts &costs) {
  std::vector<int64_t> peaks;
  for (const RankSummary &rank :
       valueOf(simulate(schedule, costs,
                        linearEdges(schedule.stages, 0, schedule.copies)))
           .ranks)
    peaks.push_back(rank.peakStashBytes);
  return peaks;
}

TEST(StashStates, HaveTheBytesOfEverySimulation) {
  std::mt19937 random(11);
  int64_t compared = 0;
  forEachCase([&](const Policy &policy, const ScheduleOptions &options) {
    if (policy.plansWithTimes() || policy.stashLimit(options) ||
        options.microBatches > 9)
      return;
    const int64_t stages = options.stages * policy.copies();
    for (bool recomputes : {false, policy.trains()}) {
      TaskCosts costs = drawCosts(stages, recomputes, random);
      ScheduleOptions with = options;
      with.costs = &costs;
      const Schedule schedule = valueOf(policy.build(with));
      std::vector<StashStates> ranks;
      for (int32_t rank = 0; rank < schedule.ranks; ++rank)
        ranks.push_back(StashStates::of(schedule, rank));
      // The same states have other sizes.
      for (int trial = 0; trial < 3; ++trial) {
        std::vector<int64_t> peaks;
        for (const StashStates &rank : ranks)
          peaks.push_back(rank.peakBytes(costs.stages));
        ASSERT_EQ(peaks, simulatedPeaks(schedule, costs));
        for (StageCosts &stage : costs.stages)
          stage.stashBytes = random() % 100 + 20;
        ++compared;
      }
    }
  });
  EXPECT_GT(compared, 1000);
}

TEST(StashStates, OneOfTwoCopiesSaysTheSizesOfBoth) {
  const Schedule schedule = buildSchedule("chimera", 4, 4, 8);
  TaskCosts costs = TaskCosts::uniform(4);
  for (auto [stage, cost] : llvm::enumerate(costs.stages))
    cost.stashBytes = static_cast<int64_t>(1 + stage);
  TaskCosts both = costs;
  llvm::append_range(both.stages, costs.stages);
  const std::vector<int64_t> peaks = simulatedPeaks(schedule, both);
  for (int32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(StashStates::of(schedule, rank).peakBytes(costs.stages),
              peaks[rank]);
}

/// All I before all W: each state has one whole stash less and one part more.
TEST(StashStates, AreABoundWhereThereAreMany) {
  Schedule schedule = buildSchedule("gpipe", 1, 1, 200);
  std::vector<Task> &order = schedule.order.front();
  std::vector<Task> weights;
  llvm::erase_if(
      order, [](const Task &task) { return task.kind == TaskKind::Update; });
  for (Task &task : order)
    if (task.kind == TaskKind::Backward) {
      weights.push_back(Task::weightGradient(0, task.microBatch));
      task = Task::inputGradient(0, task.microBatch);
    }
  llvm::append_range(order, weights);
  const StashStates states = StashStates::of(schedule, 0);
  TaskCosts costs = TaskCosts::uniform(1);
  costs.stages[0].stashBytes = 3;
  costs.stages[0].weightStashBytes = 1;
  EXPECT_EQ(states.peakBytes(costs.stages), 600);
  costs.stages[0].weightStashBytes = 4;
  EXPECT_GT(states.peakBytes(costs.stages), 600);
  EXPECT_LT(states.peakBytes(costs.stages), 800);
}
