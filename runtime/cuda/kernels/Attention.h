//===- Attention.h - Attention on the GPU ----------------------*- C++ -*-===//
//
// Tiles of scores live in shared memory; beside its results attention needs
// one number per row.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_ATTENTION_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_ATTENTION_H

#include "runtime/calls/Attention.h"
#include "runtime/cuda/DeviceRank.h"

namespace pipewright::runtime {

/// In setUp, once per shape used in a step. Throws an Error for a depth that
/// no kernel has.
void prepareAttention(DeviceRank &rank, const AttentionShape &shape);

/// `mask` has zero bytes where there is none.
void attention(DeviceRank &rank, const AttentionShape &shape,
               int64_t microBatch, Buffer q, Buffer k, Buffer v, Buffer mask,
               Buffer o, Buffer stats);
/// `dO` is the gradient of `o`.
void attentionBackward(DeviceRank &rank, const AttentionShape &shape,
                       int64_t microBatch, Buffer dO, Buffer q, Buffer k,
                       Buffer v, Buffer o, Buffer stats, Buffer mask, Buffer dq,
                       Buffer dk, Buffer dv);

/// The same where q, k and v are the thirds of each row of one tensor,
/// [batch, rows, 3, heads, depth], as are their gradients: `inputStride` is
/// 3 * heads * depth.
void packedAttention(DeviceRank &rank, const AttentionShape &shape,
                     int64_t microBatch, Buffer qkv, Buffer mask, Buffer o,
                     Buffer stats);
void packedAttentionBackward(DeviceRank &rank, const AttentionShape &shape,
                             int64_t microBatch, Buffer dO, Buffer qkv,
                             Buffer o, Buffer stats, Buffer mask, Buffer dqkv);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_ATTENTION_H
