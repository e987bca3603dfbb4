//===- Attention.h - Attention in row blocks -------------------*- C++ -*-===//
//
// Forward keeps two numbers per row, its largest score and 1 / the sum of the
// powers against it; backward recomputes the probabilities from them, so
// nothing of size rows x columns exists beyond a block. One number, the
// logarithm of the sum, would not do: beside a maximum of -1e9, which rows have
// whose keys are all masked, f32 rounds it away.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_ATTENTION_H
#define PIPEWRIGHT_RUNTIME_CPU_ATTENTION_H

#include "runtime/calls/Attention.h"
#include "runtime/rank/Rank.h"

namespace pipewright::runtime {

/// Called in setUp, once per shape used in a step: the scratch of a block.
void prepareAttention(Rank &rank, const AttentionShape &shape);

/// `mask` has zero bytes where there is none.
void attention(Rank &rank, const AttentionShape &shape, int64_t microBatch,
               Buffer q, Buffer k, Buffer v, Buffer mask, Buffer o,
               Buffer stats);
/// `dO` is the gradient of `o`.
void attentionBackward(Rank &rank, const AttentionShape &shape,
                       int64_t microBatch, Buffer dO, Buffer q, Buffer k,
                       Buffer v, Buffer o, Buffer stats, Buffer mask, Buffer dq,
                       Buffer dk, Buffer dv);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_ATTENTION_H
