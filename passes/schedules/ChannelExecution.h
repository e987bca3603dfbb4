//===- ChannelExecution.h - Instruction lists, executed ---------*- C++ -*-===//
//
// Runs instruction lists under the rules of Channels.h. No rank and no queue
// ever has a choice: a message that can move can still move later, and moving
// it takes nothing from another. So one execution stands for all, and the
// order in which it happens to go says nothing about time; whoever wants times
// listens and computes them (ChannelSimulator.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_CHANNELEXECUTION_H
#define PIPEWRIGHT_PASSES_SCHEDULES_CHANNELEXECUTION_H

#include "passes/schedules/Channels.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

#include <utility>
#include <vector>

namespace pipewright::schedules {

inline bool isSend(InstructionKind kind) {
  return kind == InstructionKind::PostSend || kind == InstructionKind::WaitSend;
}

inline bool isPost(InstructionKind kind) {
  return kind == InstructionKind::PostSend ||
         kind == InstructionKind::PostReceive;
}

/// The channels that lists use: directed links, and under `Direction` two per
/// link. Each has two ends: 2 * channel for its sends, one more for its
/// receives.
class ChannelIndex {
public:
  struct Channel {
    int32_t from, to, part;
    auto operator<=>(const Channel &) const = default;
  };

  /// All peers are other ranks (InstructionChecker makes sure).
  ChannelIndex(const InstructionLists &lists, ChannelLayout layout);

  llvm::ArrayRef<Channel> channels() const { return all; }
  int32_t numEnds() const { return 2 * static_cast<int32_t>(all.size()); }
  int32_t numQueues() const;

  /// The end that a post or wait of `rank` belongs to.
  int32_t endOf(int32_t rank, const RankInstruction &instruction) const {
    int64_t key = keyOf(instruction);
    // A rank has few peers.
    for (const auto &[known, end] : endsOfRank[rank])
      if (known == key)
        return end;
    return -1;
  }

  int32_t rankOf(int32_t end) const {
    const Channel &channel = all[end / 2];
    return end % 2 == 0 ? channel.from : channel.to;
  }
  /// The queue that posts of an end wait in.
  int32_t queueOf(int32_t end) const {
    switch (layout) {
    case ChannelLayout::Link:
      return end;
    case ChannelLayout::Direction:
      return 2 * rankOf(end) + all[end / 2].part;
    case ChannelLayout::Rank:
      return rankOf(end);
    }
    return end;
  }

private:
  int64_t keyOf(const RankInstruction &instruction) const {
    return 4 * static_cast<int64_t>(instruction.peer) +
           2 * isSend(instruction.kind) + partOf(layout, instruction.transfer);
  }

  ChannelLayout layout;
  int64_t ranks;
  std::vector<Channel> all;
  /// By rank: the ends that it has, by key.
  std::vector<std::vector<std::pair<int64_t, int32_t>>> endsOfRank;
};

/// Hears what an execution does. `message` counts those of one channel.
struct ChannelListener {
  void task(int32_t rank, size_t position) {}
  void post(int32_t rank, int32_t end) {}
  /// A message goes from the head of a queue to the head of another.
  void transfer(int32_t channel, int64_t message) {}
  /// A message goes from the head of a queue to a buffer, or from there to the
  /// head of a queue.
  void send(int32_t channel, int64_t message) {}
  void receive(int32_t channel, int64_t message) {}
  void waited(int32_t rank, int32_t end, int64_t message) {}
};

/// What an execution counts for one end of a channel; waits <= moved <= posts.
struct EndState {
  int64_t posts = 0, moved = 0, waits = 0;
};

/// Posts of a queue, named by their ends, of which some have moved.
class MessageQueue {
public:
  bool empty() const { return head == ends.size(); }
  int32_t front() const { return ends[head]; }
  void push(int32_t end) { ends.push_back(end); }
  void pop() {
    // Queues run empty all the time, so this bounds their memory.
    if (++head == ends.size()) {
      ends.clear();
      head = 0;
    }
  }

private:
  std::vector<int32_t> ends;
  size_t head = 0;
};

template <typename Listener = ChannelListener>
class ChannelExecution {
public:
  /// Each wait completes the oldest post of its end (the checker's matter).
  ChannelExecution(const InstructionLists &lists, const ChannelIndex &index,
                   Buffering buffering, Listener &listener)
      : lists(lists), index(index), buffers(buffering.messages),
        listener(listener), position(lists.size()), blockedOn(lists.size(), -1),
        ends(index.numEnds()), queues(index.numQueues()) {}

  /// Whether every list runs to its end.
  bool run() {
    for (int32_t rank = static_cast<int32_t>(lists.size()) - 1; rank >= 0;
         --rank)
      ready.push_back(rank);
    size_t finished = 0;
    while (!ready.empty()) {
      int32_t rank = ready.back();
      ready.pop_back();
      finished += advance(rank);
    }
    return finished == lists.size();
  }

  // Where it stands; of use when it is stuck.
  size_t positionOf(int32_t rank) const { return position[rank]; }
  /// The end that a rank waits at, -1 if it does not.
  int32_t waitOf(int32_t rank) const { return blockedOn[rank]; }
  const EndState &end(int32_t end) const { return ends[end]; }
  const MessageQueue &queue(int32_t queue) const { return queues[queue]; }

private:
  /// Until the rank has to wait; true at its end.
  bool advance(int32_t rank) {
    size_t &at = position[rank];
    for (; at < lists[rank].size(); ++at) {
      const RankInstruction &instruction = lists[rank][at];
      if (instruction.kind == InstructionKind::Task) {
        listener.task(rank, at);
        continue;
      }
      int32_t end = index.endOf(rank, instruction);
      EndState &state = ends[end];
      if (isPost(instruction.kind)) {
        ++state.posts;
        listener.post(rank, end);
        int32_t queue = index.queueOf(end);
        bool isHead = queues[queue].empty();
        queues[queue].push(end);
        if (isHead)
          settle(queue);
      } else if (state.waits < state.moved) {
        listener.waited(rank, end, state.waits++);
      } else {
        blockedOn[rank] = end;
        return false;
      }
    }
    return true;
  }

  /// Moves what can move after the head of a queue changed.
  void settle(int32_t queue) {
    changed.push_back(queue);
    while (!changed.empty()) {
      int32_t next = changed.back();
      changed.pop_back();
      while (!queues[next].empty() && moveHead(queues[next]))
        ;
    }
  }

  bool moveHead(MessageQueue &queue) {
    int32_t end = queue.front(), other = end ^ 1, channel = end / 2;
    EndState &sends = ends[2 * channel], &receives = ends[2 * channel + 1];
    int32_t otherQueue = index.queueOf(other);
    if (buffers == 0) {
      MessageQueue &peer = queues[otherQueue];
      if (peer.empty() || peer.front() != other)
        return false;
      listener.transfer(channel, sends.moved);
      peer.pop();
      move(other);
    } else if (end % 2 == 0) {
      if (sends.moved - receives.moved >= buffers)
        return false;
      listener.send(channel, sends.moved);
    } else {
      if (sends.moved == receives.moved)
        return false;
      listener.receive(channel, receives.moved);
    }
    queue.pop();
    move(end);
    changed.push_back(otherQueue);
    return true;
  }

  void move(int32_t end) {
    ++ends[end].moved;
    int32_t rank = index.rankOf(end);
    if (blockedOn[rank] == end) {
      blockedOn[rank] = -1;
      ready.push_back(rank);
    }
  }

  const InstructionLists &lists;
  const ChannelIndex &index;
  int64_t buffers;
  Listener &listener;
  std::vector<size_t> position;
  std::vector<int32_t> blockedOn;
  std::vector<EndState> ends;
  std::vector<MessageQueue> queues;
  std::vector<int32_t> ready, changed;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_CHANNELEXECUTION_H
