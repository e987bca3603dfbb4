//===- AttentionBFloat16.h - Attention on bf16 operands --------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_ATTENTIONBFLOAT16_H
#define PIPEWRIGHT_RUNTIME_CPU_ATTENTIONBFLOAT16_H

#include "runtime/calls/Attention.h"
#include "runtime/cpu/Rank.h"

namespace pipewright::runtime {

/// The functions of Attention.h for shapes of type BF16.
void prepareAttentionBFloat16(Rank &rank, const AttentionShape &shape);
void attentionBFloat16(Rank &rank, const AttentionShape &shape,
                       int64_t microBatch, Buffer q, Buffer k, Buffer v,
                       Buffer mask, Buffer o, Buffer stats);
void attentionBackwardBFloat16(Rank &rank, const AttentionShape &shape,
                               int64_t microBatch, Buffer dO, Buffer q,
                               Buffer k, Buffer v, Buffer stats, Buffer mask,
                               Buffer dq, Buffer dk, Buffer dv, Buffer dMask);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_ATTENTIONBFLOAT16_H
