//===- ThreadTransport.h - Ranks as threads of one process -----*- C++ -*-===//
//
// Whichever end of a link comes second copies straight from the sender's
// memory to the receiver's. Collectives read and write the members' memory
// (SharedCollectives.h). Waits spin briefly, then sleep.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_THREADTRANSPORT_H
#define PIPEWRIGHT_RUNTIME_NET_THREADTRANSPORT_H

#include "runtime/net/SharedCollectives.h"
#include "runtime/net/Transport.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace pipewright::runtime {

/// What the threads share: all links and groups, and the first failure.
class ThreadWorld {
public:
  explicit ThreadWorld(int64_t size);

  int64_t size() const { return ranks; }
  bool failed() const { return aborted.load(std::memory_order_acquire); }
  /// The first message given to abort; empty when all went well.
  std::string failure();

private:
  friend class ThreadTransport;

  struct Pending {
    void *data;
    int64_t bytes;
  };
  /// One lane of a directed link. `sends` and `receives` are never both
  /// non-empty.
  struct Link {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Pending> sends;
    std::deque<Pending> receives;
    /// How many pairs have met.
    std::atomic<int64_t> completed{0};
    /// Sizes of the pair that did not fit; the link is dead from then on.
    std::atomic<bool> mismatch{false};
    int64_t sentBytes = 0;
    int64_t expectedBytes = 0;
  };

  Link &link(int64_t from, int64_t to, Lane lane) {
    return links[from * ranks * laneCount + Line(to, lane).index()];
  }

  /// The group that these ranks open as their n-th of the same members.
  SharedGroup &group(const std::vector<int64_t> &members, int64_t number);

  const int64_t ranks;
  std::vector<Link> links;
  std::mutex groupMutex;
  std::map<std::pair<std::vector<int64_t>, int64_t>, SharedGroup> groups;
  std::atomic<bool> aborted{false};
  std::mutex mutex;
  std::string firstFailure;
  /// What each rank waits for, and how far it has come.
  std::mutex signMutex;
  std::vector<Sign> signs;
  std::vector<bool> ended;
};

class ThreadTransport : public Transport {
public:
  ThreadTransport(ThreadWorld &world, int64_t rank);
  ~ThreadTransport() override;

  int64_t rank() const override { return self; }
  int64_t size() const override { return world.size(); }
  void postSend(Line to, const void *data, int64_t bytes) override;
  void postReceive(Line from, void *data, int64_t bytes) override;
  void waitSend(Line to) override;
  void waitReceive(Line from) override;
  bool isOver(Line line, bool isSend) override;
  void poll() override;
  void abort(const std::string &message) override;
  std::unique_ptr<Collectives>
  openShared(const std::vector<int64_t> &members) override;

  /// Waits until `test` holds, after whose change somebody wakes `changed`.
  /// Throws an Error if all ranks wait and none comes further, one has failed,
  /// or the deadline passes; it says what is waited for.
  void waitUntil(const std::function<bool()> &test,
                 std::condition_variable &changed, std::mutex &mutex,
                 Sign::WaitReason what, int64_t peer, int64_t bytes);

private:
  using Link = ThreadWorld::Link;
  /// This rank's posts at one end of a lane.
  struct Posted {
    /// The sizes of the posts that are outstanding.
    std::deque<int64_t> sizes;
    int64_t waited = 0;
  };

  Link &outLink(Line to) { return world.link(self, to.peer, to.lane); }
  Link &inLink(Line from) { return world.link(from.peer, self, from.lane); }
  void complete(Link &link, const ThreadWorld::Pending &send,
                const ThreadWorld::Pending &receive);
  void wait(Line line, bool isSend);
  /// Sleeps until `test` holds, which it returns, or until the deadline has
  /// passed. Throws an Error if all ranks wait and none comes further.
  bool sleepUntil(std::condition_variable &changed,
                  std::unique_lock<std::mutex> &lock, Sign::WaitReason what,
                  int64_t peer, int64_t bytes,
                  const std::function<bool()> &test);
  void judge(Liveness &liveness, const Sign &own);

  ThreadWorld &world;
  const int64_t self;
  /// The posts of each line.
  std::vector<Posted> sends, receives;
  /// How many groups of these members it has opened.
  std::map<std::vector<int64_t>, int64_t> opened;
  int64_t steps = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_THREADTRANSPORT_H
