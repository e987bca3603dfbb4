//===- Pooling.h - Max and average pooling on the GPU ----------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_POOLING_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_POOLING_H

#include "runtime/calls/Pooling.h"
#include "runtime/cuda/DeviceRank.h"

namespace pipewright::runtime {

/// `window` gets row * kw + column inside the window of the first maximum, one
/// unsigned byte per output: at most 256 positions. May be absent.
void maxPool(DeviceRank &rank, const PoolingShape &shape, Buffer x, Buffer y,
             Buffer window);
void maxPoolBackward(DeviceRank &rank, const PoolingShape &shape, Buffer dy,
                     Buffer window, Buffer dx);
void averagePool(DeviceRank &rank, const PoolingShape &shape, Buffer x,
                 Buffer y);
void averagePoolBackward(DeviceRank &rank, const PoolingShape &shape, Buffer dy,
                         Buffer dx);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_POOLING_H
