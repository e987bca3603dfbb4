//===- TcpPeer.h - The other end of a TCP connection ------------*- C++ -*-===//
//
// Frames to and from one rank. A receive announces itself, which lets the
// oldest send that waits for one go. Nothing here waits or locks.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_TRANSPORT_TCPPEER_H
#define PIPEWRIGHT_RUNTIME_TRANSPORT_TCPPEER_H

#include "runtime/transport/Socket.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::runtime::tcp {

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
class Peer {
public:
  Socket socket;
  std::deque<Send> sends;
  std::deque<Receive> receives;
  /// How many of `sends` have met their receive, of `receives` their data.
  size_t sendsMatched = 0;
  size_t receivesFilled = 0;
  std::deque<std::vector<double>> values;
  std::deque<Outgoing> outgoing;
  /// Why it has failed, once it says so.
  std::optional<std::string> failure;
  bool saidBye = false;
  bool lost = false;

  /// Queues a frame.
  void enqueue(Header frame, std::vector<char> owned = {});
  /// Lets sends go whose receives were announced.
  void matchSends();
  /// Writes what the connection takes now.
  void write();
  /// Reads what is there, but no more than its share; marks the peer as lost
  /// when no more comes. False if it is not to be understood.
  bool read();

private:
  bool readInto(void *to, int64_t bytes, int64_t &done);
  void beginPayload();
  char *payloadPlace();
  bool endPayload();

  /// Sizes of receives that were posted before their send.
  std::deque<int64_t> ready;

  // The frame that comes in.
  Header header = {};
  int64_t headerRead = 0;
  int64_t payloadRead = 0;
  std::vector<char> payload;
};

} // namespace pipewright::runtime::tcp

#endif // PIPEWRIGHT_RUNTIME_TRANSPORT_TCPPEER_H
