//===- Convolution.h - 2-D convolutions on the GPU -------------*- C++ -*-===//
//
// By cuDNN. The plan of each convolution and direction is chosen in setUp by
// the library's heuristic among deterministic engines, never by timing.
// Tensors are plain NCHW and OIHW, or with the channels last NHWC and OHWI,
// which is what tensor cores want.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_CONVOLUTION_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_CONVOLUTION_H

#include "runtime/calls/Convolution.h"
#include "runtime/cuda/DeviceRank.h"

namespace pipewright::runtime {

/// Called in setUp, once for each number and direction that a step uses.
void prepareConvolutionForward(DeviceRank &rank, int64_t number,
                               const ConvolutionShape &shape, bool hasBias);
void prepareConvolutionBackwardData(DeviceRank &rank, int64_t number,
                                    const ConvolutionShape &shape);
void prepareConvolutionBackwardWeight(DeviceRank &rank, int64_t number,
                                      const ConvolutionShape &shape);

/// `bias` has zero bytes where there is none.
void convolutionForward(DeviceRank &rank, int64_t number, Buffer x, Buffer w,
                        Buffer bias, Buffer y);
void convolutionBackwardData(DeviceRank &rank, int64_t number, Buffer dy,
                             Buffer w, Buffer dx);
/// Adds to dw when `accumulate`, overwrites it otherwise.
void convolutionBackwardWeight(DeviceRank &rank, int64_t number, Buffer dy,
                               Buffer x, Buffer dw, bool accumulate = false);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_CONVOLUTION_H
