//===- Stream.h - Queues of work of one rank's GPU -------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_STREAM_H
#define PIPEWRIGHT_RUNTIME_CUDA_STREAM_H

#include <cstdint>

namespace pipewright::runtime {

/// Names a stream of a rank: tasks run on `compute`, each directed link has
/// one of its own, and so have all collectives together, and copies to the
/// host's memory and back.
struct Stream {
  enum class Kind : uint8_t {
    Compute,
    Send,
    Receive,
    Collective,
    ToHost,
    FromHost
  };
  Kind kind = Kind::Compute;
  /// The other end of the link.
  int64_t peer = -1;

  friend constexpr bool operator==(const Stream &, const Stream &) = default;
};

inline constexpr Stream compute = {};
inline constexpr Stream collective = {Stream::Kind::Collective, -1};
inline constexpr Stream toHost = {Stream::Kind::ToHost, -1};
inline constexpr Stream fromHost = {Stream::Kind::FromHost, -1};
constexpr Stream sendTo(int64_t peer) { return {Stream::Kind::Send, peer}; }
constexpr Stream receiveFrom(int64_t peer) {
  return {Stream::Kind::Receive, peer};
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_STREAM_H
