//===- WorkOrderTests.cpp - Works between tasks -----------------*- C++ -*-===//

#include "test/unit/schedules/WorkTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/WorkOrder.h"

#include <algorithm>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

Work collective(std::string name, std::vector<Work::Member> members,
                std::vector<int32_t> needs = {}) {
  Work work;
  work.name = std::move(name);
  work.bytes = 8;
  work.members = std::move(members);
  work.needs = std::move(needs);
  return work;
}

Work message(std::string name, Work::Member from, Work::Member to,
             std::vector<int32_t> needs = {}) {
  Work work = collective(std::move(name), {from, to}, std::move(needs));
  work.on = Resource::Link;
  return work;
}

bool isPost(const RankInstruction &instruction) {
  return instruction.kind == InstructionKind::PostSend ||
         instruction.kind == InstructionKind::PostReceive ||
         instruction.kind == InstructionKind::PostCollective;
}

/// `F0.0`, `post 0`, `wait 0`: a rank's list, works by their numbers.
std::string textOf(const OrderedWork &ordered, int32_t rank) {
  std::string text;
  for (const RankInstruction &instruction : ordered.lists[rank]) {
    text += text.empty() ? "" : ", ";
    bool isOfWork = instruction.transfer.kind == TransferKind::Work;
    if (instruction.kind == InstructionKind::Task)
      text += instruction.task.name();
    else
      text +=
          (isPost(instruction) ? "post " : "wait ") +
          (isOfWork ? std::to_string(ordered.numbers[instruction.transfer.edge])
                    : "x");
  }
  return text;
}

/// Two ranks, each with forwards of its stage.
Schedule forwards(int64_t microBatches) {
  Schedule schedule;
  schedule.ranks = schedule.stages = 2;
  schedule.microBatches = microBatches;
  schedule.rankOfStage = {0, 1};
  schedule.forwardOnly = true;
  schedule.order.resize(2);
  for (int32_t rank : {0, 1})
    for (int32_t m = 0; m < microBatches; ++m)
      schedule.order[rank].push_back(Task::forward(rank, m));
  return schedule;
}

} // namespace

TEST(WorkOrder, WorkStandsBetweenTasks) {
  Schedule schedule = buildSchedule("gpipe", 2, 2, 2);
  // What F0.0 makes is there for both ranks before their second forwards.
  Work work = collective("x", {{0, 1, 1}, {1, 0, 1}});
  OrderedWork ordered =
      valueOf(orderWork(schedule, TaskCosts::uniform(2), {}, {work}));
  EXPECT_EQ("F0.0, post x, post 0, wait 0, F0.1, post x, post x, post x, "
            "wait x, wait x, B0.0, wait x, wait x, B0.1, U0",
            textOf(ordered, 0));
}

TEST(WorkOrder, WorksBeginWhenTheirMembersHaveCome) {
  Schedule schedule = buildSchedule("gpipe", 2, 2, 2);
  int64_t end = static_cast<int64_t>(schedule.order[0].size());
  // The second can begin before the first, on both ranks.
  std::vector<Work> works = {collective("late", {{0, 4, end}, {1, 4, end}}),
                             collective("early", {{0, 1, end}, {1, 1, end}})};
  OrderedWork ordered =
      valueOf(orderWork(schedule, TaskCosts::uniform(2), {}, works));
  EXPECT_EQ((std::vector<int32_t>{1, 0}), ordered.numbers);
  EXPECT_EQ(1, ordered.works[0].members[0].posted);
}

TEST(WorkOrder, WhatAPostNeedsIsWaitedForBefore) {
  Schedule schedule = buildSchedule("gpipe", 2, 2, 1);
  // A gradient goes to rank 0 behind all backwards, where it is added to what
  // replicas sum; the new weight goes back.
  std::vector<Work> works = {
      message("gradient", {1, 2, 2}, {0, 2, 2}),
      collective("sum", {{0, 2, 2}}, {0}),
      message("weight", {0, 3, 3}, {1, 2, 3}),
  };
  works[1].replicas = 2;
  OrderedWork ordered =
      valueOf(orderWork(schedule, TaskCosts::uniform(2), {}, works));
  std::string rank0 = textOf(ordered, 0), rank1 = textOf(ordered, 1);
  EXPECT_TRUE(llvm::StringRef(rank0).ends_with(
      "B0.0, post 0, wait 0, post 1, wait x, wait 1, U0, post 2, wait 2"))
      << rank0;
  // Nothing is on its way when the update clears it.
  EXPECT_TRUE(llvm::StringRef(rank1).ends_with(
      "post 0, wait x, wait 0, U1, post 2, wait 2"))
      << rank1;
}

TEST(WorkOrder, SentValueWaitsForWhatItNeeds) {
  Schedule schedule = buildSchedule("gpipe", 2, 2, 1);
  // Rank 1 adds what it receives to what it sends on, and has to be done with
  // both before its update.
  std::vector<Work> works = {message("a", {0, 1, 2}, {1, 2, 2}),
                             message("b", {1, 2, 2}, {0, 2, 2}, {0})};
  OrderedWork ordered =
      valueOf(orderWork(schedule, TaskCosts::uniform(2), {}, works));
  std::string rank1 = textOf(ordered, 1);
  EXPECT_TRUE(
      llvm::StringRef(rank1).ends_with("wait 0, post 1, wait x, wait 1, U1"))
      << rank1;
}

TEST(WorkOrder, RefusesTasksAndWorksThatNeedEachOther) {
  Schedule schedule = forwards(2);
  // Each rank comes to one of them behind the task that waits for the other.
  std::vector<Work> works = {collective("a", {{0, 1, 2}, {1, 0, 0}}),
                             collective("b", {{0, 0, 0}, {1, 1, 2}})};
  std::vector<StageEdge> edges = {{0, 1, 8, false}};
  std::string message =
      messageOf(orderWork(schedule, TaskCosts::uniform(2), edges, works));
  EXPECT_EQ("deadlock: rank 0 waits at F0.0 for the all-reduce of b, which "
            "rank 1 begins after F1.0, which waits for the all-reduce of a, "
            "which rank 0 begins after F0.0",
            message);
  // Alone, one that a rank waits for before it can come.
  works = {collective("a", {{0, 1, 1}, {1, 0, 0}}, {1}),
           collective("b", {{0, 2, 2}, {1, 0, 0}})};
  message = messageOf(orderWork(schedule, TaskCosts::uniform(2), edges, works));
  EXPECT_EQ("rank 0 waits at F0.1 for the all-reduce of a, behind the "
            "all-reduce of b, which it begins later",
            message);
}

namespace {

/// Where something stands in the list of a rank, and how many tasks come
/// before.
struct Standing {
  int64_t place = -1;
  int64_t tasks = -1;
};

/// Where a rank posts each work and waits for it, by number of the order.
struct Standings {
  Standings(const OrderedWork &ordered, int32_t rank)
      : posts(ordered.works.size()), waits(ordered.works.size()) {
    Standing now = {0, 0};
    for (const RankInstruction &instruction : ordered.lists[rank]) {
      if (instruction.transfer.kind == TransferKind::Work)
        (isPost(instruction) ? posts : waits)[instruction.transfer.edge] = now;
      now.tasks += instruction.kind == InstructionKind::Task;
      ++now.place;
    }
  }

  std::vector<Standing> posts, waits;
};

} // namespace

TEST(WorkOrder, ListsRunAndKeepTheirBounds) {
  Random random(31);
  std::vector<Schedule> schedules;
  forEachCase([&](const Policy &policy, const ScheduleOptions &options) {
    if (options.ranks <= 4 && options.microBatches <= 8)
      schedules.push_back(valueOf(policy.build(options)));
  });
  int between = 0;
  for (int round = 0; round < 4000; ++round) {
    const Schedule &schedule = schedules[below(random, schedules.size())];
    std::vector<StageEdge> edges =
        linearEdges(schedule.stages, 8, schedule.copies);
    TaskCosts costs = TaskCosts::uniform(schedule.stages, 1, 1.7);
    costs.linkLatency = 0.5 * below(random, 3);
    costs.linkBandwidth = below(random, 2) ? 8 : 1e9;
    std::vector<Work> works =
        someWorks(schedule, valueOf(simulate(schedule, costs, edges)), random);
    ChannelLayout layout =
        channelLayouts[below(random, std::size(channelLayouts))].layout;
    OrderedWork ordered =
        valueOf(orderWork(schedule, costs, edges, works, layout));
    ASSERT_EQ(works.size(), ordered.works.size()) << "round " << round;
    Channels channels = {layout, Buffering::none(), ordered.groups};
    EXPECT_EQ("", messageOf(checkInstructions(ordered.lists, channels)))
        << "round " << round << ", " << describe(channels);
    EXPECT_EQ("", messageOf(checkDataFlow(schedule, ordered.lists, edges)));
    EXPECT_TRUE(
        arrivePlainly(schedule, ordered.lists, edges, channels, random));
    for (int32_t rank = 0; rank < schedule.ranks; ++rank) {
      Standings of(ordered, rank);
      for (size_t number = 0; number < ordered.works.size(); ++number) {
        const Work &given = works[ordered.numbers[number]];
        for (const Work::Member &member : given.members) {
          if (member.rank != rank)
            continue;
          bool isReceiver = given.on == Resource::Link && given.takerOn(rank);
          if (!isReceiver)
            EXPECT_GE(of.posts[number].tasks, member.posted);
          EXPECT_LE(of.waits[number].tasks, member.waited) << "round " << round;
          EXPECT_LT(of.posts[number].place, of.waits[number].place);
          between += of.waits[number].tasks <
                     static_cast<int64_t>(schedule.order[rank].size());
          for (int32_t need : ordered.works[number].needs)
            if (ordered.works[need].takerOn(rank) && !isReceiver)
              EXPECT_LT(of.waits[need].place, of.posts[number].place)
                  << "round " << round;
        }
      }
    }
    if (::testing::Test::HasFailure())
      return;
  }
  // Most tests would hold if all works stood at the end.
  EXPECT_GT(between, 4000);
}
