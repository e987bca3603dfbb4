//===- Chaos.h - Random delays that show missing events --------*- C++ -*-===//
//
// A program whose events are right computes the same bits whatever the streams
// do between them. Delays of streams and of the host shake that order.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_CHAOS_H
#define PIPEWRIGHT_RUNTIME_CUDA_CHAOS_H

#include "runtime/cuda/Driver.h"

#include <cstdint>

namespace pipewright::runtime {

class Chaos {
public:
  /// Seed 0: no delays at all.
  Chaos(uint64_t seed, int64_t rank) : seed(seed), rank(rank) {}

  /// Perhaps delays the host, and what comes next on the stream.
  void strike(CUstream stream);

private:
  uint64_t seed;
  int64_t rank;
  uint32_t strikes = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_CHAOS_H
