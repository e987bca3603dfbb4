//===- VectorMath.h - Row operations on vectors of floats ------*- C++ -*-===//
//
// GNU vector extensions, which gcc and clang both turn into whatever the
// machine has. Sums run over 16 lanes and are folded in one fixed order.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_VECTORMATH_H
#define PIPEWRIGHT_RUNTIME_CPU_VECTORMATH_H

#include <cstdint>
#include <cstring>

namespace pipewright::runtime {

constexpr int64_t vectorLanes = 16;
typedef float Floats __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));

inline Floats loadFloats(const float *from) {
  Floats v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline void storeFloats(float *to, Floats v) { std::memcpy(to, &v, sizeof v); }

/// exp with a relative error of 2e-7; 0 below -87.
inline Floats exponential(Floats x) {
  const Ints tiny = x < -87.0f;
  x = tiny ? Floats{} - 87.0f : x;
  x = x > 88.0f ? Floats{} + 88.0f : x;
  // Adding 1.5 * 2^23 leaves the rounded integer in the low bits.
  const Floats shifted = x * 1.44269504f + 12582912.0f;
  const Floats n = shifted - 12582912.0f;
  const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Floats p = Floats{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // 2^n by its exponent bits.
  const Ints power = ((Ints)shifted - 0x4B400000 + 127) << 23;
  const Floats y = p * (Floats)power;
  return tiny ? Floats{} : y;
}

/// tanh with a relative error of 3e-7.
inline Floats hyperbolicTangent(Floats x) {
  const Floats size = x < 0.0f ? -x : x;
  const Floats square = x * x;
  Floats p = Floats{} - 5.70498872745e-3f;
  p = p * square + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  const Floats small = p * square * x + x;
  const Floats power = exponential(size * -2.0f);
  const Floats large = (1.0f - power) / (1.0f + power);
  return size < 0.625f ? small : x < 0.0f ? -large : large;
}

/// Joins halves, quarters and so on by join(a, b), down to one number.
template <class Join>
inline float foldLanes(Floats v, const Join &join) {
  v = join(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1,
                                      2, 3, 4, 5, 6, 7));
  v = join(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14,
                                      15, 8, 9, 10, 11));
  v = join(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8,
                                      9, 14, 15, 12, 13));
  v = join(v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11,
                                      10, 13, 12, 15, 14));
  return v[0];
}

inline float sumLanes(Floats v) {
  return foldLanes(v, [](Floats a, Floats b) { return a + b; });
}

inline float maxLanes(Floats v) {
  return foldLanes(v, [](Floats a, Floats b) { return a > b ? a : b; });
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_VECTORMATH_H
