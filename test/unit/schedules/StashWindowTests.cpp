//===- StashWindowTests.cpp - Which micro-batches keep their stash --------===//

#include "passes/schedules/StashWindow.h"

#include "passes/schedules/Checker.h"
#include "test/unit/schedules/ScheduleTesting.h"

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

/// Every stage alike, tF = tR = 1 and tB = 2; a whole stash is one byte, and
/// what is kept in place of it none.
static TaskCosts costsWith(int64_t stages, StashWindow window) {
  TaskCosts costs = TaskCosts::uniform(stages, 1, 2);
  for (StageCosts &stage : costs.stages) {
    stage.inputGradient = stage.weightGradient = 1;
    stage.recompute = 1;
    stage.recomputesEarly = true;
    stage.window = window;
    stage.stashBytes = 1;
    stage.keptBytes = 0;
  }
  return costs;
}

static Schedule buildWith(llvm::StringRef policy, ScheduleOptions options,
                          const TaskCosts &costs) {
  options.costs = &costs;
  PolicyChoice choice = valueOf(choosePolicy(policy));
  return valueOf(choice->build(choice.with(options)));
}

static int64_t countRecomputes(const Schedule &schedule, int32_t stage) {
  int64_t count = 0;
  for (int32_t m = 0; m < schedule.microBatches; ++m)
    count += schedule.recomputes(stage, m);
  return count;
}

TEST(StashWindow, KeepsTheFirstOrTheLastOfEach) {
  auto kept = [](StashWindow window) {
    std::string text;
    for (int64_t m = 0; m < 8; ++m)
      text += window.keeps(m) ? 'k' : '.';
    return text;
  };
  EXPECT_EQ(kept({2, 4, false}), "kk..kk..");
  EXPECT_EQ(kept({1, 3, false}), "k..k..k.");
  EXPECT_EQ(kept({1, 8, true}), ".......k");
  EXPECT_EQ(kept({1, 4, true}), "...k...k");
  EXPECT_EQ(kept({4, 4, false}), "kkkkkkkk");
  EXPECT_EQ(kept({5, 4, true}), "kkkkkkkk");
  // Not decided yet, and none.
  EXPECT_EQ(kept({2, 0, false}), "........");
  EXPECT_EQ(kept({}), "........");
}

/// 1F1B on 8 ranks, 32 micro-batches: memory is a dial of P steps.
TEST(StashWindow, OneForwardOneBackward) {
  const std::vector<double> overhead = {32, 23, 22, 19, 17, 13, 8, 3, 0};
  const std::vector<int64_t> worst = {1, 2, 3, 4, 5, 6, 7, 8, 8};
  const double plain = (32 + 7) * 3;
  for (int64_t count = 0; count <= 8; ++count) {
    const TaskCosts costs = costsWith(8, {count, 0, false});
    const Schedule schedule = buildWith("1f1b", {8, 8, 32}, costs);
    EXPECT_EQ(messageOf(checkSchedule(schedule, linearEdges(8))), "");
    const Simulation simulation =
        valueOf(simulate(schedule, costs, linearEdges(8)));
    EXPECT_DOUBLE_EQ(simulation.globalStepTime - plain, overhead[count])
        << "window:" << count;
    int64_t most = 0;
    for (auto [rank, summary] : llvm::enumerate(simulation.ranks)) {
      const auto inFlight = static_cast<int64_t>(8 - rank);
      EXPECT_LE(summary.peakStashBytes, std::min(count + 1, inFlight));
      most = std::max(most, summary.peakStashBytes);
    }
    EXPECT_EQ(most, worst[count]) << "window:" << count;
  }
}

TEST(StashWindow, SizesFollowFromTheOrder) {
  const Schedule interleaved = buildSchedule("interleaved", 2, 4, 4);
  const std::vector<int64_t> inFlight = stagesInFlight(interleaved);
  const std::vector<StashWindow> windows =
      sizedWindows(interleaved, costsWith(4, {1, 0, false}));
  for (int32_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(windows[stage], (StashWindow{1, inFlight[stage], false}));
    EXPECT_GE(inFlight[stage], 1);
    EXPECT_LE(inFlight[stage], 4);
  }
  // A stage of one of two copies works on half of the micro-batches.
  const Schedule copies = buildSchedule("chimera", 2, 2, 4);
  for (const StashWindow &window :
       sizedWindows(copies, costsWith(copies.stages, {1, 0, true})))
    EXPECT_EQ(window, (StashWindow{1, 2, true}));
}

/// GPipe: all but the last are computed again.
TEST(StashWindow, AllButTheLast) {
  for (const char *policy : {"gpipe", "gpipe:descending"}) {
    const TaskCosts costs = costsWith(4, {1, 0, true});
    const Schedule schedule = buildWith(policy, {4, 4, 8}, costs);
    for (int32_t stage = 0; stage < 4; ++stage)
      for (int32_t m = 0; m < 8; ++m)
        EXPECT_EQ(schedule.recomputes(stage, m), m != 7);
    const Simulation simulation =
        valueOf(simulate(schedule, costs, linearEdges(4)));
    // Without it the last rank computes 8 of them again.
    const double all =
        valueOf(simulate(buildWith(policy, {4, 4, 8}, costsWith(4, {})),
                         costsWith(4, {}), linearEdges(4)))
            .globalStepTime;
    EXPECT_LT(simulation.globalStepTime, all);
    for (const RankSummary &rank : simulation.ranks)
      EXPECT_LE(rank.peakStashBytes, 2);
  }
}

/// Whatever the schedule: as many as keep theirs, and one more where backwards
/// are whole; the order is proven, and all of them kept is no recomputation.
TEST(StashWindow, EveryPolicy) {
  int64_t compared = 0;
  forEachCase([&](const Policy &policy, const ScheduleOptions &options) {
    if (policy.isChoice() || !policy.trains() || policy.stashLimit(options) ||
        options.microBatches > 8)
      return;
    const int64_t stages = options.stages * policy.copies();
    const auto edges = linearEdges(stages, 0, policy.copies());
    const Schedule plain = valueOf(policy.build(options));
    const std::vector<int64_t> inFlight = stagesInFlight(plain);
    for (int64_t count : {1, 2, 64}) {
      const TaskCosts costs = costsWith(stages, {count, 0, false});
      ScheduleOptions with = options;
      with.costs = &costs;
      const Schedule schedule = valueOf(policy.build(with));
      if (policy.plansWithTimes())
        continue;
      ASSERT_EQ(messageOf(checkSchedule(schedule, edges)), "");
      const Simulation simulation = valueOf(simulate(schedule, costs, edges));
      std::vector<int64_t> most(options.ranks);
      for (int32_t stage = 0; stage < stages; ++stage) {
        most[schedule.rankOfStage[stage]] +=
            std::min(count + 1, inFlight[stage]);
        if (count >= inFlight[stage])
          EXPECT_EQ(countRecomputes(schedule, stage), 0);
        else
          EXPECT_GT(countRecomputes(schedule, stage), 0);
      }
      if (!policy.splitsBackward())
        for (auto [rank, summary] : llvm::enumerate(simulation.ranks))
          EXPECT_LE(summary.peakStashBytes, most[rank])
              << policy.name().str() << " on rank " << rank;
      ++compared;
    }
  });
  EXPECT_GT(compared, 200);
}
