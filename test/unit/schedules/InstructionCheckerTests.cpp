//===- InstructionCheckerTests.cpp - Broken lists are refused ---*- C++ -*-===//
//
// Hand-made broken instruction lists, each with the whole message that it gets.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/InstructionTesting.h"

#include "passes/schedules/MessageOrder.h"

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

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
  Schedule schedule = buildSchedule("1f1b", 2, 2, 2);
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
