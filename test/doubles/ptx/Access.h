//===- Access.h - What loads, stores and atomics share ----------*- C++ -*-===//
//
// Every access is checked: inside one allocation, aligned to its size, and in
// shared memory not racing with another warp since the last barrier.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_PTX_ACCESS_H
#define PIPEWRIGHT_TEST_DOUBLES_PTX_ACCESS_H

#include "test/doubles/ptx/Lanes.h"
#include "test/doubles/ptx/Select.h"

namespace pipewright::ptx {

/// Addresses of the active lanes; inactive ones have that of an active one.
struct Addresses {
  alignas(64) uint64_t of[warpSize];
  uint64_t least = 0;
  uint64_t most = 0;
  /// In the order of the lanes without gaps, all lanes active.
  bool consecutive = false;
};

Addresses addressesOf(Warp &warp, const Instruction &in, uint32_t base,
                      uint32_t mask, uint64_t bytes);

void checkAligned(Warp &warp, const Instruction &in, uint32_t mask,
                  const Addresses &all, uint64_t bytes, bool write);

/// The place of what all lanes access: base + address + lane * stride.
struct Place {
  std::byte *base = nullptr;
  uint64_t stride = 0;

  std::byte *at(int lane, uint64_t address) const {
    return base + address + lane * stride;
  }
};

/// Where the lanes are all within the bounds of one piece of memory. If not,
/// they need to be looked at one by one.
bool findPlace(Warp &warp, const Instruction &in, uint32_t mask,
               const Addresses &all, uint64_t bytes, bool write, Place &place);

/// A pointer for one lane in any space.
std::byte *anyPointer(Warp &warp, const Instruction &in, Space space, int lane,
                      uint64_t address, uint64_t bytes, bool write,
                      bool atomic = false);

/// Takes the modifier that names the space.
void takeSpace(Selection &s);
/// Order and scope make no difference where lanes run one after the other;
/// hints about caches neither.
void skipHints(Selection &s);

bool selectAtomic(Selection &s);

} // namespace pipewright::ptx

#endif // PIPEWRIGHT_TEST_DOUBLES_PTX_ACCESS_H
