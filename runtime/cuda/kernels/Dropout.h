//===- Dropout.h - Dropout on the GPU --------------------------*- C++ -*-===//
//
// The same factors as on the CPU. Seed and step are read from device memory
// (DeviceRank::randomState), so a graph draws new numbers in every step.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_DROPOUT_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_DROPOUT_H

#include "runtime/calls/Dropout.h"
#include "runtime/cuda/DeviceRank.h"

namespace pipewright::runtime {

/// y may be x.
void dropout(DeviceRank &rank, const DropoutShape &shape, int64_t microBatch,
             Buffer x, Buffer y);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_DROPOUT_H
