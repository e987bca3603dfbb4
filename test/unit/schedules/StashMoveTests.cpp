//===- StashMoveTests.cpp - Stashes that another rank keeps -----*- C++ -*-===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/StashMoves.h"
#include "passes/schedules/WorkOrder.h"

#include <algorithm>
#include <map>
#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

/// By rank: how many of its stashes move.
std::map<int32_t, int64_t> countMoves(const Schedule &schedule) {
  std::map<int32_t, int64_t> counts;
  for (const StashMove &move : schedule.moves)
    ++counts[schedule.rankOfStage[move.stage]];
  return counts;
}

/// The most stashes of a rank while its list runs: what it makes, what it may
/// receive, and what is not surely gone.
int64_t mostKept(llvm::ArrayRef<RankInstruction> list) {
  int64_t kept = 0, most = 0;
  for (const RankInstruction &instruction : list) {
    bool isMove = instruction.transfer.kind == TransferKind::Work;
    const Task &task = instruction.task;
    if (instruction.kind == InstructionKind::Task)
      kept += task.kind == TaskKind::Forward;
    else if (isMove && instruction.kind == InstructionKind::PostReceive)
      ++kept;
    else if (isMove && instruction.kind == InstructionKind::WaitSend)
      --kept;
    most = std::max(most, kept);
    if (instruction.kind == InstructionKind::Task)
      kept -= task.kind == TaskKind::Backward;
  }
  return most;
}

TaskCosts costsWith(const Schedule &schedule, double forward, double backward,
                    double secondsOfMove) {
  TaskCosts costs = TaskCosts::uniform(schedule.stages, forward, backward);
  for (StageCosts &stage : costs.stages)
    stage.stashBytes = 1000;
  costs.linkBandwidth = 1000 / secondsOfMove;
  return costs;
}

TEST(BPipe, MovesAsManyAsTheFormulaSays) {
  // M (K - L) / (K - 2) on rank r, where K = P - r and L = ceil((P + 2) / 2).
  for (int64_t ranks : {4, 5, 6, 8, 12, 16})
    for (int64_t microBatches : {32, 128, 256}) {
      Schedule schedule = buildSchedule("bpipe", ranks, ranks, microBatches);
      std::map<int32_t, int64_t> counts = countMoves(schedule);
      const int64_t limit = (ranks + 3) / 2;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const int64_t most = ranks - rank;
        const double expected =
            most > limit ? double(microBatches * (most - limit)) / (most - 2)
                         : 0;
        EXPECT_NEAR(expected, counts[rank], most)
            << ranks << " ranks, " << microBatches << ", rank " << rank;
      }
    }
  // 50, 40, 25 and 0 % on the first four of eight.
  std::map<int32_t, int64_t> counts =
      countMoves(buildSchedule("bpipe", 8, 8, 256));
  EXPECT_NEAR(.5, counts[0] / 256., .01);
  EXPECT_NEAR(.4, counts[1] / 256., .01);
  EXPECT_NEAR(.25, counts[2] / 256., .01);
  EXPECT_EQ(0, counts[3]);
}

TEST(BPipe, NoRankKeepsMoreThanTheLimit) {
  std::map<int64_t, int64_t> limits = {{2, 2}, {3, 3}, {4, 3},  {5, 4},
                                       {6, 4}, {8, 5}, {16, 9}, {32, 17}};
  for (auto [ranks, limit] : limits)
    for (int64_t microBatches : {1l, 2l, ranks - 1, ranks, 2 * ranks + 3})
      for (double secondsOfMove : {.01, .9, 5.}) {
        Schedule schedule = buildSchedule("bpipe", ranks, ranks, microBatches);
        TaskCosts costs = costsWith(schedule, 1, 2, secondsOfMove);
        OrderedWork ordered =
            valueOf(orderWork(schedule, costs, linearEdges(ranks),
                              worksOfMoves(schedule, costs)));
        EXPECT_EQ("", messageOf(checkDataFlow(schedule, ordered.lists)));
        EXPECT_EQ("", messageOf(checkInstructions(ordered.lists)));
        Simulation simulation =
            valueOf(simulateWithMoves(schedule, costs, linearEdges(ranks)));
        for (int64_t rank = 0; rank < ranks; ++rank) {
          EXPECT_LE(mostKept(ordered.lists[rank]), limit)
              << ranks << " ranks, rank " << rank << ", " << secondsOfMove;
          EXPECT_EQ(mostKept(ordered.lists[rank]),
                    simulation.ranks[rank].peakInFlight);
          EXPECT_EQ(1000 * simulation.ranks[rank].peakInFlight,
                    simulation.ranks[rank].peakStashBytes);
        }
      }
}

TEST(BPipe, RandomTimesLeaveNobodyWaitingInACircle) {
  std::mt19937 random(1);
  auto time = [&] { return .1 + random() % 1000 / 250.; };
  for (int number = 0; number < 300; ++number) {
    int64_t ranks = 3 + random() % 8, microBatches = 1 + random() % 30;
    Schedule schedule = buildSchedule("bpipe", ranks, ranks, microBatches);
    TaskCosts costs = costsWith(schedule, 1, 1, time());
    for (StageCosts &stage : costs.stages) {
      stage.forward = time();
      stage.backward = time();
    }
    costs.linkLatency = time() / 4;
    OrderedWork ordered = valueOf(orderWork(schedule, costs, linearEdges(ranks),
                                            worksOfMoves(schedule, costs)));
    ASSERT_EQ("", messageOf(checkDataFlow(schedule, ordered.lists)));
    ASSERT_EQ("", messageOf(checkInstructions(ordered.lists)));
    for (llvm::ArrayRef<RankInstruction> list : ordered.lists)
      ASSERT_LE(mostKept(list), (ranks + 3) / 2);
  }
}

TEST(BPipe, RefusesMovesOfWhatIsNotThere) {
  Schedule schedule = buildSchedule("bpipe", 4, 4, 8);
  TaskCosts costs = costsWith(schedule, 1, 2, .3);
  const std::vector<Work> works =
      valueOf(orderWork(schedule, costs, linearEdges(4),
                        worksOfMoves(schedule, costs)))
          .works;
  EXPECT_EQ("", messageOf(checkMoves(schedule, works)));
  // Wherever one of them is taken away, doubled or moved, it is seen.
  for (size_t number = 0; number < works.size(); ++number) {
    const bool isAway = works[number].members[0].rank == 0;
    std::vector<Work> wrong = works;
    wrong[number].stash.reset();
    EXPECT_NE("", messageOf(checkMoves(schedule, wrong)));
    wrong = works;
    wrong.push_back(works[number]);
    EXPECT_NE("", messageOf(checkMoves(schedule, wrong)));
    wrong = works;
    wrong[number].members[isAway ? 1 : 0].rank = 2;
    EXPECT_NE("", messageOf(checkMoves(schedule, wrong)));
    wrong = works;
    (isAway ? wrong[number].members[0].posted
            : wrong[number].members[1].waited) = isAway ? 0 : 17;
    EXPECT_NE("", messageOf(checkMoves(schedule, wrong)));
    wrong = works;
    ++wrong[number].stash->microBatch;
    EXPECT_NE("", messageOf(checkMoves(schedule, wrong)));
  }
}

TEST(BPipe, MovesHideBehindTasks) {
  for (int64_t ranks : {4, 8, 16}) {
    Schedule schedule = buildSchedule("bpipe", ranks, ranks, 4 * ranks);
    Schedule plain = buildSchedule("1f1b", ranks, ranks, 4 * ranks);
    TaskCosts costs = costsWith(schedule, 1, 2, .3);
    EXPECT_EQ(valueOf(simulate(plain, costs)).globalStepTime,
              valueOf(simulateWithMoves(schedule, costs, {})).globalStepTime);
    // A move that takes longer than a forward and a backward cannot hide.
    costs.linkBandwidth = 1000 / 4.;
    EXPECT_LT(1.2 * valueOf(simulate(plain, costs)).globalStepTime,
              valueOf(simulateWithMoves(schedule, costs, {})).globalStepTime);
  }
}

TEST(BPipe, RefusesLimitsThatCannotBeHeld) {
  auto refusalOf = [](const char *policy, int64_t ranks) {
    PolicyChoice choice = valueOf(choosePolicy(policy));
    return messageOf(choice->build(choice.with({ranks, ranks, 16})));
  };
  EXPECT_EQ("a rank keeps at least 2 stashes, but the limit is 1",
            refusalOf("bpipe:limit=1", 4));
  EXPECT_EQ("rank 0 would keep more than 2 stashes before F0.3, and rank 3 has "
            "room for 1",
            refusalOf("bpipe:limit=2", 4));
  EXPECT_EQ("rank 0 would keep more than 4 stashes before F0.7, and rank 7 has "
            "room for 3",
            refusalOf("bpipe:limit=4", 8));
  EXPECT_EQ("", refusalOf("bpipe:limit=100", 8));
}

} // namespace
