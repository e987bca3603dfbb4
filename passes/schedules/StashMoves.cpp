//===- StashMoves.cpp - Stashes that another rank keeps -------------------===//
//
// See StashMoves.h. A pair of ranks has P+1 stashes under 1F1B, and two more
// places let one stash go each way while tasks run: twice ceil((P+2)/2).
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/StashMoves.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/Simulator.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace pipewright::schedules;

namespace {

/// Goes through the tasks of one rank.
class RankMoves {
public:
  /// `room`: how many stashes the keeper has place for.
  RankMoves(const Schedule &schedule, int32_t rank, int64_t limit, int64_t room)
      : tasks(schedule.order[rank]), rank(rank),
        keeper(static_cast<int32_t>(schedule.ranks - 1 - rank)), limit(limit),
        room(room) {}

  llvm::Error run();

  std::vector<StashMove> moves;

private:
  struct Kept {
    int32_t stage, microBatch;
    /// Of its forward.
    int64_t position;
  };

  bool isOf(const Kept &kept, const Task &task) const {
    return kept.stage == task.stage && kept.microBatch == task.microBatch;
  }
  llvm::Error sendBefore(int64_t position);
  void fetchBehind(int64_t position);

  llvm::ArrayRef<Task> tasks;
  int32_t rank, keeper;
  int64_t limit, room;
  /// Here, by their forwards.
  std::vector<Kept> here;
  /// Numbers of moves whose stashes are away, and of those that came back, in
  /// order.
  std::vector<int32_t> away, fetched;
};

} // namespace

/// Makes room for the forward at `position`.
llvm::Error RankMoves::sendBefore(int64_t position) {
  // What the task right before has made cannot be gone before this one.
  auto newest = std::find_if(here.rbegin(), here.rend(), [&](const Kept &kept) {
    return kept.position < position - 1;
  });
  if (newest == here.rend() || static_cast<int64_t>(away.size()) >= room)
    return refuse("rank {0} would keep more than {1} stashes before {2}, and "
                  "rank {3} has room for {4}",
                  rank, limit, tasks[position].name(), keeper,
                  std::max<int64_t>(room, 0));
  StashMove move{newest->stage, newest->microBatch, {keeper}};
  move.sent = position - 1;
  move.gone = position;
  // The first ones find empty places.
  auto taken = static_cast<int64_t>(moves.size()) - room;
  if (taken >= 0)
    move.after = fetched[taken];
  here.erase(std::next(newest).base());
  away.push_back(static_cast<int32_t>(moves.size()));
  moves.push_back(move);
  return llvm::Error::success();
}

/// Gets what the next backward needs.
void RankMoves::fetchBehind(int64_t position) {
  auto next =
      std::find_if(tasks.begin() + position + 1, tasks.end(),
                   [](const Task &task) { return task.producesGradient(); });
  if (next == tasks.end())
    return;
  auto found = llvm::find_if(away, [&](int32_t number) {
    return moves[number].stage == next->stage &&
           moves[number].microBatch == next->microBatch;
  });
  if (found == away.end())
    return;
  StashMove &move = moves[*found];
  move.fetched = position + 1;
  fetched.push_back(*found);
  away.erase(found);
  // It is the oldest one.
  here.insert(here.begin(), {move.stage, move.microBatch, -1});
}

llvm::Error RankMoves::run() {
  for (auto [index, task] : llvm::enumerate(tasks)) {
    auto position = static_cast<int64_t>(index);
    if (task.kind == TaskKind::Forward) {
      if (static_cast<int64_t>(here.size()) >= limit)
        if (llvm::Error error = sendBefore(position))
          return error;
      here.push_back({task.stage, task.microBatch, position});
    } else if (task.producesGradient() &&
               llvm::none_of(here, [&, of = task](const Kept &kept) {
                 return isOf(kept, of);
               })) {
      return refuse(
          "rank {0} needs more than {1} stashes at a time: that of {2} "
          "would have to be sent away, and cannot be back in time",
          rank, limit, task.name());
    }
    if (task.endsStash()) {
      llvm::erase_if(
          here, [&, of = task](const Kept &kept) { return isOf(kept, of); });
      fetchBehind(position);
    }
  }
  return llvm::Error::success();
}

/// The most stashes of a rank if none moves.
static int64_t mostKept(llvm::ArrayRef<Task> tasks) {
  int64_t kept = 0, most = 0;
  for (const Task &task : tasks) {
    kept += task.kind == TaskKind::Forward;
    most = std::max(most, kept);
    kept -= task.endsStash();
  }
  return most;
}

llvm::Expected<std::vector<StashMove>>
pipewright::schedules::movesWithin(const Schedule &schedule, int64_t limit) {
  if (limit < 2)
    return refuse("a rank keeps at least 2 stashes, but the limit is {0}",
                  limit);
  std::vector<StashMove> all;
  for (int32_t rank = 0; rank < schedule.ranks; ++rank) {
    int64_t keeper = schedule.ranks - 1 - rank;
    if (mostKept(schedule.order[rank]) <= limit)
      continue;
    RankMoves ofRank(schedule, rank, limit,
                     keeper == rank ? 0
                                    : limit - mostKept(schedule.order[keeper]));
    if (llvm::Error error = ofRank.run())
      return std::move(error);
    auto before = static_cast<int32_t>(all.size());
    for (StashMove &move : ofRank.moves) {
      if (move.after >= 0)
        move.after += before;
      all.push_back(move);
    }
  }
  return all;
}

std::vector<Work> pipewright::schedules::worksOfMoves(const Schedule &schedule,
                                                      const TaskCosts &costs) {
  std::vector<Work> works;
  for (const StashMove &move : schedule.moves) {
    int32_t rank = schedule.rankOfStage[move.stage];
    llvm::ArrayRef<Task> tasks = schedule.order[rank];
    auto taker = std::find_if(
        tasks.begin() + move.fetched, tasks.end(), [&](const Task &task) {
          return task.stage == move.stage && task.microBatch == move.microBatch;
        });
    auto number = static_cast<int32_t>(works.size());
    Work away;
    away.stash = Task::forward(move.stage, move.microBatch);
    away.name = "stash of " + away.stash->name();
    away.bytes = costs.stages[move.stage].stashBytes;
    Work back = away;
    away.on = move.keeper.isHost() ? Resource::ToHost : Resource::Link;
    back.on = move.keeper.isHost() ? Resource::FromHost : Resource::Link;
    away.members = {{rank, move.sent, move.gone}};
    back.members = {{rank, move.fetched, taker - tasks.begin()}};
    if (std::optional<int32_t> keeper = move.keeper.rank) {
      auto end = static_cast<int64_t>(schedule.order[*keeper].size());
      away.members.push_back({*keeper, 0, end});
      back.members.insert(back.members.begin(), {*keeper, 0, end});
    }
    if (move.after >= 0)
      away.needs.push_back(2 * move.after + 1);
    back.needs.push_back(number);
    works.push_back(std::move(away));
    works.push_back(std::move(back));
  }
  return works;
}

namespace {

/// The works of one stash.
struct Trip {
  const Work *away = nullptr, *back = nullptr;
  int32_t numberOfAway = -1;
};

} // namespace

/// Whether its keeper has a stash before that sends it back.
static bool isInOrder(const Trip &trip) {
  if (llvm::is_contained(trip.back->needs, trip.numberOfAway))
    return true;
  // Of a host, the rank itself waits for both.
  return trip.away->members.back().waited <= trip.back->members.front().posted;
}

/// Whether a stash leaves a rank and comes back to it from where it went.
static bool isRoundTrip(const Trip &trip, int32_t rank) {
  const Work *away = trip.away, *back = trip.back;
  if (!away || !back || !away->giver() || !back->receiver() ||
      away->giver()->rank != rank || back->receiver()->rank != rank)
    return false;
  if (away->isCopy() != back->isCopy())
    return false;
  return (away->isCopy() || away->receiver()->rank == back->giver()->rank) &&
         isInOrder(trip);
}

llvm::Error pipewright::schedules::checkMoves(const Schedule &schedule,
                                              llvm::ArrayRef<Work> works) {
  std::map<std::pair<int32_t, int32_t>, Trip> trips;
  for (auto [number, work] : llvm::enumerate(works)) {
    if (!work.stash)
      continue;
    Trip &trip = trips[{work.stash->stage, work.stash->microBatch}];
    const Work::Member *giver = work.giver();
    const bool isAway =
        giver && giver->rank == schedule.rankOfStage[work.stash->stage];
    const Work *&known = isAway ? trip.away : trip.back;
    if (known)
      return refuse("the stash of {0} leaves or comes back twice",
                    work.stash->name());
    known = &work;
    if (isAway)
      trip.numberOfAway = static_cast<int32_t>(number);
  }
  for (const auto &[of, trip] : trips) {
    const Task forward = Task::forward(of.first, of.second);
    const int32_t rank = schedule.rankOfStage[of.first];
    if (!isRoundTrip(trip, rank))
      return refuse("the stash of {0} does not leave rank {1} and come back "
                    "from where it went",
                    forward.name(), rank);
    llvm::ArrayRef<Task> tasks = schedule.order[rank];
    auto made = llvm::find(tasks, forward) - tasks.begin();
    auto taken = llvm::find_if(tasks,
                               [&, of = of](const Task &task) {
                                 return task.producesGradient() &&
                                        task.stage == of.first &&
                                        task.microBatch == of.second;
                               }) -
                 tasks.begin();
    const Work::Member &sends = *trip.away->giver();
    const Work::Member &gets = *trip.back->receiver();
    if (sends.posted <= made || gets.posted < sends.waited ||
        gets.waited > taken)
      return refuse("the stash of {0} does not leave rank {1} behind that task "
                    "and come back before {2}",
                    forward.name(), rank,
                    taken < static_cast<int64_t>(tasks.size())
                        ? tasks[taken].name()
                        : "its backward, which there is not");
  }
  return llvm::Error::success();
}
