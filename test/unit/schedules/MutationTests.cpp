//===- MutationTests.cpp - The checker against plain execution --*- C++ -*-===//
//
// Good plans of all policies are broken at random, and the checker's word is
// compared with what happens when they are executed naively (PlainExecution.h).
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/WorkTesting.h"

#include "passes/schedules/WorkOrder.h"

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

void mutate(Schedule &schedule, Random &random) {
  std::vector<Task> &tasks = schedule.order[below(random, schedule.ranks)];
  if (tasks.empty())
    return;
  int i = below(random, tasks.size()), j = below(random, tasks.size());
  int next = std::min<int>(i + 1, tasks.size() - 1);
  switch (below(random, 14)) {
  case 0:
    tasks.erase(tasks.begin() + i);
    break;
  case 1:
    tasks.insert(tasks.begin() + j, tasks[i]);
    break;
  case 2:
    tasks[i].microBatch ^= 1;
    break;
  case 3:
    tasks[i].kind = static_cast<TaskKind>(below(random, numTaskKinds));
    break;
  case 4:
    tasks[i].overlapsNext ^= true;
    break;
  case 5: {
    std::vector<Task> &others = schedule.order[below(random, schedule.ranks)];
    others.insert(others.begin() + below(random, others.size() + 1), tasks[i]);
    tasks.erase(tasks.begin() + i);
    break;
  }
  case 6: // A backward in two halves; right, if it was whole.
    if (tasks[i].kind == TaskKind::Backward) {
      tasks[i].kind = TaskKind::InputGradient;
      tasks.insert(tasks.begin() + std::max(i + 1, j),
                   Task::weightGradient(tasks[i].stage, tasks[i].microBatch));
    }
    break;
  case 7: // Something to compute again; right, if it is before its backward.
    if (tasks[i].producesGradient())
      tasks.insert(tasks.begin() + (below(random, 4) ? std::min(i, j) : j),
                   Task::recompute(tasks[i].stage, tasks[i].microBatch));
    break;
  case 8:
    std::swap(tasks[i], tasks[j]);
    break;
  case 9: // Elsewhere in the order.
    std::rotate(tasks.begin() + std::min(i, j),
                tasks.begin() + std::min(i, j) + 1,
                tasks.begin() + std::max(i, j) + 1);
    break;
  default: // Neighbours: what most often stays right.
    std::swap(tasks[i], tasks[next]);
    break;
  }
}

/// Moves the waits for one kind of posts right behind these.
void blockAtPosts(std::vector<RankInstruction> &list, InstructionKind posts) {
  InstructionKind waits = posts == InstructionKind::PostSend
                              ? InstructionKind::WaitSend
                              : InstructionKind::WaitReceive;
  std::vector<RankInstruction> changed;
  for (const RankInstruction &instruction : list) {
    if (instruction.kind != waits)
      changed.push_back(instruction);
    if (instruction.kind == posts) {
      changed.push_back(instruction);
      changed.back().kind = waits;
    }
  }
  list = changed;
}

/// Moves the posts of receives right before their waits: good for buffers that
/// are large enough.
void deferReceives(std::vector<RankInstruction> &list) {
  std::vector<RankInstruction> changed;
  for (const RankInstruction &instruction : list) {
    if (instruction.kind == InstructionKind::PostReceive)
      continue;
    changed.push_back(instruction);
    if (instruction.kind == InstructionKind::WaitReceive) {
      changed.back().kind = InstructionKind::PostReceive;
      changed.push_back(instruction);
    }
  }
  list = changed;
}

bool isPost(const RankInstruction &instruction) {
  return instruction.kind == InstructionKind::PostSend ||
         instruction.kind == InstructionKind::PostReceive;
}

/// Breaks lists in any way, or only in ways that keep what is sent to whom.
void mutate(InstructionLists &lists, bool keepsMessages, Random &random) {
  int ranks = static_cast<int>(lists.size());
  std::vector<RankInstruction> &list = lists[below(random, ranks)];
  if (list.empty())
    return;
  int i = below(random, list.size()), j = below(random, list.size());
  switch (keepsMessages ? 8 + below(random, 6) : below(random, 17)) {
  case 0:
    list.erase(list.begin() + i);
    break;
  case 1:
    list.insert(list.begin() + j, list[i]);
    break;
  case 2:
    list[i].bytes += 1;
    break;
  case 3:
    list[i].transfer.microBatch ^= 1;
    break;
  case 4:
    std::swap(list[i], list[j]);
    break;
  case 5:
    list[i].peer = below(random, ranks);
    break;
  case 6:
    if (list[i].kind != InstructionKind::Task)
      list[i].kind = static_cast<InstructionKind>(1 + below(random, 6));
    break;
  case 7: { // Messages that cross: two posts and their waits change places.
    Transfer a = list[i].transfer, b = list[j].transfer;
    for (RankInstruction &each : list)
      if (each.kind != InstructionKind::Task) {
        if (each.transfer == a)
          each.transfer = b;
        else if (each.transfer == b)
          each.transfer = a;
      }
    break;
  }
  case 8: // Blocking sends or receives: fine with buffers, if anywhere.
    blockAtPosts(list, below(random, 2) ? InstructionKind::PostSend
                                        : InstructionKind::PostReceive);
    break;
  case 9:
    deferReceives(list);
    break;
  case 10:
  case 11: { // Earlier or later by some places.
    int low = std::max(0, i - below(random, 6));
    int high = std::min<int>(list.size() - 1, i + below(random, 6));
    if (below(random, 2))
      std::rotate(list.begin() + low, list.begin() + i, list.begin() + i + 1);
    else
      std::rotate(list.begin() + i, list.begin() + i + 1,
                  list.begin() + high + 1);
    break;
  }
  case 12: // Posts in a row start together, most of them.
    for (size_t at = 0; at + 1 < list.size(); ++at)
      if (isPost(list[at]) && isPost(list[at + 1]) && below(random, 3))
        list[at].groupedWithNext = true;
    break;
  default: { // Neighbours: what most often stays right.
    int next = std::min<int>(i + 1, list.size() - 1);
    std::swap(list[i], list[next]);
    break;
  }
  }
}

/// Good schedules of every policy, in all sizes that it takes of these.
const std::vector<Schedule> &goodSchedules() {
  static const std::vector<Schedule> all = [] {
    std::vector<Schedule> all;
    for (const Policy *policy : allPolicies())
      for (int64_t ranks : {2, 3, 4})
        for (int64_t loops : {1, 2})
          for (int64_t m : {1, 2, 3, 4, 6, 8}) {
            // Small enough to be executed thousands of times.
            if (ranks * loops * m > 32)
              continue;
            llvm::Expected<Schedule> schedule =
                policy->build({ranks, ranks * loops, m});
            if (schedule)
              all.push_back(std::move(*schedule));
            else
              llvm::consumeError(schedule.takeError());
          }
    return all;
  }();
  return all;
}

/// A chain, and often a skip connection.
std::vector<StageEdge> edgesOf(const Schedule &schedule, Random &random) {
  std::vector<StageEdge> edges =
      linearEdges(schedule.stages, 8, schedule.copies);
  int each = static_cast<int>(schedule.stages / schedule.copies);
  if (below(random, 2) && each > 1)
    for (int copy = 0; copy < schedule.copies; ++copy)
      edges.push_back(
          {copy * each, copy * each + each - 1, 4, below(random, 2) == 0});
  return edges;
}

/// Some groups of ranks, of any size.
std::vector<RankGroup> someGroups(int ranks, Random &random) {
  std::vector<RankGroup> groups(1 + below(random, 3));
  for (RankGroup &group : groups)
    while (group.empty())
      for (int rank = 0; rank < ranks; ++rank)
        if (below(random, 3))
          group.push_back(rank);
  return groups;
}

/// Adds collectives to good lists. All ranks post them in one order, anywhere;
/// they wait at the end, which is right, or soon, which often is.
void addCollectives(InstructionLists &lists,
                    const std::vector<RankGroup> &groups, Random &random) {
  std::vector<size_t> from(lists.size());
  bool waitsSoon = below(random, 3) == 0;
  auto insert = [&](std::vector<RankInstruction> &list, size_t low, size_t high,
                    const RankInstruction &instruction) {
    size_t at = low + below(random, high - low + 1);
    // Nothing stands between the tasks of a pair.
    while (at > 0 && at < list.size() && list[at - 1].task.overlapsNext)
      ++at;
    list.insert(list.begin() + at, instruction);
    return at + 1;
  };
  std::vector<std::vector<RankInstruction>> waits(lists.size());
  for (int number = 0, count = 1 + below(random, 5); number < count; ++number) {
    int group = below(random, groups.size());
    const pipewright::runtime::CollectiveFacts &facts =
        pipewright::runtime::allCollectives[below(
            random, std::size(pipewright::runtime::allCollectives))];
    int root =
        facts.rooted ? groups[group][below(random, groups[group].size())] : -1;
    for (int rank : groups[group]) {
      RankInstruction post = RankInstruction::together(
          InstructionKind::PostCollective, facts.kind,
          Transfer::ofWork(1000 + number), group, 16, root);
      size_t size = lists[rank].size();
      from[rank] = insert(lists[rank], from[rank],
                          std::min(size, from[rank] + size / 3), post);
      post.kind = InstructionKind::WaitCollective;
      if (waitsSoon)
        from[rank] = insert(lists[rank], from[rank],
                            std::min(lists[rank].size(), from[rank] + 4), post);
      else
        waits[rank].push_back(post);
    }
  }
  for (size_t rank = 0; rank < lists.size(); ++rank)
    llvm::append_range(lists[rank], waits[rank]);
}

} // namespace

TEST(Checker, AgreesWithPlainExecutionOnListsWithCollectives) {
  Random random(13);
  const std::vector<Schedule> &schedules = goodSchedules();
  int accepted = 0, refused = 0, deadlocks = 0, mixedDeadlocks = 0;
  for (int round = 0; round < 20000; ++round) {
    const Schedule &schedule = schedules[below(random, schedules.size())];
    std::vector<StageEdge> edges = edgesOf(schedule, random);
    Channels channels = {
        channelLayouts[below(random, std::size(channelLayouts))].layout,
        below(random, 2) ? Buffering::none() : Buffering{1},
        someGroups(static_cast<int>(schedule.ranks), random)};
    TaskCosts costs = TaskCosts::uniform(schedule.stages);
    InstructionLists lists;
    if (round % 2) {
      // Between tasks that wait for them.
      OrderedWork ordered = valueOf(orderWork(
          schedule, costs, edges,
          someWorks(schedule, valueOf(simulate(schedule, costs, edges)),
                    random),
          channels.layout));
      lists = std::move(ordered.lists);
      channels.groups = std::move(ordered.groups);
    } else {
      lists = valueOf(orderMessages(schedule, costs, edges, channels.layout));
      addCollectives(lists, channels.groups, random);
    }
    bool keepsMessages = below(random, 2);
    for (int n = below(random, keepsMessages ? 8 : 3); n > 0; --n)
      mutate(lists, keepsMessages, random);

    std::string message = messageOf(checkInstructions(lists, channels));
    bool isDeadlock = llvm::StringRef(message).starts_with("deadlock");
    deadlocks += isDeadlock;
    mixedDeadlocks += isDeadlock &&
                      llvm::StringRef(message).contains("takes part later") &&
                      llvm::StringRef(message).contains("posts later");
    if (message.empty())
      message = messageOf(checkDataFlow(schedule, lists, edges));
    bool isRight = arrivePlainly(schedule, lists, edges, channels, random);
    ASSERT_EQ(isRight, message.empty())
        << "round " << round << ", " << describe(channels) << ": " << message;
    ++(isRight ? accepted : refused);
  }
  // The comparison means something only if all of these happen often.
  EXPECT_GT(accepted, 2000);
  EXPECT_GT(refused, 2000);
  EXPECT_GT(deadlocks, 200);
  EXPECT_GT(mixedDeadlocks, 50);
}

TEST(Checker, AgreesWithPlainExecutionOnMutatedLists) {
  Random random(7);
  const std::vector<Schedule> &schedules = goodSchedules();
  const Buffering bufferings[] = {
      Buffering::none(),     Buffering{1},           Buffering{2},
      Buffering::ofBytes(4), Buffering::ofBytes(12), Buffering::infinite()};
  auto anyLayout = [&] {
    return channelLayouts[below(random, std::size(channelLayouts))].layout;
  };
  int accepted = 0, refused = 0, deadlocks = 0;
  for (int round = 0; round < 10000; ++round) {
    const Schedule &schedule = schedules[below(random, schedules.size())];
    std::vector<StageEdge> edges = edgesOf(schedule, random);
    TaskCosts costs = TaskCosts::uniform(schedule.stages);
    costs.linkLatency = 0.5 * below(random, 3);
    // The lists may be made for another layout than they are run on.
    Channels channels = {anyLayout(),
                         bufferings[below(random, std::size(bufferings))]};
    ChannelLayout madeFor = below(random, 4) ? channels.layout : anyLayout();
    InstructionLists lists =
        valueOf(orderMessages(schedule, costs, edges, madeFor));
    bool keepsMessages = below(random, 2);
    for (int n = below(random, keepsMessages ? 10 : 4); n > 0; --n)
      mutate(lists, keepsMessages, random);

    std::string message = messageOf(checkInstructions(lists, channels));
    deadlocks += llvm::StringRef(message).starts_with("deadlock");
    if (message.empty())
      message = messageOf(checkDataFlow(schedule, lists, edges));
    bool isRight = arrivePlainly(schedule, lists, edges, channels, random);
    ASSERT_EQ(isRight, message.empty())
        << "round " << round << ", " << describe(channels) << ": " << message;
    ++(isRight ? accepted : refused);
  }
  // The comparison means something only if all three happen often.
  EXPECT_GT(accepted, 2000);
  EXPECT_GT(refused, 2000);
  EXPECT_GT(deadlocks, 200);
}

TEST(Checker, AgreesWithPlainExecutionOnMutatedSchedules) {
  Random random(11);
  const std::vector<Schedule> &schedules = goodSchedules();
  int accepted = 0, refused = 0, deadlocks = 0;
  for (int round = 0; round < 10000; ++round) {
    Schedule schedule = schedules[below(random, schedules.size())];
    std::vector<StageEdge> edges = edgesOf(schedule, random);
    for (int n = below(random, 4); n > 0; --n)
      mutate(schedule, random);
    std::string message = messageOf(checkSchedule(schedule, edges));
    deadlocks += llvm::StringRef(message).starts_with("deadlock");
    bool isRight = runsPlainly(schedule, edges, random);
    ASSERT_EQ(isRight, message.empty()) << "round " << round << ": " << message;
    ++(isRight ? accepted : refused);
    if (!isRight)
      continue;
    // What the checker accepts gets a safe order of messages.
    TaskCosts costs = TaskCosts::uniform(schedule.stages);
    InstructionLists lists =
        valueOf(orderMessages(schedule, costs, edges, ChannelLayout::Rank));
    EXPECT_TRUE(arrivePlainly(schedule, lists, edges, {ChannelLayout::Rank, {}},
                              random))
        << "round " << round;
  }
  EXPECT_GT(accepted, 2000);
  EXPECT_GT(refused, 2000);
  EXPECT_GT(deadlocks, 200);
}
