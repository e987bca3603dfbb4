//===- BFloat16.h - The upper half of a float ------------------*- C++ -*-===//
//
// Conversions by integer arithmetic, as compiled kernels do them: to the
// nearest, ties to even; NaNs stay NaNs, small numbers are kept. Loops over
// them vectorize.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_BFLOAT16_H
#define PIPEWRIGHT_RUNTIME_CORE_BFLOAT16_H

#include <bit>
#include <cstdint>

namespace pipewright::runtime {

/// The bits of a bf16 number.
using BFloat16 = uint16_t;

inline float widen(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}
inline float widen(float value) { return value; }

inline BFloat16 narrow(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  const bool isNan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<BFloat16>(isNan ? 0x7FC0 : rounded);
}

inline void widen(const BFloat16 *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = widen(from[i]);
}
inline void narrow(const float *from, int64_t count, BFloat16 *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = narrow(from[i]);
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_BFLOAT16_H
