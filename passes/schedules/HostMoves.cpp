//===- HostMoves.cpp - Stashes that the host keeps --------------*- C++ -*-===//
//
// See HostMoves.h. Where copies stand follows from when tasks run without them:
// copies to the host begin in the order of the forwards, each when the one
// before is over. Those back are planned from the last backward to the first,
// each as late as it may be: over where the task before the backward begins,
// and where the next copy back begins. A stash is gone before the first task
// that begins behind its copy.
//
//   compute   F0 F1 F2 F3 B0 F4 B1 F5 B2 ...
//   to host      F0 F1 F2 F3    F4    F5
//   back               B0    B1    B2
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/HostMoves.h"

#include "passes/schedules/MessageOrder.h"
#include "passes/schedules/Pairs.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/Simulator.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace pipewright::schedules;

llvm::Expected<double>
pipewright::schedules::parseOffload(llvm::StringRef text) {
  if (text == "none")
    return 0;
  if (text == "auto")
    return 1;
  int64_t percent = 0;
  llvm::StringRef digits = text;
  if (digits.consume_back("%") && !digits.getAsInteger(10, percent) &&
      percent >= 1 && percent <= 100)
    return static_cast<double>(percent) / 100;
  return refuse("expects none, auto, or a share of the stashes from 1% to "
                "100%, but got '{0}'",
                text.take_front(48));
}

namespace {

/// What a forward keeps, and for how long. Positions count the tasks of its
/// rank that come before.
struct Stash {
  int32_t stage = 0, microBatch = 0;
  /// Behind its forward, and before its backward.
  int64_t made = 0, taken = 0;
  /// Seconds: between the two, and of a copy in one direction.
  double life = 0, copy = 0;
  int64_t bytes = 0;
};

/// Chooses and places the moves of one rank.
class RankMoves {
public:
  RankMoves(const Schedule &schedule, const TaskCosts &costs, int32_t rank,
            llvm::ArrayRef<TaskTime> times)
      : tasks(schedule.order[rank]), times(times),
        hostMemory(costs.hostMemory) {
    collect(schedule, costs);
  }

  /// As many as fit into the share and into the time.
  std::vector<StashMove> within(double share) const;

private:
  void collect(const Schedule &schedule, const TaskCosts &costs);
  std::vector<Stash> choose(int64_t count) const;
  std::optional<std::vector<StashMove>> place(std::vector<Stash> chosen) const;
  double startOf(int64_t position) const {
    return position < static_cast<int64_t>(times.size()) ? times[position].start
                                                         : times.back().end;
  }
  double endOf(int64_t count) const {
    return count > 0 ? times[count - 1].end : 0;
  }

  llvm::ArrayRef<Task> tasks;
  llvm::ArrayRef<TaskTime> times;
  const double hostMemory;
  /// Those that may move, by stages, of which the stashes live longest in the
  /// first; and the bytes of one of each.
  struct OfStage {
    std::vector<Stash> stashes;
    int64_t bytes = 0;
    double life = 0;
  };
  std::vector<OfStage> stages;
  int64_t allBytes = 0;
};

} // namespace

void RankMoves::collect(const Schedule &schedule, const TaskCosts &costs) {
  std::map<std::pair<int32_t, int32_t>, int64_t> forwards;
  std::map<int32_t, OfStage> ofStages;
  int64_t lastBackward = -1;
  for (auto [index, task] : llvm::enumerate(tasks)) {
    const auto position = static_cast<int64_t>(index);
    if (task.kind == TaskKind::Forward)
      forwards[{task.stage, task.microBatch}] =
          static_cast<int64_t>(endOfPair(tasks, index));
    if (!task.producesGradient())
      continue;
    const int64_t bytes = costs.stages[task.stage].stashBytes;
    allBytes += bytes;
    const int64_t before = std::exchange(lastBackward, position);
    auto made = forwards.find({task.stage, task.microBatch});
    if (made == forwards.end())
      continue;
    Stash stash{task.stage, task.microBatch, made->second,
                static_cast<int64_t>(beginOfPair(tasks, index))};
    stash.life = startOf(stash.taken) - endOf(stash.made);
    stash.copy = costs.secondsOfCopy(bytes);
    stash.bytes = bytes;
    // Of what the next backward needs, none stands between. A task runs beside
    // each copy.
    if (before < stash.made || stash.taken < stash.made + 2 ||
        stash.life <= 3 * (2 * stash.copy))
      continue;
    OfStage &of = ofStages[task.stage];
    of.bytes = bytes;
    of.life += stash.life;
    of.stashes.push_back(stash);
  }
  for (auto &[stage, of] : ofStages) {
    of.life /= static_cast<double>(of.stashes.size());
    llvm::sort(of.stashes,
               [](const Stash &a, const Stash &b) { return a.made < b.made; });
    stages.push_back(std::move(of));
  }
  llvm::sort(stages, [](const OfStage &a, const OfStage &b) {
    return std::pair(b.life, a.stashes.front().stage) <
           std::pair(a.life, b.stashes.front().stage);
  });
}

/// The first ones, of which those of the last stage are spread evenly over the
/// step: it is what a rank has at one time that counts.
std::vector<Stash> RankMoves::choose(int64_t count) const {
  std::vector<Stash> chosen;
  for (const OfStage &of : stages) {
    const auto all = static_cast<int64_t>(of.stashes.size());
    const int64_t some = std::min(all, count);
    count -= some;
    for (int64_t number = 0; number < all; ++number)
      if ((number + 1) * some / all > number * some / all)
        chosen.push_back(of.stashes[number]);
  }
  return chosen;
}

/// The most bytes that these have on the host at one time: from where their
/// copies begin until their backwards.
static int64_t mostBytesOf(llvm::ArrayRef<Stash> stashes) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const Stash &stash : stashes) {
    changes.emplace_back(stash.made, stash.bytes);
    changes.emplace_back(stash.taken, -stash.bytes);
  }
  // Where one is taken there is room for another.
  llvm::sort(changes);
  int64_t bytes = 0, most = 0;
  for (const auto &[position, change] : changes)
    most = std::max(most, bytes += change);
  return most;
}

/// None where the engines cannot copy them all in time, or the host has not
/// enough memory.
std::optional<std::vector<StashMove>>
RankMoves::place(std::vector<Stash> chosen) const {
  if (static_cast<double>(mostBytesOf(chosen)) > hostMemory)
    return std::nullopt;
  // To the host.
  llvm::sort(chosen,
             [](const Stash &a, const Stash &b) { return a.made < b.made; });
  std::vector<StashMove> moves;
  std::map<std::pair<int32_t, int32_t>, size_t> numbers;
  std::vector<double> gone;
  double free = 0;
  for (const Stash &stash : chosen) {
    free = std::max(free, endOf(stash.made)) + stash.copy;
    StashMove move{stash.stage, stash.microBatch, Keeper::host()};
    move.sent = stash.made;
    move.gone = stash.made + 1;
    while (move.gone < stash.taken && startOf(move.gone) < free)
      ++move.gone;
    numbers[{stash.stage, stash.microBatch}] = moves.size();
    moves.push_back(move);
    gone.push_back(free);
  }
  // And back.
  llvm::sort(chosen,
             [](const Stash &a, const Stash &b) { return a.taken > b.taken; });
  double next = std::numeric_limits<double>::infinity();
  for (const Stash &stash : chosen) {
    const size_t number = numbers.at({stash.stage, stash.microBatch});
    StashMove &move = moves[number];
    next = std::min(next, startOf(stash.taken - 1)) - stash.copy;
    move.fetched = stash.taken - 1;
    while (move.fetched > move.gone && endOf(move.fetched) > next)
      --move.fetched;
    if (move.fetched < move.gone || next < gone[number] ||
        endOf(move.fetched) > next)
      return std::nullopt;
  }
  return moves;
}

std::vector<StashMove> RankMoves::within(double share) const {
  int64_t most = 0;
  double bytes = share * static_cast<double>(allBytes);
  for (const OfStage &of : stages) {
    auto count = static_cast<int64_t>(of.stashes.size());
    // Where stashes have no size, they count alike.
    if (allBytes == 0)
      count = static_cast<int64_t>(share * static_cast<double>(count));
    else if (of.bytes > 0)
      count = std::min(
          count, static_cast<int64_t>(bytes / static_cast<double>(of.bytes)));
    bytes -= static_cast<double>(count * of.bytes);
    most += count;
  }
  // The most that are in time; fewer always are.
  int64_t least = 0;
  std::vector<StashMove> best;
  while (least < most) {
    const int64_t tried = least + (most - least + 1) / 2;
    if (auto moves = place(choose(tried))) {
      best = std::move(*moves);
      least = tried;
    } else {
      most = tried - 1;
    }
  }
  return best;
}

llvm::Expected<std::vector<StashMove>> pipewright::schedules::movesToHost(
    const Schedule &schedule, const TaskCosts &costs,
    llvm::ArrayRef<StageEdge> edges, double share) {
  llvm::Expected<Simulation> simulation =
      simulate(schedule, withPositiveTimes(costs), edges);
  if (!simulation)
    return simulation.takeError();
  std::vector<StashMove> all;
  for (int32_t rank = 0; rank < schedule.ranks; ++rank)
    llvm::append_range(all,
                       RankMoves(schedule, costs, rank, simulation->times[rank])
                           .within(share));
  return all;
}
