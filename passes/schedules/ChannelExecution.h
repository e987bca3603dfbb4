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
#include "llvm/ADT/Sequence.h"

#include <utility>
#include <vector>

namespace pipewright::schedules {

inline bool isSend(InstructionKind kind) {
  return kind == InstructionKind::PostSend || kind == InstructionKind::WaitSend;
}

inline bool isPost(InstructionKind kind) {
  return kind == InstructionKind::PostSend ||
         kind == InstructionKind::PostReceive ||
         kind == InstructionKind::PostCollective;
}

/// The channels that lists use: directed links, and under `Direction` two per
/// link. Each has two ends: 2 * channel for its sends, one more for its
/// receives. Behind them are the ends of groups, one for each member.
class ChannelIndex {
public:
  struct Channel {
    int32_t from, to, part;
    auto operator<=>(const Channel &) const = default;
  };

  /// All peers are other ranks, and ranks are members of the groups that they
  /// name (the checker makes sure).
  ChannelIndex(const InstructionLists &lists, ChannelLayout layout,
               llvm::ArrayRef<RankGroup> groups = {});

  llvm::ArrayRef<Channel> channels() const { return all; }
  int32_t numEnds() const {
    return numChannelEnds() + static_cast<int32_t>(members.size());
  }
  int32_t numQueues() const { return queueCount; }

  /// The end that a post or wait of `rank` belongs to.
  int32_t endOf(int32_t rank, const RankInstruction &instruction) const {
    if (instruction.isCollective())
      return endOfMember(rank, instruction.group);
    int64_t key = keyOf(instruction);
    // A rank has few peers.
    for (const auto &[known, end] : endsOfRank[rank])
      if (known == key)
        return end;
    return -1;
  }

  /// Whether an end is a group's; else it is a channel's.
  bool isMember(int32_t end) const { return end >= numChannelEnds(); }
  int32_t groupOf(int32_t end) const {
    return members[end - numChannelEnds()].group;
  }
  /// The ends of a group's members, in their order.
  auto endsOfGroup(int32_t group) const {
    return llvm::seq<int32_t>(firstOfGroup[group], firstOfGroup[group + 1]);
  }

  int32_t rankOf(int32_t end) const {
    if (isMember(end))
      return members[end - numChannelEnds()].rank;
    const Channel &channel = all[end / 2];
    return end % 2 == 0 ? channel.from : channel.to;
  }
  /// The queue that posts of an end wait in.
  int32_t queueOf(int32_t end) const { return queueOfEnd[end]; }

private:
  int64_t keyOf(const RankInstruction &instruction) const {
    return 4 * static_cast<int64_t>(instruction.peer) +
           2 * isSend(instruction.kind) + partOf(layout, instruction.transfer);
  }

  struct Member {
    int32_t group, rank;
  };

  void placeQueues();
  void placeGroups(llvm::ArrayRef<RankGroup> groups);
  int32_t endOfMember(int32_t rank, int32_t group) const {
    for (int32_t end : endsOfGroup(group))
      if (rankOf(end) == rank)
        return end;
    return -1;
  }
  int32_t numChannelEnds() const {
    return 2 * static_cast<int32_t>(all.size());
  }

  ChannelLayout layout;
  int64_t ranks;
  std::vector<Channel> all;
  std::vector<int32_t> queueOfEnd;
  int32_t queueCount = 0;
  /// The ends that each rank has, sorted by key.
  std::vector<std::vector<std::pair<int64_t, int32_t>>> endsOfRank;
  /// The members of all groups in turn, and the first end of each group.
  std::vector<Member> members;
  std::vector<int32_t> firstOfGroup;
};

/// A post in a queue, by its end.
struct QueuedPost {
  int32_t end;
  bool groupedWithNext = false;
  bool moved = false;
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
  /// A collective of a group is at the head of all its members' queues.
  void collective(int32_t group, int64_t number) {}
  /// The head of a queue has moved, all messages of it, and leaves; comes after
  /// the moves. `ends` has the end of each.
  void leave(int32_t queue, llvm::ArrayRef<QueuedPost> posts) {}
  void waited(int32_t rank, int32_t end, int64_t message) {}
};

/// What an execution counts for one end of a channel; waits <= left <= moved <=
/// posts.
struct EndState {
  int64_t posts = 0, moved = 0, left = 0, waits = 0;
};

/// Posts of a queue, of which some have left.
class MessageQueue {
public:
  bool empty() const { return begin == posts.size(); }
  /// The post at the head, or those of the group at the head.
  llvm::ArrayRef<QueuedPost> head() const {
    size_t end = begin + 1;
    while (posts[end - 1].groupedWithNext)
      ++end;
    return llvm::ArrayRef<QueuedPost>(posts).slice(begin, end - begin);
  }
  /// The end of the oldest post at the head that has not moved.
  int32_t front() const {
    return llvm::find_if(head(), [](const auto &post) { return !post.moved; })
        ->end;
  }
  /// Whether a post of `end` is at the head and has not moved.
  bool awaits(int32_t end) const {
    return !empty() && llvm::any_of(head(), [&](const QueuedPost &post) {
      return post.end == end && !post.moved;
    });
  }

  void push(int32_t end) { posts.push_back({end}); }
  /// The next post belongs to the group of the last one.
  void group() { posts.back().groupedWithNext = true; }
  /// The oldest post of `end` at the head moves; true if it is the last one.
  bool move(int32_t end) {
    size_t at = begin;
    while (posts[at].end != end || posts[at].moved)
      ++at;
    posts[at].moved = true;
    return llvm::all_of(head(), [](const auto &post) { return post.moved; });
  }
  void pop() {
    begin += head().size();
    // Queues run empty all the time, so this bounds their memory.
    if (empty()) {
      posts.clear();
      begin = 0;
    }
  }

private:
  std::vector<QueuedPost> posts;
  size_t begin = 0;
};

template <typename Listener = ChannelListener>
class ChannelExecution {
public:
  /// Each wait completes the oldest post of its end, groups are posts in a row,
  /// and both ends of a channel have as many (the checker's matter).
  ChannelExecution(const InstructionLists &lists, const ChannelIndex &index,
                   Buffering buffering, Listener &listener)
      : lists(lists), index(index), buffering(buffering), listener(listener),
        position(lists.size()), blockedOn(lists.size(), -1),
        ends(index.numEnds()), queues(index.numQueues()) {
    if (buffering.bytes != Buffering::unlimited)
      collectSizes();
  }

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

  // The accessors of where it stands say why it is stuck, when it is.
  size_t positionOf(int32_t rank) const { return position[rank]; }
  /// The end that a rank waits at, -1 if it does not.
  int32_t waitOf(int32_t rank) const { return blockedOn[rank]; }
  const EndState &end(int32_t end) const { return ends[end]; }
  const MessageQueue &queue(int32_t queue) const { return queues[queue]; }
  /// Whether the next send of a channel goes to a buffer, if there is room.
  bool isBuffered(int32_t channel) const {
    return buffering.holds(sizeOf(channel, ends[2 * channel].moved));
  }

private:
  /// Runs the rank until it has to wait; true if it has come to its end.
  bool advance(int32_t rank) {
    size_t &at = position[rank];
    while (at < lists[rank].size()) {
      const RankInstruction &instruction = lists[rank][at];
      if (instruction.kind == InstructionKind::Task) {
        listener.task(rank, at++);
        continue;
      }
      // A copy needs nobody else, so it holds nobody up.
      if (instruction.isCopy()) {
        ++at;
        continue;
      }
      if (isPost(instruction.kind)) {
        post(rank);
        continue;
      }
      int32_t end = index.endOf(rank, instruction);
      EndState &state = ends[end];
      if (state.waits == state.left) {
        blockedOn[rank] = end;
        return false;
      }
      listener.waited(rank, end, state.waits++);
      ++at;
    }
    return true;
  }

  /// The post where the rank stands, or the group that begins there.
  void post(int32_t rank) {
    size_t &at = position[rank];
    touched.clear();
    for (bool isLast = false; !isLast; ++at) {
      const RankInstruction &instruction = lists[rank][at];
      isLast = !instruction.groupedWithNext;
      int32_t end = index.endOf(rank, instruction);
      ++ends[end].posts;
      listener.post(rank, end);
      int32_t queue = index.queueOf(end);
      if (llvm::is_contained(touched, queue)) {
        queues[queue].group();
      } else {
        touched.push_back(queue);
        // Behind another head, nothing changes.
        if (queues[queue].empty())
          changed.push_back(queue);
      }
      queues[queue].push(end);
    }
    settle();
  }

  /// Moves what can move after the heads of queues changed.
  void settle() {
    while (!changed.empty()) {
      int32_t next = changed.back();
      changed.pop_back();
      while (!queues[next].empty() && moveAny(next))
        ;
    }
  }

  /// Moves some message at the head of a queue; false where none can move.
  bool moveAny(int32_t queue) {
    for (const QueuedPost &post : queues[queue].head())
      if (!post.moved && tryMove(post.end))
        return true;
    return false;
  }

  /// Moves a collective that is at the head of the queues of all its members.
  bool tryTogether(int32_t end) {
    int32_t group = index.groupOf(end);
    auto ends = index.endsOfGroup(group);
    if (!llvm::all_of(ends, [&](int32_t each) {
          return queues[index.queueOf(each)].awaits(each);
        }))
      return false;
    listener.collective(group, this->ends[end].moved);
    for (int32_t each : ends) {
      move(each);
      changed.push_back(index.queueOf(each));
    }
    return true;
  }

  bool tryMove(int32_t end) {
    if (index.isMember(end))
      return tryTogether(end);
    int32_t channel = end / 2, other = end ^ 1;
    bool isSend = end % 2 == 0;
    EndState &sends = ends[2 * channel], &receives = ends[2 * channel + 1];
    int32_t otherQueue = index.queueOf(other);
    if (!isSend && sends.moved > receives.moved) {
      listener.receive(channel, receives.moved);
      held(channel) -= sizeOf(channel, receives.moved);
    } else if (sends.moved == receives.moved && !isBuffered(channel)) {
      if (!queues[otherQueue].awaits(other))
        return false;
      listener.transfer(channel, sends.moved);
      move(other);
    } else if (isSend && hasRoom(channel)) {
      listener.send(channel, sends.moved);
      held(channel) += sizeOf(channel, sends.moved);
    } else {
      return false;
    }
    move(end);
    changed.push_back(otherQueue);
    return true;
  }

  bool hasRoom(int32_t channel) {
    const EndState &sends = ends[2 * channel];
    int64_t size = sizeOf(channel, sends.moved);
    return buffering.holds(size) &&
           sends.moved - ends[2 * channel + 1].moved < buffering.messages &&
           held(channel) <= buffering.bytes - size;
  }

  void move(int32_t end) {
    ++ends[end].moved;
    MessageQueue &queue = queues[index.queueOf(end)];
    if (!queue.move(end))
      return;
    llvm::ArrayRef<QueuedPost> head = queue.head();
    listener.leave(index.queueOf(end), head);
    for (const QueuedPost &post : head) {
      ++ends[post.end].left;
      int32_t rank = index.rankOf(post.end);
      if (blockedOn[rank] == post.end) {
        blockedOn[rank] = -1;
        ready.push_back(rank);
      }
    }
    queue.pop();
  }

  /// Indexed by channel and message; filled only where bytes matter.
  void collectSizes() {
    sizes.resize(index.channels().size());
    heldBytes.resize(sizes.size());
    for (int32_t rank = 0; rank < static_cast<int32_t>(lists.size()); ++rank)
      for (const RankInstruction &instruction : lists[rank])
        if (instruction.kind == InstructionKind::PostSend)
          sizes[index.endOf(rank, instruction) / 2].push_back(
              instruction.bytes);
  }
  int64_t sizeOf(int32_t channel, int64_t message) const {
    bool isKnown =
        !sizes.empty() && message < static_cast<int64_t>(sizes[channel].size());
    return isKnown ? sizes[channel][message] : 0;
  }
  int64_t &held(int32_t channel) {
    return heldBytes.empty() ? nothingHeld : heldBytes[channel];
  }

  const InstructionLists &lists;
  const ChannelIndex &index;
  Buffering buffering;
  Listener &listener;
  std::vector<size_t> position;
  std::vector<int32_t> blockedOn;
  std::vector<EndState> ends;
  std::vector<MessageQueue> queues;
  std::vector<int32_t> ready, changed, touched;
  std::vector<std::vector<int64_t>> sizes;
  std::vector<int64_t> heldBytes;
  int64_t nothingHeld = 0;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_CHANNELEXECUTION_H
