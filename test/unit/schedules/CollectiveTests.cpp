//===- CollectiveTests.cpp - Broken plans with collectives ------*- C++ -*-===//
//
// Hand-made lists in which groups of ranks do things together: each wrong one
// with the whole message that it gets, by the rules of Collectives.h, and what
// the simulator says of right ones.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/InstructionTesting.h"

#include "passes/schedules/ChannelSimulator.h"
#include "passes/schedules/Collectives.h"

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

/// Posts the all-reduce of x<number>.
static RankInstruction post(int32_t number, int32_t group, int64_t bytes = 8) {
  return RankInstruction::together(InstructionKind::PostCollective,
                                   CollectiveKind::AllReduce,
                                   Transfer::ofWork(number), group, bytes);
}
static RankInstruction waitFor(RankInstruction collective) {
  collective.kind = InstructionKind::WaitCollective;
  return collective;
}
static RankInstruction wait(int32_t number, int32_t group) {
  return waitFor(post(number, group));
}
static RankInstruction as(CollectiveKind kind, RankInstruction collective,
                          int32_t root = -1) {
  collective.collective = kind;
  collective.peer = root;
  return collective;
}

static std::string refusal(const InstructionLists &lists,
                           std::vector<RankGroup> groups) {
  return refusalOf(lists, Channels{ChannelLayout::Link, {}, groups});
}

TEST(CheckCollectives, AllMembersTogether) {
  EXPECT_EQ("", refusal({{post(0, 0), wait(0, 0)}, {post(0, 0), wait(0, 0)}},
                        {{0, 1}}));
  // Of two groups, in the same order wherever they meet; one of them alone.
  EXPECT_EQ("", refusal({{post(0, 0), post(1, 1), wait(0, 0), wait(1, 1)},
                         {post(0, 0), wait(0, 0)},
                         {post(1, 1), wait(1, 1), post(2, 2), wait(2, 2)}},
                        {{0, 1}, {0, 2}, {2}}));
}

TEST(CheckCollectives, m1_OrderDiffersBetweenMembers) {
  EXPECT_EQ(
      "collective 0 of ranks 0 and 1 is the all-reduce of x0 over ranks 0 and "
      "1 on rank 0, but the all-reduce of x1 over ranks 0 and 1 on rank 1, and "
      "each waits for the other",
      refusal({{post(0, 0), post(1, 0), wait(0, 0), wait(1, 0)},
               {post(1, 0), post(0, 0), wait(1, 0), wait(0, 0)}},
              {{0, 1}}));
}

TEST(CheckCollectives, m1_KindDiffersBetweenMembers) {
  RankInstruction gather = as(CollectiveKind::AllGather, post(0, 0));
  EXPECT_EQ(
      "collective 0 of ranks 0 and 1 is the all-reduce of x0 over ranks 0 and "
      "1 on rank 0, but the all-gather of x0 over ranks 0 and 1 on rank 1, and "
      "each waits for the other",
      refusal({{post(0, 0), wait(0, 0)}, {gather, waitFor(gather)}}, {{0, 1}}));
}

TEST(CheckCollectives, m1_MemberMissing) {
  EXPECT_EQ("rank 1 never takes part in the all-reduce of x0 over ranks 0, 1 "
            "and 2, for which rank 0 waits",
            refusal({{post(0, 0), wait(0, 0)}, {}, {post(0, 0), wait(0, 0)}},
                    {{0, 1, 2}}));
  // The first member, too.
  EXPECT_EQ("rank 0 never takes part in the all-reduce of x1 over ranks 0 and "
            "1, for which rank 1 waits",
            refusal({{post(0, 0), wait(0, 0)},
                     {post(0, 0), wait(0, 0), post(1, 0), wait(1, 0)}},
                    {{0, 1}}));
}

TEST(CheckCollectives, m1_Outsider) {
  EXPECT_EQ("rank 2 takes part in the all-reduce of x0 over ranks 0 and 1, of "
            "which it is no member",
            refusal({{post(0, 0), wait(0, 0)},
                     {post(0, 0), wait(0, 0)},
                     {post(0, 0), wait(0, 0)}},
                    {{0, 1}}));
}

TEST(CheckCollectives, m1_SizesDiffer) {
  EXPECT_EQ("rank 0 has 8 bytes in the all-reduce of x0 over ranks 0 and 1, "
            "but rank 1 has 4 bytes",
            refusal({{post(0, 0), wait(0, 0)}, {post(0, 0, 4), wait(0, 0)}},
                    {{0, 1}}));
  EXPECT_EQ("rank 1 takes part in the all-reduce of x0 over ranks 0 and 1 with "
            "a size of -4 bytes",
            refusal({{post(0, 0), wait(0, 0)}, {post(0, 0, -4), wait(0, 0)}},
                    {{0, 1}}));
}

TEST(CheckCollectives, m1_RootsDiffer) {
  auto list = [](int32_t root) {
    RankInstruction each = as(CollectiveKind::Broadcast, post(0, 0), root);
    return std::vector{each, waitFor(each)};
  };
  EXPECT_EQ("", refusal({list(1), list(1)}, {{0, 1}}));
  EXPECT_EQ("rank 0 takes rank 0 for the root of the broadcast of x0 over "
            "ranks 0 and 1, but rank 1 takes rank 1",
            refusal({list(0), list(1)}, {{0, 1}}));
  EXPECT_EQ("rank 0 names rank 2 as the root of the broadcast of x0 over ranks "
            "0 and 1, but expects one of its members",
            refusal({list(2), list(2), {}}, {{0, 1}}));
  RankInstruction rooted = as(CollectiveKind::AllReduce, post(0, 0), 1);
  EXPECT_EQ("rank 0 names rank 1 as the root of the all-reduce of x0 over "
            "ranks 0 and 1, but expects none (-1)",
            refusal({{rooted, wait(0, 0)}, {rooted, wait(0, 0)}}, {{0, 1}}));
}

TEST(CheckCollectives, m1_GroupsThatAreNone) {
  EXPECT_EQ("rank 0 has a collective of group 1, but there are 1 groups",
            refusal({{post(0, 1), wait(0, 1)}, {}}, {{0, 1}}));
  EXPECT_EQ("expects group 0 to have some of 2 ranks, each once, but "
            "got ranks 1 and 1",
            refusal({{}, {}}, {{1, 1}}));
  EXPECT_EQ("expects group 1 to have some of 2 ranks, each once, but "
            "got ranks 1 and 2",
            refusal({{}, {}}, {{0, 1}, {1, 2}}));
  EXPECT_EQ("expects group 0 to have some of 2 ranks, each once, but "
            "got none",
            refusal({{}, {}}, {{}}));
}

TEST(CheckCollectives, m2_NeverWaited) {
  EXPECT_EQ("rank 1 never waits for the all-reduce of x0 over ranks 0 and 1",
            refusal({{post(0, 0), wait(0, 0)}, {post(0, 0)}}, {{0, 1}}));
}

TEST(CheckCollectives, m2_WaitedTwice) {
  EXPECT_EQ(
      "rank 0 waits for the all-reduce of x0 over ranks 0 and 1, but has "
      "no outstanding collective",
      refusal({{post(0, 0), wait(0, 0), wait(0, 0)}, {post(0, 0), wait(0, 0)}},
              {{0, 1}}));
}

TEST(CheckCollectives, m2_WaitedOutOfOrder) {
  // Of whatever group: they run on one queue.
  EXPECT_EQ("rank 0 waits for the all-reduce of x1 over ranks 0 and 2, but its "
            "oldest outstanding collective is the all-reduce of x0 over ranks "
            "0 and 1",
            refusal({{post(0, 0), post(1, 1), wait(1, 1), wait(0, 0)},
                     {post(0, 0), wait(0, 0)},
                     {post(1, 1), wait(1, 1)}},
                    {{0, 1}, {0, 2}}));
}

TEST(CheckCollectives, m2_GroupedWithAMessage) {
  RankInstruction grouped = post(0, 0);
  grouped.groupedWithNext = true;
  EXPECT_EQ(
      "rank 0 groups x0 with what follows, but expects sends and "
      "receives with nothing between them",
      refusal({{grouped, wait(0, 0)}, {post(0, 0), wait(0, 0)}}, {{0, 1}}));
}

TEST(CheckCollectives, m3_CircleWithATransfer) {
  // Rank 1 wants a message before it takes part, and rank 0 sends it behind.
  EXPECT_EQ(
      "deadlock without buffering: rank 0 waits after F0.0 for its "
      "all-reduce of x0 over ranks 0 and 1, in which rank 1 takes part "
      "later; rank 1 waits at its start for its receive from rank 0 of "
      "x1, whose send rank 0 posts later",
      refusal(
          {{task(0, 0), post(0, 0), wait(0, 0), postSend(1, 1), waitSend(1, 1)},
           {postReceive(1, 0), waitReceive(1, 0), post(0, 0), wait(0, 0)}},
          {{0, 1}}));
}

TEST(CheckCollectives, m3_CollectiveAmidACircleOfTransfers) {
  // Four ranks: 0 waits for 3 to receive, 3 for 2, both 2 and 1 take part in
  // what 1 does only after it has heard from 0.
  EXPECT_EQ(
      "deadlock without buffering: rank 0 waits at its start for its send to "
      "rank 3 of x0, whose receive rank 3 posts later; rank 3 waits at its "
      "start for its receive from rank 2 of x1, whose send rank 2 posts later; "
      "rank 2 waits at its start for its all-reduce of x2 over ranks 1 and 2, "
      "in which rank 1 takes part later; rank 1 waits at its start for its "
      "receive from rank 0 of x3, whose send rank 0 posts later",
      refusal({{postSend(0, 3), waitSend(0, 3), postSend(3, 1), waitSend(3, 1)},
               {postReceive(3, 0), waitReceive(3, 0), post(2, 0), wait(2, 0)},
               {post(2, 0), wait(2, 0), postSend(1, 3), waitSend(1, 3)},
               {postReceive(1, 2), waitReceive(1, 2), postReceive(0, 0),
                waitReceive(0, 0)}},
              {{1, 2}}));
}

TEST(CheckCollectives, m3_TwoGroupsInOppositeOrders) {
  // Each pair agrees on its own collectives, but all three wait in a circle.
  EXPECT_EQ("deadlock without buffering: rank 0 has its all-reduce of x2 over "
            "ranks 0 and 2 queued behind its all-reduce of x0 over ranks 0 and "
            "1; rank 1 has its all-reduce of x0 over ranks 0 and 1 queued "
            "behind its all-reduce of x1 over ranks 1 and 2; rank 2 has its "
            "all-reduce of x1 over ranks 1 and 2 queued behind its all-reduce "
            "of x2 over ranks 0 and 2",
            refusal({{post(0, 0), post(2, 2), wait(0, 0), wait(2, 2)},
                     {post(1, 1), post(0, 0), wait(1, 1), wait(0, 0)},
                     {post(2, 2), post(1, 1), wait(2, 2), wait(1, 1)}},
                    {{0, 1}, {1, 2}, {0, 2}}));
}

TEST(CheckCollectives, m3_NoBufferMendsIt) {
  InstructionLists lists = {
      {post(0, 0), wait(0, 0), postSend(1, 1), waitSend(1, 1)},
      {postReceive(1, 0), waitReceive(1, 0), post(0, 0), wait(0, 0)}};
  std::string story = refusalOf(
      lists, Channels{ChannelLayout::Rank, Buffering::infinite(), {{0, 1}}});
  EXPECT_TRUE(llvm::StringRef(story).starts_with(
      "deadlock with unlimited buffering, one queue per rank: rank 0 waits"))
      << story;
  // What is posted before the wait does: nobody waits for anything else.
  std::swap(lists[0][1], lists[0][2]);
  EXPECT_EQ("", refusal(lists, {{0, 1}}));
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

/// Two ranks that run so many forwards of a second each, take part after the
/// first, and wait at the end; links have one byte per second.
static ChannelSimulation simulated(int32_t tasksOfRank0, int32_t tasksOfRank1,
                                   int64_t bytes) {
  TaskCosts costs = TaskCosts::uniform(2);
  costs.linkBandwidth = 1;
  InstructionLists lists(2);
  for (int32_t rank : {0, 1}) {
    int32_t count = rank == 0 ? tasksOfRank0 : tasksOfRank1;
    for (int32_t m = 0; m < count; ++m) {
      lists[rank].push_back(task(rank, m));
      if (m == 0)
        lists[rank].push_back(post(0, 0, bytes));
    }
    lists[rank].push_back(wait(0, 0));
  }
  return valueOf(simulateInstructions(
      lists, costs, Channels{ChannelLayout::Link, {}, {{0, 1}}}));
}

TEST(SimulateCollectives, HideBehindTasks) {
  // Both halves of an all-reduce send half of the bytes: three seconds.
  ChannelSimulation short3 = simulated(5, 5, 3);
  ASSERT_EQ(1u, short3.collectives.size());
  EXPECT_EQ(1, short3.collectives[0].start);
  EXPECT_EQ(4, short3.collectives[0].end);
  EXPECT_EQ(0, short3.collectiveWaits[0]);
  // Six seconds are two more than there are tasks to hide them.
  ChannelSimulation long6 = simulated(5, 5, 6);
  EXPECT_EQ(7, long6.collectives[0].end);
  EXPECT_EQ(2, long6.collectiveWaits[0]);
  EXPECT_EQ(5, long6.globalStepTime);
}

TEST(SimulateCollectives, BeginWhenAllHaveCome) {
  TaskCosts costs = TaskCosts::uniform(2);
  costs.linkBandwidth = 1;
  InstructionLists lists = {
      {post(0, 0), wait(0, 0), task(0, 0)},
      {task(1, 0), task(1, 1), post(0, 0), wait(0, 0), task(1, 2)}};
  ChannelSimulation result = valueOf(simulateInstructions(
      lists, costs, Channels{ChannelLayout::Link, {}, {{0, 1}}}));
  EXPECT_EQ(2, result.collectives[0].start);
  EXPECT_EQ(10, result.collectives[0].end);
  EXPECT_EQ(10, result.collectiveWaits[0]);
  EXPECT_EQ(8, result.collectiveWaits[1]);
  EXPECT_EQ(10, result.times[0][0].start);
}

TEST(SimulateCollectives, RunOneAfterTheOtherOnARank) {
  TaskCosts costs = TaskCosts::uniform(1);
  costs.linkBandwidth = 1;
  InstructionLists lists = {{post(0, 0), post(1, 1), wait(0, 0), wait(1, 1)},
                            {post(0, 0), wait(0, 0)},
                            {post(1, 1), wait(1, 1)}};
  ChannelSimulation result = valueOf(simulateInstructions(
      lists, costs, Channels{ChannelLayout::Link, {}, {{0, 1}, {0, 2}}}));
  ASSERT_EQ(2u, result.collectives.size());
  EXPECT_EQ(8, result.collectives[0].end);
  EXPECT_EQ(8, result.collectives[1].start);
  EXPECT_EQ(16, result.collectives[1].end);
}

TEST(SimulateCollectives, TakeWhatADirectExchangeTakes) {
  TaskCosts costs = TaskCosts::uniform(4);
  costs.linkBandwidth = 2;
  costs.linkLatency = 0.5;
  auto seconds = [&](CollectiveKind kind, const RankGroup &group) {
    return secondsOfCollective(kind, 24, group, costs);
  };
  EXPECT_EQ(8.5, seconds(CollectiveKind::ReduceScatter, {0, 1, 2}));
  EXPECT_EQ(8.5, seconds(CollectiveKind::AllGather, {0, 1, 2}));
  EXPECT_EQ(17, seconds(CollectiveKind::AllReduce, {0, 1, 2}));
  EXPECT_EQ(24.5, seconds(CollectiveKind::Broadcast, {0, 1, 2}));
  EXPECT_EQ(0, seconds(CollectiveKind::AllReduce, {1}));
  // The slowest of the links between members counts.
  costs.links[{2, 0}] = {0.5, 1};
  EXPECT_EQ(16.5, seconds(CollectiveKind::AllGather, {0, 1, 2}));
  EXPECT_EQ(6.5, seconds(CollectiveKind::AllGather, {0, 1}));
}
