//===- WorkOrder.cpp - Where works stand between tasks ----------*- C++ -*-===//
//
// Why nobody waits in a circle: give each task its start and end in the
// simulation in which works run beside each other, and each work the time at
// which it begins there. A work waits for the posts of its members, whose tasks
// are over by then, for works that it needs, which are over too, and for those
// before it in its queues, which begin no later; and a task that waits for a
// work starts when that is over. All of these come earlier, as long as
// everything takes time. Of works that begin at the very same time neither
// needs the other, so the order of their numbers does for all ranks. Messages
// are ordered with the works where they are (MessageOrder.cpp).
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/WorkOrder.h"

#include "passes/schedules/Pairs.h"

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
/// come, so that all ranks see messages in one order. `starts` has the starts
/// of the works. Returns whether something had to be postponed.
static bool postpone(std::vector<Work> &works, llvm::ArrayRef<double> starts,
                     llvm::ArrayRef<std::vector<TaskTime>> times) {
  bool isChanged = false;
  for (auto [work, start] : llvm::zip(works, starts))
    for (Work::Member &member : work.members) {
      bool waits = work.on == Resource::Link ||
                   llvm::any_of(work.needs, [&](int32_t need) {
                     return works[need].takerOn(member.rank);
                   });
      for (; waits && member.posted < member.waited &&
             times[member.rank][member.posted].start < start;
           ++member.posted)
        isChanged = true;
    }
  return isChanged;
}

/// Posts as early as the order allows, waits in the order of the posts.
static void place(std::vector<Work> &works) {
  // By rank, of works on groups; links keep the order of their messages.
  std::map<int32_t, int64_t> posted, waited;
  for (Work &work : works)
    if (work.on == Resource::Group)
      for (Work::Member &member : work.members) {
        int64_t &last = posted[member.rank];
        last = member.posted = std::max(member.posted, last);
      }
  for (Work &work : llvm::reverse(works)) {
    if (work.on == Resource::Group)
      for (Work::Member &member : work.members) {
        auto [next, isLast] = waited.insert({member.rank, member.waited});
        next->second = member.waited = std::min(member.waited, next->second);
      }
    // A rank waits for what a post of its own needs.
    for (int32_t need : work.needs)
      for (const Work::Member &own : work.members)
        if (Work::Member *taker = works[need].takerOn(own.rank))
          taker->waited = std::min(taker->waited, own.posted);
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
                          llvm::ArrayRef<double> starts) {
  OrderedWork ordered;
  ordered.numbers.resize(works.size());
  std::iota(ordered.numbers.begin(), ordered.numbers.end(), 0);
  llvm::stable_sort(ordered.numbers, [&](int32_t a, int32_t b) {
    return starts[a] < starts[b];
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

llvm::Expected<OrderedWork> pipewright::schedules::orderWork(
    const Schedule &schedule, const TaskCosts &costs,
    llvm::ArrayRef<StageEdge> edges, llvm::ArrayRef<Work> given,
    ChannelLayout layout) {
  const TaskCosts positive = withPositiveTimes(costs);
  std::vector<Work> works = given.vec();
  for (Work &work : works)
    moveOutOfPairs(work, schedule);
  OrderedWork ordered;
  std::vector<double> starts(works.size());
  for (bool isOrdered = works.empty(); !isOrdered;) {
    llvm::Expected<Simulation> simulation =
        simulateUnordered(schedule, positive, edges, works);
    if (!simulation)
      return simulation.takeError();
    for (auto [start, work] : llvm::zip(starts, simulation->works))
      start = work.time.start;
    if (postpone(works, starts, simulation->times))
      continue;
    ordered = sorted(works, starts);
    simulation = simulate(schedule, positive, edges, ordered.works);
    if (!simulation)
      return simulation.takeError();
    for (auto [number, work] : llvm::zip(ordered.numbers, simulation->works))
      starts[number] = work.time.start;
    isOrdered = !postpone(works, starts, simulation->times);
  }
  std::vector<int32_t> groupOfWork =
      numberGroups(ordered.works, ordered.groups);
  llvm::Expected<InstructionLists> lists = orderMessages(
      schedule, positive, edges, layout, ordered.works, groupOfWork);
  if (!lists)
    return lists.takeError();
  ordered.lists = std::move(*lists);
  return ordered;
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

namespace {

/// One rank's part in a work.
struct Part {
  int64_t tasks;
  int32_t work;
  RankInstruction instruction;

  bool operator<(const Part &other) const {
    return std::pair(tasks, work) < std::pair(other.tasks, other.work);
  }
};

/// Puts a rank's parts, sorted, between its tasks and transfers: posts behind
/// the task before them and what it sends, waits right in front of the task
/// behind.
std::vector<RankInstruction> merged(llvm::ArrayRef<RankInstruction> list,
                                    llvm::ArrayRef<Part> posts,
                                    llvm::ArrayRef<Part> waits) {
  std::vector<RankInstruction> all;
  int64_t tasks = 0;
  auto take = [&](llvm::ArrayRef<Part> &from) {
    for (; !from.empty() && from.front().tasks <= tasks;
         from = from.drop_front())
      all.push_back(from.front().instruction);
  };
  for (const RankInstruction &instruction : list) {
    if (instruction.kind != InstructionKind::PostSend)
      take(posts);
    if (instruction.kind == InstructionKind::Task) {
      take(waits);
      ++tasks;
    }
    all.push_back(instruction);
  }
  take(posts);
  take(waits);
  return all;
}

} // namespace

InstructionLists
pipewright::schedules::addWorks(const InstructionLists &lists,
                                llvm::ArrayRef<Work> works,
                                std::vector<RankGroup> &groups) {
  std::vector<int32_t> groupOfWork = numberGroups(works, groups);
  std::vector<std::vector<Part>> posts(lists.size()), waits(lists.size());
  for (auto [index, work] : llvm::enumerate(works)) {
    if (work.on != Resource::Group)
      continue;
    auto number = static_cast<int32_t>(index);
    RankInstruction part = RankInstruction::together(
        InstructionKind::PostCollective, work.kind, Transfer::ofWork(number),
        groupOfWork[index], work.bytes);
    for (const Work::Member &member : work.members) {
      part.kind = InstructionKind::PostCollective;
      posts[member.rank].push_back({member.posted, number, part});
      part.kind = InstructionKind::WaitCollective;
      waits[member.rank].push_back({member.waited, number, part});
    }
  }
  InstructionLists all;
  for (auto [list, posted, waited] : llvm::zip(lists, posts, waits)) {
    llvm::sort(posted);
    llvm::sort(waited);
    all.push_back(merged(list, posted, waited));
  }
  return all;
}
