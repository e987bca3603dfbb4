//===- ChannelCheckerTests.cpp - Queues and buffers that block --*- C++ -*-===//
//
// Instruction lists that some layouts of channels carry and others do not, with
// and without buffers.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/InstructionTesting.h"

#include "passes/schedules/ChannelSimulator.h"
#include "passes/schedules/MessageOrder.h"

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

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
