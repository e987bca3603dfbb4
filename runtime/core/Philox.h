//===- Philox.h - Counter-based random numbers -----------------*- C++ -*-===//
//
// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011): a pure function of key and counter, so any element of any
// micro-batch can be drawn again, on any rank, in any order.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_PHILOX_H
#define PIPEWRIGHT_RUNTIME_CORE_PHILOX_H

#include <array>
#include <cstdint>

namespace pipewright::runtime {

/// Four random words of one counter.
inline std::array<uint32_t, 4> philox(uint64_t key, uint32_t c0, uint32_t c1,
                                      uint32_t c2, uint32_t c3) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

/// A word below this one means "dropped".
inline uint32_t dropThreshold(float rate) {
  const double scaled = static_cast<double>(rate) * 4294967296.0;
  return scaled >= 4294967295.0 ? 4294967295u : static_cast<uint32_t>(scaled);
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_PHILOX_H
