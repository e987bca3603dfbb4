//===- CheckerTests.cpp - Every kind of broken plan is refused --*- C++ -*-===//
//
// Hand-made broken schedules and instruction lists, each with the whole
// message that it gets.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/ChannelSimulator.h"
#include "passes/schedules/Checker.h"
#include "passes/schedules/MessageOrder.h"

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

//===----------------------------------------------------------------------===//
// Instruction lists
//===----------------------------------------------------------------------===//

static RankInstruction message(InstructionKind kind, int32_t number,
                               int32_t peer, int64_t bytes = 8) {
  return RankInstruction::message(kind, {TransferKind::Extra, number, 0}, peer,
                                  bytes);
}
static RankInstruction postSend(int32_t number, int32_t peer) {
  return message(InstructionKind::PostSend, number, peer);
}
static RankInstruction postReceive(int32_t number, int32_t peer) {
  return message(InstructionKind::PostReceive, number, peer);
}
static RankInstruction waitSend(int32_t number, int32_t peer) {
  return message(InstructionKind::WaitSend, number, peer);
}
static RankInstruction waitReceive(int32_t number, int32_t peer) {
  return message(InstructionKind::WaitReceive, number, peer);
}
static RankInstruction task(int32_t stage, int32_t microBatch) {
  return RankInstruction::compute(Task::forward(stage, microBatch));
}

static std::string refusalOf(const InstructionLists &lists) {
  return messageOf(checkInstructions(lists, [](const Transfer &transfer) {
    return "x" + std::to_string(transfer.edge);
  }));
}

TEST(CheckInstructions, Exchange) {
  EXPECT_EQ("", refusalOf({{postSend(0, 1), postReceive(1, 1), waitSend(0, 1),
                            waitReceive(1, 1)},
                           {postSend(1, 0), postReceive(0, 0), waitSend(1, 0),
                            waitReceive(0, 0)}}));
  EXPECT_EQ("", refusalOf({}));
  EXPECT_EQ("", refusalOf({{}, {task(0, 0)}}));
}

TEST(CheckInstructions, BothSendFirst) {
  EXPECT_EQ("deadlock without buffering: rank 0 waits after F0.3 for its send "
            "to rank 1 of x0, whose receive rank 1 posts later; rank 1 waits "
            "at its start for its send to rank 0 of x1, whose receive rank 0 "
            "posts later",
            refusalOf({{task(0, 3), postSend(0, 1), waitSend(0, 1),
                        postReceive(1, 1), waitReceive(1, 1)},
                       {postSend(1, 0), waitSend(1, 0), postReceive(0, 0),
                        waitReceive(0, 0)}}));
}

TEST(CheckInstructions, BothReceiveFirst) {
  EXPECT_EQ("deadlock without buffering: rank 0 waits at its start for its "
            "receive from rank 1 of x1, whose send rank 1 posts later; rank 1 "
            "waits at its start for its receive from rank 0 of x0, whose send "
            "rank 0 posts later",
            refusalOf({{postReceive(1, 1), waitReceive(1, 1), postSend(0, 1),
                        waitSend(0, 1)},
                       {postReceive(0, 0), waitReceive(0, 0), postSend(1, 0),
                        waitSend(1, 0)}}));
}

TEST(CheckInstructions, CycleOfThreeRanks) {
  InstructionLists lists(3);
  for (int32_t rank = 0; rank < 3; ++rank) {
    int32_t next = (rank + 1) % 3, previous = (rank + 2) % 3;
    lists[rank] = {postSend(rank, next), waitSend(rank, next),
                   postReceive(previous, previous),
                   waitReceive(previous, previous)};
  }
  EXPECT_EQ("deadlock without buffering: rank 0 waits at its start for its "
            "send to rank 1 of x0, whose receive rank 1 posts later; rank 1 "
            "waits at its start for its send to rank 2 of x1, whose receive "
            "rank 2 posts later; rank 2 waits at its start for its send to "
            "rank 0 of x2, whose receive rank 0 posts later",
            refusalOf(lists));
  // One rank that receives first is enough to break the ring.
  std::rotate(lists[1].begin(), lists[1].begin() + 2, lists[1].end());
  EXPECT_EQ("", refusalOf(lists));
}

TEST(CheckInstructions, CycleOfManyRanks) {
  InstructionLists lists(100);
  for (int32_t rank = 0; rank < 100; ++rank) {
    int32_t next = (rank + 1) % 100, previous = (rank + 99) % 100;
    lists[rank] = {postSend(rank, next), waitSend(rank, next),
                   postReceive(previous, previous),
                   waitReceive(previous, previous)};
  }
  std::string story = refusalOf(lists);
  EXPECT_NE(std::string::npos,
            story.find("... (92 more ranks wait likewise); rank 98 waits"));
}

//===----------------------------------------------------------------------===//
// Channel layouts and buffering
//===----------------------------------------------------------------------===//

static std::string refusalOf(const InstructionLists &lists,
                             const Channels &channels) {
  auto name = [](const Transfer &transfer) {
    return "x" + std::to_string(transfer.edge);
  };
  return messageOf(checkInstructions(lists, name, channels));
}

TEST(CheckInstructions, CrossedReceivesInOneQueue) {
  // Rank 2 receives from 0 and 1 in the order in which they do not come: rank 1
  // sends to 2 only after rank 0 had its message through.
  InstructionLists lists = {
      {postSend(0, 2), postSend(1, 1), waitSend(0, 2), waitSend(1, 1)},
      {postReceive(1, 0), waitReceive(1, 0), postSend(2, 2), waitSend(2, 2)},
      {postReceive(2, 1), postReceive(0, 0), waitReceive(2, 1),
       waitReceive(0, 0)}};
  EXPECT_EQ("", refusalOf(lists));
  EXPECT_EQ("deadlock without buffering, one queue per rank: rank 1 waits at "
            "its start for its receive from rank 0 of x1; rank 0 has its send "
            "to rank 1 of x1 queued behind its send to rank 2 of x0; rank 2 "
            "has its receive from rank 0 of x0 queued behind its receive from "
            "rank 1 of x2, whose send rank 1 posts later",
            refusalOf(lists, {ChannelLayout::Rank, {}}));
  // A buffer lets rank 0 go on.
  EXPECT_EQ("", refusalOf(lists, {ChannelLayout::Rank, Buffering{1}}));
}

TEST(CheckInstructions, QueuesThatBlockEachOther) {
  // Nobody waits before all is posted; the queues alone are the cycle.
  InstructionLists lists(3);
  for (int32_t rank = 0; rank < 3; ++rank) {
    int32_t next = (rank + 1) % 3, previous = (rank + 2) % 3;
    lists[rank] = {postSend(rank, next), postReceive(previous, previous),
                   waitSend(rank, next), waitReceive(previous, previous)};
  }
  EXPECT_EQ("", refusalOf(lists));
  std::string story = refusalOf(lists, {ChannelLayout::Rank, {}});
  EXPECT_EQ("deadlock without buffering, one queue per rank: rank 0 has its "
            "receive from rank 2 of x2 queued behind its send to rank 1 of x0; "
            "rank 1 has its receive from rank 0 of x0 queued behind its send "
            "to rank 2 of x1; rank 2 has its receive from rank 1 of x1 queued "
            "behind its send to rank 0 of x2",
            story);
}

TEST(CheckInstructions, BuffersThatFill) {
  // Both send three messages before they receive any.
  InstructionLists lists(2);
  for (int32_t rank : {0, 1}) {
    for (int32_t i : {0, 1, 2}) {
      lists[rank].push_back(postSend(10 * rank + i, 1 - rank));
      lists[rank].push_back(waitSend(10 * rank + i, 1 - rank));
    }
    for (int32_t i : {0, 1, 2}) {
      lists[rank].push_back(postReceive(10 - 10 * rank + i, 1 - rank));
      lists[rank].push_back(waitReceive(10 - 10 * rank + i, 1 - rank));
    }
  }
  EXPECT_EQ("deadlock with 2 messages buffered: rank 0 waits at its start for "
            "its send to rank 1 of x2, which finds no free buffer as rank 1 "
            "posts its receive from rank 0 of x0 later; rank 1 waits at its "
            "start for its send to rank 0 of x12, which finds no free buffer "
            "as rank 0 posts its receive from rank 1 of x10 later",
            refusalOf(lists, {ChannelLayout::Link, Buffering{2}}));
  EXPECT_EQ("", refusalOf(lists, {ChannelLayout::Link, Buffering{3}}));
  EXPECT_EQ("", refusalOf(lists, {ChannelLayout::Rank, Buffering::infinite()}));
}

TEST(CheckInstructions, BothReceiveFirstWhateverIsBuffered) {
  InstructionLists lists = {
      {postReceive(1, 1), waitReceive(1, 1), postSend(0, 1), waitSend(0, 1)},
      {postReceive(0, 0), waitReceive(0, 0), postSend(1, 0), waitSend(1, 0)}};
  EXPECT_EQ("deadlock with unlimited buffering, one queue per rank: rank 0 "
            "waits at its start for its receive from rank 1 of x1, whose send "
            "rank 1 posts later; rank 1 waits at its start for its receive "
            "from rank 0 of x0, whose send rank 0 posts later",
            refusalOf(lists, {ChannelLayout::Rank, Buffering::infinite()}));
}

TEST(CheckInstructions, DirectionsHaveTheirOwnOrder) {
  // An activation and a gradient over one link, in opposite orders.
  auto post = [](InstructionKind kind, TransferKind what, int32_t peer) {
    return RankInstruction::message(kind, {what, 0, 0}, peer, 8);
  };
  using enum InstructionKind;
  InstructionLists lists = {{post(PostSend, TransferKind::Forward, 1),
                             post(PostSend, TransferKind::Gradient, 1),
                             post(WaitSend, TransferKind::Gradient, 1),
                             post(WaitSend, TransferKind::Forward, 1)},
                            {post(PostReceive, TransferKind::Gradient, 0),
                             post(PostReceive, TransferKind::Forward, 0),
                             post(WaitReceive, TransferKind::Forward, 0),
                             post(WaitReceive, TransferKind::Gradient, 0)}};
  EXPECT_EQ("", refusalOf(lists, {ChannelLayout::Direction, {}}));
  for (ChannelLayout layout : {ChannelLayout::Link, ChannelLayout::Rank})
    EXPECT_EQ("rank 0 waits for x0, but its oldest outstanding send to rank 1 "
              "is x0",
              refusalOf(lists, {layout, {}}));
}

TEST(CheckInstructions, ReceivesJustBeforeUse) {
  // The obvious order: receive when it is needed, send when it is made, wait
  // for sends at the end. One queue for each link carries it.
  Schedule schedule = buildSchedule("1f1b", 4, 4, 8);
  InstructionLists lists =
      valueOf(orderMessages(schedule, TaskCosts::uniform(4)));
  for (std::vector<RankInstruction> &list : lists) {
    std::vector<RankInstruction> changed, late;
    for (const RankInstruction &instruction : list) {
      if (instruction.kind == InstructionKind::PostReceive)
        continue;
      if (instruction.kind == InstructionKind::WaitSend) {
        late.push_back(instruction);
        continue;
      }
      changed.push_back(instruction);
      if (instruction.kind == InstructionKind::WaitReceive) {
        changed.back().kind = InstructionKind::PostReceive;
        changed.push_back(instruction);
      }
    }
    changed.insert(changed.end(), late.begin(), late.end());
    list = changed;
  }
  EXPECT_EQ("", messageOf(checkInstructions(lists)));
  EXPECT_EQ("", messageOf(checkInstructions(
                    lists, {ChannelLayout::Rank, Buffering::infinite()})));
  std::string story =
      messageOf(checkInstructions(lists, {ChannelLayout::Rank, {}}));
  EXPECT_TRUE(llvm::StringRef(story).starts_with(
      "deadlock without buffering, one queue per rank: rank "))
      << story;
}

TEST(CheckInstructions, OneQueuePerPairOfRanks) {
  // Both send to each other before they receive: fine on two links, and with
  // others in between, but not in one queue for both directions.
  InstructionLists lists = {
      {postSend(0, 1), postReceive(1, 1), waitReceive(1, 1), waitSend(0, 1)},
      {postSend(1, 0), postReceive(0, 0), waitReceive(0, 0), waitSend(1, 0)}};
  EXPECT_EQ("", refusalOf(lists));
  EXPECT_EQ("deadlock without buffering, one queue per pair of ranks: rank 0 "
            "has its receive from rank 1 of x1 queued behind its send to rank "
            "1 of x0; rank 1 has its receive from rank 0 of x0 queued behind "
            "its send to rank 0 of x1",
            refusalOf(lists, {ChannelLayout::Pair, {}}));
  EXPECT_EQ("", refusalOf(lists, {ChannelLayout::Pair, Buffering{1}}));

  // Messages to others are in other queues.
  InstructionLists crossed = {
      {postSend(0, 2), postSend(1, 1), waitSend(0, 2), waitSend(1, 1)},
      {postReceive(1, 0), waitReceive(1, 0), postSend(2, 2), waitSend(2, 2)},
      {postReceive(2, 1), postReceive(0, 0), waitReceive(2, 1),
       waitReceive(0, 0)}};
  EXPECT_EQ("", refusalOf(crossed, {ChannelLayout::Pair, {}}));
  EXPECT_NE("", refusalOf(crossed, {ChannelLayout::Rank, {}}));
}

static RankInstruction grouped(RankInstruction post) {
  post.groupedWithNext = true;
  return post;
}

TEST(CheckInstructions, GroupedPostsAllMakeProgress) {
  // What hangs one after the other, in one call on both ranks.
  InstructionLists lists = {{grouped(postSend(0, 1)), postReceive(1, 1),
                             waitReceive(1, 1), waitSend(0, 1)},
                            {grouped(postSend(1, 0)), postReceive(0, 0),
                             waitReceive(0, 0), waitSend(1, 0)}};
  for (const ChannelLayoutInfo &info : channelLayouts)
    EXPECT_EQ("", refusalOf(lists, {info.layout, {}})) << info.name.str();
  // One rank alone is not enough.
  lists[1][0].groupedWithNext = false;
  EXPECT_EQ("", refusalOf(lists, {ChannelLayout::Rank, {}}));
  lists[0][0].groupedWithNext = false;
  EXPECT_NE("", refusalOf(lists, {ChannelLayout::Rank, {}}));
}

TEST(CheckInstructions, AGroupEndsAsOne) {
  // Rank 0 has what it waits for, but its group ends with a send that rank 1
  // only receives after the next message.
  InstructionLists lists = {
      {grouped(postReceive(1, 1)), postSend(0, 1), waitReceive(1, 1),
       postSend(2, 2), waitSend(0, 1), waitSend(2, 2)},
      {postSend(1, 0), waitSend(1, 0), postReceive(3, 2), waitReceive(3, 2),
       postReceive(0, 0), waitReceive(0, 0)},
      {postReceive(2, 0), waitReceive(2, 0), postSend(3, 1), waitSend(3, 1)}};
  EXPECT_EQ("", refusalOf(lists));
  EXPECT_EQ("deadlock without buffering, one queue per pair of ranks: rank 0 "
            "waits at its start for its receive from rank 1 of x1, grouped "
            "with its send to rank 1 of x0, whose receive rank 1 posts later; "
            "rank 1 waits at its start for its receive from rank 2 of x3, "
            "whose send rank 2 posts later; rank 2 waits at its start for its "
            "receive from rank 0 of x2, whose send rank 0 posts later",
            refusalOf(lists, {ChannelLayout::Pair, {}}));
}

TEST(CheckInstructions, GroupsAndPairsStandTogether) {
  InstructionLists lists = {{grouped(postSend(0, 1)), waitSend(0, 1)},
                            {postReceive(0, 0), waitReceive(0, 0)}};
  EXPECT_EQ("rank 0 groups x0 with what follows, but expects sends and "
            "receives with nothing between them",
            refusalOf(lists));
  Task first = Task::forward(0, 0);
  first.overlapsNext = true;
  lists[0] = {RankInstruction::compute(first), postSend(0, 1),
              RankInstruction::compute(Task::forward(0, 1)), waitSend(0, 1)};
  const char *apart = "rank 0 overlaps F0.0 with a task that other "
                      "instructions stand before, but expects pairs of tasks "
                      "with nothing between them";
  EXPECT_EQ(apart, refusalOf(lists));
  EXPECT_EQ(apart,
            messageOf(simulateInstructions(lists, TaskCosts::uniform(1))));
}

TEST(CheckInstructions, BuffersOfBytesHoldSmallMessages) {
  // Both send first; each message has 8 bytes.
  InstructionLists lists = {
      {postSend(0, 1), waitSend(0, 1), postReceive(1, 1), waitReceive(1, 1)},
      {postSend(1, 0), waitSend(1, 0), postReceive(0, 0), waitReceive(0, 0)}};
  int64_t size = lists[0][0].bytes;
  for (ChannelLayout layout : {ChannelLayout::Link, ChannelLayout::Rank}) {
    EXPECT_EQ("", refusalOf(lists, {layout, Buffering::ofBytes(size)}));
    EXPECT_NE("", refusalOf(lists, {layout, Buffering::ofBytes(size - 1)}));
  }
  // The second message finds no room beside the first.
  InstructionLists two(2);
  for (int32_t rank : {0, 1}) {
    for (int32_t i : {0, 1})
      two[rank].push_back(postSend(10 * rank + i, 1 - rank));
    for (int32_t i : {0, 1})
      two[rank].push_back(waitSend(10 * rank + i, 1 - rank));
    for (int32_t i : {0, 1}) {
      two[rank].push_back(postReceive(10 - 10 * rank + i, 1 - rank));
      two[rank].push_back(waitReceive(10 - 10 * rank + i, 1 - rank));
    }
  }
  for (int64_t spare : {-1, 0})
    EXPECT_EQ(spare == 0, refusalOf(two, {ChannelLayout::Link,
                                          Buffering::ofBytes(2 * size + spare)})
                              .empty());
}

TEST(Channels, NamesAreReadAndWritten) {
  for (const ChannelLayoutInfo &info : channelLayouts)
    EXPECT_EQ(info.layout, valueOf(parseChannelLayout(info.name)));
  for (Buffering buffering :
       {Buffering::none(), Buffering{1}, Buffering{17}, Buffering::infinite(),
        Buffering::ofBytes(0), Buffering::ofBytes(4096)})
    EXPECT_EQ(buffering, valueOf(parseBuffering(nameOf(buffering))));
  EXPECT_EQ("link, pair, direction or rank", namesOfChannelLayouts());
  EXPECT_EQ("bytes:4096", nameOf(Buffering::ofBytes(4096)));
  EXPECT_EQ("none", nameOf(Buffering{0}));
  EXPECT_EQ("17", nameOf(Buffering{17}));
  EXPECT_EQ("infinite", nameOf(Buffering::infinite()));
  EXPECT_EQ("expects channels per link, pair, direction or rank, but got "
            "'wire'",
            messageOf(parseChannelLayout("wire")));
  for (const char *text :
       {"", "-1", "two", "1.5", "bytes:", "bytes:-1", "bytes:1MB"})
    EXPECT_EQ("expects buffering of none, infinite, a number of messages of at "
              "least 0 or bytes:N, but got '" +
                  std::string(text) + "'",
              messageOf(parseBuffering(text)));
}

//===----------------------------------------------------------------------===//
// Pairing
//===----------------------------------------------------------------------===//

TEST(CheckInstructions, CrossedOrder) {
  EXPECT_EQ("message 0 from rank 0 to rank 1 is sent as x0, but received as "
            "x1, which no buffering mends",
            refusalOf({{postSend(0, 1), postSend(1, 1), waitSend(0, 1),
                        waitSend(1, 1)},
                       {postReceive(1, 0), postReceive(0, 0), waitReceive(1, 0),
                        waitReceive(0, 0)}}));
}

TEST(CheckInstructions, SizesDiffer) {
  EXPECT_EQ("rank 0 sends 8 bytes of x0, but rank 1 expects 4 bytes",
            refusalOf({{postSend(0, 1), waitSend(0, 1)},
                       {message(InstructionKind::PostReceive, 0, 0, 4),
                        waitReceive(0, 0)}}));
}

TEST(CheckInstructions, SendWithoutReceive) {
  EXPECT_EQ("rank 0 sends x0 to rank 1, which never receives it",
            refusalOf({{postSend(0, 1), waitSend(0, 1)}, {}}));
}

TEST(CheckInstructions, ReceiveWithoutSend) {
  EXPECT_EQ("rank 1 receives x0 from rank 0, which never sends it",
            refusalOf({{}, {postReceive(0, 0), waitReceive(0, 0)}}));
}

TEST(CheckInstructions, NeverWaited) {
  EXPECT_EQ(
      "rank 0 never waits for its send to rank 1 of x0",
      refusalOf({{postSend(0, 1)}, {postReceive(0, 0), waitReceive(0, 0)}}));
  EXPECT_EQ("rank 1 never waits for its receive from rank 0 of x0",
            refusalOf({{postSend(0, 1), waitSend(0, 1)}, {postReceive(0, 0)}}));
}

TEST(CheckInstructions, WaitedTwice) {
  EXPECT_EQ("rank 0 waits for x0, but has no outstanding send to rank 1",
            refusalOf({{postSend(0, 1), waitSend(0, 1), waitSend(0, 1)},
                       {postReceive(0, 0), waitReceive(0, 0)}}));
}

TEST(CheckInstructions, WaitedOutOfOrder) {
  EXPECT_EQ("rank 1 waits for x1, but its oldest outstanding receive from "
            "rank 0 is x0",
            refusalOf({{postSend(0, 1), postSend(1, 1), waitSend(0, 1),
                        waitSend(1, 1)},
                       {postReceive(0, 0), postReceive(1, 0), waitReceive(1, 0),
                        waitReceive(0, 0)}}));
}

TEST(CheckInstructions, WrongPeers) {
  EXPECT_EQ("rank 0 sends x0 to rank 0, but expects another of 2 ranks",
            refusalOf({{postSend(0, 0)}, {}}));
  EXPECT_EQ("rank 1 receives x0 from rank 2, but expects another of 2 ranks",
            refusalOf({{}, {postReceive(0, 2)}}));
  EXPECT_EQ("rank 0 sends x0 with a size of -1 bytes",
            refusalOf({{message(InstructionKind::PostSend, 0, 1, -1)}, {}}));
}

//===----------------------------------------------------------------------===//
// Data flow
//===----------------------------------------------------------------------===//

/// What is said of good lists for 1f1b with two ranks and two micro-batches
/// after `change` broke them.
template <typename Change>
static std::string flowRefusal(Change change) {
  Schedule schedule = twoByTwo();
  InstructionLists lists =
      valueOf(orderMessages(schedule, TaskCosts::uniform(2)));
  change(lists);
  return messageOf(checkDataFlow(schedule, lists));
}

TEST(CheckDataFlow, TaskBeforeItsInput) {
  EXPECT_EQ("rank 1 runs F1.0 before it has received the output of "
            "stage 0 for stage 1, micro-batch 0",
            flowRefusal([](InstructionLists &lists) {
              std::swap(lists[1][2], lists[1][3]);
            }));
}

TEST(CheckDataFlow, SendBeforeItsTask) {
  EXPECT_EQ("rank 0 sends the output of stage 0 for stage 1, "
            "micro-batch 0 before stage 0 computed it",
            flowRefusal([](InstructionLists &lists) {
              std::swap(lists[0][0], lists[0][1]);
            }));
}

TEST(CheckDataFlow, SentTwiceOrNever) {
  EXPECT_EQ("rank 0 sends the output of stage 0 for stage 1, "
            "micro-batch 0 twice",
            flowRefusal([](InstructionLists &lists) {
              lists[0].insert(lists[0].begin() + 1, lists[0][1]);
            }));
  EXPECT_EQ("rank 0 never sends the output of stage 0 for stage 1, "
            "micro-batch 0",
            flowRefusal([](InstructionLists &lists) {
              lists[0].erase(lists[0].begin() + 1);
            }));
}

TEST(CheckDataFlow, OtherTasksThanTheSchedules) {
  EXPECT_EQ("rank 0 runs B0.0 as task 0, but its schedule says F0.0",
            flowRefusal([](InstructionLists &lists) {
              lists[0][0].task = Task::backward(0, 0);
            }));
  EXPECT_EQ("rank 0 runs U0 as task 5, but its schedule says that it ends "
            "there",
            flowRefusal([](InstructionLists &lists) {
              lists[0].push_back(lists[0].back());
            }));
  EXPECT_EQ("rank 0 never runs U0",
            flowRefusal([](InstructionLists &lists) { lists[0].pop_back(); }));
  EXPECT_EQ("expects a list for each of 2 ranks, but got 1",
            flowRefusal([](InstructionLists &lists) { lists.pop_back(); }));
}

TEST(CheckDataFlow, TransfersThatDoNotExist) {
  EXPECT_EQ("rank 0 transfers output of edge 1, micro-batch 0, which does not "
            "exist or stays on its rank",
            flowRefusal([](InstructionLists &lists) {
              lists[0][1].transfer.edge = 1;
            }));
  EXPECT_EQ("the gradient of stage 1 for stage 0, micro-batch 0 goes from "
            "rank 0 to rank 1, but expects 1 to 0",
            flowRefusal([](InstructionLists &lists) {
              lists[0][1].transfer.kind = TransferKind::Gradient;
            }));
  EXPECT_EQ(
      "the output of stage 0 for stage 1, micro-batch 0 has 3 bytes on "
      "rank 0, but expects 0",
      flowRefusal([](InstructionLists &lists) { lists[0][1].bytes = 3; }));
}

TEST(CheckDataFlow, ExtraTransfersAreIgnored) {
  EXPECT_EQ("", flowRefusal([](InstructionLists &lists) {
              lists[0].push_back(postSend(7, 1));
            }));
}
