//===- ChannelExecution.cpp - The channels that lists use -------*- C++ -*-===//
//
// See ChannelExecution.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/ChannelExecution.h"

using namespace pipewright::schedules;

ChannelIndex::ChannelIndex(const InstructionLists &lists, ChannelLayout layout)
    : layout(layout), ranks(lists.size()), endsOfRank(lists.size()) {
  auto channelOf = [](int32_t rank, int64_t key) {
    int32_t peer = static_cast<int32_t>(key / 4), part = key % 2;
    return key % 4 >= 2 ? Channel{rank, peer, part} : Channel{peer, rank, part};
  };
  for (int32_t rank = 0; rank < ranks; ++rank) {
    auto &known = endsOfRank[rank];
    for (const RankInstruction &instruction : lists[rank])
      if (instruction.kind != InstructionKind::Task &&
          endOf(rank, instruction) < 0)
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
}

int32_t ChannelIndex::numQueues() const {
  switch (layout) {
  case ChannelLayout::Link:
    return numEnds();
  case ChannelLayout::Direction:
    return static_cast<int32_t>(2 * ranks);
  case ChannelLayout::Rank:
    return static_cast<int32_t>(ranks);
  }
  return 0;
}
