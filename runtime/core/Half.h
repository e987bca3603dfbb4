//===- Half.h - Numbers of 16 bits in IEEE's form --------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_HALF_H
#define PIPEWRIGHT_RUNTIME_CORE_HALF_H

#include <bit>
#include <cstdint>

namespace pipewright::runtime {

/// The float that the bits of an f16 number are; each is one exactly.
inline float widenHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 0x1F, fraction = half & 0x3FF;
  if (exponent == 0x1F)
    return std::bit_cast<float>(sign | 0x7F800000 | fraction << 13);
  if (exponent != 0)
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_HALF_H
