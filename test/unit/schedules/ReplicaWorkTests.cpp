//===- ReplicaWorkTests.cpp - What replicas do together ---------*- C++ -*-===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/Figures.h"
#include "passes/schedules/ReplicaWorks.h"
#include "passes/schedules/SharedRanges.h"
#include "passes/schedules/WorkOrder.h"

#include <algorithm>
#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

Figures figuresOf(Schedule schedule, const Sharding &sharding) {
  TaskCosts costs = TaskCosts::uniform(schedule.stages, 1, 2);
  EXPECT_EQ(messageOf(setExchangeTime(costs, schedule, sharding)), "");
  std::vector<Work> works = cantFail(addReplicaWorks(schedule, sharding));
  Simulation simulation =
      cantFail(simulateWithMoves(schedule, costs, {}, works));
  return Figures::of(schedule, simulation);
}

TEST(ReplicaWorks, BreadthFirstGathersAsTheFormulaSays) {
  // 2v - k gathers and v sums.
  for (int64_t ranks : {2, 4, 8})
    for (int64_t loops : {3, 4, 6, 8})
      for (int64_t ranges : {2, 3, 4}) {
        if (ranges >= loops)
          continue;
        SCOPED_TRACE(std::to_string(ranks) + " " + std::to_string(loops) + " " +
                     std::to_string(ranges));
        Figures figures = figuresOf(
            buildSchedule("breadth-first", ranks, ranks * loops, 4 * ranks),
            {.replicas = 16, .level = 3, .ranges = ranges});
        EXPECT_EQ(figures.gathers, 2 * loops - ranges);
        EXPECT_EQ(figures.sums, loops);
      }
}

TEST(ReplicaWorks, InterleavedGathersAsTheBestReplacement) {
  // 2(v - k)M/N + k.
  for (int64_t ranks : {2, 4, 8})
    for (int64_t loops : {3, 4, 6})
      for (int64_t ranges : {2, 3, 4})
        for (int64_t rounds : {1, 2, 4}) {
          if (ranges >= loops)
            continue;
          Figures figures =
              figuresOf(buildSchedule("interleaved", ranks, ranks * loops,
                                      rounds * ranks),
                        {.replicas = 16, .level = 3, .ranges = ranges});
          EXPECT_EQ(figures.gathers, 2 * (loops - ranges) * rounds + ranges);
        }
}

TEST(ReplicaWorks, AnExchangeTakesWhatIsSaid) {
  // Nothing is left to run beside the last sum and the last gather.
  for (int64_t replicas : {2, 3, 8}) {
    Schedule schedule = buildSchedule("gpipe", 4, 4, 4);
    EXPECT_EQ(figuresOf(schedule, {.replicas = replicas}).exposed, 0);
    for (int64_t level : {0, 1, 2, 3})
      EXPECT_NEAR(figuresOf(schedule, {.replicas = replicas,
                                       .level = level,
                                       .exchangeSeconds = 1.5})
                      .exposed,
                  3, 1e-9);
    // A stage is half of what a rank has.
    EXPECT_NEAR(figuresOf(buildSchedule("breadth-first", 4, 8, 4),
                          {.replicas = replicas, .exchangeSeconds = 1.5})
                    .exposed,
                1.5, 1e-9);
  }
}

TEST(ReplicaWorks, AllSchedulesAreProven) {
  int64_t proven = 0;
  for (const Policy *policy : allPolicies())
    for (int64_t level : {0, 1, 2, 3})
      for (int64_t replicas : {2, 3, 16}) {
        SCOPED_TRACE(policy->name().str() + " " + std::to_string(level));
        llvm::Expected<Schedule> built = policy->build(policy->example());
        // Other tests have policies that fail.
        if (!built) {
          llvm::consumeError(built.takeError());
          continue;
        }
        Schedule schedule = std::move(*built);
        llvm::Expected<std::vector<Work>> works =
            addReplicaWorks(schedule, {.replicas = replicas, .level = level});
        if (!works) {
          llvm::consumeError(works.takeError());
          EXPECT_TRUE(schedule.copies > 1 || schedule.forwardOnly ||
                      schedule.weightRule != WeightRule::Synchronous);
          continue;
        }
        ASSERT_EQ(messageOf(checkSchedule(schedule)), "");
        OrderedWork ordered = cantFail(orderWork(
            schedule, TaskCosts::uniform(schedule.stages), {}, *works));
        Channels channels;
        channels.groups = ordered.groups;
        EXPECT_EQ(messageOf(checkInstructions(
                      ordered.lists,
                      [](const Transfer &) { return std::string("message"); },
                      channels)),
                  "");
        // The last sum of each stage begins behind all that adds to it, and
        // is over before its update.
        for (const std::vector<Task> &tasks : schedule.order)
          for (size_t update = 0; update < tasks.size(); ++update) {
            if (tasks[update].kind != TaskKind::Update)
              continue;
            const int32_t stage = tasks[update].stage;
            int64_t added = 0;
            for (size_t i = 0; i < update; ++i)
              if (tasks[i].stage == stage && tasks[i].endsStash())
                added = static_cast<int64_t>(i) + 1;
            EXPECT_TRUE(llvm::any_of(*works, [&](const Work &work) {
              return work.name == "gradients of s" + std::to_string(stage) &&
                     work.members[0].posted >= added &&
                     work.members[0].waited <= static_cast<int64_t>(update);
            }));
          }
        ++proven;
      }
  EXPECT_GE(proven, 150);
}

TEST(ReplicaWorks, NewWeightsArePutTogetherInTheNextStep) {
  EXPECT_EQ(stagesReadLater({2, -1, 0, 2, 1, 0}), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(stagesReadLater({-1, 1}), (std::vector<int32_t>{1}));
  EXPECT_TRUE(stagesReadLater({}).empty());
  // Of two stages on a rank; that of the first one stands behind its update.
  Schedule schedule = buildSchedule("interleaved", 2, 4, 4);
  std::vector<Work> works =
      cantFail(addReplicaWorks(schedule, {.replicas = 2, .level = 1}));
  for (int32_t stage : {0, 2}) {
    auto gather = llvm::find_if(works, [&](const Work &work) {
      return work.name == "weights of s" + std::to_string(stage);
    });
    ASSERT_NE(gather, works.end());
    const Work::Member &member = gather->members[0];
    const auto &tasks = schedule.order[0];
    if (stage == 2) {
      EXPECT_EQ(member.posted, 0);
      EXPECT_EQ(tasks[member.waited], Task::forward(2, 0));
    } else {
      EXPECT_EQ(tasks[member.posted - 1], Task::update(0));
    }
  }
}

TEST(SharedRanges, TurnsEndWhereAnotherStageBegins) {
  const std::vector<int32_t> users = {0, 0, 2, -1, 1, 0, 2};
  std::vector<RangeTurn> turns =
      turnsOf(users, rangesOf(users, {{0, 0}, {1, 1}, {2, 0}}));
  ASSERT_EQ(turns.size(), 5u);
  EXPECT_EQ(turns[0].tasks, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(turns[0].next, 2);
  EXPECT_TRUE(turns[0].comesBack);
  EXPECT_EQ(turns[1].stage, 2);
  EXPECT_EQ(turns[1].freed, 2);
  EXPECT_EQ(turns[2].stage, 1);
  EXPECT_EQ(turns[2].next, -1);
  EXPECT_EQ(turns[4].freed, 6);
  EXPECT_FALSE(turns[4].comesBack);
}

TEST(SharedRanges, SavingMemoryComesFirst) {
  const std::vector<int32_t> users = {0, 1, 2, 2, 1, 0};
  const BytesOfStage alike = {{0, 12}, {1, 12}, {2, 12}};
  // Two ranges of 12 and parts of 36 / D against 36.
  EXPECT_EQ(chooseWeightRanges(users, alike, 4, 2, true),
            WeightRanges(RangeOfStage{{0, 0}, {1, 1}, {2, 0}}));
  // With two replicas one range alone is less.
  EXPECT_EQ(chooseWeightRanges(users, alike, 2, 2, true),
            WeightRanges(RangeOfStage{{0, 0}, {1, 0}, {2, 0}}));
  // No way is, or all stages have their own.
  EXPECT_TRUE(
      chooseWeightRanges(users, {{0, 30}, {1, 3}, {2, 3}}, 2, 2, true).empty());
  EXPECT_TRUE(
      chooseWeightRanges(users, alike, 4, int64_t(1) << 62, true).empty());
}

TEST(SharedRanges, StagesMoveWhereThatGathersLess) {
  // Two of them share a range, which is loaded each time that one is read.
  const std::vector<int32_t> users = {0, 1, 2, 0, -1, 1, 2};
  const BytesOfStage alike = {{0, 12}, {1, 12}, {2, 12}};
  const WeightRanges fixed = chooseWeightRanges(users, alike, 4, 2, false);
  EXPECT_FALSE(fixed.areAny());
  const WeightRanges any = chooseWeightRanges(users, alike, 4, 2, true);
  ASSERT_TRUE(any.areAny());
  EXPECT_EQ(any.of(users), (std::vector<int64_t>{0, 1, 1, 0, -1, 0, 1}));
  EXPECT_EQ(turnsOf(users, any.of(users)).size(), 4u);
  EXPECT_EQ(turnsOf(users, fixed.of(users)).size(), 5u);
}

TEST(SharedRanges, ALargeStageTakesNoMoreRoom) {
  const std::vector<int32_t> users = {0, 1, 2, 3, 1, 0, 2, 3, 1};
  const WeightRanges any({{0, 30}, {1, 12}, {2, 12}, {3, 12}}, {12, 30});
  EXPECT_EQ(any.of(users), (std::vector<int64_t>{1, 0, 1, 1, 0, 1, 1, 1, 0}));
}

/// The fewest turns of all ways to choose a range for each user.
static size_t fewestTurns(llvm::ArrayRef<int32_t> users, int64_t count) {
  size_t fewest = users.size();
  int64_t ways = 1;
  for (size_t i = 0; i < users.size(); ++i)
    ways *= count;
  for (int64_t way = 0; way < ways; ++way) {
    std::vector<int64_t> ranges;
    for (int64_t rest = way; ranges.size() < users.size(); rest /= count)
      ranges.push_back(rest % count);
    fewest = std::min(fewest, turnsOf(users, ranges).size());
  }
  return fewest;
}

TEST(SharedRanges, NoWayHasFewerTurns) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto stages = static_cast<int32_t>(3 + random() % 3);
    const auto count = static_cast<int64_t>(2 + random() % 2);
    const std::vector<int64_t> room(count, 64);
    std::vector<int32_t> users;
    BytesOfStage alike;
    for (int32_t stage = 0; stage < stages; ++stage)
      alike[stage] = 64;
    for (int position = 0; position < 9; ++position)
      users.push_back(static_cast<int32_t>(random() % stages));
    EXPECT_EQ(turnsOf(users, WeightRanges(alike, room).of(users)).size(),
              fewestTurns(users, count));
  }
}

} // namespace
