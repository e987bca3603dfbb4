//===- ThreadTransport.cpp - Ranks as threads of one process --------------===//

#include "runtime/net/ThreadTransport.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
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
    : ranks(size), links(size * size * laneCount), signs(size), ended(size) {}

std::string ThreadWorld::failure() {
  std::lock_guard<std::mutex> lock(mutex);
  return firstFailure;
}

ThreadTransport::ThreadTransport(ThreadWorld &world, int64_t rank)
    : world(world), self(rank), sends(world.size() * laneCount),
      receives(world.size() * laneCount) {}

ThreadTransport::~ThreadTransport() {
  // After a failure some posts are left, and their memory goes now.
  auto withdraw = [&](Link &link, std::deque<ThreadWorld::Pending> &posts) {
    std::lock_guard<std::mutex> lock(link.mutex);
    posts.clear();
  };
  for (int64_t peer = 0; peer < size(); ++peer)
    for (const Lane lane : allLanes) {
      withdraw(outLink({peer, lane}), outLink({peer, lane}).sends);
      withdraw(inLink({peer, lane}), inLink({peer, lane}).receives);
    }
  std::lock_guard<std::mutex> lock(world.signMutex);
  world.ended[self] = true;
}

/// Copies one pair that has met. The link's mutex is held. Sizes that differ
/// are told by waits: both ends still post what others wait for.
void ThreadTransport::complete(Link &link, const ThreadWorld::Pending &send,
                               const ThreadWorld::Pending &receive) {
  if (link.mismatch)
    return;
  if (send.bytes != receive.bytes) {
    link.sentBytes = send.bytes;
    link.expectedBytes = receive.bytes;
    link.mismatch.store(true, std::memory_order_release);
    return link.changed.notify_all();
  }
  if (send.bytes)
    std::memcpy(receive.data, send.data, send.bytes);
  link.completed.fetch_add(1, std::memory_order_release);
  link.changed.notify_all();
}

void ThreadTransport::postSend(Line to, const void *data, int64_t bytes) {
  Link &link = outLink(to);
  sends[to.index()].sizes.push_back(bytes);
  std::lock_guard<std::mutex> lock(link.mutex);
  const ThreadWorld::Pending send = {const_cast<void *>(data), bytes};
  if (link.receives.empty()) {
    link.sends.push_back(send);
    return;
  }
  const ThreadWorld::Pending receive = link.receives.front();
  link.receives.pop_front();
  complete(link, send, receive);
}

void ThreadTransport::postReceive(Line from, void *data, int64_t bytes) {
  Link &link = inLink(from);
  receives[from.index()].sizes.push_back(bytes);
  std::lock_guard<std::mutex> lock(link.mutex);
  const ThreadWorld::Pending receive = {data, bytes};
  if (link.sends.empty()) {
    link.receives.push_back(receive);
    return;
  }
  const ThreadWorld::Pending send = link.sends.front();
  link.sends.pop_front();
  complete(link, send, receive);
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
  if (!hasDeadline() && liveness.isStuck(silence()))
    fail(stuckText(silence(), liveness.describeAll(now)));
}

bool ThreadTransport::sleepUntil(std::condition_variable &changed,
                                 std::unique_lock<std::mutex> &lock,
                                 Sign::WaitReason what, int64_t peer,
                                 int64_t bytes,
                                 const std::function<bool()> &test) {
  const auto start = Clock::now();
  auto waited = [&] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const double slice = beatSeconds(silence());
  Liveness liveness(self, world.size(), start);
  bool told = false;
  while (!changed.wait_for(lock,
                           std::chrono::duration<double>(std::min(
                               slice, std::max(0.0, deadline() - waited()))),
                           test) &&
         waited() < deadline()) {
    // The link's mutex is not for the time of looking at others.
    lock.unlock();
    judge(liveness, makeSign(what, peer, bytes, steps));
    told = true;
    lock.lock();
  }
  if (told) {
    std::lock_guard<std::mutex> signLock(world.signMutex);
    world.signs[self] = makeSign(Sign::None, -1, 0, ++steps);
  }
  return test();
}

void ThreadTransport::waitUntil(const std::function<bool()> &test,
                                std::condition_variable &changed,
                                std::mutex &mutex, Sign::WaitReason what,
                                int64_t peer, int64_t bytes) {
  for (int round = 0; round < spinRounds && !test() && !world.failed(); ++round)
    pauseBriefly();
  if (test())
    return;
  std::unique_lock<std::mutex> lock(mutex);
  const bool ended = sleepUntil(changed, lock, what, peer, bytes,
                                [&] { return test() || world.failed(); });
  if (test())
    return;
  if (world.failed())
    failAborted();
  if (!ended)
    failDeadline(peer, waitText(what, bytes));
}

void ThreadTransport::wait(Line line, bool isSend) {
  Link &link = isSend ? outLink(line) : inLink(line);
  auto &[sizes, waited] = (isSend ? sends : receives)[line.index()];
  const Sign::WaitReason what = waitOf(line.lane, isSend);
  if (sizes.empty())
    fail(processName(self), " waits for a ", isSend ? "send" : "receive",
         " that it has not posted");
  auto done = [&] {
    return link.completed.load(std::memory_order_acquire) > waited;
  };
  waitUntil(
      [&] { return done() || link.mismatch.load(std::memory_order_acquire); },
      link.changed, link.mutex, what, line.peer, sizes.front());
  if (!done())
    failSizes(isSend ? self : line.peer, isSend ? line.peer : self,
              link.sentBytes, link.expectedBytes);
  ++waited;
  sizes.pop_front();
}

void ThreadTransport::waitSend(Line to) { wait(to, true); }

void ThreadTransport::waitReceive(Line from) { wait(from, false); }

bool ThreadTransport::isOver(Line line, bool isSend) {
  const Link &link = isSend ? outLink(line) : inLink(line);
  const Posted &posted = (isSend ? sends : receives)[line.index()];
  return link.completed.load(std::memory_order_acquire) > posted.waited ||
         link.mismatch.load(std::memory_order_acquire);
}

void ThreadTransport::poll() {
  // Copies need no help, but a rank in a long computation should notice that
  // another one has failed.
  if (world.failed())
    failAborted();
}

void ThreadTransport::abort(const std::string &message) {
  {
    std::lock_guard<std::mutex> lock(world.mutex);
    if (world.firstFailure.empty())
      world.firstFailure = message;
    world.aborted.store(true, std::memory_order_release);
  }
  // Taken so that nobody is between its test and its sleep.
  for (Link &link : world.links) {
    std::lock_guard<std::mutex> lock(link.mutex);
    link.changed.notify_all();
  }
  std::lock_guard<std::mutex> groupLock(world.groupMutex);
  for (auto &[members, group] : world.groups) {
    std::lock_guard<std::mutex> lock(group.mutex);
    group.changed.notify_all();
  }
}

SharedGroup &ThreadWorld::group(const std::vector<int64_t> &members,
                                int64_t number) {
  std::lock_guard<std::mutex> lock(groupMutex);
  return groups.try_emplace({members, number}, members).first->second;
}

std::unique_ptr<Collectives>
ThreadTransport::openShared(const std::vector<int64_t> &members) {
  SharedGroup &group = world.group(members, opened[members]++);
  return std::make_unique<SharedCollectives>(*this, group);
}
