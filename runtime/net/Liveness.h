//===- Liveness.h - Who lives, and who waits for whom -----------*- C++ -*-===//
//
// Ranks tell each other now and then that they live, how far they have come
// and what they wait for. A rank that is slow goes on telling so; one that is
// silent for a while is lost; and where all wait and none comes further, the
// program is stuck.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_LIVENESS_H
#define PIPEWRIGHT_RUNTIME_NET_LIVENESS_H

#include "runtime/net/Line.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::runtime {

/// What a rank says of itself. Goes over the wire as it is, so whatever a
/// reader does with it must hold for any bytes.
struct Sign {
  /// What a rank waits for.
  enum WaitReason : int64_t {
    None,
    Send,
    Receive,
    Barrier,
    /// The rank has run to its end, and waits for nothing.
    Finished,
    Collective
  };

  /// Grows with all that the rank does, and with bytes that it moves.
  int64_t progress = 0;
  int64_t reason = None;
  /// The other end of a send, of a receive, or of a part of a collective.
  int64_t peer = -1;
  int64_t bytes = 0;
  int64_t step = -1;
  /// The last operations, as "F0.1 F0.2 receive<1"; the rest is zero.
  char operations[96] = {};

  bool waits() const { return reason != None && reason != Finished; }
};

/// What a wait on a lane is for.
Sign::WaitReason waitOf(Lane lane, bool isSend);

/// "receive of 64 bytes", "part of 64 bytes of a collective", "end of the
/// step".
std::string waitText(int64_t what, int64_t bytes);

/// "rank 0 waits for rank 1: receive of 64 bytes (step 3, after F0.1 F0.2)".
std::string describe(int64_t rank, const Sign &sign);

/// What a rank has heard of all. Not thread-safe.
class Liveness {
public:
  using Clock = std::chrono::steady_clock;

  Liveness(int64_t self, int64_t size, Clock::time_point now);

  /// Bytes have come from that rank, or else it is known to live.
  void hear(int64_t rank, Clock::time_point now) { ranks[rank].heard = now; }
  /// What it says of itself has come; also said by a rank of itself.
  void hear(int64_t rank, const Sign &sign, Clock::time_point now);
  /// It needs not be heard any more.
  void end(int64_t rank) { ranks[rank].ended = true; }

  /// The rank that was not heard for so long, or -1.
  int64_t findSilent(double seconds, Clock::time_point now) const;
  /// Whether all ranks wait, and have said for so long that none has come
  /// further.
  bool isStuck(double seconds) const;

  /// What all ranks were last known to do, this one first, joined by "; ".
  std::string describeAll(Clock::time_point now) const;

private:
  struct PeerState {
    Sign sign;
    /// Anything, and a Sign.
    Clock::time_point heard, told;
    bool ended = false;
  };

  int64_t self;
  std::vector<PeerState> ranks;
  /// When a Sign last differed from the one before.
  Clock::time_point changed;
};

/// What a rank says that has not heard another one for so long.
std::string silentText(int64_t self, int64_t silent, double seconds,
                       const std::string &all);
/// What a rank says of a program that is stuck.
std::string stuckText(double seconds, const std::string &all);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_LIVENESS_H
