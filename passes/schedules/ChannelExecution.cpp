//===- ChannelExecution.cpp - The channels that lists use -------*- C++ -*-===//
//
// See ChannelExecution.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/ChannelExecution.h"

#include <array>

using namespace pipewright::schedules;

ChannelIndex::ChannelIndex(const InstructionLists &lists, ChannelLayout layout,
                           llvm::ArrayRef<RankGroup> groups)
    : layout(layout), ranks(lists.size()), endsOfRank(lists.size()) {
  auto channelOf = [](int32_t rank, int64_t key) {
    int32_t peer = static_cast<int32_t>(key / 4), part = key % 2;
    return key % 4 >= 2 ? Channel{rank, peer, part} : Channel{peer, rank, part};
  };
  for (int32_t rank = 0; rank < ranks; ++rank) {
    auto &known = endsOfRank[rank];
    for (const RankInstruction &instruction : lists[rank])
      if (instruction.isMessage() && endOf(rank, instruction) < 0)
        known.emplace_back(keyOf(instruction), 0);
    for (const auto &[key, end] : known)
      all.push_back(channelOf(rank, key));
  }
  llvm::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (int32_t rank = 0; rank < ranks; ++rank)
    for (auto &[key, end] : endsOfRank[rank]) {
      auto found = llvm::lower_bound(all, channelOf(rank, key));
      end = 2 * static_cast<int32_t>(found - all.begin()) + (key % 4 < 2);
    }
  placeQueues();
  placeGroups(groups);
}

void ChannelIndex::placeGroups(llvm::ArrayRef<RankGroup> groups) {
  std::vector<int32_t> queueOfRank(ranks, -1);
  firstOfGroup.push_back(numEnds());
  for (auto [number, group] : llvm::enumerate(groups)) {
    for (int32_t rank : group) {
      members.push_back({static_cast<int32_t>(number), rank});
      if (queueOfRank[rank] < 0)
        queueOfRank[rank] = queueCount++;
      queueOfEnd.push_back(queueOfRank[rank]);
    }
    firstOfGroup.push_back(numEnds());
  }
}

void ChannelIndex::placeQueues() {
  // By rank, and peer or part where they have queues of their own; then by
  // direction.
  using Key = std::array<int32_t, 3>;
  auto keyOfQueue = [&](int32_t end) -> Key {
    const Channel &channel = all[end / 2];
    int32_t rank = rankOf(end), peer = rankOf(end ^ 1);
    switch (layout) {
    case ChannelLayout::Link:
      return {rank, peer, end % 2};
    case ChannelLayout::Pair:
      return {rank, peer, 0};
    case ChannelLayout::Direction:
      return {rank, channel.part, 0};
    case ChannelLayout::Rank:
      return {rank, 0, 0};
    }
    return {};
  };
  std::vector<Key> keys;
  for (int32_t end = 0; end < numChannelEnds(); ++end)
    keys.push_back(keyOfQueue(end));
  llvm::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  queueCount = static_cast<int32_t>(keys.size());
  for (int32_t end = 0; end < numChannelEnds(); ++end)
    queueOfEnd.push_back(static_cast<int32_t>(
        llvm::lower_bound(keys, keyOfQueue(end)) - keys.begin()));
}
