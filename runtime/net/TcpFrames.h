//===- TcpFrames.h - What ranks say to each other over TCP ------*- C++ -*-===//
//
// A stream of frames: a header, then as many bytes as it says. What comes in
// is not trusted: each header is held against what this rank waits for before
// a byte behind it is taken, so a frame that does not fit is an error, and no
// more is kept than what has really come.
//
// No socket, no clock, no lock: bytes go in, calls of a FrameTaker come out.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_TCPFRAMES_H
#define PIPEWRIGHT_RUNTIME_NET_TCPFRAMES_H

#include "runtime/net/Liveness.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::runtime::tcp {

/// What travels between two ranks, in front of its bytes.
struct Header {
  enum Kind : int32_t {
    /// A receive of `bytes` was posted. No bytes follow.
    Ready = 1,
    /// A part of the oldest send.
    Data,
    /// The oldest send has `bytes`, not what its receive expects. None follow.
    WrongSize,
    /// The sender has failed; the bytes say why.
    Failed,
    /// The sender has ended well.
    Bye,
    /// The sender lives; a Sign follows.
    Beat
  };
  Header(int32_t kind = 0, int64_t bytes = 0, Lane lane = Lane::Transfers)
      : kind(kind), lane(lane), bytes(bytes) {}

  int32_t kind;
  /// The lane of Ready, Data and WrongSize; Transfers for all others.
  Lane lane;
  int64_t bytes;
};
static_assert(sizeof(Header) == 16, "it goes over the wire as it is");

/// The most that a frame may bring, whatever its header says.
constexpr int64_t maxFailedBytes = 64 << 10;
/// How many announcements of a lane may wait for this rank.
constexpr int64_t maxReady = 1 << 20;

/// What a rank waits for on one lane from the one at the other end of a
/// connection.
struct Expected {
  /// Bytes that the oldest open receive has and still lacks; -1: none is open.
  int64_t receive = -1;
  int64_t lacks = -1;
  /// Announcements of receives that nobody has used yet.
  int64_t ready = 0;
  /// It has said goodbye.
  bool ended = false;
};

/// Why a frame must not come now, as "Data of 8 bytes, but expects ..."; "" if
/// it may.
std::string findViolation(const Header &header, const Expected &expected);

/// Is told what has come. Called with frames for which findViolation has
/// nothing to say.
class FrameTaker {
public:
  virtual ~FrameTaker() = default;

  virtual Expected expected(Lane lane) const = 0;
  /// Where the next bytes of the oldest open receive go: at least `lacks`.
  virtual char *dataPlace(Lane lane) = 0;
  /// So many more of them are there.
  virtual void tookData(Lane lane, int64_t bytes) = 0;
  /// A whole frame of Data, even of none, is there.
  virtual void endData(Lane lane) = 0;
  virtual void tookReady(Lane lane, int64_t bytes) = 0;
  virtual void tookWrongSize(Lane lane, int64_t bytes) = 0;
  virtual void tookFailed(std::string message) = 0;
  virtual void tookBye() = 0;
  virtual void tookBeat(const Sign &sign) = 0;
};

/// Reads frames from a stream that may be cut anywhere.
class FrameReader {
public:
  /// Where the next bytes of the stream go; never empty.
  struct Room {
    char *place;
    int64_t bytes;
  };
  Room room(FrameTaker &taker);
  /// `bytes` of the room are filled. Throws an Error where the stream breaks a
  /// rule; nothing may be read after that.
  void filled(int64_t bytes, FrameTaker &taker);

  /// The same for bytes that lie somewhere.
  void feed(const char *data, int64_t bytes, FrameTaker &taker);

private:
  void begin(FrameTaker &taker);
  void end(FrameTaker &taker);
  bool isBuffered() const;

  Header header;
  int64_t headerRead = 0;
  int64_t payloadRead = 0;
  /// The bytes of what is no Data: grows with what comes, not with what is
  /// promised.
  std::vector<char> payload;
};

} // namespace pipewright::runtime::tcp

#endif // PIPEWRIGHT_RUNTIME_NET_TCPFRAMES_H
