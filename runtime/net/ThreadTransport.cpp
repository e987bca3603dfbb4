//===- ThreadTransport.cpp - Ranks as threads of one process --------------===//

#include "runtime/net/ThreadTransport.h"
#include "runtime/core/Error.h"
#include "runtime/net/Heartbeat.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace pipewright::runtime;

using Clock = std::chrono::steady_clock;

static void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// About 50 microseconds: longer than a hand-over, shorter than a sleep costs.
static constexpr int spinRounds = 1000;

ThreadWorld::ThreadWorld(int64_t size)
    : ranks(size), links(size * size), present(size), signs(size), ended(size),
      contributions(size) {}

std::string ThreadWorld::failure() {
  std::lock_guard<std::mutex> lock(mutex);
  return firstFailure;
}

ThreadTransport::ThreadTransport(ThreadWorld &world, int64_t rank)
    : world(world), self(rank), sendSizes(world.size()),
      receiveSizes(world.size()), sendsWaited(world.size()),
      receivesWaited(world.size()) {}

ThreadTransport::~ThreadTransport() {
  std::lock_guard<std::mutex> lock(world.signMutex);
  world.ended[self] = true;
}

void ThreadTransport::failAborted() const {
  throw Aborted("stopped because another rank failed");
}

/// Copies one pair that has met. The link's mutex is held.
void ThreadTransport::complete(int64_t from, int64_t to,
                               const ThreadWorld::Pending &send,
                               const ThreadWorld::Pending &receive) {
  Link &link = world.link(from, to);
  if (send.bytes != receive.bytes) {
    link.sentBytes = send.bytes;
    link.expectedBytes = receive.bytes;
    link.mismatch.store(true, std::memory_order_release);
    link.changed.notify_all();
    failSizes(from, to, send.bytes, receive.bytes);
  }
  if (send.bytes)
    std::memcpy(receive.data, send.data, send.bytes);
  link.completed.fetch_add(1, std::memory_order_release);
  link.changed.notify_all();
}

void ThreadTransport::postSend(int64_t peer, const void *data, int64_t bytes) {
  Link &link = world.link(self, peer);
  sendSizes[peer].push_back(bytes);
  std::lock_guard<std::mutex> lock(link.mutex);
  const ThreadWorld::Pending send = {const_cast<void *>(data), bytes};
  if (link.receives.empty()) {
    link.sends.push_back(send);
    return;
  }
  const ThreadWorld::Pending receive = link.receives.front();
  link.receives.pop_front();
  complete(self, peer, send, receive);
}

void ThreadTransport::postReceive(int64_t peer, void *data, int64_t bytes) {
  Link &link = world.link(peer, self);
  receiveSizes[peer].push_back(bytes);
  std::lock_guard<std::mutex> lock(link.mutex);
  const ThreadWorld::Pending receive = {data, bytes};
  if (link.sends.empty()) {
    link.receives.push_back(receive);
    return;
  }
  const ThreadWorld::Pending send = link.sends.front();
  link.sends.pop_front();
  complete(peer, self, send, receive);
}

/// Looks at what all ranks say of themselves.
void ThreadTransport::judge(Liveness &liveness, const Sign &own) {
  const auto now = Clock::now();
  {
    std::lock_guard<std::mutex> lock(world.signMutex);
    world.signs[self] = own;
    for (int64_t r = 0; r < world.size(); ++r) {
      liveness.hear(r, world.signs[r], now);
      if (world.ended[r])
        liveness.end(r);
    }
  }
  if (!hasDeadline() && liveness.isStuck(silenceSeconds))
    fail(stuckText(silenceSeconds, liveness.describeAll(now)));
}

bool ThreadTransport::sleepUntil(std::condition_variable &changed,
                                 std::unique_lock<std::mutex> &lock,
                                 Sign::What what, int64_t peer, int64_t bytes,
                                 const std::function<bool()> &test) {
  const auto start = Clock::now();
  auto waited = [&] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const double slice = beatSeconds(silenceSeconds);
  Liveness liveness(self, world.size(), start);
  bool told = false;
  while (
      !changed.wait_for(lock,
                        std::chrono::duration<double>(std::min(
                            slice, std::max(0.0, deadlineSeconds - waited()))),
                        test) &&
      waited() < deadlineSeconds) {
    // The link's mutex is not for the time of looking at others.
    lock.unlock();
    judge(liveness, makeSign(what, peer, bytes, steps));
    told = true;
    lock.lock();
  }
  if (told) {
    std::lock_guard<std::mutex> signLock(world.signMutex);
    world.signs[self] = makeSign(Sign::Nothing, -1, 0, ++steps);
  }
  return test();
}

void ThreadTransport::wait(int64_t from, int64_t to, std::deque<int64_t> &sizes,
                           int64_t &waited, Sign::What what) {
  Link &link = world.link(from, to);
  const int64_t peer = from == self ? to : from;
  if (sizes.empty())
    fail("rank ", self, " waits for a ",
         what == Sign::ASend ? "send" : "receive", " that it has not posted");
  auto done = [&] {
    return link.completed.load(std::memory_order_acquire) > waited;
  };
  auto broken = [&] {
    return world.failed() || link.mismatch.load(std::memory_order_acquire);
  };
  for (int round = 0; round < spinRounds && !done() && !broken(); ++round)
    pauseBriefly();
  if (!done()) {
    std::unique_lock<std::mutex> lock(link.mutex);
    const bool ended = sleepUntil(link.changed, lock, what, peer, sizes.front(),
                                  [&] { return done() || broken(); });
    if (!done() && link.mismatch)
      failSizes(from, to, link.sentBytes, link.expectedBytes);
    if (!done() && world.failed())
      failAborted();
    if (!ended)
      failDeadline(peer, waitText(what, sizes.front()));
  }
  ++waited;
  sizes.pop_front();
}

void ThreadTransport::waitSend(int64_t peer) {
  wait(self, peer, sendSizes[peer], sendsWaited[peer], Sign::ASend);
}

void ThreadTransport::waitReceive(int64_t peer) {
  wait(peer, self, receiveSizes[peer], receivesWaited[peer], Sign::AReceive);
}

void ThreadTransport::poll() {
  // Copies need no help, but a rank in a long computation should notice that
  // another one has failed.
  if (world.failed())
    failAborted();
}

void ThreadTransport::barrier() {
  std::unique_lock<std::mutex> lock(world.mutex);
  const int64_t generation = world.generation;
  world.present[self] = true;
  if (++world.arrived == world.size()) {
    world.arrived = 0;
    world.present.assign(world.size(), false);
    ++world.generation;
    world.changed.notify_all();
    return;
  }
  int64_t missing = 0;
  while (world.present[missing])
    ++missing;
  const bool ended =
      sleepUntil(world.changed, lock, Sign::TheOthers, missing, 0, [&] {
        return world.generation != generation || world.failed();
      });
  if (world.generation != generation)
    return;
  if (ended)
    failAborted();
  for (missing = 0; world.present[missing];)
    ++missing;
  failDeadline(missing, "end of the step");
}

void ThreadTransport::sumToAll(double *values, int64_t count) {
  world.contributions[self].assign(values, values + count);
  barrier();
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (const std::vector<double> &part : world.contributions)
      sum += part.at(i);
    values[i] = sum;
  }
  // Nobody may overwrite its part before all have read it.
  barrier();
}

void ThreadTransport::abort(const std::string &message) {
  {
    std::lock_guard<std::mutex> lock(world.mutex);
    if (world.firstFailure.empty())
      world.firstFailure = message;
    world.aborted.store(true, std::memory_order_release);
    world.changed.notify_all();
  }
  for (Link &link : world.links) {
    // Taken so that nobody is between its test and its sleep.
    std::lock_guard<std::mutex> lock(link.mutex);
    link.changed.notify_all();
  }
}
