//===- SharedCollectives.h - Collectives in common memory ------*- C++ -*-===//
//
// Members are threads of one process. One that begins leaves the address of its
// range. When all have come, the work lies there in blocks, and whoever waits
// for the collective takes one after the other: reads the members' numbers
// where they lie, adds them, and writes the sums to all that are to have them.
// So one that waits needs the others to begin, and never to wait, and a member
// that comes late does not add alone. A block's bits do not depend on who took
// it. Scratch memory is not used.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_SHAREDCOLLECTIVES_H
#define PIPEWRIGHT_RUNTIME_NET_SHAREDCOLLECTIVES_H

#include "runtime/net/Collectives.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::runtime {

class ThreadTransport;

/// One collective, as members come to it.
struct SharedMeeting {
  SharedMeeting(Collective what, size_t members);

  bool hasMet() const { return met.load(std::memory_order_acquire); }
  bool isOver() const { return over.load(std::memory_order_acquire); }

  /// As the first one gave it.
  const Collective what;
  /// By member.
  std::vector<char *> ranges;
  /// Where the blocks of what each member owns begin, and how many there are.
  std::vector<int64_t> firstBlocks;
  int64_t blocks() const { return firstBlocks.back(); }
  /// The first block that nobody has taken.
  std::atomic<int64_t> next{0};
  /// All members have come.
  std::atomic<bool> met{false};
  /// All blocks are done.
  std::atomic<bool> over{false};

  // The rest belongs to who holds the group's mutex.
  std::vector<bool> came;
  int64_t arrivals = 0;
  /// The member that came first.
  int64_t first = -1;
  /// Members that take blocks just now, and that have finished it.
  int64_t helpers = 0, finished = 0;
  /// A member's memory goes: no block may be taken any more.
  bool isWithdrawn = false;
  /// Why members do not mean the same.
  std::string difference;
};

/// A group of threads.
struct SharedGroup {
  explicit SharedGroup(std::vector<int64_t> members)
      : members(std::move(members)) {}

  /// Their ranks.
  const std::vector<int64_t> members;
  std::mutex mutex;
  std::condition_variable changed;
  /// Those that not all members have finished; `ended` were before them.
  std::deque<std::shared_ptr<SharedMeeting>> meetings;
  int64_t ended = 0;
};

class SharedCollectives : public Collectives {
public:
  /// `transport` is that of a member.
  SharedCollectives(ThreadTransport &transport, SharedGroup &group);
  /// Waits until nobody uses this member's memory.
  ~SharedCollectives() override;

  void begin(const Collective &collective, void *data, void *scratch) override;
  void finish() override;
  Traffic takeSent() override;

private:
  int64_t findMissing(const SharedMeeting &meeting) const;
  int64_t bytesOfPart(const SharedMeeting &meeting, int64_t member) const;
  void help(SharedMeeting &meeting);
  void takeBlock(const SharedMeeting &meeting, int64_t block);

  ThreadTransport &transport;
  SharedGroup &group;
  int64_t self = 0;
  /// How many this member has begun.
  int64_t count = 0;
  std::deque<std::shared_ptr<SharedMeeting>> begun;
  Traffic sent;
  /// Of the block that is being added.
  std::vector<const void *> addends;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_SHAREDCOLLECTIVES_H
