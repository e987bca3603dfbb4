//===- Lanes.h - Loops over the lanes of a warp ----------------*- C++ -*-===//
//
// One loop per handler, written for the vectorizer. Lane i reads and writes
// element i alone, so registers that are operand and result at once are safe.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_PTX_LANES_H
#define PIPEWRIGHT_TEST_DOUBLES_PTX_LANES_H

#include "test/doubles/ptx/Program.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#if defined(__clang__)
#define PIPEWRIGHT_LANES                                                       \
  _Pragma("clang loop vectorize(assume_safety)") for (int lane = 0;            \
                                                      lane < warpSize; ++lane)
#else
#define PIPEWRIGHT_LANES                                                       \
  _Pragma("GCC ivdep") for (int lane = 0; lane < warpSize; ++lane)
#endif

namespace pipewright::ptx {

inline bool isSet(uint32_t mask, int lane) { return mask >> lane & 1; }

/// result[lane] = compute(lane) in the lanes of the mask.
template <class T, class Compute>
inline void forLanes(T *result, uint32_t mask, Compute compute) {
  if (mask == allLanes) {
    PIPEWRIGHT_LANES result[lane] = compute(lane);
    return;
  }
  PIPEWRIGHT_LANES {
    const T value = compute(lane);
    result[lane] = isSet(mask, lane) ? value : result[lane];
  }
}

template <class R, class A, class Op>
void runUnary(Warp &warp, const Instruction &in, uint32_t mask) {
  const A *a = warp.lanes<A>(in.operand[1]);
  forLanes(warp.lanes<R>(in.operand[0]), mask,
           [=](int lane) { return Op::template apply<R, A>(a[lane]); });
}

template <class T, class Op>
void runBinary(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  const T *b = warp.lanes<T>(in.operand[2]);
  forLanes(warp.lanes<T>(in.operand[0]), mask,
           [=](int lane) { return Op::apply(a[lane], b[lane]); });
}

template <class T, class Op>
void runTernary(Warp &warp, const Instruction &in, uint32_t mask) {
  const T *a = warp.lanes<T>(in.operand[1]);
  const T *b = warp.lanes<T>(in.operand[2]);
  const T *c = warp.lanes<T>(in.operand[3]);
  forLanes(warp.lanes<T>(in.operand[0]), mask,
           [=](int lane) { return Op::apply(a[lane], b[lane], c[lane]); });
}

/// What one lane reads at the address in `base`, checked like any access.
const std::byte *readAt(Warp &warp, const Instruction &in, uint32_t base,
                        int lane, uint64_t bytes);

/// Packs 32 truth values.
template <class Compute>
inline uint32_t maskOf(Compute compute) {
  alignas(64) uint32_t bits[warpSize];
  PIPEWRIGHT_LANES bits[lane] = compute(lane) ? uint32_t(1) << lane : 0;
  uint32_t mask = 0;
  for (int lane = 0; lane < warpSize; ++lane)
    mask |= bits[lane];
  return mask;
}

inline uint32_t &predicate(Warp &warp, uint32_t offset) {
  return *warp.lanes<uint32_t>(offset);
}

inline void setPredicate(Warp &warp, uint32_t offset, uint32_t value,
                         uint32_t mask) {
  uint32_t &predicate = *warp.lanes<uint32_t>(offset);
  predicate = (predicate & ~mask) | (value & mask);
}

//===----------------------------------------------------------------------===//
// Number formats
//===----------------------------------------------------------------------===//

inline float fromBf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

/// Rounds to nearest, ties to even.
inline uint16_t toBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return value != value ? uint16_t(0x7FFF) : static_cast<uint16_t>(rounded);
}

/// Toward zero.
inline uint16_t toBf16Truncated(float value) {
  return value != value
             ? uint16_t(0x7FFF)
             : static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}

inline float fromF16(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7FFF;
  // Denormals come out right because the scale is a power of two.
  const float normal =
      std::bit_cast<float>(magnitude << 13) * std::bit_cast<float>(0x77800000u);
  const uint32_t special = 0x7F800000 | (magnitude & 0x3FF) << 13;
  const uint32_t result =
      magnitude >= 0x7C00 ? special : std::bit_cast<uint32_t>(normal);
  return std::bit_cast<float>(result | sign);
}

/// Rounds to nearest, ties to even.
inline uint16_t toF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = bits >> 16 & 0x8000;
  const float magnitude = std::fabs(value);
  if (magnitude != magnitude)
    return 0x7FFF;
  if (magnitude >= 65520.0f)
    return sign | 0x7C00;
  if (magnitude < 0x1p-14f) // The sum rounds to a multiple of 2^-24.
    return sign | static_cast<uint16_t>(
                      std::bit_cast<uint32_t>(magnitude + 0.5f) - 0x3F000000u);
  const uint32_t absolute = bits & 0x7FFFFFFF;
  const uint32_t rounded = absolute + 0xFFF + (absolute >> 13 & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000u) >> 13);
}

/// Subnormals become zeros of their sign.
inline float flush(float value) {
  return std::fabs(value) < std::numeric_limits<float>::min()
             ? std::copysign(0.0f, value)
             : value;
}

/// To [0, 1]; NaN becomes 0.
template <class T>
inline T saturate(T value) {
  return value > T(0) ? (value < T(1) ? value : T(1)) : T(0);
}

} // namespace pipewright::ptx

#endif // PIPEWRIGHT_TEST_DOUBLES_PTX_LANES_H
