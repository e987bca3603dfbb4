//===- StepBoundTests.cpp - Bounds against steps that are simulated -------===//

#include "passes/schedules/StepBounds.h"

#include "test/unit/schedules/ScheduleTesting.h"

#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

TEST(StepBounds, NoScheduleIsShorter) {
  std::mt19937 random(7);
  auto upTo = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(1, most)(random);
  };
  std::uniform_real_distribution<double> seconds(0.01, 3);
  int64_t compared = 0, equal = 0, close = 0;
  for (int round = 0; round < 300; ++round) {
    const int64_t ranks = upTo(6), stages = ranks * upTo(3),
                  microBatches = upTo(12);
    TaskCosts costs = TaskCosts::uniform(stages);
    for (StageCosts &stage : costs.stages) {
      stage.forward = seconds(random);
      stage.inputGradient = seconds(random);
      stage.weightGradient = seconds(random);
      stage.backward = stage.inputGradient + stage.weightGradient;
      stage.stashBytes = upTo(1000);
      stage.weightStashBytes = upTo(1000);
    }
    const std::vector<StageEdge> edges = linearEdges(stages);
    ScheduleOptions options = {ranks, stages, microBatches};
    options.costs = &costs;
    options.edges = edges;
    for (const Policy *policy : allPolicies()) {
      if (policy->isChoice() || policy->copies() != 1 || !policy->trains() ||
          policy->weightRule() != WeightRule::Synchronous ||
          policy->updates(options) != 1)
        continue;
      llvm::Expected<Schedule> schedule = policy->build(options);
      if (!schedule) {
        llvm::consumeError(schedule.takeError());
        continue;
      }
      const Simulation simulation = valueOf(simulate(*schedule, costs, edges));
      const double step = simulation.globalStepTime;
      const BackwardForm form =
          policy->splitsBackward() ? BackwardForm::Halves : BackwardForm::Whole;
      const double least = leastStep(schedule->rankOfStage, ranks, microBatches,
                                     costs, edges, form);
      EXPECT_LE(least, step * (1 + 1e-9))
          << policy->name().str() << " on " << ranks << " ranks, " << stages
          << " stages, " << microBatches << " micro-batches";
      ++compared;
      equal += least > step * (1 - 1e-9);
      if (policy->stashLimit(options))
        continue;
      std::vector<double> bytes;
      for (const RankSummary &rank : simulation.ranks)
        bytes.push_back(static_cast<double>(rank.peakStashBytes));
      const double within = leastStepWithin(bytes, schedule->rankOfStage,
                                            microBatches, costs, edges, form);
      EXPECT_LE(within, step * (1 + 1e-9)) << policy->name().str();
      close += within > step * 0.8;
    }
  }
  EXPECT_GT(compared, 1000);
  // One rank does all, one behind the other, and there are others.
  EXPECT_GT(equal, compared / 20);
  EXPECT_GT(close, compared / 20);

  // 1F1B with stages alike has no other idle time.
  const TaskCosts alike = TaskCosts::uniform(4, 1, 2);
  const Schedule schedule = buildSchedule("1f1b", 4, 4, 8);
  EXPECT_DOUBLE_EQ((8 + 3) * 3, leastStep(schedule.rankOfStage, 4, 8, alike, {},
                                          BackwardForm::Whole));
  // A split one may do W at the end: (8 + 3) forwards and 8 of the others.
  EXPECT_DOUBLE_EQ(8 * 3 + 3, leastStep(schedule.rankOfStage, 4, 8, alike, {},
                                        BackwardForm::Halves));

  // A micro-batch is 12 seconds on its way, with room for four or two at a
  // time.
  TaskCosts kept = alike;
  for (StageCosts &stage : kept.stages)
    stage.stashBytes = 10;
  auto within = [&](double bytes) {
    return leastStepWithin(std::vector<double>(4, bytes), schedule.rankOfStage,
                           8, kept, {}, BackwardForm::Whole);
  };
  // The room is full 3 seconds after the first forward begins, and 6 before
  // the last backward ends.
  EXPECT_DOUBLE_EQ((8 * 12 * 10 + 30 * 3 / 2 + 30 * 6 / 2) / 40.0, within(40));
  EXPECT_DOUBLE_EQ((8 * 12 * 10 + 10 * 1 / 2 + 10 * 2 / 2) / 20.0, within(20));
  EXPECT_DOUBLE_EQ(0, within(-1));
}

/// Two towers and what joins them: neither waits for the other.
TEST(StepBounds, StagesThatDoNotWait) {
  const std::vector<StageEdge> edges = {{0, 2}, {1, 2}};
  const std::vector<int32_t> ranks = {0, 1, 2};
  const TaskCosts alike = TaskCosts::uniform(3, 1, 2);
  // The last rank begins behind a forward, and a backward follows it; in a
  // chain there are two of each.
  EXPECT_DOUBLE_EQ(4 * 3 + 1 + 2,
                   leastStep(ranks, 3, 4, alike, edges, BackwardForm::Whole));
  EXPECT_DOUBLE_EQ(4 * 3 + 2 + 4,
                   leastStep(ranks, 3, 4, alike, {}, BackwardForm::Whole));
  TaskCosts kept = alike;
  kept.stages[0].stashBytes = 10;
  const std::vector<double> room(3, 10);
  EXPECT_DOUBLE_EQ(
      4 * 6, leastStepWithin(room, ranks, 4, kept, edges, BackwardForm::Whole));
  EXPECT_DOUBLE_EQ(
      4 * 9, leastStepWithin(room, ranks, 4, kept, {}, BackwardForm::Whole));
  // Edges that are none say nothing.
  const std::vector<StageEdge> wrong = {{2, 1}};
  EXPECT_EQ(leastStep(ranks, 3, 4, alike, wrong, BackwardForm::Whole), 0);
  EXPECT_EQ(leastStepWithin(room, ranks, 4, kept, wrong, BackwardForm::Whole),
            0);
}
