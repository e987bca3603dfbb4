//===- ConvolutionPlan.h - Convolutions as cuDNN's graphs ------*- C++ -*-===//
//
// Which engine of cuDNN computes a direction of a convolution. Plans can be
// made for a GPU that is only described, too.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_CONVOLUTIONPLAN_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_CONVOLUTIONPLAN_H

#include "runtime/calls/Convolution.h"
#include "runtime/cuda/CudnnGraph.h"

namespace pipewright::runtime {

/// Tensors, as variant packs name them. X is what a forward convolution reads,
/// Y what it writes.
enum class ConvolutionTensor : int64_t { X = 1, W, Y, Bias };

/// One direction of one convolution.
struct ConvolutionPlan {
  ConvolutionDirection direction;
  ConvolutionShape shape;
  CudnnPlan cudnn;
  /// Forward: the bias is added by a kernel of its own.
  bool biasApart = false;
};

/// The plan of the first deterministic engine that cuDNN's heuristic proposes;
/// throws an Error where it has none. Full f32 unless operands `mayRound`.
ConvolutionPlan planConvolution(const CudnnTarget &target,
                                ConvolutionDirection direction,
                                const ConvolutionShape &shape, bool hasBias,
                                bool mayRound);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_CONVOLUTIONPLAN_H
