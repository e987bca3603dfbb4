//===- AttentionStrides.h - Where attention's vectors lie ------*- C++ -*-===//
//
// From an AttentionShape, for cuDNN and for our own kernels.
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

/// Of vectors of `rows` rows. The stride between these is that of the shape: 0
/// where heads are before rows.
inline VectorStrides vectorStrides(const AttentionShape &s, int64_t rows,
                                   int64_t stride) {
  if (stride)
    return {rows * stride, s.depth, kernelSize(stride, "a row of attention")};
  return {s.heads * rows * s.depth, rows * s.depth,
          kernelSize(s.depth, "a vector of attention")};
}
/// Of q and its gradient; of k, v and theirs; of o and its gradient.
inline VectorStrides rowStrides(const AttentionShape &s) {
  return vectorStrides(s, s.rows, s.inputStride);
}
inline VectorStrides keyStrides(const AttentionShape &s) {
  return vectorStrides(s, keysOf(s), s.inputStride);
}
inline VectorStrides outputStrides(const AttentionShape &s) {
  return vectorStrides(s, s.rows, s.outputStride);
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_ATTENTIONSTRIDES_H
