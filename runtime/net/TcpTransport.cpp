//===- TcpTransport.cpp - Ranks as processes that meet over TCP -----------===//

#include "runtime/net/TcpTransport.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/net/Heartbeat.h"
#include "runtime/net/Liveness.h"
#include "runtime/net/TcpPeer.h"
#include "runtime/net/TcpRendezvous.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

using namespace pipewright::runtime;
using namespace pipewright::runtime::tcp;

namespace {

using Clock = std::chrono::steady_clock;

class TcpTransport : public Transport {
public:
  TcpTransport(const TcpJob &place, double deadlineSeconds);
  ~TcpTransport() override;

  int64_t rank() const override { return self; }
  int64_t size() const override { return static_cast<int64_t>(peers.size()); }
  void postSend(Line to, const void *data, int64_t bytes) override;
  void postReceive(Line from, void *data, int64_t bytes) override;
  void waitSend(Line to) override;
  void waitReceive(Line from) override;
  bool isOver(Line line, bool isSend) override;
  void poll() override;
  void abort(const std::string &message) override;

private:
  using Test = std::function<bool()>;

  LaneState &at(Line line) { return peers[line.peer].at(line.lane); }
  void matchSelf(Lane lane);

  void progress(int milliseconds);
  void serve(int64_t peer);
  void beat();
  void tell();
  void judge();

  void waitFor(Sign::WaitReason what, int64_t peer, int64_t bytes,
               const Test &test);
  int64_t findLost();
  void failIfFailed();
  void failIfBroken(int64_t waitsFor, const std::string &what);
  void flush(double seconds);
  void drain(double seconds);

  const int64_t self;
  /// Held while anything below is touched, but not while poll(2) sleeps: abort
  /// comes from any thread, and beats from one of their own.
  std::mutex mutex;
  std::vector<Peer> peers;
  /// What others have said of their failure.
  std::string failure;
  bool failed = false;
  /// What this rank has found to be wrong with others.
  std::string problem;
  Liveness liveness;
  /// What this rank waits for, and how many waits are over.
  Sign::WaitReason waitsFor = Sign::None;
  int64_t waitsForPeer = -1, waitsForBytes = 0;
  int64_t waits = 0;
  Clock::time_point lastPoll = Clock::now();
  Heartbeat heartbeat;
};

} // namespace

TcpTransport::TcpTransport(const TcpJob &place, double deadlineSeconds)
    : self(place.rank), peers(place.size),
      liveness(place.rank, place.size, Clock::now()) {
  std::vector<Socket> sockets = meet(place, deadlineSeconds);
  for (int64_t r = 0; r < place.size; ++r)
    peers[r].socket = std::move(sockets[r]);
  liveness = Liveness(self, size(), Clock::now());
  if (place.size > 1)
    heartbeat.start([this] { beat(); },
                    [this] { return beatSeconds(silence()); });
}

TcpTransport::~TcpTransport() {
  heartbeat.stop();
  std::lock_guard<std::mutex> lock(mutex);
  // Others see from the missing goodbye that this rank has failed.
  if (failed || std::uncaught_exceptions())
    return;
  for (Peer &peer : peers)
    if (peer.socket && !peer.lost)
      peer.enqueue({Header::Bye, 0});
  flush(10);
  drain(10);
}

// --- Beats -------------------------------------------------------------------

/// Tells the others that this rank lives, and hears that they do, whatever its
/// own thread computes meanwhile.
void TcpTransport::beat() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failed)
    tell();
  for (int64_t r = 0; r < size(); ++r)
    serve(r);
  judge();
}

/// The mutex is held.
void TcpTransport::tell() {
  int64_t progress = waits;
  for (const Peer &peer : peers)
    progress += peer.dataMoved;
  const Sign sign = makeSign(waitsFor, waitsForPeer, waitsForBytes, progress);
  liveness.hear(self, sign, Clock::now());
  const char *bytes = reinterpret_cast<const char *>(&sign);
  for (Peer &peer : peers)
    // What is on its way already says as much.
    if (peer.socket && !peer.lost && peer.outgoing.empty())
      peer.enqueue({Header::Beat, sizeof sign}, {bytes, bytes + sizeof sign});
}

/// Finds out who is silent, or that all wait. The mutex is held, and what had
/// come was read.
void TcpTransport::judge() {
  if (!problem.empty() || failed)
    return;
  const auto now = Clock::now();
  const double seconds = silence();
  if (const int64_t silent = liveness.findSilent(seconds, now); silent >= 0)
    problem = silentText(self, silent, seconds, liveness.describeAll(now));
  else if (waitsFor != Sign::None && !hasDeadline() &&
           liveness.isStuck(seconds))
    problem = stuckText(seconds, liveness.describeAll(now));
}

// --- Posting -----------------------------------------------------------------

/// A rank's sends to itself meet its own receives.
void TcpTransport::matchSelf(Lane lane) {
  LaneState &state = at({self, lane});
  while (state.sendsMatched < state.sends.size() &&
         state.receivesFilled < state.receives.size()) {
    Send &send = state.sends[state.sendsMatched++];
    Receive &receive = state.receives[state.receivesFilled++];
    if (send.bytes != receive.bytes) {
      send.expected = receive.bytes;
      receive.sent = send.bytes;
      continue;
    }
    if (send.bytes)
      std::memcpy(receive.data, send.data, send.bytes);
    send.left = 0;
    receive.done = true;
  }
}

void TcpTransport::postSend(Line to, const void *data, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  at(to).sends.push_back({static_cast<const char *>(data), bytes});
  if (to.peer == self)
    return matchSelf(to.lane);
  peers[to.peer].matchSends(to.lane);
  peers[to.peer].write();
}

void TcpTransport::postReceive(Line from, void *data, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  at(from).receives.push_back({static_cast<char *>(data), bytes});
  if (from.peer == self)
    return matchSelf(from.lane);
  peers[from.peer].enqueue({Header::Ready, bytes, from.lane});
  peers[from.peer].write();
}

// --- Progress ----------------------------------------------------------------

/// Reads and writes what can be. The mutex is held.
void TcpTransport::serve(int64_t number) {
  Peer &peer = peers[number];
  if (!peer.socket || peer.lost)
    return;
  try {
    if (peer.read())
      liveness.hear(number, Clock::now());
    if (peer.sign)
      liveness.hear(number, *peer.sign, Clock::now());
    peer.sign.reset();
    peer.write();
  } catch (const Error &error) {
    if (problem.empty())
      problem = processName(self) + " is sent by " + processName(number) + " " +
                error.what() + " (is it the same program?)";
  }
  if (peer.saidBye || peer.lost)
    liveness.end(number);
  if (peer.failure && !failed) {
    failed = true;
    failure = *peer.failure;
  }
}

/// Sleeps until a connection has something to do, for a while at most, and
/// does it.
void TcpTransport::progress(int milliseconds) {
  std::vector<pollfd> entries;
  std::vector<int64_t> numbers;
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (int64_t r = 0; r < size(); ++r) {
      Peer &peer = peers[r];
      if (!peer.socket || peer.lost)
        continue;
      const short out = peer.outgoing.empty() ? 0 : POLLOUT;
      entries.push_back(
          {peer.socket.get(), static_cast<short>(POLLIN | out), 0});
      numbers.push_back(r);
    }
  }
  if (::poll(entries.data(), entries.size(), milliseconds) <= 0)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].revents)
      serve(numbers[i]);
}

// --- Waiting -----------------------------------------------------------------

/// How long a rank that was lost, or has told its reason to others first, may
/// take to tell it here.
static constexpr double reasonSeconds = 1;

/// The first rank that went without a word, -1 if none has.
int64_t TcpTransport::findLost() {
  std::lock_guard<std::mutex> lock(mutex);
  for (int64_t r = 0; r < size(); ++r)
    if (peers[r].lost && !peers[r].saidBye)
      return r;
  return -1;
}

void TcpTransport::failIfFailed() {
  std::lock_guard<std::mutex> lock(mutex);
  if (failed)
    throw Aborted(failure);
}

/// What stands in the way of all waits, or of a wait for that rank.
void TcpTransport::failIfBroken(int64_t waitsFor, const std::string &what) {
  failIfFailed();
  if (const int64_t lost = findLost(); lost >= 0) {
    // Ranks that heard of a failure go at once: it may be one of these.
    for (const Deadline soon(reasonSeconds); !soon.passed(); failIfFailed())
      progress(soon.milliseconds(50));
    std::lock_guard<std::mutex> lock(mutex);
    fail(processName(self), " has lost ", processName(lost),
         ": its connection closed without a word (did it crash, or was it "
         "killed?): ",
         liveness.describeAll(Clock::now()));
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (!problem.empty())
    fail(problem);
  if (waitsFor >= 0 && peers[waitsFor].saidBye)
    fail(processName(self), " waits for ", processName(waitsFor),
         ", which has ended: ", what);
}

void TcpTransport::waitFor(Sign::WaitReason what, int64_t peer, int64_t bytes,
                           const Test &test) {
  const Deadline patience(deadline());
  auto holds = [&] {
    std::lock_guard<std::mutex> lock(mutex);
    const bool isOver = test();
    waitsFor = isOver ? Sign::None : what;
    waitsForPeer = peer;
    waitsForBytes = bytes;
    waits += isOver;
    return isOver;
  };
  while (!holds()) {
    failIfBroken(peer, waitText(what, bytes));
    if (patience.passed())
      failDeadline(peer, waitText(what, bytes));
    advanceErrands();
    // Not for ever: an abort may come from another thread.
    progress(patience.milliseconds(100));
  }
}

void TcpTransport::waitSend(Line to) {
  LaneState &state = at(to);
  if (state.sends.empty())
    fail(processName(self), " waits for a send that it has not posted");
  Send &send = state.sends.front();
  waitFor(waitOf(to.lane, true), to.peer, send.bytes,
          [&] { return send.isOver(); });
  if (send.expected >= 0)
    failSizes(self, to.peer, send.bytes, send.expected);
  std::lock_guard<std::mutex> lock(mutex);
  state.sends.pop_front();
  --state.sendsMatched;
}

void TcpTransport::waitReceive(Line from) {
  LaneState &state = at(from);
  if (state.receives.empty())
    fail(processName(self), " waits for a receive that it has not posted");
  Receive &receive = state.receives.front();
  waitFor(waitOf(from.lane, false), from.peer, receive.bytes,
          [&] { return receive.isOver(); });
  if (receive.sent >= 0)
    failSizes(from.peer, self, receive.sent, receive.bytes);
  std::lock_guard<std::mutex> lock(mutex);
  state.receives.pop_front();
  --state.receivesFilled;
}

bool TcpTransport::isOver(Line line, bool isSend) {
  std::lock_guard<std::mutex> lock(mutex);
  const LaneState &state = at(line);
  if (isSend)
    return state.sends.empty() || state.sends.front().isOver();
  return state.receives.empty() || state.receives.front().isOver();
}

void TcpTransport::poll() {
  // MPI is asked as often: a system call now and then costs nothing.
  const auto now = Clock::now();
  if (now - lastPoll < std::chrono::microseconds(250))
    return;
  lastPoll = now;
  progress(0);
  failIfBroken(-1, "");
  advanceErrands();
}

// --- Ending ------------------------------------------------------------------

/// Writes what is left, for a while at most: a rank that takes nothing any more
/// does not keep it from the others. The mutex is held.
void TcpTransport::flush(double seconds) {
  const Deadline deadline(seconds);
  for (bool isLeft = true; isLeft;
       std::this_thread::sleep_for(std::chrono::milliseconds(isLeft ? 1 : 0))) {
    isLeft = false;
    for (Peer &peer : peers)
      if (peer.socket && !peer.lost) {
        peer.write();
        isLeft |= !peer.outgoing.empty();
      }
    if (deadline.passed())
      return;
  }
}

/// Says that no more comes, and reads until the others have said so too: a
/// socket that is closed with bytes unread may take what it sent with it.
void TcpTransport::drain(double seconds) {
  const Deadline deadline(seconds);
  for (Peer &peer : peers)
    if (peer.socket)
      shutdown(peer.socket.get(), SHUT_WR);
  for (Peer &peer : peers)
    while (peer.socket && !peer.lost && !deadline.passed()) {
      char nowhere[4096];
      const ssize_t got =
          recv(peer.socket.get(), nowhere, sizeof nowhere, MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        break;
      if (got < 0)
        peer.socket.waitFor(POLLIN, deadline.milliseconds(100));
    }
}

void TcpTransport::abort(const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (failed)
    return;
  failed = true;
  failure = message;
  for (Peer &peer : peers) {
    // All but the frame that has begun.
    while (!peer.outgoing.empty() &&
           (peer.outgoing.size() > 1 || peer.outgoing.back().done == 0))
      peer.outgoing.pop_back();
    const int64_t length = std::min<int64_t>(message.size(), maxFailedBytes);
    if (peer.socket && !peer.lost)
      peer.enqueue({Header::Failed, length},
                   {message.begin(), message.begin() + length});
  }
  flush(1);
  drain(0.5);
}

std::unique_ptr<Transport>
pipewright::runtime::createTcpTransport(const TcpJob &place,
                                        double deadlineSeconds) {
  return std::make_unique<TcpTransport>(place, deadlineSeconds);
}
