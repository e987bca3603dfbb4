//===- CheckerTests.cpp - Every kind of broken plan is refused --*- C++ -*-===//
//
// Hand-made broken schedules and instruction lists, each with the whole
// message that it gets.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

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

TEST(CheckInstructions, CrossedOrder) {
  EXPECT_EQ("message 0 from rank 0 to rank 1 is sent as x0, but received as "
            "x1",
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
  EXPECT_EQ("rank 1 runs F1.0 before it has received output of edge 0, "
            "micro-batch 0",
            flowRefusal([](InstructionLists &lists) {
              std::swap(lists[1][1], lists[1][2]);
            }));
}

TEST(CheckDataFlow, SendBeforeItsTask) {
  EXPECT_EQ("rank 0 sends output of edge 0, micro-batch 0 before stage 0 "
            "computed it",
            flowRefusal([](InstructionLists &lists) {
              std::swap(lists[0][0], lists[0][1]);
            }));
}

TEST(CheckDataFlow, SentTwiceOrNever) {
  EXPECT_EQ("rank 0 sends output of edge 0, micro-batch 0 twice",
            flowRefusal([](InstructionLists &lists) {
              lists[0].insert(lists[0].begin() + 1, lists[0][1]);
            }));
  EXPECT_EQ("rank 0 never sends output of edge 0, micro-batch 0",
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
  EXPECT_EQ("gradient of edge 0, micro-batch 0 goes from rank 0 to rank 1, "
            "but expects 1 to 0",
            flowRefusal([](InstructionLists &lists) {
              lists[0][1].transfer.kind = TransferKind::Gradient;
            }));
  EXPECT_EQ(
      "output of edge 0, micro-batch 0 has 3 bytes on rank 0, but "
      "expects 0",
      flowRefusal([](InstructionLists &lists) { lists[0][1].bytes = 3; }));
}

TEST(CheckDataFlow, ExtraTransfersAreIgnored) {
  EXPECT_EQ("", flowRefusal([](InstructionLists &lists) {
              lists[0].push_back(postSend(7, 1));
            }));
}
