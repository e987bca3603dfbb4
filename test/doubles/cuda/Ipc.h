//===- Ipc.h - What the driver double shares with others -------*- C++ -*-===//
//
// Memory of GPUs and events between processes lie in one file without a name,
// which other processes find at /proc/PID/fd/N. In front of each object is a
// page that says what it is, and whether it is still there.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_CUDA_IPC_H
#define PIPEWRIGHT_TEST_DOUBLES_CUDA_IPC_H

#include "test/doubles/cuda/Internal.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace pipewright::doubles {

enum class SharedKind : uint32_t { Memory = 1, Event = 2 };

/// Room in the file of this process; its place, or -1 where there is no such
/// file: nothing can be shared then.
int64_t addShared(SharedKind kind, uint64_t bytes, int device);
/// Maps an object that this process has added, to `at` unless that is null.
/// Null: it cannot be.
void *mapShared(int64_t place, uint64_t bytes, void *at);
/// Nobody can open it any more.
void endShared(int64_t place);
/// Gives its pages back.
void dropShared(int64_t place, uint64_t bytes);

/// A clock in memory that processes share.
struct SharedClock {
  static constexpr uint32_t most = 1000;

  VectorClock::Tick ticks[most];
  uint32_t count = 0;
};

/// An event that several processes record and wait for. The n-th recording of
/// all, from 1, is over once its slot has n.
struct SharedEvent {
  static constexpr uint64_t slotCount = 16;

  struct Slot {
    std::atomic<uint64_t> over{0};
    SharedClock clock;
  };
  std::atomic<uint64_t> issued{0};
  Slot slots[slotCount];

  Slot &slotOf(uint64_t number) { return slots[number % slotCount]; }
};

/// A new event of this process, and its place; it is unmapped with the last
/// that holds it. Null: it cannot be shared.
std::shared_ptr<SharedEvent> makeSharedEvent(int device, int64_t &place);
/// Its last recording at the time of the call, null if there is none; and a
/// new one.
std::shared_ptr<Record> lastOfShared(const std::shared_ptr<SharedEvent> &event);
std::shared_ptr<Record> recordShared(const std::shared_ptr<SharedEvent> &event);

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_CUDA_IPC_H
