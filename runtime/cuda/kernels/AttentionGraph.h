//===- AttentionGraph.h - Attention as cuDNN's graphs ----------*- C++ -*-===//
//
// The nodes that cuDNN's engines of fused attention look for, of a forward and
// of a backward pass that does not add with atomics.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_ATTENTIONGRAPH_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_ATTENTIONGRAPH_H

#include "runtime/calls/Attention.h"
#include "runtime/cuda/CudnnGraph.h"

namespace pipewright::runtime {

/// Names of tensors in variant packs. The last ones are numbers on the host.
enum class AttentionTensor : int64_t {
  Q = 1,
  K,
  V,
  O,
  Lse,
  OutputGradient,
  /// For each row dO . o; between nodes, yet in memory.
  Means,
  QGradient,
  KGradient,
  VGradient,
  Scale,
  /// What hidden scores become.
  Hidden,
  One
};

/// Of a shape without a mask.
CudnnDescriptor attentionForwardGraph(const CudnnTarget &target,
                                      const AttentionShape &shape);
CudnnDescriptor attentionBackwardGraph(const CudnnTarget &target,
                                       const AttentionShape &shape);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_ATTENTIONGRAPH_H
