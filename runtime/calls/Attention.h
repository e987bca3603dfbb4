//===- Attention.h - Attention by a library call ---------------*- C++ -*-===//
//
// Nothing of size rows x columns is kept: forward leaves two numbers per row,
// its largest score and 1 / the sum of the powers against it, from which
// backward computes the probabilities again. One number, the logarithm of the
// sum, would not do: beside a maximum of -1e9, which rows have whose keys are
// all masked, f32 rounds it away.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_ATTENTION_H
#define PIPEWRIGHT_RUNTIME_CALLS_ATTENTION_H

#include "runtime/calls/Fields.h"
#include "runtime/core/Arena.h"

#include <algorithm>

namespace pipewright::runtime {

/// Kernels of GPUs go to vectors of so many elements. cuDNN may have longer
/// ones, but not for every mask, type and version.
constexpr int64_t longestDeviceVector = 256;

/// q, o [batch, heads, rows, depth]; k, v [batch, keyHeads, columns, depth];
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
  /// Sizes of the additive mask: each 1 (stretched) or the full size. Samples
  /// may also be fewer, if they divide the batch: sample b has that of b %
  /// maskBatch.
  int64_t maskBatch = 1, maskHeads = 1, maskRows = 1, maskColumns = 1;
  /// Of q, k, v, o and their gradients: F32 or BF16. The mask and stats are
  /// f32.
  ElementType type = ElementType::F32;
  /// Elements from one row of a head to the next, in q, k, v and their
  /// gradients, and in o and its gradient; not in bf16 on CPUs. Rows are before
  /// heads then, [batch, rows, heads, depth]; 0 is as above. Where k and v have
  /// fewer heads than q, their rows are shorter than `inputStride` in the same
  /// proportion.
  int64_t inputStride = 0, outputStride = 0;
  /// Heads of k and v, which divide `heads`; 0 means as many.
  int64_t keyHeads = 0;
  /// A scaled score z becomes softcap * tanh(z / softcap), before the mask; 0
  /// leaves it.
  float softcap = 0;
  /// Backward also gives the gradient of the mask, which then has all rows and
  /// columns.
  bool maskGradient = false;

  /// How many heads of q, one behind the other, read each head of k and v. The
  /// gradients of these are summed in the order of the heads of q.
  int64_t group() const { return keyHeads ? heads / keyHeads : 1; }

  /// The arithmetic of the call: a multiply-add counts as 2, each element of
  /// the softmax takes 5, scores that causal rows don't see cost nothing.
  /// Forward has two matrix products, backward five: it computes the scores
  /// again.
  int64_t operations(bool isBackward) const {
    const int64_t keys = columns ? columns : rows;
    const int64_t diagonal = std::min(rows, keys);
    const int64_t seen =
        causal ? diagonal * (diagonal + 1) / 2 + (rows - diagonal) * keys
               : rows * keys;
    return batch * heads * seen * (2 * (isBackward ? 5 : 2) * depth + 5);
  }

  PIPEWRIGHT_FIELDS(batch, heads, rows, columns, depth, scale, causal,
                    dropoutRate, dropoutId, maskBatch, maskHeads, maskRows,
                    maskColumns, type, inputStride, outputStride, keyHeads,
                    softcap, maskGradient)
};

/// In setUp, once per shape used in a step.
template <class AnyRank>
void prepareAttention(AnyRank &rank, const AttentionShape &shape);

/// `mask` has zero bytes where there is none.
template <class AnyRank>
void attention(AnyRank &rank, const AttentionShape &shape, int64_t microBatch,
               Buffer q, Buffer k, Buffer v, Buffer mask, Buffer o,
               Buffer stats);
/// `dO` is the gradient of `o`. `dMask` has zero bytes unless the shape says
/// that there is a gradient of the mask: what of each sample and head is added
/// to it in their order.
template <class AnyRank>
void attentionBackward(AnyRank &rank, const AttentionShape &shape,
                       int64_t microBatch, Buffer dO, Buffer q, Buffer k,
                       Buffer v, Buffer o, Buffer stats, Buffer mask, Buffer dq,
                       Buffer dk, Buffer dv, Buffer dMask = {});

/// The parts of a tensor [batch, rows, 3, heads, depth], each from its first
/// vector to its last.
struct AttentionThirds {
  Buffer q, k, v;
};
AttentionThirds thirdsOf(const AttentionShape &shape, Buffer packed);

/// The same where q, k and v are the thirds of each row of one tensor, as are
/// their gradients: `inputStride` is 3 * heads * depth.
template <class AnyRank>
void packedAttention(AnyRank &rank, const AttentionShape &shape,
                     int64_t microBatch, Buffer qkv, Buffer mask, Buffer o,
                     Buffer stats) {
  const auto [q, k, v] = thirdsOf(shape, qkv);
  attention(rank, shape, microBatch, q, k, v, mask, o, stats);
}
template <class AnyRank>
void packedAttentionBackward(AnyRank &rank, const AttentionShape &shape,
                             int64_t microBatch, Buffer dO, Buffer qkv,
                             Buffer o, Buffer stats, Buffer mask, Buffer dqkv,
                             Buffer dMask = {}) {
  const auto [q, k, v] = thirdsOf(shape, qkv);
  const auto [dq, dk, dv] = thirdsOf(shape, dqkv);
  attentionBackward(rank, shape, microBatch, dO, q, k, v, o, stats, mask, dq,
                    dk, dv, dMask);
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_ATTENTION_H
