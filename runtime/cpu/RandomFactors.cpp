//===- RandomFactors.cpp - Vectors of dropout factors ---------------------===//

#include "runtime/cpu/RandomFactors.h"
#include "runtime/core/Philox.h"

#include <algorithm>

using namespace pipewright::runtime;

/// Counters computed side by side: a vector of 32-bit words.
static constexpr int lanes = 16;

/// Words of the counters first .. first + lanes - 1, in element order. Loops
/// of constant length over plain arrays: compilers make vectors of them.
static void philoxBlock(const RandomStream &stream, uint32_t first,
                        uint32_t *words) {
  uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
  for (int l = 0; l < lanes; ++l) {
    c0[l] = first + l;
    c1[l] = stream.id;
    c2[l] = stream.microBatch;
    c3[l] = stream.step;
  }
  uint32_t k0 = static_cast<uint32_t>(stream.seed);
  uint32_t k1 = static_cast<uint32_t>(stream.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < lanes; ++l) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0[l];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * c2[l];
      c0[l] = static_cast<uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
      c2[l] = static_cast<uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
      c1[l] = static_cast<uint32_t>(p1);
      c3[l] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (int l = 0; l < lanes; ++l) {
    words[4 * l] = c0[l];
    words[4 * l + 1] = c1[l];
    words[4 * l + 2] = c2[l];
    words[4 * l + 3] = c3[l];
  }
}

void pipewright::runtime::randomFactors(const RandomStream &stream, float rate,
                                        int64_t first, int64_t count,
                                        float *factors) {
  const uint32_t threshold = dropThreshold(rate);
  const float kept = 1 / (1 - rate);
  uint32_t words[4 * lanes];
  while (count > 0) {
    philoxBlock(stream, static_cast<uint32_t>(first / 4), words);
    const int64_t skip = first % 4;
    const int64_t now = std::min<int64_t>(count, 4 * lanes - skip);
    for (int64_t i = 0; i < now; ++i)
      factors[i] = words[skip + i] < threshold ? 0.0f : kept;
    factors += now;
    first += now;
    count -= now;
  }
}
