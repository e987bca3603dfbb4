//===- Pooling.cuh - Max and average pooling over NCHW ---------*- C++ -*-===//
//
// Forward, each thread has an output. Backward, each thread has an input and
// collects from the windows that it lies in, in the order in which the CPU
// adds them: the same bits, without atomics.
//
// Blocks come in groups of p.blocksPerPlane, one group for each plane (a
// channel of a sample).
//
//===----------------------------------------------------------------------===//

#pragma once

#include "runtime/device/kernels/BuiltinParameters.h"
#include "runtime/device/kernels/builtin/Prelude.cuh"

using pipewright::runtime::PoolingParameters;

/// Which plane and which element of it a thread has.
struct PlaneElement {
  int64_t plane;
  int32_t at;
};

__device__ inline PlaneElement planeElement(const PoolingParameters &p) {
  const int32_t plane = blockIndex() / p.blocksPerPlane;
  const int32_t block = blockIndex() - plane * p.blocksPerPlane;
  return {plane, static_cast<int32_t>(block * blockSize() + threadIndex())};
}

__device__ inline bool inside(int32_t at, int32_t size) {
  return at >= 0 && at < size;
}

template <class T>
__device__ void maxPoolForward(const PoolingParameters &p, const T *x, T *y,
                               uint8_t *window) {
  const PlaneElement element = planeElement(p);
  if (element.at >= p.oh * p.ow)
    return;
  const int32_t row = element.at / p.ow * p.strideH - p.padTop;
  const int32_t column = element.at % p.ow * p.strideW - p.padLeft;
  const T *input = x + element.plane * p.h * p.w;
  float best = minusInfinity();
  // A window of -inf only still points at an element that exists: the first.
  int32_t position = -1;
  for (int32_t i = 0; i < p.kh; ++i)
    for (int32_t j = 0; j < p.kw; ++j) {
      const int32_t r = row + i * p.dilationH, c = column + j * p.dilationW;
      if (!inside(r, p.h) || !inside(c, p.w))
        continue;
      const float value = toFloat(input[r * p.w + c]);
      if (position < 0 || value > best)
        position = i * p.kw + j;
      if (value > best)
        best = value;
    }
  const int64_t at = element.plane * p.oh * p.ow + element.at;
  y[at] = fromFloat<T>(best);
  if (window)
    window[at] = static_cast<uint8_t>(position);
}

/// Outputs whose window may reach `at`: [first, last].
struct Reach {
  int32_t first, last;
};

__device__ inline Reach reach(int32_t at, int32_t pad, int32_t stride,
                              int32_t kernel, int32_t dilation,
                              int32_t outputs) {
  // o * stride - pad <= at <= o * stride - pad + dilation * (kernel - 1)
  const int32_t last = (at + pad) / stride;
  const int32_t beyond = at + pad - dilation * (kernel - 1);
  const int32_t first = beyond > 0 ? (beyond + stride - 1) / stride : 0;
  return {first, last < outputs ? last : outputs - 1};
}

/// Which element of the window of output `o` an input is; -1 if none.
__device__ inline int32_t elementOfWindow(int32_t at, int32_t o, int32_t pad,
                                          int32_t stride, int32_t dilation) {
  const int32_t distance = at + pad - o * stride;
  return distance % dilation == 0 ? distance / dilation : -1;
}

/// Where a thread of the backward kernels stands.
struct InputElement {
  int32_t row, column;
  Reach rows, columns;
};

__device__ inline InputElement inputElement(const PoolingParameters &p,
                                            int32_t at) {
  const int32_t row = at / p.w, column = at % p.w;
  return {row, column, reach(row, p.padTop, p.strideH, p.kh, p.dilationH, p.oh),
          reach(column, p.padLeft, p.strideW, p.kw, p.dilationW, p.ow)};
}

template <class T>
__device__ void maxPoolGradient(const PoolingParameters &p, const T *dy,
                                const uint8_t *window, T *dx) {
  const PlaneElement element = planeElement(p);
  if (element.at >= p.h * p.w)
    return;
  const InputElement input = inputElement(p, element.at);
  const int64_t outputs = element.plane * p.oh * p.ow;
  float sum = 0;
  for (int32_t r = input.rows.first; r <= input.rows.last; ++r) {
    const int32_t i =
        elementOfWindow(input.row, r, p.padTop, p.strideH, p.dilationH);
    if (i < 0)
      continue;
    for (int32_t c = input.columns.first; c <= input.columns.last; ++c) {
      const int32_t j =
          elementOfWindow(input.column, c, p.padLeft, p.strideW, p.dilationW);
      const int64_t at = outputs + r * p.ow + c;
      if (j >= 0 && window[at] == i * p.kw + j)
        sum += toFloat(dy[at]);
    }
  }
  dx[element.plane * p.h * p.w + element.at] = fromFloat<T>(sum);
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

template <class T>
__device__ void averagePoolForward(const PoolingParameters &p, const T *x,
                                   T *y) {
  const PlaneElement element = planeElement(p);
  if (element.at >= p.oh * p.ow)
    return;
  const int32_t row = element.at / p.ow, column = element.at % p.ow;
  const T *input = x + element.plane * p.h * p.w;
  float sum = 0;
  for (int32_t i = 0; i < p.kh; ++i)
    for (int32_t j = 0; j < p.kw; ++j) {
      const int32_t r = row * p.strideH - p.padTop + i * p.dilationH;
      const int32_t c = column * p.strideW - p.padLeft + j * p.dilationW;
      if (inside(r, p.h) && inside(c, p.w))
        sum += toFloat(input[r * p.w + c]);
    }
  y[element.plane * p.oh * p.ow + element.at] =
      fromFloat<T>(sum / averageDivisor(p, row, column));
}

template <class T>
__device__ void averagePoolGradient(const PoolingParameters &p, const T *dy,
                                    T *dx) {
  const PlaneElement element = planeElement(p);
  if (element.at >= p.h * p.w)
    return;
  const InputElement input = inputElement(p, element.at);
  const int64_t outputs = element.plane * p.oh * p.ow;
  float sum = 0;
  for (int32_t r = input.rows.first; r <= input.rows.last; ++r) {
    if (elementOfWindow(input.row, r, p.padTop, p.strideH, p.dilationH) < 0)
      continue;
    // The CPU goes through windows by their elements: outputs descend.
    for (int32_t c = input.columns.last; c >= input.columns.first; --c)
      if (elementOfWindow(input.column, c, p.padLeft, p.strideW, p.dilationW) >=
          0)
        sum += toFloat(dy[outputs + r * p.ow + c]) / averageDivisor(p, r, c);
  }
  dx[element.plane * p.h * p.w + element.at] = fromFloat<T>(sum);
}

extern "C" __global__ void
max_pool_f32(const __grid_constant__ PoolingParameters p, const float *x,
             float *y, uint8_t *window) {
  maxPoolForward(p, x, y, window);
}
extern "C" __global__ void
max_pool_bf16(const __grid_constant__ PoolingParameters p, const Bf16 *x,
              Bf16 *y, uint8_t *window) {
  maxPoolForward(p, x, y, window);
}
extern "C" __global__ void
max_pool_backward_f32(const __grid_constant__ PoolingParameters p,
                      const float *dy, const uint8_t *window, float *dx) {
  maxPoolGradient(p, dy, window, dx);
}
extern "C" __global__ void
max_pool_backward_bf16(const __grid_constant__ PoolingParameters p,
                       const Bf16 *dy, const uint8_t *window, Bf16 *dx) {
  maxPoolGradient(p, dy, window, dx);
}
extern "C" __global__ void
average_pool_f32(const __grid_constant__ PoolingParameters p, const float *x,
                 float *y) {
  averagePoolForward(p, x, y);
}
extern "C" __global__ void
average_pool_bf16(const __grid_constant__ PoolingParameters p, const Bf16 *x,
                  Bf16 *y) {
  averagePoolForward(p, x, y);
}
extern "C" __global__ void
average_pool_backward_f32(const __grid_constant__ PoolingParameters p,
                          const float *dy, float *dx) {
  averagePoolGradient(p, dy, dx);
}
extern "C" __global__ void
average_pool_backward_bf16(const __grid_constant__ PoolingParameters p,
                           const Bf16 *dy, Bf16 *dx) {
  averagePoolGradient(p, dy, dx);
}
