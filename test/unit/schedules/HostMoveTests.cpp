//===- HostMoveTests.cpp - Stashes that the host keeps ----------*- C++ -*-===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/HostMoves.h"
#include "passes/schedules/StashMoves.h"
#include "passes/schedules/WorkOrder.h"

#include <algorithm>
#include <map>
#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

TaskCosts costsWith(int64_t stages, double forward, double backward,
                    double secondsOfCopy) {
  TaskCosts costs = TaskCosts::uniform(stages, forward, backward);
  for (StageCosts &stage : costs.stages)
    stage.stashBytes = 1000;
  costs.hostLink.bandwidth = 1000 / secondsOfCopy;
  return costs;
}

Schedule offloaded(const char *name, ScheduleOptions options,
                   const TaskCosts &costs, double share = 1) {
  PolicyChoice choice = valueOf(choosePolicy(name));
  options = choice.with(options);
  options.costs = &costs;
  options.offload = share;
  return valueOf(choice->build(options));
}

int64_t mostInFlight(const Simulation &simulation) {
  int64_t most = 0;
  for (const RankSummary &rank : simulation.ranks)
    most = std::max(most, rank.peakInFlight);
  return most;
}

/// The most stashes of a rank while its list runs: what it makes, what is on
/// its way back, and what is not surely gone.
int64_t mostKept(llvm::ArrayRef<RankInstruction> list,
                 llvm::ArrayRef<Work> works) {
  int64_t kept = 0, most = 0;
  for (const RankInstruction &instruction : list) {
    const Task &task = instruction.task;
    const bool isTask = instruction.kind == InstructionKind::Task;
    if (isTask)
      kept += task.kind == TaskKind::Forward;
    else if (instruction.isCopy()) {
      const Resource on = works[instruction.transfer.edge].on;
      const bool isPost = instruction.kind == InstructionKind::PostCopy;
      kept += isPost && on == Resource::FromHost;
      kept -= !isPost && on == Resource::ToHost;
    }
    most = std::max(most, kept);
    kept -= isTask && task.endsStash();
  }
  return most;
}

TEST(Offload, TakesNoTimeAndLeavesAsFewStashesAsPublished) {
  // 1F1B on 8 ranks, 32 micro-batches: (M + P - 1) (tF + tB) = 117, and rank 0
  // keeps 8 without offload.
  struct Case {
    double copy;
    int64_t most;
  };
  for (auto [copy, most] :
       {Case{.25, 4}, Case{.5, 4}, Case{1, 4}, Case{1.5, 6}, Case{2, 7}}) {
    const TaskCosts costs = costsWith(8, 1, 2, copy);
    const Schedule schedule = offloaded("1f1b", {8, 8, 32}, costs);
    const Simulation simulation =
        valueOf(simulateWithMoves(schedule, costs, linearEdges(8)));
    EXPECT_NEAR(117, simulation.globalStepTime, 1e-6) << copy;
    EXPECT_LE(mostInFlight(simulation), most) << copy;
    EXPECT_FALSE(schedule.moves.empty());
  }
  // Where copies take longer than any stash lives, none moves.
  const TaskCosts slow = costsWith(8, 1, 2, 100);
  EXPECT_TRUE(offloaded("1f1b", {8, 8, 32}, slow).moves.empty());
}

TEST(Offload, KeepsToItsShare) {
  const TaskCosts costs = costsWith(4, 1, 2, .5);
  for (double share : {.25, .5, .75, 1.}) {
    const Schedule schedule = offloaded("gpipe", {4, 4, 16}, costs, share);
    std::vector<int64_t> counts(4);
    for (const StashMove &move : schedule.moves)
      ++counts[schedule.rankOfStage[move.stage]];
    for (int64_t count : counts) {
      EXPECT_LE(count, share * 16);
      EXPECT_GE(count, share * 16 - 4);
      EXPECT_GT(count, 0);
    }
  }
}

TEST(Offload, KeepsToItsHostsMemory) {
  for (const char *name : {"gpipe", "1f1b"}) {
    TaskCosts costs = costsWith(8, 1, 2, .5);
    const auto stash = static_cast<double>(costs.stages[0].stashBytes);
    const size_t all = offloaded(name, {8, 8, 32}, costs).moves.size();
    costs.hostMemory = 2.5 * stash;
    const Schedule schedule = offloaded(name, {8, 8, 32}, costs);
    EXPECT_LT(schedule.moves.size(), all) << name;
    // By rank and position: how many are on the host.
    std::map<int32_t, std::map<int64_t, int64_t>> changes;
    for (const StashMove &move : schedule.moves) {
      const int32_t rank = schedule.rankOfStage[move.stage];
      ++changes[rank][move.sent];
      --changes[rank][move.fetched + 1];
    }
    int64_t most = 0;
    for (const auto &[rank, ofRank] : changes) {
      int64_t now = 0;
      for (const auto &[position, change] : ofRank)
        most = std::max(most, now += change);
    }
    EXPECT_EQ(2, most) << name;
    costs.hostMemory = stash / 2;
    EXPECT_TRUE(offloaded(name, {8, 8, 32}, costs).moves.empty()) << name;
  }
}

TEST(Offload, MovesWhatLivesLongestFirst) {
  // Of a loop those of the first chunk.
  TaskCosts costs = costsWith(8, .5, 1, .25);
  const Schedule schedule = offloaded("interleaved", {4, 8, 16}, costs, .25);
  ASSERT_FALSE(schedule.moves.empty());
  for (const StashMove &move : schedule.moves)
    EXPECT_LT(move.stage, 4) << move.microBatch;
}

TEST(Offload, NothingThatLivesForLessThanThreeCopiesThereAndBack) {
  for (double copy : {.3, .8, 1.7}) {
    const TaskCosts costs = costsWith(8, 1, 2, copy);
    const Schedule schedule = offloaded("1f1b", {8, 8, 32}, costs);
    const Simulation plain = valueOf(simulate(schedule, costs));
    for (const StashMove &move : schedule.moves) {
      const int32_t rank = schedule.rankOfStage[move.stage];
      llvm::ArrayRef<Task> tasks = schedule.order[rank];
      auto at = [&](Task task) {
        return plain.times[rank][llvm::find(tasks, task) - tasks.begin()];
      };
      const double life =
          at(Task::backward(move.stage, move.microBatch)).start -
          at(Task::forward(move.stage, move.microBatch)).end;
      EXPECT_GT(life, 6 * copy);
    }
  }
}

TEST(Offload, ListsAreProvedAndKeepWhatTheSimulationSays) {
  std::mt19937 random(1);
  auto time = [&] { return .1 + random() % 1000 / 250.; };
  const char *const names[] = {
      "1f1b",    "gpipe", "interleaved",   "zb-h1",
      "chimera", "zb-v",  "breadth-first", "gpipe:descending"};
  for (int number = 0; number < 200; ++number) {
    const char *name = names[number % std::size(names)];
    PolicyChoice choice = valueOf(choosePolicy(name));
    const int64_t ranks = 2 * (1 + random() % 3);
    const int64_t stages = ranks * choice->defaultLoops();
    const int64_t copies = choice->copies();
    TaskCosts costs = costsWith(stages * copies, 1, 1, time() / 2);
    for (StageCosts &stage : costs.stages) {
      stage.forward = time();
      stage.backward = time();
      stage.inputGradient = time();
      stage.weightGradient = time();
    }
    const Schedule schedule = offloaded(name, {ranks, stages, 2 * ranks}, costs,
                                        .5 + number % 2 * .5);
    const auto edges = linearEdges(schedule.stages, 10, copies);
    const std::vector<Work> works = worksOfMoves(schedule, costs);
    OrderedWork ordered = valueOf(orderWork(schedule, costs, edges, works));
    ASSERT_EQ("", messageOf(checkDataFlow(schedule, ordered.lists, edges)));
    ASSERT_EQ("", messageOf(checkInstructions(ordered.lists)));
    ASSERT_EQ("", messageOf(checkMoves(schedule, ordered.works)));
    const Simulation simulation =
        valueOf(simulateWithMoves(schedule, costs, edges));
    for (int64_t rank = 0; rank < schedule.ranks; ++rank)
      ASSERT_EQ(mostKept(ordered.lists[rank], ordered.works),
                simulation.ranks[rank].peakInFlight)
          << name << ", rank " << rank;
  }
}

TEST(Offload, RefusesMovesOfWhatIsNotThere) {
  const TaskCosts costs = costsWith(4, 1, 2, .3);
  const Schedule schedule = offloaded("1f1b", {4, 4, 8}, costs);
  const std::vector<Work> works =
      valueOf(orderWork(schedule, costs, linearEdges(4),
                        worksOfMoves(schedule, costs)))
          .works;
  EXPECT_EQ("", messageOf(checkMoves(schedule, works)));
  for (size_t number = 0; number < works.size(); ++number) {
    const bool isAway = works[number].on == Resource::ToHost;
    auto refuses = [&](auto change) {
      std::vector<Work> wrong = works;
      change(wrong[number], wrong);
      EXPECT_NE("", messageOf(checkMoves(schedule, wrong)));
    };
    // One is missing, there twice, of another rank or of a link.
    refuses([](Work &work, auto &) { work.stash.reset(); });
    refuses([](Work &work, auto &all) { all.push_back(Work(work)); });
    refuses([](Work &work, auto &) { ++work.members[0].rank; });
    refuses([&](Work &work, auto &) {
      work.on = isAway ? Resource::FromHost : Resource::ToHost;
    });
    // It leaves before its forward, or is back behind its backward.
    refuses([&](Work &work, auto &) {
      (isAway ? work.members[0].posted : work.members[0].waited) =
          isAway ? 0 : 17;
    });
    // It comes back before it is gone.
    if (isAway)
      refuses([&](Work &work, auto &) { work.members[0].waited = 17; });
  }
}

TEST(Offload, RefusesListsWhoseCopiesDoNotEnd) {
  const TaskCosts costs = costsWith(4, 1, 2, .3);
  const Schedule schedule = offloaded("1f1b", {4, 4, 8}, costs);
  const InstructionLists lists =
      valueOf(orderWork(schedule, costs, linearEdges(4),
                        worksOfMoves(schedule, costs)))
          .lists;
  auto refusalWithout = [&](InstructionKind kind) {
    InstructionLists wrong = lists;
    auto &list = wrong[0];
    list.erase(llvm::find_if(list, [&](const RankInstruction &each) {
      return each.kind == kind && each.transfer == Transfer::ofWork(0);
    }));
    return messageOf(checkInstructions(wrong));
  };
  EXPECT_EQ("rank 0 never waits for its copy of work 0",
            refusalWithout(InstructionKind::WaitCopy));
  EXPECT_EQ("rank 0 waits for a copy of work 0 that has not begun",
            refusalWithout(InstructionKind::PostCopy));
  InstructionLists twice = lists;
  auto post = llvm::find_if(twice[0], [](const RankInstruction &each) {
    return each.kind == InstructionKind::PostCopy;
  });
  const RankInstruction copy = *post;
  twice[0].insert(post, copy);
  EXPECT_EQ("rank 0 copies work 0 twice", messageOf(checkInstructions(twice)));
}

TEST(Offload, RefusesSchedulesThatItIsNotFor) {
  auto refusalOf = [](const char *name, ScheduleOptions sizes) {
    PolicyChoice choice = valueOf(choosePolicy(name));
    sizes = choice.with(sizes);
    sizes.offload = 1;
    return messageOf(choice->build(sizes));
  };
  EXPECT_EQ("bpipe moves stashes to other ranks, and --offload to the host; "
            "use one of both",
            refusalOf("bpipe", {4, 4, 8}));
  EXPECT_EQ("pipedream updates weights within a step, and --offload is for "
            "schedules that update at its end",
            refusalOf("pipedream", {4, 4, 8}));
  PolicyChoice choice = valueOf(choosePolicy("1f1b"));
  ScheduleOptions sizes = choice.with({4, 4, 8});
  TaskCosts costs = TaskCosts::uniform(4);
  for (StageCosts &stage : costs.stages)
    stage.recomputesEarly = true;
  sizes.costs = &costs;
  sizes.offload = 1;
  EXPECT_EQ("recomputation in tasks of its own would need stashes before "
            "--offload has them back; leave --offload out, or "
            "--early-recompute and --remat window:N or except-last",
            messageOf(choice->build(sizes)));
}

TEST(Offload, ReadsShares) {
  EXPECT_EQ(0, valueOf(parseOffload("none")));
  EXPECT_EQ(1, valueOf(parseOffload("auto")));
  EXPECT_EQ(.5, valueOf(parseOffload("50%")));
  for (const char *wrong : {"", "50", "0%", "101%", "-1%", "%", "all", "1.5%"})
    EXPECT_NE("", messageOf(parseOffload(wrong).takeError())) << wrong;
}

} // namespace
