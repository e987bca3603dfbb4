//===- Line.h - Whom a message goes to, and on which lane ------*- C++ -*-===//
//
// Between two ranks lie several lanes each way, so that what one part of the
// runtime sends never stands in the way of another's. Each lane is one FIFO.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_LINE_H
#define PIPEWRIGHT_RUNTIME_NET_LINE_H

#include <cstdint>
#include <iterator>

namespace pipewright::runtime {

enum class Lane : int32_t {
  /// What generated code sends from stage to stage, and weights for files.
  Transfers,
  /// Parts of collectives.
  Collectives,
  /// The second halves of all-reduces, which do not stand in line with first
  /// halves that began before them.
  SecondHalves,
  /// Barriers and sums of the training loop.
  Control
};
constexpr Lane allLanes[] = {Lane::Transfers, Lane::Collectives,
                             Lane::SecondHalves, Lane::Control};
constexpr int64_t laneCount = std::size(allLanes);

/// Whether a number, from wherever, is a lane's.
constexpr bool isLane(int64_t number) {
  return number >= 0 && number < laneCount;
}

/// One lane to or from another rank, as this rank sees it.
struct Line {
  Line(int64_t peer, Lane lane = Lane::Transfers) : peer(peer), lane(lane) {}

  int64_t peer;
  Lane lane;

  /// The place of this line in a list of all lines of a rank.
  int64_t index() const {
    return peer * laneCount + static_cast<int64_t>(lane);
  }
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_LINE_H
