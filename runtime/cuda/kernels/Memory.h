//===- Memory.h - Filling, copying and adding GPU buffers ------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MEMORY_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MEMORY_H

#include "runtime/cuda/DeviceRank.h"

namespace pipewright::runtime {

void zero(DeviceRank &rank, Buffer buffer);
/// All of `source`, to the begin of `destination`; they may not overlap.
void copy(DeviceRank &rank, Buffer source, Buffer destination);
/// The values of a table of the program. They travel with the launches, so
/// the table may be anywhere; meant for small ones.
void setValues(DeviceRank &rank, const void *values, Buffer destination);
/// f32: destination += source.
void accumulate(DeviceRank &rank, Buffer source, Buffer destination);
/// f32: every element becomes `value`.
void fill(DeviceRank &rank, float value, Buffer buffer);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MEMORY_H
