//===- Memory.cuh - Small moves and sums of buffers ------------*- C++ -*-===//

#pragma once

#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/builtin/Prelude.cuh"

using pipewright::runtime::MemberRanges;
using pipewright::runtime::squaresChunk;
using pipewright::runtime::ValueChunk;

/// Writes `bytes` of the chunk, byte by byte: tables are small.
extern "C" __global__ void set_values(const __grid_constant__ ValueChunk values,
                                      uint8_t *to, int32_t bytes) {
  const int32_t i = threadIndex();
  if (4 * i >= bytes)
    return;
  const uint32_t word = values.at[i];
  for (int32_t byte = 0; byte < 4 && 4 * i + byte < bytes; ++byte)
    to[4 * i + byte] = static_cast<uint8_t>(word >> 8 * byte);
}

/// to += from, by packs of `width` elements and, in one thread, the rest.
template <int width>
__device__ void accumulateElements(const float *from, float *to,
                                   int64_t elements) {
  const int64_t first = globalIndex() * width;
  if (first + width <= elements) {
    const auto source = loadPack<float, width>(from + first);
    auto sum = loadPack<float, width>(to + first);
    for (int i = 0; i < width; ++i)
      sum.at[i] += source.at[i];
    storePack<float, width>(to + first, sum);
    return;
  }
  for (int64_t i = first; i < elements; ++i)
    to[i] += from[i];
}

extern "C" __global__ void accumulate_packed(const float *from, float *to,
                                             int64_t elements) {
  accumulateElements<4>(from, to, elements);
}
extern "C" __global__ void accumulate(const float *from, float *to,
                                      int64_t elements) {
  accumulateElements<1>(from, to, elements);
}

/// A gradient that a library gave in bf16, added to the sum or in its place.
extern "C" __global__ void accumulate_bf16(const Bf16 *from, float *to,
                                           int64_t elements) {
  const int64_t i = globalIndex();
  if (i < elements)
    to[i] += toFloat(from[i]);
}
extern "C" __global__ void convert_bf16(const Bf16 *from, float *to,
                                        int64_t elements) {
  const int64_t i = globalIndex();
  if (i < elements)
    to[i] = toFloat(from[i]);
}

/// sums[block] = the sum of the squares of the block's values: `squaresChunk` of
/// them, the last block the rest. The order follows from their number alone.
extern "C" __global__ void sum_squares(const float *values, double *sums,
                                       int64_t elements) {
  constexpr int threads = 256;
  __shared__ double parts[threads];
  const int64_t begin = static_cast<int64_t>(blockIndex()) * squaresChunk;
  const int64_t most = begin + squaresChunk;
  const int64_t end = most < elements ? most : elements;
  const auto thread = static_cast<int>(threadIndex());
  double sum = 0;
  for (int64_t i = begin + thread; i < end; i += threads)
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  parts[thread] = sum;
  for (int half = threads / 2; half > 0; half /= 2) {
    syncBlock();
    if (thread < half)
      parts[thread] += parts[thread + half];
  }
  if (thread == 0)
    sums[blockIndex()] = parts[0];
}

/// y[n, channel, pixel] += bias[channel]
template <class T>
__device__ void addChannels(const T *bias, T *y, int64_t elements,
                            int32_t channels, int32_t pixels) {
  const int64_t i = globalIndex();
  if (i < elements)
    y[i] = fromFloat<T>(toFloat(y[i]) + toFloat(bias[i / pixels % channels]));
}

extern "C" __global__ void add_channels_f32(const float *bias, float *y,
                                            int64_t elements, int32_t channels,
                                            int32_t pixels) {
  addChannels(bias, y, elements, channels, pixels);
}
extern "C" __global__ void add_channels_bf16(const Bf16 *bias, Bf16 *y,
                                             int64_t elements, int32_t channels,
                                             int32_t pixels) {
  addChannels(bias, y, elements, channels, pixels);
}

/// The sum of number `i` of `span` members, a power of two, as far as there are
/// so many: a binary tree, as net/Collectives.cpp adds.
template <int span, class T>
__device__ float sumOfSpan(const MemberRanges &from, int32_t first, int64_t i) {
  if constexpr (span == 1) {
    return toFloat(reinterpret_cast<const T *>(from.at[first])[i]);
  } else {
    const float left = sumOfSpan<span / 2, T>(from, first, i);
    if (first + span / 2 >= from.count)
      return left;
    return left + sumOfSpan<span / 2, T>(from, first + span / 2, i);
  }
}

/// to = the sum of all members' numbers; `to` may be one of them.
template <class T>
__device__ void sumMembers(const MemberRanges &from, T *to, int64_t elements) {
  static_assert((MemberRanges::most & (MemberRanges::most - 1)) == 0);
  const int64_t i = globalIndex();
  if (i < elements)
    to[i] = fromFloat<T>(sumOfSpan<MemberRanges::most, T>(from, 0, i));
}

extern "C" __global__ void
sum_members_f32(const __grid_constant__ MemberRanges from, float *to,
                int64_t elements) {
  sumMembers(from, to, elements);
}
extern "C" __global__ void
sum_members_bf16(const __grid_constant__ MemberRanges from, Bf16 *to,
                 int64_t elements) {
  sumMembers(from, to, elements);
}
