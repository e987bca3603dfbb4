//===- TcpTransport.cpp - Ranks as processes that meet over TCP -----------===//

#include "runtime/transport/TcpTransport.h"
#include "runtime/core/Error.h"
#include "runtime/transport/TcpRendezvous.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <vector>

using namespace pipewright::runtime;

namespace {

using Clock = std::chrono::steady_clock;

/// What travels between two ranks, in front of its bytes.
struct Header {
  enum Kind : int64_t {
    /// A receive of `bytes` was posted. No bytes follow.
    Ready = 1,
    /// A part of the oldest send.
    Data,
    /// The oldest send has `bytes`, not what its receive expects. None follow.
    WrongSize,
    /// Values of sumToAll; none for a barrier.
    Values,
    /// The sender has failed; the bytes say why.
    Failed,
    /// The sender has ended well.
    Bye
  };
  Kind kind;
  int64_t bytes;
};

struct Send {
  const char *data;
  int64_t bytes;
  /// What is not on its way yet; -1 before its receive was posted.
  int64_t left = -1;
  /// What the receiver expects, if that is another size.
  int64_t expected = -1;
};

struct Receive {
  char *data;
  int64_t bytes;
  int64_t received = 0;
  bool done = false;
  /// What the sender sends, if that is another size.
  int64_t sent = -1;
};

/// A frame that goes out.
struct Outgoing {
  Header header;
  const char *payload = nullptr;
  /// The payload, where it is not somebody else's memory.
  std::vector<char> owned;
  int64_t done = 0;
  Send *send = nullptr;

  int64_t total() const {
    return sizeof(Header) +
           (payload ? header.bytes : static_cast<int64_t>(owned.size()));
  }
};

/// The other end of one connection.
struct Peer {
  Socket socket;
  std::deque<Send> sends;
  std::deque<Receive> receives;
  /// How many of `sends` have met their receive, of `receives` their data.
  size_t sendsMatched = 0;
  size_t receivesFilled = 0;
  /// Sizes of receives that were posted before their send.
  std::deque<int64_t> ready;
  std::deque<std::vector<double>> values;
  std::deque<Outgoing> outgoing;

  // The frame that comes in.
  Header header = {};
  int64_t headerRead = 0;
  int64_t payloadRead = 0;
  std::vector<char> payload;

  bool saidBye = false;
  bool lost = false;
};

class TcpTransport : public Transport {
public:
  TcpTransport(const TcpPlace &place, double deadlineSeconds);
  ~TcpTransport() override;

  int64_t rank() const override { return self; }
  int64_t size() const override { return static_cast<int64_t>(peers.size()); }
  void postSend(int64_t peer, const void *data, int64_t bytes) override;
  void postReceive(int64_t peer, void *data, int64_t bytes) override;
  void waitSend(int64_t peer) override;
  void waitReceive(int64_t peer) override;
  void poll() override;
  void barrier() override { sumToAll(nullptr, 0); }
  void sumToAll(double *values, int64_t count) override;
  void abort(const std::string &message) override;

private:
  using Test = std::function<bool()>;

  void matchSelf();
  void matchSends(Peer &peer);
  void enqueue(Peer &peer, Header header, std::vector<char> owned = {});

  bool progress(int milliseconds);
  void write(Peer &peer);
  void read(Peer &peer);
  bool readInto(Peer &peer, void *to, int64_t bytes, int64_t &done);
  void beginPayload(Peer &peer);
  char *payloadPlace(Peer &peer);
  void endPayload(Peer &peer);
  void takeFailure(Peer &peer);

  void waitFor(int64_t peer, const std::string &what, const Test &test);
  int64_t findLost();
  void failIfFailed();
  void failIfBroken(int64_t waitsFor, const std::string &what);
  void flush(double seconds);
  void drain(double seconds);

  const int64_t self;
  /// Held while anything below is touched, but not while poll(2) sleeps: abort
  /// comes from any thread.
  std::mutex mutex;
  std::vector<Peer> peers;
  std::string failure;
  bool failed = false;
  Clock::time_point lastPoll = Clock::now();
};

/// Frames of data are short enough that one of Failed soon has its turn.
constexpr int64_t dataFrameBytes = 1 << 20;

/// How much one connection may take in before the others have their turn.
constexpr int64_t readShare = 4 << 20;

} // namespace

TcpTransport::TcpTransport(const TcpPlace &place, double deadlineSeconds)
    : self(place.rank), peers(place.size) {
  setDeadline(deadlineSeconds);
  std::vector<Socket> sockets = meet(place, deadlineSeconds);
  for (int64_t r = 0; r < place.size; ++r)
    peers[r].socket = std::move(sockets[r]);
}

TcpTransport::~TcpTransport() {
  std::lock_guard<std::mutex> lock(mutex);
  // Others see from the missing goodbye that this rank has failed.
  if (failed || std::uncaught_exceptions())
    return;
  for (Peer &peer : peers)
    if (peer.socket && !peer.lost)
      enqueue(peer, {Header::Bye, 0});
  const double patience = std::min(deadlineSeconds, 10.0);
  flush(patience);
  drain(patience);
}

// --- Posting -----------------------------------------------------------------

void TcpTransport::enqueue(Peer &peer, Header header, std::vector<char> owned) {
  Outgoing frame = {header, nullptr, std::move(owned), 0, nullptr};
  peer.outgoing.push_back(std::move(frame));
}

/// Lets sends go whose receives were announced.
void TcpTransport::matchSends(Peer &peer) {
  while (!peer.ready.empty() && peer.sendsMatched < peer.sends.size()) {
    Send &send = peer.sends[peer.sendsMatched++];
    const int64_t expected = peer.ready.front();
    peer.ready.pop_front();
    if (expected != send.bytes) {
      send.expected = expected;
      enqueue(peer, {Header::WrongSize, send.bytes});
      continue;
    }
    send.left = send.bytes;
    int64_t offset = 0;
    do {
      const int64_t part = std::min(dataFrameBytes, send.bytes - offset);
      peer.outgoing.push_back(
          {{Header::Data, part}, send.data + offset, {}, 0, &send});
      offset += part;
    } while (offset < send.bytes);
  }
}

/// A rank's sends to itself meet its own receives.
void TcpTransport::matchSelf() {
  Peer &peer = peers[self];
  while (peer.sendsMatched < peer.sends.size() &&
         peer.receivesFilled < peer.receives.size()) {
    Send &send = peer.sends[peer.sendsMatched++];
    Receive &receive = peer.receives[peer.receivesFilled++];
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

void TcpTransport::postSend(int64_t to, const void *data, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  Peer &peer = peers[to];
  peer.sends.push_back({static_cast<const char *>(data), bytes});
  if (to == self)
    return matchSelf();
  matchSends(peer);
  write(peer);
}

void TcpTransport::postReceive(int64_t from, void *data, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  Peer &peer = peers[from];
  peer.receives.push_back({static_cast<char *>(data), bytes});
  if (from == self)
    return matchSelf();
  enqueue(peer, {Header::Ready, bytes});
  write(peer);
}

// --- Progress ----------------------------------------------------------------

void TcpTransport::write(Peer &peer) {
  while (!peer.outgoing.empty() && !peer.lost) {
    Outgoing &frame = peer.outgoing.front();
    const char *payload = frame.payload ? frame.payload : frame.owned.data();
    const int64_t total = frame.total();
    const int64_t head = sizeof(Header);
    iovec parts[2];
    int count = 0;
    if (frame.done < head)
      parts[count++] = {reinterpret_cast<char *>(&frame.header) + frame.done,
                        static_cast<size_t>(head - frame.done)};
    const int64_t offset = std::max<int64_t>(0, frame.done - head);
    if (total - head > offset)
      parts[count++] = {const_cast<char *>(payload) + offset,
                        static_cast<size_t>(total - head - offset)};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t sent =
        sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      // A broken connection may still hold the reason: reading finds out.
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        peer.outgoing.clear();
      return;
    }
    frame.done += sent;
    if (frame.done < total)
      return;
    if (frame.send)
      frame.send->left -= frame.header.bytes;
    peer.outgoing.pop_front();
  }
}

/// True when all bytes are there; marks the peer as lost when no more come.
bool TcpTransport::readInto(Peer &peer, void *to, int64_t bytes,
                            int64_t &done) {
  while (done < bytes) {
    const ssize_t received =
        recv(peer.socket.get(), static_cast<char *>(to) + done, bytes - done,
             MSG_DONTWAIT);
    if (received < 0 && errno == EINTR)
      continue;
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return false;
    if (received <= 0) {
      peer.lost = true;
      return false;
    }
    done += received;
  }
  return true;
}

void TcpTransport::beginPayload(Peer &peer) {
  peer.payloadRead = 0;
  const bool buffered =
      peer.header.kind == Header::Values || peer.header.kind == Header::Failed;
  peer.payload.resize(buffered ? peer.header.bytes : 0);
}

/// Where the bytes behind the header go; null if there are none.
char *TcpTransport::payloadPlace(Peer &peer) {
  if (peer.header.kind != Header::Data)
    return peer.payload.empty() ? nullptr : peer.payload.data();
  Receive &receive = peer.receives.at(peer.receivesFilled);
  return receive.data + receive.received;
}

void TcpTransport::takeFailure(Peer &peer) {
  if (failed)
    return;
  failed = true;
  failure.assign(peer.payload.begin(), peer.payload.end());
}

void TcpTransport::endPayload(Peer &peer) {
  const Header header = peer.header;
  peer.headerRead = 0;
  switch (header.kind) {
  case Header::Ready:
    peer.ready.push_back(header.bytes);
    return matchSends(peer);
  case Header::Data: {
    Receive &receive = peer.receives.at(peer.receivesFilled);
    receive.received += header.bytes;
    if (receive.received == receive.bytes) {
      receive.done = true;
      ++peer.receivesFilled;
    }
    return;
  }
  case Header::WrongSize:
    peer.receives.at(peer.receivesFilled++).sent = header.bytes;
    return;
  case Header::Values: {
    std::vector<double> &values = peer.values.emplace_back();
    values.resize(header.bytes / sizeof(double));
    if (header.bytes)
      std::memcpy(values.data(), peer.payload.data(), header.bytes);
    return;
  }
  case Header::Failed:
    return takeFailure(peer);
  case Header::Bye:
    peer.saidBye = true;
    return;
  }
  fail("rank ", self, " cannot read what rank ", &peer - peers.data(),
       " sends (is it the same program?)");
}

void TcpTransport::read(Peer &peer) {
  for (int64_t share = 0; share < readShare;) {
    if (peer.headerRead < static_cast<int64_t>(sizeof(Header))) {
      if (!readInto(peer, &peer.header, sizeof(Header), peer.headerRead))
        return;
      beginPayload(peer);
    }
    const bool follows = peer.header.kind == Header::Data ||
                         peer.header.kind == Header::Values ||
                         peer.header.kind == Header::Failed;
    const int64_t before = peer.payloadRead;
    if (follows && !readInto(peer, payloadPlace(peer), peer.header.bytes,
                             peer.payloadRead))
      return;
    share += sizeof(Header) + peer.payloadRead - before;
    endPayload(peer);
  }
}

/// Sleeps until a connection has something to do, for a while at most, and
/// does it. False if nothing happened.
bool TcpTransport::progress(int milliseconds) {
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
    return false;
  std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < entries.size(); ++i) {
    Peer &peer = peers[numbers[i]];
    if (entries[i].revents & ~POLLOUT)
      read(peer);
    write(peer);
  }
  return true;
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
    fail("rank ", self, " has lost rank ", lost,
         ": its connection closed without a word (did it crash, or was it "
         "killed?)");
  }
  if (waitsFor >= 0 && peers[waitsFor].saidBye)
    fail("rank ", self, " waits for rank ", waitsFor,
         ", which has ended: ", what);
}

void TcpTransport::waitFor(int64_t peer, const std::string &what,
                           const Test &test) {
  const Deadline deadline(deadlineSeconds);
  auto holds = [&] {
    std::lock_guard<std::mutex> lock(mutex);
    return test();
  };
  while (!holds()) {
    failIfBroken(peer, what);
    if (deadline.passed())
      failDeadline(peer, what);
    // Not for ever: an abort may come from another thread.
    progress(deadline.milliseconds(100));
  }
}

void TcpTransport::waitSend(int64_t to) {
  Peer &peer = peers[to];
  if (peer.sends.empty())
    fail("rank ", self, " waits for a send that it has not posted");
  Send &send = peer.sends.front();
  waitFor(to, "send of " + std::to_string(send.bytes) + " bytes",
          [&] { return send.left == 0 || send.expected >= 0; });
  if (send.expected >= 0)
    failSizes(self, to, send.bytes, send.expected);
  std::lock_guard<std::mutex> lock(mutex);
  peer.sends.pop_front();
  --peer.sendsMatched;
}

void TcpTransport::waitReceive(int64_t from) {
  Peer &peer = peers[from];
  if (peer.receives.empty())
    fail("rank ", self, " waits for a receive that it has not posted");
  Receive &receive = peer.receives.front();
  waitFor(from, "receive of " + std::to_string(receive.bytes) + " bytes",
          [&] { return receive.done || receive.sent >= 0; });
  if (receive.sent >= 0)
    failSizes(from, self, receive.sent, receive.bytes);
  std::lock_guard<std::mutex> lock(mutex);
  peer.receives.pop_front();
  --peer.receivesFilled;
}

void TcpTransport::poll() {
  // As often as MPI's: a system call now and then costs nothing.
  const auto now = Clock::now();
  if (now - lastPoll < std::chrono::microseconds(250))
    return;
  lastPoll = now;
  progress(0);
  failIfBroken(-1, "");
}

void TcpTransport::sumToAll(double *values, int64_t count) {
  std::vector<double> own(values, values + count);
  {
    std::lock_guard<std::mutex> lock(mutex);
    const char *bytes = reinterpret_cast<const char *>(own.data());
    for (int64_t r = 0; r < size(); ++r) {
      if (r == self)
        continue;
      enqueue(peers[r],
              {Header::Values, count * static_cast<int64_t>(sizeof(double))},
              std::vector<char>(bytes, bytes + count * sizeof(double)));
      write(peers[r]);
    }
  }
  std::vector<double> sums(count);
  for (int64_t r = 0; r < size(); ++r) {
    if (r != self) {
      waitFor(r, "end of the step", [&] { return !peers[r].values.empty(); });
      std::lock_guard<std::mutex> lock(mutex);
      own = std::move(peers[r].values.front());
      peers[r].values.pop_front();
    } else if (count) {
      own.assign(values, values + count);
    }
    if (r != self && static_cast<int64_t>(own.size()) != count)
      fail("rank ", self, " adds ", count, " numbers, rank ", r, " ",
           own.size(), ": they do not run the same program");
    for (int64_t i = 0; i < count; ++i)
      sums[i] += own[i];
  }
  std::copy(sums.begin(), sums.end(), values);
}

// --- Ending ------------------------------------------------------------------

/// Writes what is left, for a while at most. The mutex is held.
void TcpTransport::flush(double seconds) {
  const Deadline deadline(seconds);
  for (Peer &peer : peers) {
    if (!peer.socket)
      continue;
    for (write(peer); !peer.outgoing.empty() && !peer.lost; write(peer)) {
      if (deadline.passed())
        return;
      peer.socket.waitFor(POLLOUT, deadline.milliseconds(100));
    }
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
    if (peer.socket && !peer.lost)
      enqueue(peer, {Header::Failed, static_cast<int64_t>(message.size())},
              std::vector<char>(message.begin(), message.end()));
  }
  flush(1);
  drain(0.5);
}

// --- Where ranks meet --------------------------------------------------------

static std::string variable(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

static int64_t numberOf(const char *name, int64_t least, int64_t most) {
  const std::string text = variable(name);
  char *end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty())
    fail("ranks that are processes need the environment variables RANK, "
         "WORLD_SIZE, MASTER_ADDR and MASTER_PORT, but ",
         name, " is not set");
  if (*end || errno || value < least || value > most)
    fail(name, "=", text, ": expected a number from ", least, " to ", most);
  return value;
}

TcpPlace TcpPlace::fromEnvironment() {
  TcpPlace place;
  place.size = numberOf("WORLD_SIZE", 1, 1 << 16);
  place.rank = numberOf("RANK", 0, place.size - 1);
  place.host = variable("MASTER_ADDR");
  if (place.host.empty())
    fail("ranks that are processes need the environment variables RANK, "
         "WORLD_SIZE, MASTER_ADDR and MASTER_PORT, but MASTER_ADDR is not set");
  place.port = static_cast<int>(numberOf("MASTER_PORT", 1, 65535));
  // torchrun keeps a store of its own at the port that it names.
  if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True")
    place.port = place.port < 65535 ? place.port + 1 : place.port - 1;
  return place;
}

std::unique_ptr<Transport>
pipewright::runtime::createTcpTransport(const TcpPlace &place,
                                        double deadlineSeconds) {
  return std::make_unique<TcpTransport>(place, deadlineSeconds);
}
