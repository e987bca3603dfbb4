//===- Channels.h - How messages between ranks queue ------------*- C++ -*-===//
//
// The rules under which instruction lists are checked and simulated. Posts of
// a rank enter its queues in program order; those of a group that share a queue
// enter it as one. A message moves when it is at the head of a queue at both
// ends; or, buffered, when it is at the head of the sender's and a buffer of
// its link has room. The messages of a group at the head move in any order, and
// leave the queue together. A wait ends when its message has left the rank's
// own queue.
//
// All collectives of a rank, of whatever group, have one queue of their own,
// under every layout. A collective moves when it is at the head of the queues
// of all its members, and then leaves all of them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_CHANNELS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_CHANNELS_H

#include "passes/schedules/Instruction.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <limits>
#include <string>

namespace pipewright::schedules {

/// Which posts of a rank share a queue.
enum class ChannelLayout : uint8_t { Link, Pair, Direction, Rank };

/// The one list of layouts, from the most queues to the fewest.
struct ChannelLayoutInfo {
  ChannelLayout layout;
  /// As the user types it.
  llvm::StringLiteral name;
  /// `one queue per rank`
  llvm::StringLiteral description;
  /// What of PyTorch 2.15 queues like this; empty if nothing does.
  llvm::StringLiteral pytorch;
};
inline constexpr ChannelLayoutInfo channelLayouts[] = {
    // A communicator of two ranks for each.
    {ChannelLayout::Link, "link", "one queue per directed link",
     "pipeline_per_edge_p2p"},
    // A communicator of two ranks for both directions.
    {ChannelLayout::Pair, "pair", "one queue per pair of ranks",
     "backend nccl-lazy"},
    // A communicator of all ranks for activations, and one for everything else.
    {ChannelLayout::Direction, "direction", "one queue per rank and direction",
     ""},
    // One communicator of all ranks.
    {ChannelLayout::Rank, "rank", "one queue per rank", "backend nccl"},
};

inline const ChannelLayoutInfo &infoOf(ChannelLayout layout) {
  return channelLayouts[static_cast<unsigned>(layout)];
}

/// How much of one directed channel may have left its sender and not reached
/// its receiver. A message that is larger than all buffers together waits for
/// its receive, as if there were none: so does NCCL, which ends a small send
/// early.
struct Buffering {
  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

  /// None is rendezvous: a send ends with its receive.
  int64_t messages = 0;
  int64_t bytes = unlimited;

  static Buffering none() { return {0}; }
  static Buffering infinite() { return {unlimited}; }
  static Buffering ofBytes(int64_t bytes) { return {unlimited, bytes}; }
  bool operator==(const Buffering &other) const = default;

  /// Whether a message of so many bytes ever enters a buffer.
  bool holds(int64_t size) const { return messages > 0 && size <= bytes; }
};

struct Channels {
  ChannelLayout layout = ChannelLayout::Link;
  Buffering buffering = {};
  /// The groups that collectives name by number.
  std::vector<RankGroup> groups = {};
};

/// One of the names above.
llvm::Expected<ChannelLayout> parseChannelLayout(llvm::StringRef text);

/// `link, pair, direction or rank`
std::string namesOfChannelLayouts();

/// `none`, a number of messages, `bytes:N`, or `infinite`.
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
