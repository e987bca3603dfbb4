//===- GpuMemory.h - What ranks take of a GPU ------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_GPUMEMORY_H
#define PIPEWRIGHT_RUNTIME_CUDA_GPUMEMORY_H

#include "runtime/core/Program.h"
#include "runtime/cuda/LinkChoice.h"

#include <cstdint>
#include <string>

namespace pipewright::runtime {

/// Bytes of a GPU, as far as they are known before anything has been taken.
/// Convolutions and attention ask for their workspace in setUp, and the driver
/// and libraries keep something for themselves: neither is here.
struct GpuMemory {
  int64_t arenas = 0;
  /// What products are offered.
  int64_t workspace = 0;
  int64_t ncclBuffers = 0;
  /// The inputs of the next step. Where there is no room, it goes without.
  int64_t inputsAhead = 0;

  /// What must be there beside the arenas.
  int64_t libraries() const { return workspace + ncclBuffers; }
  int64_t total() const { return arenas + libraries() + inputsAhead; }
  GpuMemory &operator+=(const GpuMemory &other);
};

/// What one rank takes, by its number among those of all replicas.
GpuMemory gpuMemoryOf(const Program &program, int64_t rank,
                      const LinkChoice &links, bool isOneHost);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_GPUMEMORY_H
