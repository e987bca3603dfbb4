//===- ThreadTransport.h - Ranks as threads of one process -----*- C++ -*-===//
//
// Of the two ends of a link, whoever comes second copies straight from the
// sender's memory to the receiver's. Waits spin briefly, then sleep.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_THREADTRANSPORT_H
#define PIPEWRIGHT_RUNTIME_NET_THREADTRANSPORT_H

#include "runtime/net/Transport.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace pipewright::runtime {

/// What the threads share: all links, and the first failure.
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
  /// One directed link. `sends` and `receives` are never both non-empty.
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

  Link &link(int64_t from, int64_t to) { return links[from * ranks + to]; }

  const int64_t ranks;
  std::vector<Link> links;
  std::atomic<bool> aborted{false};
  std::mutex mutex;
  std::condition_variable changed;
  std::string firstFailure;
  int64_t arrived = 0;
  int64_t generation = 0;
  std::vector<bool> present;
  /// What each rank waits for, and how far it has come.
  std::mutex signMutex;
  std::vector<Sign> signs;
  std::vector<bool> ended;
  std::vector<std::vector<double>> contributions;
};

class ThreadTransport : public Transport {
public:
  ThreadTransport(ThreadWorld &world, int64_t rank);
  ~ThreadTransport() override;

  int64_t rank() const override { return self; }
  int64_t size() const override { return world.size(); }
  void postSend(int64_t peer, const void *data, int64_t bytes) override;
  void postReceive(int64_t peer, void *data, int64_t bytes) override;
  void waitSend(int64_t peer) override;
  void waitReceive(int64_t peer) override;
  void poll() override;
  void barrier() override;
  void sumToAll(double *values, int64_t count) override;
  void abort(const std::string &message) override;

private:
  using Link = ThreadWorld::Link;

  void complete(int64_t from, int64_t to, const ThreadWorld::Pending &send,
                const ThreadWorld::Pending &receive);
  void wait(int64_t from, int64_t to, std::deque<int64_t> &sizes,
            int64_t &waited, Sign::What what);
  /// Sleeps until `test` holds, which it returns, or until the deadline has
  /// passed. Throws an Error if all ranks wait and none comes further.
  bool sleepUntil(std::condition_variable &changed,
                  std::unique_lock<std::mutex> &lock, Sign::What what,
                  int64_t peer, int64_t bytes,
                  const std::function<bool()> &test);
  void judge(Liveness &liveness, const Sign &own);
  [[noreturn]] void failAborted() const;

  ThreadWorld &world;
  const int64_t self;
  /// Per peer: sizes of outstanding posts, and how many were waited for.
  std::vector<std::deque<int64_t>> sendSizes, receiveSizes;
  std::vector<int64_t> sendsWaited, receivesWaited;
  int64_t steps = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_THREADTRANSPORT_H
