//===- Channels.h - How messages between ranks queue ------------*- C++ -*-===//
//
// The rules under which instruction lists are checked and simulated. Posts of
// a rank enter its queues in program order. A message moves when it is at the
// head of a queue at both ends; or, buffered, when it is at the head of the
// sender's and a buffer of its link is free. A wait ends when its message has
// left the rank's own queue.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_CHANNELS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_CHANNELS_H

#include "passes/schedules/Instruction.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <limits>
#include <string>

namespace pipewright::schedules {

/// Which posts of a rank share a queue.
enum class ChannelLayout : uint8_t {
  /// One queue for each directed link: a communicator of two ranks for each.
  Link,
  /// One queue for activations and one for everything else, whatever the peer:
  /// a communicator of all ranks for each (PyTorch's `p2p_per_direction`).
  Direction,
  /// One queue for everything: one communicator of all ranks.
  Rank,
};

/// How many messages of one directed channel may have left their sender and
/// not reached their receiver.
struct Buffering {
  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

  /// None is rendezvous: a send ends with its receive.
  int64_t messages = 0;

  static Buffering none() { return {0}; }
  static Buffering infinite() { return {unlimited}; }
  bool operator==(const Buffering &other) const = default;
};

struct Channels {
  ChannelLayout layout = ChannelLayout::Link;
  Buffering buffering = {};
};

/// `link`, `direction` or `rank`.
llvm::Expected<ChannelLayout> parseChannelLayout(llvm::StringRef text);
llvm::StringRef nameOf(ChannelLayout layout);

/// `none`, a number of messages, or `infinite`.
llvm::Expected<Buffering> parseBuffering(llvm::StringRef text);
std::string nameOf(Buffering buffering);

/// `without buffering`, `with 2 messages buffered, one queue per rank`
std::string describe(const Channels &channels);

/// Which of a layout's queues a transfer takes: activations and all others are
/// two parts under `Direction`, one under the other layouts.
inline int32_t partOf(ChannelLayout layout, const Transfer &transfer) {
  return layout == ChannelLayout::Direction &&
         transfer.kind != TransferKind::Forward;
}

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_CHANNELS_H
