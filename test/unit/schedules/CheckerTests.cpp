//===- CheckerTests.cpp - Broken schedules are refused ----------*- C++ -*-===//
//
// Hand-made broken schedules, each with the whole message that it gets.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

/// What the checker says of a good schedule after `change` broke it.
template <typename Change>
static std::string refusalOf(Schedule schedule, Change change) {
  EXPECT_EQ("", messageOf(checkSchedule(schedule)));
  change(schedule);
  return messageOf(checkSchedule(schedule));
}

static Schedule twoByTwo() { return buildSchedule("1f1b", 2, 2, 2); }

static const Task inputGradient = {TaskKind::InputGradient, 1, 0};
static const Task weightGradient = {TaskKind::WeightGradient, 1, 0};

TEST(CheckSchedule, MissingForward) {
  EXPECT_EQ("rank 1 never runs F1.0", refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[1].erase(s.order[1].begin());
            }));
}

TEST(CheckSchedule, MissingBackward) {
  EXPECT_EQ("rank 1 never runs B1.0", refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[1].erase(s.order[1].begin() + 1);
            }));
}

TEST(CheckSchedule, MissingUpdate) {
  EXPECT_EQ("rank 0 never runs U0",
            refusalOf(twoByTwo(), [](Schedule &s) { s.order[0].pop_back(); }));
}

TEST(CheckSchedule, MissingWeightGradient) {
  EXPECT_EQ("rank 1 never runs W1.0", refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[1][1] = inputGradient;
            }));
}

TEST(CheckSchedule, MissingInputGradient) {
  EXPECT_EQ("rank 1 never runs I1.0", refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[1][1] = weightGradient;
            }));
}

TEST(CheckSchedule, WholeAndSplitBackward) {
  EXPECT_EQ("rank 1 runs both B1.0 and W1.0, which is part of it",
            refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[1].insert(s.order[1].begin() + 2, weightGradient);
            }));
}

TEST(CheckSchedule, TaskTwice) {
  EXPECT_EQ("rank 0 runs F0.1 twice", refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[0].push_back(Task::forward(0, 1));
            }));
}

TEST(CheckSchedule, TaskOnAnotherRank) {
  EXPECT_EQ("rank 1 runs F0.1, but stage 0 is on rank 0",
            refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[1][0] = Task::forward(0, 1);
            }));
}

TEST(CheckSchedule, TaskOutOfRange) {
  const char *message = "but there are 2 stages and 2 micro-batches";
  EXPECT_EQ(std::string("rank 0 runs F0.2, ") + message,
            refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[0][0] = Task::forward(0, 2);
            }));
  EXPECT_EQ(std::string("rank 0 runs B-1.0, ") + message,
            refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[0][0] = Task::backward(-1, 0);
            }));
  EXPECT_EQ(std::string("rank 0 runs ?0.0, ") + message,
            refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[0][0] = {static_cast<TaskKind>(9), 0, 0};
            }));
}

TEST(CheckSchedule, UpdateTooMany) {
  EXPECT_EQ("rank 0 runs U0.1, but each stage has 1 update in a step",
            refusalOf(twoByTwo(),
                      [](Schedule &s) { s.order[0].back().microBatch = 1; }));
}

TEST(CheckSchedule, WrongCounts) {
  EXPECT_EQ("a schedule needs at least 1 rank, 1 stage and 1 micro-batch, but "
            "got 2, 2 and 0",
            refusalOf(twoByTwo(), [](Schedule &s) { s.microBatches = 0; }));
  EXPECT_EQ("2 stages and 4000000000000 micro-batches make a schedule too "
            "large to check",
            refusalOf(twoByTwo(),
                      [](Schedule &s) { s.microBatches = 4000000000000; }));
  EXPECT_EQ("expects a rank for each of 2 stages, but got 1",
            refusalOf(twoByTwo(), [](Schedule &s) { s.rankOfStage = {0}; }));
  EXPECT_EQ("expects an order for each of 2 ranks, but got 1",
            refusalOf(twoByTwo(), [](Schedule &s) { s.order.pop_back(); }));
  EXPECT_EQ("stage 1 is on rank 2, but there are 2 ranks",
            refusalOf(twoByTwo(), [](Schedule &s) { s.rankOfStage[1] = 2; }));
}

TEST(CheckSchedule, WrongEdges) {
  for (StageEdge edge :
       {StageEdge{1, 0, 4}, StageEdge{1, 1, 4}, StageEdge{0, 2, 4},
        StageEdge{-1, 1, 4}, StageEdge{0, 1, -4}})
    EXPECT_NE("", messageOf(checkSchedule(twoByTwo(), edge)));
}

TEST(CheckSchedule, BackwardBeforeForward) {
  EXPECT_EQ("rank 1 runs B1.0 before F1.0, which it needs",
            refusalOf(twoByTwo(), [](Schedule &s) {
              std::swap(s.order[1][0], s.order[1][1]);
            }));
}

TEST(CheckSchedule, WeightGradientBeforeInputGradient) {
  EXPECT_EQ("rank 1 runs W1.0 before I1.0, which it needs",
            refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[1][1] = inputGradient;
              s.order[1].insert(s.order[1].begin() + 1, weightGradient);
            }));
}

TEST(CheckSchedule, RecomputeAfterBackward) {
  EXPECT_EQ("rank 1 runs B1.0 before R1.0, which it needs",
            refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[1].insert(s.order[1].begin() + 2,
                                Task{TaskKind::Recompute, 1, 0});
            }));
}

TEST(CheckSchedule, UpdateBeforeLastBackward) {
  EXPECT_EQ("rank 1 runs U1 before B1.1, which it needs",
            refusalOf(twoByTwo(), [](Schedule &s) {
              std::swap(s.order[1].end()[-1], s.order[1].end()[-2]);
            }));
}

TEST(CheckSchedule, CycleOfTwoRanks) {
  // Rank 0 wants the first gradient before it makes the second output, rank 1
  // wants both outputs before it makes a gradient.
  EXPECT_EQ("deadlock: rank 0 waits at B0.0 for the gradient of stage 1, "
            "micro-batch 0, which rank 1 computes after F1.1, which waits for "
            "the output of stage 0, micro-batch 1, which rank 0 computes "
            "after B0.0",
            refusalOf(twoByTwo(), [](Schedule &s) {
              std::swap(s.order[0][1], s.order[0][2]);
              std::swap(s.order[1][1], s.order[1][2]);
            }));
}

TEST(CheckSchedule, CycleOfThreeRanks) {
  Schedule schedule = buildSchedule("gpipe", 3, 3, 2);
  std::swap(schedule.order[0][1], schedule.order[0][2]);
  std::swap(schedule.order[1][1], schedule.order[1][2]);
  // A mask that skips stage 1.
  std::vector<StageEdge> edges = {{0, 2, 1, false}, {0, 1, 4}, {1, 2, 4}};
  EXPECT_EQ("deadlock: rank 0 waits at B0.0 for the gradient of stage 1, "
            "micro-batch 0, which rank 1 computes after B1.0, which waits for "
            "the gradient of stage 2, micro-batch 0, which rank 2 computes "
            "after F2.1, which waits for the output of stage 0, micro-batch "
            "1, which rank 0 computes after B0.0",
            messageOf(checkSchedule(schedule, edges)));
}

TEST(CheckSchedule, CycleOfManyRanks) {
  // Every rank wants its first gradient before it makes its second output.
  EXPECT_EQ("deadlock: rank 30 waits at B30.0 for the gradient of stage 31, "
            "micro-batch 0, which rank 31 computes after F31.1, which waits "
            "for the output of stage 30, micro-batch 1, which rank 30 computes "
            "after B30.0",
            refusalOf(buildSchedule("gpipe", 32, 32, 2), [](Schedule &s) {
              for (int rank = 0; rank < 31; ++rank)
                std::swap(s.order[rank][1], s.order[rank][2]);
            }));
  // With a shortcut from the first stage to the last, all are in it.
  Schedule schedule = buildSchedule("gpipe", 32, 32, 2);
  std::vector<StageEdge> edges = linearEdges(32);
  for (StageEdge &edge : edges)
    edge.hasGradient = true;
  edges.insert(edges.begin(), {0, 31, 0, false});
  for (int rank = 0; rank < 31; ++rank)
    std::swap(schedule.order[rank][1], schedule.order[rank][2]);
  std::string story = messageOf(checkSchedule(schedule, edges));
  EXPECT_TRUE(llvm::StringRef(story).starts_with(
      "deadlock: rank 0 waits at B0.0 for the gradient of stage 1, micro-batch "
      "0, which rank 1 computes after B1.0, which waits for"))
      << story;
  EXPECT_NE(std::string::npos, story.find("... (24 more ranks wait likewise)"))
      << story;
  EXPECT_TRUE(llvm::StringRef(story).ends_with(
      "which waits for the output of stage 0, micro-batch 1, which rank 0 "
      "computes after B0.0"))
      << story;
}

//===----------------------------------------------------------------------===//
// Pairs, copies, updates, evaluation
//===----------------------------------------------------------------------===//

TEST(CheckSchedule, PairWithNothing) {
  EXPECT_EQ("rank 0 overlaps U0 with nothing, but expects pairs",
            refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[0].back().overlapsNext = true;
            }));
}

TEST(CheckSchedule, ThreeTogether) {
  EXPECT_EQ("rank 0 overlaps F0.0 with a chain of tasks, but expects pairs",
            refusalOf(twoByTwo(), [](Schedule &s) {
              s.order[0][0].overlapsNext = s.order[0][1].overlapsNext = true;
            }));
}

TEST(CheckSchedule, PairOfATaskAndItsNeed) {
  EXPECT_EQ("rank 1 overlaps F1.0 with B1.0, but one needs the other",
            refusalOf(twoByTwo(),
                      [](Schedule &s) { s.order[1][0].overlapsNext = true; }));
}

TEST(CheckSchedule, PairThatNeedsALaterTask) {
  EXPECT_EQ("rank 1 runs F1.0&B1.1 before F1.1, which it needs",
            refusalOf(twoByTwo(), [](Schedule &s) {
              std::swap(s.order[1][1], s.order[1][3]);
              s.order[1][0].overlapsNext = true;
            }));
}

TEST(CheckSchedule, PairsThatWaitForEachOther) {
  // One after the other it would do; together, each has what the other needs.
  Schedule schedule = twoByTwo();
  std::swap(schedule.order[1][1], schedule.order[1][2]);
  EXPECT_EQ("deadlock: rank 0 waits at F0.1&B0.0 for the gradient of stage 1, "
            "micro-batch 0, which rank 1 computes after F1.1&B1.0, which waits "
            "for the output of stage 0, micro-batch 1, which rank 0 computes "
            "after F0.1&B0.0",
            refusalOf(schedule, [](Schedule &s) {
              s.order[0][1].overlapsNext = s.order[1][1].overlapsNext = true;
            }));
}

/// One rank for each stage of two copies, which go the opposite ways.
static Schedule twoCopies() {
  Schedule schedule;
  schedule.ranks = 2;
  schedule.stages = 4;
  schedule.microBatches = 2;
  schedule.copies = 2;
  schedule.rankOfStage = {0, 1, 1, 0};
  schedule.order = {
      {Task::forward(0, 0), Task::forward(3, 1), Task::backward(3, 1),
       Task::backward(0, 0), Task::update(0), Task::update(3)},
      {Task::forward(2, 1), Task::forward(1, 0), Task::backward(1, 0),
       Task::backward(2, 1), Task::update(1), Task::update(2)}};
  return schedule;
}

TEST(CheckSchedule, TaskOfTheOtherCopy) {
  EXPECT_EQ("rank 0 runs F0.1, but that micro-batch goes through the other "
            "copy of the model",
            refusalOf(twoCopies(),
                      [](Schedule &s) { s.order[0][0].microBatch = 1; }));
}

TEST(CheckSchedule, MissingTaskOfTheSecondCopy) {
  EXPECT_EQ("rank 1 never runs B2.1", refusalOf(twoCopies(), [](Schedule &s) {
              s.order[1].erase(s.order[1].begin() + 3);
            }));
  EXPECT_EQ("rank 0 never runs U3",
            refusalOf(twoCopies(), [](Schedule &s) { s.order[0].pop_back(); }));
}

TEST(CheckSchedule, EdgeBetweenCopies) {
  EXPECT_EQ("edge 1 goes from stage 1 to stage 2, which is part of the other "
            "copy of the model",
            messageOf(checkSchedule(twoCopies(), {{0, 1}, {1, 2}, {2, 3}})));
}

TEST(CheckSchedule, CycleBetweenCopies) {
  // Both ranks want the other copy's output first.
  EXPECT_EQ("deadlock: rank 0 waits at F3.1 for the output of stage 2, "
            "micro-batch 1, which rank 1 computes after F1.0, which waits for "
            "the output of stage 0, micro-batch 0, which rank 0 computes after "
            "F3.1",
            refusalOf(twoCopies(), [](Schedule &s) {
              std::swap(s.order[0][0], s.order[0][1]);
              std::swap(s.order[1][0], s.order[1][1]);
            }));
}

TEST(CheckSchedule, CountsThatDoNotDivide) {
  EXPECT_EQ("2 copies of the model and 1 updates need to divide 4 stages and 3 "
            "micro-batches",
            refusalOf(twoCopies(), [](Schedule &s) { s.microBatches = 3; }));
  EXPECT_EQ("1 copies of the model and 3 updates need to divide 2 stages and 2 "
            "micro-batches",
            refusalOf(twoByTwo(), [](Schedule &s) { s.updates = 3; }));
}

/// One rank that updates after each half of four micro-batches.
static Schedule twoUpdates(WeightRule rule = WeightRule::Newest) {
  Schedule schedule;
  schedule.ranks = schedule.stages = 1;
  schedule.microBatches = 4;
  schedule.updates = 2;
  schedule.weightRule = rule;
  schedule.rankOfStage = {0};
  schedule.order.resize(1);
  for (int32_t m = 0; m < 4; ++m) {
    schedule.order[0].push_back(Task::forward(0, m));
    schedule.order[0].push_back(Task::backward(0, m));
    if (m % 2 == 1)
      schedule.order[0].push_back(Task::update(0, m / 2));
  }
  return schedule;
}

TEST(CheckSchedule, SeveralSynchronousUpdates) {
  EXPECT_EQ("a synchronous schedule ends each step with 1 update, but got 2",
            refusalOf(twoUpdates(), [](Schedule &s) {
              s.weightRule = WeightRule::Synchronous;
            }));
}

TEST(CheckSchedule, MissingSecondUpdate) {
  EXPECT_EQ("rank 0 never runs U0.1", refusalOf(twoUpdates(), [](Schedule &s) {
              s.order[0].pop_back();
            }));
}

TEST(CheckSchedule, UpdateBeforeItsGradients) {
  EXPECT_EQ("rank 0 runs U0 before B0.1, which it needs",
            refusalOf(twoUpdates(), [](Schedule &s) {
              std::swap(s.order[0][3], s.order[0][4]);
            }));
}

TEST(CheckSchedule, UpdatesInTheWrongOrder) {
  EXPECT_EQ("rank 0 runs U0.1 before U0, which it needs",
            refusalOf(twoUpdates(), [](Schedule &s) {
              std::vector<Task> &tasks = s.order[0];
              std::rotate(tasks.begin() + 4, tasks.begin() + 5, tasks.end());
            }));
}

TEST(CheckSchedule, ForwardBeforeItsVersionOfTheWeights) {
  auto schedule = [] {
    Schedule schedule = twoUpdates(WeightRule::DelayedByOne);
    schedule.updates = 4;
    schedule.order[0].clear();
    for (int32_t m = 0; m < 4; ++m)
      schedule.order[0].insert(
          schedule.order[0].end(),
          {Task::forward(0, m), Task::backward(0, m), Task::update(0, m)});
    return schedule;
  };
  // F0.2 may run ahead of the second update, but not of the first.
  EXPECT_EQ("", refusalOf(schedule(), [](Schedule &s) {
              auto begin = s.order[0].begin();
              std::rotate(begin + 3, begin + 6, begin + 7);
            }));
  EXPECT_EQ("rank 0 runs F0.2 before U0, which it needs",
            refusalOf(schedule(), [](Schedule &s) {
              auto begin = s.order[0].begin();
              std::rotate(begin + 2, begin + 6, begin + 7);
            }));
}

static Schedule evaluation() {
  Schedule schedule = twoByTwo();
  schedule.forwardOnly = true;
  for (int32_t rank : {0, 1})
    schedule.order[rank] = {Task::forward(rank, 0), Task::forward(rank, 1)};
  return schedule;
}

TEST(CheckSchedule, BackwardInEvaluation) {
  EXPECT_EQ("rank 1 runs B1.0, but this schedule has forwards only",
            refusalOf(evaluation(), [](Schedule &s) {
              s.order[1].push_back(Task::backward(1, 0));
            }));
  EXPECT_EQ("rank 1 never runs F1.1", refusalOf(evaluation(), [](Schedule &s) {
              s.order[1].pop_back();
            }));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// 1f1b of three ranks, which keep 3, 2 and 1 stashes of 10, 20 and 40 bytes.
static std::string memoryRefusal(llvm::ArrayRef<int64_t> limits) {
  TaskCosts costs = TaskCosts::uniform(3);
  costs.stages[0].stashBytes = 10;
  costs.stages[1].stashBytes = 20;
  costs.stages[2].stashBytes = 40;
  return messageOf(checkMemory(buildSchedule("1f1b", 3, 3, 4), costs, limits));
}

TEST(CheckMemory, EachRankHasItsLimit) {
  EXPECT_EQ("", memoryRefusal({30, 40, 40}));
  EXPECT_EQ("rank 0 keeps 30 bytes of stashes at F0.2, but its limit is 29 "
            "bytes",
            memoryRefusal({29, 40, 40}));
  EXPECT_EQ("rank 1 keeps 40 bytes of stashes at F1.1, but its limit is 39 "
            "bytes",
            memoryRefusal({30, 39, 40}));
  EXPECT_EQ("rank 2 keeps 40 bytes of stashes at F2.0, but its limit is 0 "
            "bytes",
            memoryRefusal({30, 40, 0}));
}

TEST(CheckMemory, OneLimitIsForAll) {
  EXPECT_EQ("", memoryRefusal({40}));
  EXPECT_EQ("rank 1 keeps 40 bytes of stashes at F1.1, but its limit is 35 "
            "bytes",
            memoryRefusal({35}));
  EXPECT_EQ("expects one memory limit, or one for each of 3 ranks, but got 2",
            memoryRefusal({35, 35}));
}

TEST(CheckMemory, RefusesWhatCannotRun) {
  Schedule schedule = twoByTwo();
  schedule.order[0].pop_back();
  EXPECT_EQ("rank 0 never runs U0",
            messageOf(checkMemory(schedule, TaskCosts::uniform(2), {100})));
  EXPECT_EQ("expects the costs of 2 stages, but got 1",
            messageOf(checkMemory(twoByTwo(), TaskCosts::uniform(1), {100})));
}

TEST(CheckMemory, AgreesWithTheSimulator) {
  forEachCase([](const Policy &policy, const ScheduleOptions &options) {
    if (options.microBatches > options.ranks + 1)
      return;
    Schedule schedule = valueOf(policy.build(options));
    TaskCosts costs = TaskCosts::uniform(schedule.stages);
    for (auto [i, stage] : llvm::enumerate(costs.stages)) {
      stage.stashBytes = 10 + static_cast<int64_t>(i);
      stage.weightStashBytes = static_cast<int64_t>(i * 7 % 20);
    }
    std::vector<int64_t> limits;
    for (const RankSummary &rank : valueOf(simulate(schedule, costs)).ranks)
      limits.push_back(rank.peakStashBytes);
    EXPECT_EQ("", messageOf(checkMemory(schedule, costs, limits)));
    if (schedule.forwardOnly)
      return;
    limits.back() -= 1;
    std::string message = messageOf(checkMemory(schedule, costs, limits));
    EXPECT_TRUE(llvm::StringRef(message).starts_with(
        "rank " + std::to_string(options.ranks - 1) + " keeps "))
        << message;
  });
}
