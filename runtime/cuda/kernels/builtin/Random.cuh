//===- Random.cuh - Counter-based random numbers of dropout ----*- C++ -*-===//
//
// The same Philox-4x32-10 as runtime/core/Philox.h: the factors are those of
// the CPU, bit for bit.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/builtin/Prelude.cuh"

using pipewright::runtime::DropoutParameters;

struct RandomWords {
  uint32_t at[4];
};

/// Four random words of one counter.
__device__ inline RandomWords philox(uint64_t key, uint32_t c0, uint32_t c1,
                                     uint32_t c2, uint32_t c3) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

/// The words of the elements 4 * group .. 4 * group + 3. `state` is the seed
/// and the step that runs.
__device__ inline RandomWords
randomWords(const DropoutParameters &p, const uint64_t *state, int64_t group) {
  return philox(state[0], static_cast<uint32_t>(group), p.id, p.microBatch,
                static_cast<uint32_t>(state[1]));
}

__device__ inline float dropoutFactor(const DropoutParameters &p,
                                      uint32_t word) {
  return word < p.threshold ? 0.0f : p.kept;
}
