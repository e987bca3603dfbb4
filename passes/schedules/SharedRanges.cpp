//===- SharedRanges.cpp - Stages that take turns in memory ----------------===//
//
// See SharedRanges.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/SharedRanges.h"

#include <algorithm>
#include <tuple>

using namespace pipewright::schedules;

std::vector<RangeTurn>
pipewright::schedules::turnsOf(llvm::ArrayRef<int32_t> users,
                               const RangeOfStage &ranges) {
  std::vector<RangeTurn> turns;
  // By range: the number of its newest turn.
  std::map<int64_t, size_t> newest;
  for (int64_t position = 0; position < static_cast<int64_t>(users.size());
       ++position) {
    auto range = ranges.find(users[position]);
    if (range == ranges.end())
      continue;
    auto [before, isFirst] = newest.insert({range->second, turns.size()});
    if (isFirst || turns[before->second].stage != users[position]) {
      RangeTurn turn;
      turn.stage = users[position];
      if (!isFirst) {
        turns[before->second].next = position;
        turn.freed = turns[before->second].tasks.back() + 1;
        before->second = turns.size();
      }
      turns.push_back(std::move(turn));
    }
    turns[before->second].tasks.push_back(position);
  }
  std::map<int32_t, RangeTurn *> latest;
  for (RangeTurn &turn : turns) {
    if (RangeTurn *before = latest[turn.stage])
      before->comesBack = true;
    latest[turn.stage] = &turn;
  }
  return turns;
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
  /// Of all ranges.
  int64_t bytes = 0;

  bool savesNothing(const BytesOfStage &ofStage, int64_t replicas) const {
    int64_t apart = 0;
    for (auto [stage, own] : ofStage)
      apart += own;
    return bytes + apart / replicas >= apart;
  }
};

} // namespace

/// Of stages one after the other, the first of which loads all it needs.
static RangeCost costOf(llvm::ArrayRef<int32_t> runs, const RangeOfStage &given,
                        const BytesOfStage &ofStage) {
  RangeCost cost;
  std::map<int64_t, int32_t> holders;
  std::map<int64_t, int64_t> largest;
  int64_t before = -1;
  for (int32_t stage : runs) {
    const int64_t range = given.at(stage), bytes = ofStage.at(stage);
    auto [holder, isFirst] = holders.insert({range, stage});
    if (isFirst || holder->second != stage) {
      cost.gathered += bytes;
      if (range == before)
        cost.exposed += bytes;
    }
    holder->second = stage;
    before = range;
    largest[range] = std::max(largest[range], bytes);
  }
  for (auto [range, bytes] : largest)
    cost.bytes += bytes;
  return cost;
}

RangeOfStage pipewright::schedules::weightRanges(llvm::ArrayRef<int32_t> users,
                                                 const BytesOfStage &bytes,
                                                 int64_t replicas,
                                                 int64_t numRanges) {
  constexpr int64_t mostWays = 4096;
  std::vector<int32_t> runs, order;
  RangeOfStage best;
  int64_t ways = 1;
  for (int32_t stage : users) {
    if (!bytes.contains(stage) || (!runs.empty() && runs.back() == stage))
      continue;
    runs.push_back(stage);
    if (best.insert({stage, static_cast<int64_t>(order.size()) % numRanges})
            .second) {
      order.push_back(stage);
      ways = std::min(ways * std::min(numRanges, mostWays), mostWays + 1);
    }
  }
  if (static_cast<int64_t>(order.size()) <= numRanges)
    return {};
  // Whether it saves memory matters most.
  auto key = [&](const RangeCost &cost) {
    return std::make_tuple(cost.savesNothing(bytes, replicas), cost.gathered,
                           cost.exposed, cost.bytes);
  };
  RangeCost least = costOf(runs, best, bytes);
  for (int64_t way = 0; ways <= mostWays && way < ways; ++way) {
    RangeOfStage other;
    int64_t rest = way;
    for (int32_t stage : order) {
      other[stage] = rest % numRanges;
      rest /= numRanges;
    }
    RangeCost cost = costOf(runs, other, bytes);
    if (key(cost) < key(least)) {
      least = cost;
      best = std::move(other);
    }
  }
  return least.savesNothing(bytes, replicas) ? RangeOfStage() : best;
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
