//===- Attention.h - Sizes of attention -------------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_ATTENTION_H
#define PIPEWRIGHT_RUNTIME_CALLS_ATTENTION_H

#include "runtime/calls/Fields.h"

namespace pipewright::runtime {

/// q, o [batch, heads, rows, depth]; k, v [batch, heads, columns, depth];
/// stats [batch, heads, rows, 2]; all dense, unless there are strides. A row
/// that sees nothing but -inf has the result 0, stats (0, 0) and no gradient.
struct AttentionShape {
  int64_t batch = 0, heads = 0, rows = 0;
  /// Number of keys; 0 means as many as rows.
  int64_t columns = 0;
  int64_t depth = 0;
  float scale = 1;
  /// Row i sees columns 0..i.
  bool causal = false;
  float dropoutRate = 0;
  int64_t dropoutId = 0;
  /// Sizes of the additive mask: each 1 (stretched) or the full size.
  int64_t maskBatch = 1, maskHeads = 1, maskRows = 1, maskColumns = 1;
  /// Of q, k, v, o and their gradients: F32 or BF16. The mask and stats are
  /// f32.
  ElementType type = ElementType::F32;
  /// On GPUs only: elements from one row of a head to the next, in q, k, v and
  /// their gradients, and in o and its gradient. Rows are before heads then,
  /// [batch, rows, heads, depth]; 0 is as above.
  int64_t inputStride = 0, outputStride = 0;

  PIPEWRIGHT_FIELDS(batch, heads, rows, columns, depth, scale, causal,
                    dropoutRate, dropoutId, maskBatch, maskHeads, maskRows,
                    maskColumns, type, inputStride, outputStride)
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_ATTENTION_H
