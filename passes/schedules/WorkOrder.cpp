//===- WorkOrder.cpp - Where works stand between tasks ----------*- C++ -*-===//
//
// Why nobody waits in a circle: give everything its time in the simulation of
// the ordered works. A post comes no later than its work begins, and a work
// begins when all members have posted it, and what it needs, and those before
// it in its queues, are over; a task starts when the works are over whose waits
// stand before it. So each instruction waits for earlier ones only, as long as
// everything takes time. That this simulation reaches its end follows from the
// one in which works do not queue: sorted by when they begin there, none stands
// before another that it needs, and of two that begin at the same time neither
// needs the other. What has to be waited for before a post stands where no task
// of the rank is running at that time; works are moved until that is so.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/WorkOrder.h"

#include "passes/schedules/Pairs.h"
#include "passes/schedules/StashMoves.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace pipewright::schedules;

/// Nothing stands between the tasks of an overlapped pair.
static void moveOutOfPairs(Work &work, const Schedule &schedule) {
  for (Work::Member &member : work.members) {
    llvm::ArrayRef<Task> tasks = schedule.order[member.rank];
    auto isInPair = [&](int64_t place) {
      return place < static_cast<int64_t>(tasks.size()) &&
             isSecondOfPair(tasks, place);
    };
    member.posted += isInPair(member.posted);
    member.waited -= isInPair(member.waited);
  }
}

/// What needs another work is not posted before the task during which that is
/// over: its rank would wait. A send is not posted before the receiver has
/// come, so that all ranks see messages in one order; but for stashes, whose
/// ranks have other things to do until both have come. `at` has the times of
/// the works. Returns whether something had to be postponed.
static bool postpone(std::vector<Work> &works, llvm::ArrayRef<TaskTime> at,
                     llvm::ArrayRef<std::vector<TaskTime>> times) {
  bool isChanged = false;
  for (auto [work, time] : llvm::zip(works, at)) {
    double least = time.start;
    if (work.stash) {
      least = 0;
      for (int32_t need : work.needs)
        least = std::max(least, at[need].end);
    }
    for (Work::Member &member : work.members) {
      bool waits = work.on == Resource::Link ||
                   llvm::any_of(work.needs, [&](int32_t need) {
                     return works[need].takerOn(member.rank);
                   });
      for (; waits && member.posted < member.waited &&
             times[member.rank][member.posted].start < least;
           ++member.posted)
        isChanged = true;
    }
  }
  return isChanged;
}

/// Posts as early as the order allows, waits in the order of the posts.
static void place(std::vector<Work> &works) {
  // By rank, of what has a queue of its own; links keep the order of their
  // messages.
  std::map<std::pair<Resource, int32_t>, int64_t> posted, waited;
  for (Work &work : works)
    if (work.on != Resource::Link)
      for (Work::Member &member : work.members) {
        int64_t &last = posted[{work.on, member.rank}];
        last = member.posted = std::max(member.posted, last);
      }
  for (Work &work : llvm::reverse(works)) {
    if (work.on != Resource::Link)
      for (Work::Member &member : work.members) {
        auto [next, isLast] =
            waited.insert({{work.on, member.rank}, member.waited});
        next->second = member.waited = std::min(member.waited, next->second);
      }
    // A rank waits for what a post of its own needs: a result, or, before it
    // receives a stash, that the one is gone whose bytes it takes.
    for (int32_t need : work.needs) {
      for (const Work::Member &own : work.members)
        if (Work::Member *taker = works[need].takerOn(own.rank))
          taker->waited = std::min(taker->waited, own.posted);
      Work::Member &sender = works[need].members[0];
      if (work.on == Resource::Link && work.stash && works[need].stash &&
          sender.rank == work.members[1].rank)
        sender.waited = std::min(sender.waited, work.members[1].posted);
    }
  }
}

std::vector<int32_t>
pipewright::schedules::numberGroups(llvm::ArrayRef<Work> works,
                                    std::vector<RankGroup> &groups) {
  std::vector<int32_t> numbers;
  for (const Work &work : works) {
    if (work.on != Resource::Group) {
      numbers.push_back(-1);
      continue;
    }
    RankGroup ranks = work.ranks();
    auto group = llvm::find(groups, ranks) - groups.begin();
    numbers.push_back(static_cast<int32_t>(group));
    if (group == static_cast<int64_t>(groups.size()))
      groups.push_back(std::move(ranks));
  }
  return numbers;
}

/// The works in the order of their starts, each in its place.
static OrderedWork sorted(llvm::ArrayRef<Work> works,
                          llvm::ArrayRef<TaskTime> at) {
  OrderedWork ordered;
  ordered.numbers.resize(works.size());
  std::iota(ordered.numbers.begin(), ordered.numbers.end(), 0);
  llvm::stable_sort(ordered.numbers, [&](int32_t a, int32_t b) {
    return at[a].start < at[b].start;
  });
  std::vector<int32_t> places(works.size());
  for (auto [place, number] : llvm::enumerate(ordered.numbers)) {
    places[number] = static_cast<int32_t>(place);
    ordered.works.push_back(works[number]);
  }
  for (Work &work : ordered.works)
    for (int32_t &need : work.needs)
      need = places[need];
  place(ordered.works);
  return ordered;
}

/// Makes the places of messages those that they have in the lists.
static void readPlaces(OrderedWork &ordered) {
  for (llvm::ArrayRef<RankInstruction> list : ordered.lists) {
    int64_t tasks = 0;
    for (const RankInstruction &instruction : list) {
      tasks += instruction.kind == InstructionKind::Task;
      if (!instruction.isMessage() ||
          instruction.transfer.kind != TransferKind::Work)
        continue;
      bool isSend = instruction.kind == InstructionKind::PostSend ||
                    instruction.kind == InstructionKind::WaitSend;
      bool isPost = instruction.kind == InstructionKind::PostSend ||
                    instruction.kind == InstructionKind::PostReceive;
      Work::Member &member =
          ordered.works[instruction.transfer.edge].members[isSend ? 0 : 1];
      (isPost ? member.posted : member.waited) = tasks;
    }
  }
}

llvm::Expected<OrderedWork> pipewright::schedules::orderWork(
    const Schedule &schedule, const TaskCosts &costs,
    llvm::ArrayRef<StageEdge> edges, llvm::ArrayRef<Work> given,
    ChannelLayout layout) {
  const TaskCosts positive = withPositiveTimes(costs);
  std::vector<Work> works = given.vec();
  for (Work &work : works)
    moveOutOfPairs(work, schedule);
  OrderedWork ordered;
  std::vector<TaskTime> at(works.size());
  for (bool isOrdered = works.empty(); !isOrdered;) {
    llvm::Expected<Simulation> simulation =
        simulateUnordered(schedule, positive, edges, works);
    if (!simulation)
      return simulation.takeError();
    for (auto [time, work] : llvm::zip(at, simulation->works))
      time = work.time;
    if (postpone(works, at, simulation->times))
      continue;
    ordered = sorted(works, at);
    simulation = simulate(schedule, positive, edges, ordered.works);
    if (!simulation)
      return simulation.takeError();
    for (auto [number, work] : llvm::zip(ordered.numbers, simulation->works))
      at[number] = work.time;
    isOrdered = !postpone(works, at, simulation->times);
  }
  std::vector<int32_t> groupOfWork =
      numberGroups(ordered.works, ordered.groups);
  llvm::Expected<InstructionLists> lists = orderMessages(
      schedule, positive, edges, layout, ordered.works, groupOfWork);
  if (!lists)
    return lists.takeError();
  ordered.lists = std::move(*lists);
  readPlaces(ordered);
  return ordered;
}

llvm::Expected<Simulation> pipewright::schedules::simulateWithMoves(
    const Schedule &schedule, const TaskCosts &costs,
    llvm::ArrayRef<StageEdge> edges, llvm::ArrayRef<Work> others) {
  if (schedule.moves.empty() && others.empty())
    return simulate(schedule, costs, edges);
  if (llvm::Error error = checkCosts(schedule, costs))
    return error;
  std::vector<Work> works = worksOfMoves(schedule, costs);
  llvm::append_range(works, others);
  llvm::Expected<OrderedWork> ordered =
      orderWork(schedule, costs, edges, works);
  if (!ordered)
    return ordered.takeError();
  return simulate(schedule, costs, edges, ordered->works);
}
