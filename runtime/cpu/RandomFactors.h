//===- RandomFactors.h - Vectors of dropout factors ------------*- C++ -*-===//
//
// The one place that turns Philox words into "dropped" (0) or "kept"
// (1 / (1 - rate)); dropout and attention share it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_RANDOMFACTORS_H
#define PIPEWRIGHT_RUNTIME_CPU_RANDOMFACTORS_H

#include <cstdint>

namespace pipewright::runtime {

/// What identifies the random numbers of one dropout in one micro-batch.
struct RandomStream {
  uint64_t seed;
  uint32_t id;
  uint32_t microBatch;
  uint32_t step;
};

/// Factors of the elements [first, first + count).
void randomFactors(const RandomStream &stream, float rate, int64_t first,
                   int64_t count, float *factors);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_RANDOMFACTORS_H
