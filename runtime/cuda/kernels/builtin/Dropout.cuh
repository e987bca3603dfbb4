//===- Dropout.cuh - Dropout by counter-based random numbers ---*- C++ -*-===//

#pragma once

#include "runtime/cuda/kernels/builtin/Random.cuh"

/// Each thread has the four elements of one counter.
template <class T, bool packed>
__device__ void dropoutElements(DropoutParameters p, const uint64_t *state,
                                const T *x, T *y, int64_t elements) {
  const int64_t group = globalIndex();
  const int64_t first = 4 * group;
  if (first >= elements)
    return;
  const RandomWords words = randomWords(p, state, group);
  if (packed && first + 4 <= elements) {
    auto values = loadPack<T, 4>(x + first);
    for (int i = 0; i < 4; ++i)
      values.at[i] =
          fromFloat<T>(toFloat(values.at[i]) * dropoutFactor(p, words.at[i]));
    storePack<T, 4>(y + first, values);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + i < elements)
      y[first + i] =
          fromFloat<T>(toFloat(x[first + i]) * dropoutFactor(p, words.at[i]));
}

#define DROPOUT_KERNEL(name, T, packed)                                        \
  extern "C" __global__ void name(DropoutParameters p, const uint64_t *state,  \
                                  const T *x, T *y, int64_t elements) {        \
    dropoutElements<T, packed>(p, state, x, y, elements);                      \
  }

DROPOUT_KERNEL(dropout_packed_f32, float, true)
DROPOUT_KERNEL(dropout_f32, float, false)
DROPOUT_KERNEL(dropout_packed_bf16, Bf16, true)
DROPOUT_KERNEL(dropout_bf16, Bf16, false)
