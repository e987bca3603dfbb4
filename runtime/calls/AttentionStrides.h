//===- AttentionStrides.h - Where attention's vectors lie ------*- C++ -*-===//
//
// The strides that follow from an AttentionShape.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_ATTENTIONSTRIDES_H
#define PIPEWRIGHT_RUNTIME_CALLS_ATTENTIONSTRIDES_H

#include "runtime/calls/Attention.h"

namespace pipewright::runtime {

/// Elements from each vector of `depth` elements to that of the next sample,
/// of the next head and of the next row.
struct AttentionStrides {
  int64_t sample, head, row;
};

/// Number of keys.
inline int64_t keysOf(const AttentionShape &s) {
  return s.columns ? s.columns : s.rows;
}

/// The strides of a tensor with `rows` rows for each of `heads` heads. `stride`
/// is that between two rows: 0 where heads are before rows.
inline AttentionStrides attentionStrides(const AttentionShape &s, int64_t heads,
                                         int64_t rows, int64_t stride) {
  if (stride)
    return {rows * stride, s.depth, stride};
  return {heads * rows * s.depth, rows * s.depth, s.depth};
}
/// The strides of q and its gradient.
inline AttentionStrides rowStrides(const AttentionShape &s) {
  return attentionStrides(s, s.heads, s.rows, s.inputStride);
}
/// The strides of k, v and their gradients.
inline AttentionStrides keyStrides(const AttentionShape &s) {
  return attentionStrides(s, s.heads / s.group(), keysOf(s),
                          s.inputStride / s.group());
}
/// The strides of o and its gradient.
inline AttentionStrides outputStrides(const AttentionShape &s) {
  return attentionStrides(s, s.heads, s.rows, s.outputStride);
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_ATTENTIONSTRIDES_H
