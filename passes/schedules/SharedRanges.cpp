//===- SharedRanges.cpp - Stages that take turns in memory ----------------===//
//
// See SharedRanges.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/SharedRanges.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

using namespace pipewright::schedules;

std::vector<RangeTurn>
pipewright::schedules::turnsOf(llvm::ArrayRef<int32_t> users,
                               llvm::ArrayRef<int64_t> ranges) {
  std::vector<RangeTurn> turns;
  // By range, and by stage: the number of its newest turn.
  std::map<int64_t, size_t> newest;
  std::map<int32_t, size_t> latest;
  for (int64_t position = 0; position < static_cast<int64_t>(users.size());
       ++position) {
    if (ranges[position] < 0)
      continue;
    auto [before, isFirst] = newest.insert({ranges[position], turns.size()});
    if (isFirst || turns[before->second].stage != users[position]) {
      RangeTurn turn;
      turn.stage = users[position];
      if (!isFirst) {
        turns[before->second].next = position;
        turn.freed = turns[before->second].tasks.back() + 1;
        before->second = turns.size();
      }
      auto [own, isNew] = latest.insert({turn.stage, turns.size()});
      if (!isNew) {
        turns[own->second].comesBack = true;
        turn.freed = std::max(turn.freed, turns[own->second].tasks.back() + 1);
        own->second = turns.size();
      }
      turns.push_back(std::move(turn));
    }
    turns[before->second].tasks.push_back(position);
  }
  return turns;
}

std::vector<int64_t>
pipewright::schedules::rangesOf(llvm::ArrayRef<int32_t> users,
                                const RangeOfStage &ranges) {
  std::vector<int64_t> all;
  for (int32_t stage : users) {
    auto range = ranges.find(stage);
    all.push_back(range == ranges.end() ? -1 : range->second);
  }
  return all;
}

RangeOfStage pipewright::schedules::rangesInTurns(llvm::ArrayRef<int32_t> users,
                                                  int64_t numRanges) {
  RangeOfStage ranges;
  for (int32_t stage : users)
    if (stage >= 0)
      ranges.insert({stage, static_cast<int64_t>(ranges.size()) % numRanges});
  return ranges;
}

namespace {

/// What it costs that stages have those ranges.
struct RangeCost {
  int64_t gathered = 0;
  /// Of these: by a task right behind one that reads what was there before.
  int64_t exposed = 0;
  /// By range.
  std::vector<int64_t> room;

  int64_t bytes() const {
    return std::accumulate(room.begin(), room.end(), int64_t{0});
  }
  bool savesNothing(const BytesOfStage &ofStage, int64_t replicas) const {
    int64_t apart = 0;
    for (auto [stage, own] : ofStage)
      apart += own;
    return bytes() + apart / replicas >= apart;
  }
};

} // namespace

WeightRanges::WeightRanges(BytesOfStage bytes, std::vector<int64_t> room)
    : bytes(std::move(bytes)), room(std::move(room)) {}

std::vector<int64_t> WeightRanges::of(llvm::ArrayRef<int32_t> users) const {
  if (!areAny())
    return rangesOf(users, ofStage);
  // Where each user's stage is read again behind it.
  const auto end = static_cast<int64_t>(users.size());
  std::vector<int64_t> next(users.size(), end);
  std::map<int32_t, int64_t> later;
  for (int64_t position = end - 1; position >= 0; --position) {
    auto [found, isLast] = later.insert({users[position], position});
    if (!isLast)
      next[position] = std::exchange(found->second, position);
  }
  struct Range {
    int32_t stage = -1;
    int64_t last = -1, next = 0;
  };
  std::vector<Range> ranges(room.size());
  // One that has it; else an empty one, the smallest; else the one that is read
  // again last, and of those that never are, the one that is free first.
  auto key = [&](int64_t number, int32_t stage) {
    const Range &range = ranges[number];
    const bool isEmpty = range.stage < 0;
    return std::make_tuple(room[number] >= bytes.at(stage),
                           range.stage == stage, isEmpty,
                           isEmpty ? -room[number] : range.next, -range.last);
  };
  std::vector<int64_t> all(users.size(), -1);
  for (int64_t position = 0; position < end; ++position) {
    const int32_t stage = users[position];
    if (!contains(stage))
      continue;
    int64_t best = 0;
    for (int64_t other = 1; other < static_cast<int64_t>(room.size()); ++other)
      if (key(other, stage) > key(best, stage))
        best = other;
    ranges[best] = {stage, position, next[position]};
    all[position] = best;
  }
  return all;
}

/// Of stages one after the other, the first of which loads all it needs.
static RangeCost costOf(llvm::ArrayRef<int32_t> runs, const WeightRanges &given,
                        const BytesOfStage &ofStage) {
  RangeCost cost;
  std::map<int64_t, int32_t> holders;
  int64_t before = -1;
  const std::vector<int64_t> ranges = given.of(runs);
  for (size_t run = 0; run < runs.size(); ++run) {
    const int32_t stage = runs[run];
    const int64_t range = ranges[run], bytes = ofStage.at(stage);
    auto [holder, isFirst] = holders.insert({range, stage});
    if (isFirst || holder->second != stage) {
      cost.gathered += bytes;
      if (range == before)
        cost.exposed += bytes;
    }
    holder->second = stage;
    before = range;
    if (range >= static_cast<int64_t>(cost.room.size()))
      cost.room.resize(range + 1);
    cost.room[range] = std::max(cost.room[range], bytes);
  }
  return cost;
}

WeightRanges pipewright::schedules::chooseWeightRanges(
    llvm::ArrayRef<int32_t> users, const BytesOfStage &bytes, int64_t replicas,
    int64_t numRanges, bool mayMove) {
  constexpr int64_t mostWays = 4096;
  std::vector<int32_t> runs, order;
  RangeOfStage inTurns;
  int64_t ways = 1;
  for (int32_t stage : users) {
    if (!bytes.contains(stage) || (!runs.empty() && runs.back() == stage))
      continue;
    runs.push_back(stage);
    if (inTurns.insert({stage, static_cast<int64_t>(order.size()) % numRanges})
            .second) {
      order.push_back(stage);
      ways = std::min(ways * std::min(numRanges, mostWays), mostWays + 1);
    }
  }
  if (static_cast<int64_t>(order.size()) <= numRanges)
    return {};
  // Whether it saves memory matters most.
  WeightRanges best(std::move(inTurns));
  auto key = [&](const WeightRanges &ranges) {
    const RangeCost cost = costOf(runs, ranges, bytes);
    return std::make_tuple(cost.savesNothing(bytes, replicas), cost.gathered,
                           ranges.areAny(), cost.exposed, cost.bytes());
  };
  auto least = key(best);
  auto tryOut = [&](WeightRanges other) {
    if (auto found = key(other); found < least) {
      least = found;
      best = std::move(other);
    }
  };
  for (int64_t way = 0; ways <= mostWays && way < ways; ++way) {
    RangeOfStage other;
    int64_t rest = way;
    for (int32_t stage : order) {
      other[stage] = rest % numRanges;
      rest /= numRanges;
    }
    tryOut(WeightRanges(std::move(other)));
  }
  if (mayMove)
    tryOut(WeightRanges(bytes, costOf(runs, best, bytes).room));
  return std::get<0>(least) ? WeightRanges() : best;
}

std::vector<int32_t>
pipewright::schedules::stagesReadLater(llvm::ArrayRef<int32_t> users) {
  std::vector<int32_t> later;
  for (int32_t stage : users.empty() ? users : users.drop_front())
    if (stage >= 0 && stage != users.front() &&
        std::find(later.begin(), later.end(), stage) == later.end())
      later.push_back(stage);
  return later;
}

bool pipewright::schedules::savesMemory(llvm::ArrayRef<RangeTurn> turns,
                                        const RangeOfStage &ranges,
                                        const BytesOfStage &bytes,
                                        int64_t replicas) {
  struct Needs {
    int64_t range = 0, fromOthers = 0;
  };
  std::map<int64_t, Needs> needs;
  std::map<int32_t, bool> comesBack;
  for (const RangeTurn &turn : turns)
    comesBack[turn.stage] |= turn.comesBack;
  int64_t apart = 0, shared = 0;
  for (auto [stage, range] : ranges) {
    Needs &most = needs[range];
    const int64_t own = bytes.at(stage), part = own / replicas;
    apart += own;
    most.range = std::max(most.range, own);
    if (comesBack[stage]) {
      most.fromOthers = std::max(most.fromOthers, own - part);
      shared += part;
    }
  }
  for (const auto &[range, most] : needs)
    shared += most.range + most.fromOthers;
  return shared < apart;
}
