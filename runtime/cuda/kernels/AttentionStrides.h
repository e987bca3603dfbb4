//===- AttentionStrides.h - Where attention's vectors lie ------*- C++ -*-===//
//
// The strides that follow from an AttentionShape, for cuDNN and for our own
// kernels.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_ATTENTIONSTRIDES_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_ATTENTIONSTRIDES_H

#include "runtime/calls/Attention.h"
#include "runtime/cuda/kernels/BuiltinParameters.h"
#include "runtime/cuda/kernels/Builtins.h"

namespace pipewright::runtime {

/// Number of keys.
inline int64_t keysOf(const AttentionShape &s) {
  return s.columns ? s.columns : s.rows;
}

/// The strides of a tensor with `rows` rows for each of `heads` heads. `stride`
/// is that between two rows: 0 where heads are before rows.
inline VectorStrides vectorStrides(const AttentionShape &s, int64_t heads,
                                   int64_t rows, int64_t stride) {
  if (stride)
    return {rows * stride, s.depth, kernelSize(stride, "a row of attention")};
  return {heads * rows * s.depth, rows * s.depth,
          kernelSize(s.depth, "a vector of attention")};
}
/// The strides of q and its gradient.
inline VectorStrides rowStrides(const AttentionShape &s) {
  return vectorStrides(s, s.heads, s.rows, s.inputStride);
}
/// The strides of k, v and their gradients.
inline VectorStrides keyStrides(const AttentionShape &s) {
  return vectorStrides(s, s.heads / s.group(), keysOf(s),
                       s.inputStride / s.group());
}
/// The strides of o and its gradient.
inline VectorStrides outputStrides(const AttentionShape &s) {
  return vectorStrides(s, s.heads, s.rows, s.outputStride);
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_ATTENTIONSTRIDES_H
