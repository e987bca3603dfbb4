//===- Pooling.cuh - Max and average pooling -------------------*- C++ -*-===//
//
// Forward, each thread has an output. Backward, each thread has an input and
// collects from the windows that it lies in, in the order in which the CPU
// adds them: the same bits, without atomics.
//
// Where channels lie last, neighbouring threads have neighbouring channels,
// each 16 bytes of them where that fits (`_packed`). Blocks come in groups of
// p.blocksPerImage, one group for each image.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/builtin/Prelude.cuh"

using pipewright::runtime::PoolingParameters;

/// A pixel of an image, and the first of a thread's channels.
struct Place {
  int64_t image;
  int32_t pixel, channel;

  /// Where it lies in images of so many pixels.
  __device__ int64_t in(int32_t pixels, const PoolingParameters &p) const {
    return (image * pixels + pixel) * p.channels + channel;
  }
};

/// Of a number that is not negative. Most strides and dilations are 1 or 2, and
/// all threads have the same.
__device__ inline int32_t divide(int32_t number, int32_t by) {
  return by == 1   ? number
         : by == 2 ? number >> 1
                   : static_cast<int32_t>(static_cast<uint32_t>(number) /
                                          static_cast<uint32_t>(by));
}

template <int count>
__device__ Place placeOf(const PoolingParameters &p) {
  const int32_t image = divide(blockIndex(), p.blocksPerImage);
  const int32_t block = blockIndex() - image * p.blocksPerImage;
  const int32_t at = static_cast<int32_t>(block * blockSize() + threadIndex());
  const int32_t chunks = divide(p.channels, count);
  const int32_t pixel = divide(at, chunks);
  return {image, pixel, (at - pixel * chunks) * count};
}

__device__ inline bool inside(int32_t at, int32_t size) {
  return at >= 0 && at < size;
}

template <class T, int count>
__device__ void storeFloats(T *to, const float *values) {
  Pack<T, count> pack;
  for (int k = 0; k < count; ++k)
    pack.at[k] = fromFloat<T>(values[k]);
  storePack(to, pack);
}

template <class T, int count>
__device__ void maxPoolForward(const PoolingParameters &p, const T *x, T *y,
                               uint8_t *window) {
  const Place place = placeOf<count>(p);
  if (place.pixel >= p.oh * p.ow)
    return;
  const int32_t outputRow = divide(place.pixel, p.ow);
  const int32_t row = outputRow * p.strideH - p.padTop;
  const int32_t column =
      (place.pixel - outputRow * p.ow) * p.strideW - p.padLeft;
  const T *input = x + place.image * p.h * p.w * p.channels + place.channel;
  float best[count];
  // A window of -inf only still points at an element that exists: the first.
  int32_t position[count];
  for (int k = 0; k < count; ++k) {
    best[k] = minusInfinity();
    position[k] = -1;
  }
  for (int32_t i = 0; i < p.kh; ++i)
    for (int32_t j = 0; j < p.kw; ++j) {
      const int32_t r = row + i * p.dilationH, c = column + j * p.dilationW;
      if (!inside(r, p.h) || !inside(c, p.w))
        continue;
      const auto pack = loadPack<T, count>(input + (r * p.w + c) * p.channels);
      for (int k = 0; k < count; ++k) {
        const float value = toFloat(pack.at[k]);
        if (position[k] < 0 || value > best[k])
          position[k] = i * p.kw + j;
        if (value > best[k])
          best[k] = value;
      }
    }
  const int64_t at = place.in(p.oh * p.ow, p);
  storeFloats<T, count>(y + at, best);
  if (!window)
    return;
  Pack<uint8_t, count> positions;
  for (int k = 0; k < count; ++k)
    positions.at[k] = static_cast<uint8_t>(position[k]);
  storePack(window + at, positions);
}

/// Outputs whose window may reach `at`: [first, last].
struct Reach {
  int32_t first, last;
};

__device__ inline Reach reach(int32_t at, int32_t pad, int32_t stride,
                              int32_t kernel, int32_t dilation,
                              int32_t outputs) {
  // o * stride - pad <= at <= o * stride - pad + dilation * (kernel - 1)
  const int32_t last = divide(at + pad, stride);
  const int32_t beyond = at + pad - dilation * (kernel - 1);
  const int32_t first = beyond > 0 ? divide(beyond + stride - 1, stride) : 0;
  return {first, last < outputs ? last : outputs - 1};
}

/// Which element of the window of output `o` an input is; -1 if none.
__device__ inline int32_t elementOfWindow(int32_t at, int32_t o, int32_t pad,
                                          int32_t stride, int32_t dilation) {
  const int32_t distance = at + pad - o * stride;
  const int32_t element = divide(distance, dilation);
  return element * dilation == distance ? element : -1;
}

/// Where a thread of the backward kernels stands.
struct InputElement {
  int32_t row, column;
  Reach rows, columns;
};

__device__ inline InputElement inputElement(const PoolingParameters &p,
                                            int32_t at) {
  const int32_t row = divide(at, p.w), column = at - row * p.w;
  return {row, column, reach(row, p.padTop, p.strideH, p.kh, p.dilationH, p.oh),
          reach(column, p.padLeft, p.strideW, p.kw, p.dilationW, p.ow)};
}

template <class T, int count>
__device__ void maxPoolGradient(const PoolingParameters &p, const T *dy,
                                const uint8_t *window, T *dx) {
  const Place place = placeOf<count>(p);
  if (place.pixel >= p.h * p.w)
    return;
  const InputElement input = inputElement(p, place.pixel);
  const int64_t outputs =
      place.image * p.oh * p.ow * p.channels + place.channel;
  float sum[count] = {};
  for (int32_t r = input.rows.first; r <= input.rows.last; ++r) {
    const int32_t i =
        elementOfWindow(input.row, r, p.padTop, p.strideH, p.dilationH);
    if (i < 0)
      continue;
    for (int32_t c = input.columns.first; c <= input.columns.last; ++c) {
      const int32_t j =
          elementOfWindow(input.column, c, p.padLeft, p.strideW, p.dilationW);
      if (j < 0)
        continue;
      const int64_t at = outputs + (r * p.ow + c) * p.channels;
      const auto positions = loadPack<uint8_t, count>(window + at);
      const auto gradients = loadPack<T, count>(dy + at);
      for (int k = 0; k < count; ++k) {
        // No branch: it would tear the load apart.
        const float more = sum[k] + toFloat(gradients.at[k]);
        sum[k] = positions.at[k] == i * p.kw + j ? more : sum[k];
      }
    }
  }
  storeFloats<T, count>(dx + place.in(p.h * p.w, p), sum);
}

/// How many elements of a window exist.
__device__ inline int32_t countInside(int32_t start, int32_t kernel,
                                      int32_t dilation, int32_t size) {
  int32_t count = 0;
  for (int32_t i = 0; i < kernel; ++i)
    count += inside(start + i * dilation, size);
  return count;
}

/// What an output of average pooling is divided by.
__device__ inline float averageDivisor(const PoolingParameters &p, int32_t row,
                                       int32_t column) {
  if (p.countIncludePad)
    return static_cast<float>(p.kh * p.kw);
  const int32_t count =
      countInside(row * p.strideH - p.padTop, p.kh, p.dilationH, p.h) *
      countInside(column * p.strideW - p.padLeft, p.kw, p.dilationW, p.w);
  return static_cast<float>(count > 1 ? count : 1);
}

template <class T, int count>
__device__ void averagePoolForward(const PoolingParameters &p, const T *x,
                                   T *y) {
  const Place place = placeOf<count>(p);
  if (place.pixel >= p.oh * p.ow)
    return;
  const int32_t row = divide(place.pixel, p.ow);
  const int32_t column = place.pixel - row * p.ow;
  const T *input = x + place.image * p.h * p.w * p.channels + place.channel;
  float sum[count] = {};
  for (int32_t i = 0; i < p.kh; ++i)
    for (int32_t j = 0; j < p.kw; ++j) {
      const int32_t r = row * p.strideH - p.padTop + i * p.dilationH;
      const int32_t c = column * p.strideW - p.padLeft + j * p.dilationW;
      if (!inside(r, p.h) || !inside(c, p.w))
        continue;
      const auto pack = loadPack<T, count>(input + (r * p.w + c) * p.channels);
      for (int k = 0; k < count; ++k)
        sum[k] += toFloat(pack.at[k]);
    }
  const float divisor = averageDivisor(p, row, column);
  for (int k = 0; k < count; ++k)
    sum[k] /= divisor;
  storeFloats<T, count>(y + place.in(p.oh * p.ow, p), sum);
}

template <class T, int count>
__device__ void averagePoolGradient(const PoolingParameters &p, const T *dy,
                                    T *dx) {
  const Place place = placeOf<count>(p);
  if (place.pixel >= p.h * p.w)
    return;
  const InputElement input = inputElement(p, place.pixel);
  const int64_t outputs =
      place.image * p.oh * p.ow * p.channels + place.channel;
  float sum[count] = {};
  for (int32_t r = input.rows.first; r <= input.rows.last; ++r) {
    if (elementOfWindow(input.row, r, p.padTop, p.strideH, p.dilationH) < 0)
      continue;
    // The CPU goes through windows by their elements: outputs descend.
    for (int32_t c = input.columns.last; c >= input.columns.first; --c) {
      if (elementOfWindow(input.column, c, p.padLeft, p.strideW, p.dilationW) <
          0)
        continue;
      const auto gradients =
          loadPack<T, count>(dy + outputs + (r * p.ow + c) * p.channels);
      const float divisor = averageDivisor(p, r, c);
      for (int k = 0; k < count; ++k)
        sum[k] += toFloat(gradients.at[k]) / divisor;
    }
  }
  storeFloats<T, count>(dx + place.in(p.h * p.w, p), sum);
}

/// The kernels of one element type, each thread with `count` channels.
#define POOLING_KERNELS(suffix, T, count)                                      \
  extern "C" __global__ void max_pool_##suffix(                                \
      const __grid_constant__ PoolingParameters p, const T *x, T *y,           \
      uint8_t *window) {                                                       \
    maxPoolForward<T, count>(p, x, y, window);                                 \
  }                                                                            \
  extern "C" __global__ void max_pool_backward_##suffix(                       \
      const __grid_constant__ PoolingParameters p, const T *dy,                \
      const uint8_t *window, T *dx) {                                          \
    maxPoolGradient<T, count>(p, dy, window, dx);                              \
  }                                                                            \
  extern "C" __global__ void average_pool_##suffix(                            \
      const __grid_constant__ PoolingParameters p, const T *x, T *y) {         \
    averagePoolForward<T, count>(p, x, y);                                     \
  }                                                                            \
  extern "C" __global__ void average_pool_backward_##suffix(                   \
      const __grid_constant__ PoolingParameters p, const T *dy, T *dx) {       \
    averagePoolGradient<T, count>(p, dy, dx);                                  \
  }

POOLING_KERNELS(f32, float, 1)
POOLING_KERNELS(f32_packed, float, 4)
POOLING_KERNELS(bf16, Bf16, 1)
POOLING_KERNELS(bf16_packed, Bf16, 8)
