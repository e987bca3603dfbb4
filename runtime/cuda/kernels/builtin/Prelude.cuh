//===- Prelude.cuh - CUDA C++ without a toolkit ----------------*- C++ -*-===//
//
// The little of CUDA's headers that the builtin kernels use, so that clang
// alone compiles them: flags are in runtime/CMakeLists.txt.
//
//===----------------------------------------------------------------------===//

#pragma once

#include <stdint.h>

#define __global__ __attribute__((global))
/// All functions become part of their kernels: a call would need a stack.
#define __device__ __attribute__((device, always_inline))
#define __shared__ __attribute__((shared))
/// A parameter that is read where the launch put it, never copied.
#define __grid_constant__ __attribute__((grid_constant))
/// Every thread of a block; the compiler plans registers for it.
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

__device__ inline unsigned threadIndex() {
  return __nvvm_read_ptx_sreg_tid_x();
}
__device__ inline unsigned blockIndex() {
  return __nvvm_read_ptx_sreg_ctaid_x();
}
__device__ inline unsigned blockSize() { return __nvvm_read_ptx_sreg_ntid_x(); }

/// The number of this thread in the whole grid.
__device__ inline int64_t globalIndex() {
  return static_cast<int64_t>(blockIndex()) * blockSize() + threadIndex();
}

/// Waits for all threads of the block; shared memory is seen by all then.
__device__ inline void syncBlock() { __nvvm_bar_sync(0); }

/// Where instructions for shared memory find what is in it.
__device__ inline uint32_t sharedAddress(const void *pointer) {
  return static_cast<uint32_t>(reinterpret_cast<uint64_t>(
      (__attribute__((address_space(3))) const void *)pointer));
}

/// The value that the lane `lane ^ mask` of the warp has.
__device__ inline float shuffleXor(float value, int mask) {
  return __nvvm_shfl_sync_bfly_f32(0xFFFFFFFFu, value, mask, 31);
}

__device__ inline float fusedMultiplyAdd(float a, float b, float c) {
  return __nvvm_fma_rn_f(a, b, c);
}

/// 2^x, 2 units in the last place or better.
__device__ inline float exponential2(float x) { return __nvvm_ex2_approx_f(x); }

/// NaN only if both are.
__device__ inline float larger(float a, float b) { return __nvvm_fmax_f(a, b); }

__device__ inline float minusInfinity() { return -__builtin_inff(); }

/// How bf16 lies in memory. Arithmetic is in float; a store rounds to nearest,
/// ties to even.
struct Bf16 {
  uint16_t bits;
};

__device__ inline float toFloat(float value) { return value; }
__device__ inline float toFloat(Bf16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  return __builtin_bit_cast(float, bits);
}

template <class T>
__device__ T fromFloat(float value);
template <>
__device__ inline float fromFloat<float>(float value) {
  return value;
}
template <>
__device__ inline Bf16 fromFloat<Bf16>(float value) {
  return {__builtin_bit_cast(uint16_t, __nvvm_f2bf16_rn(value))};
}

/// `count` elements that are loaded and stored at once: their address must be
/// a multiple of their size.
template <class T, int count>
struct alignas(sizeof(T) * count) Pack {
  T at[count];
};

template <class T, int count>
__device__ Pack<T, count> loadPack(const T *from) {
  return *reinterpret_cast<const Pack<T, count> *>(from);
}
template <class T, int count>
__device__ void storePack(T *to, const Pack<T, count> &pack) {
  *reinterpret_cast<Pack<T, count> *>(to) = pack;
}
