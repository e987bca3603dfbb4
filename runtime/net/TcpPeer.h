//===- TcpPeer.h - The other end of a TCP connection ------------*- C++ -*-===//
//
// Frames to and from one rank. A receive announces itself, which lets the
// oldest send that waits for one go. Nothing here waits or locks. Without a
// socket a Peer takes frames from memory (`feed`), as fuzzers give them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_TCPPEER_H
#define PIPEWRIGHT_RUNTIME_NET_TCPPEER_H

#include "runtime/net/Socket.h"
#include "runtime/net/TcpFrames.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::runtime::tcp {

struct Send {
  const char *data;
  int64_t bytes;
  /// What is not on its way yet; -1 before its receive was posted.
  int64_t left = -1;
  /// What the receiver expects, if that is another size.
  int64_t expected = -1;

  bool isOver() const { return left == 0 || expected >= 0; }
};

struct Receive {
  char *data;
  int64_t bytes;
  int64_t received = 0;
  bool done = false;
  /// What the sender sends, if that is another size.
  int64_t sent = -1;

  bool isOver() const { return done || sent >= 0; }
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

/// What goes both ways on one lane.
struct LaneState {
  std::deque<Send> sends;
  std::deque<Receive> receives;
  /// How many of `sends` have met their receive, of `receives` their data.
  size_t sendsMatched = 0;
  size_t receivesFilled = 0;
  /// Sizes of receives that the other end has posted before their send.
  std::deque<int64_t> ready;

  /// The oldest receive that lacks something.
  Receive &open() { return receives[receivesFilled]; }
};

/// The other end of one connection.
class Peer : private FrameTaker {
public:
  Socket socket;
  LaneState lanes[laneCount];
  std::deque<Outgoing> outgoing;
  /// Why it has failed, once it says so.
  std::optional<std::string> failure;
  bool saidBye = false;
  bool lost = false;
  /// Bytes of sends and receives, both ways.
  int64_t dataMoved = 0;
  /// What it last said of itself, until somebody takes it.
  std::optional<Sign> sign;

  /// Queues a frame.
  void enqueue(Header frame, std::vector<char> owned = {});
  LaneState &at(Lane lane) { return lanes[static_cast<int64_t>(lane)]; }
  /// Lets sends go whose receives were announced.
  void matchSends(Lane lane);
  /// Writes what the connection takes now.
  void write();
  /// Reads what is there, but no more than its share; marks the peer as lost
  /// when no more comes. How many bytes. Throws an Error, and reads no more,
  /// when a frame comes that nobody expects.
  int64_t read();
  /// Takes bytes as if they had come. Throws as read does.
  void feed(const char *data, int64_t bytes) {
    reader.feed(data, bytes, *this);
  }

private:
  Expected expected(Lane lane) const override;
  char *dataPlace(Lane lane) override;
  void tookData(Lane lane, int64_t bytes) override;
  void endData(Lane lane) override;
  void tookReady(Lane lane, int64_t bytes) override;
  void tookWrongSize(Lane lane, int64_t bytes) override;
  void tookFailed(std::string message) override;
  void tookBye() override { saidBye = true; }
  void tookBeat(const Sign &newSign) override { sign = newSign; }

  FrameReader reader;
  bool broken = false;
};

} // namespace pipewright::runtime::tcp

#endif // PIPEWRIGHT_RUNTIME_NET_TCPPEER_H
