//===- IpcLink.h - One end of a link between processes ---------*- C++ -*-===//
//
// As over cuda-local (LocalLinks.h), of the two ends of a transfer whoever
// comes second enqueues the copy on its own stream. That the first has come
// stands in memory of the host that both processes share; what has been done
// on the GPUs, in events between processes:
//
//   first:   record(event)           behind what its stream has got; arrive
//   second:  wait(event of first), copy, record(own event), record(done); meet
//   first:   wait(event of second) on a stream beside, record(done) there
//
// A wait is for what an event had last recorded when it was given, so nobody
// waits for an event before the other end has said that it is recorded: no
// stream waits for what is yet to be enqueued. The first records its `done`
// when it looks the next time. Each end has an event for each slot, so it can
// be so many transfers ahead; what it gives beyond waits on the host.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_IPCLINK_H
#define PIPEWRIGHT_RUNTIME_CUDA_IPCLINK_H

#include "runtime/cuda/Driver.h"
#include "runtime/cuda/SharedMemory.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::runtime {

inline constexpr int64_t ipcSlots = 32;

/// What both processes see of a link, in memory of the host. Transfer n of the
/// link has slot n % ipcSlots.
struct IpcBoard {
  /// A range of the memory that an end has shared.
  struct Part {
    int64_t offset = 0, bytes = 0;
  };
  struct alignas(64) Slot {
    /// Of both ends, in all rounds: an even number before the first's.
    std::atomic<int64_t> arrivals{0};
    /// n + 1 once the second has enqueued the copy, or found sizes that differ.
    std::atomic<int64_t> met{0};
    Part parts[2];
  };
  /// How many transfers an end is done with: all their events may be recorded
  /// again.
  alignas(64) std::atomic<int64_t> completed[2] = {0, 0};
  /// An end has given up, and has closed what it had opened of the other.
  std::atomic<uint32_t> aborted{0}, closed[2] = {0, 0};
  Slot slots[ipcSlots];
};
static_assert(std::atomic<int64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

/// A transfer, as one end has given it.
struct IpcTransfer {
  IpcBoard::Part part;
  CUstream stream = nullptr;
  CUevent done = nullptr;
  int64_t number = 0;
  /// `done` is recorded, or never will be: see `error`.
  std::atomic<bool> met{false};
  std::string error = {};
};

class IpcLink {
public:
  /// This rank is `from` or `to`.
  IpcLink(int64_t self, int64_t from, int64_t to);
  IpcLink(const IpcLink &) = delete;
  IpcLink &operator=(const IpcLink &) = delete;

  bool isSender() const { return end == 0; }
  int64_t peer() const { return ranks[1 - end]; }

  /// What an end tells the other before the first transfer.
  struct Offer {
    /// Of the board, which the sender makes; ends with a zero.
    char board[64];
    CUipcEventHandle events[ipcSlots];
  };
  Offer makeOffer();
  /// Throws an Error when something of it cannot be opened.
  void accept(const Offer &offer);
  /// Both have accepted.
  void forgetName() { memory.forget(); }

  /// Memory of the ends, until closeMemory.
  struct MemoryOffer {
    CUipcMemHandle handle;
    int64_t bytes;
  };
  void shareMemory(CUdeviceptr address, int64_t bytes);
  void acceptMemory(const MemoryOffer &offer);
  void closeMemory();

  /// The next transfer; never blocks. Throws an Error when the range is not of
  /// the memory that was shared.
  std::shared_ptr<IpcTransfer> give(CUdeviceptr data, int64_t bytes,
                                    CUstream stream, CUevent done);
  /// Goes as far as it can.
  void advance();
  /// All transfers are met: the link's stream waits for them from here on.
  void catchUp();

  /// Nothing is opened any more, and this process may free what it has shared
  /// once the peer has closed it as well.
  void close();
  bool isClosedByPeer() const { return board->closed[1 - end] != 0; }
  /// Behind that: gives back what is this end's.
  void release();
  /// Any thread.
  void abort() { board->aborted = 1; }
  bool isAborted() const { return board->aborted != 0; }

private:
  bool hasRoom() const;
  void completeMet();
  void arrive(const std::shared_ptr<IpcTransfer> &transfer);
  void enqueue(IpcTransfer &transfer, const IpcBoard::Part &other);
  void finish(IpcTransfer &transfer);
  std::string findDifference(const IpcTransfer &transfer) const;
  [[noreturn]] void failBroken() const;

  const int64_t ranks[2];
  /// 0: this rank sends.
  const int end;
  SharedMemory memory;
  IpcBoard *board = nullptr;
  /// By slot: this end's, and the other's.
  std::array<CUevent, ipcSlots> own = {}, others = {};
  /// Where `done` of transfers is recorded that the other has enqueued. Nothing
  /// else is on it, so that no later work of the link can stand in front.
  CUstream completion = nullptr;
  /// Recorded behind the last of these, unless the last transfer was enqueued
  /// here.
  CUevent last = nullptr;
  bool isLastOther = false;
  /// The stream does not have all work of the link in it.
  CUstream behind = nullptr;

  CUdeviceptr shared = 0, opened = 0;
  int64_t sharedBytes = 0, openedBytes = 0;

  int64_t begun = 0, completed = 0;
  /// Those that have not arrived, and those that have arrived first.
  std::deque<std::shared_ptr<IpcTransfer>> pending, waiting;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_IPCLINK_H
