//===- Embedding.h - Rows of a table on the GPU ----------------*- C++ -*-===//
//
// Indices are i64 and in range: the data reader has checked them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_EMBEDDING_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_EMBEDDING_H

#include "runtime/calls/Embedding.h"
#include "runtime/cuda/DeviceRank.h"

namespace pipewright::runtime {

/// In setUp, once for each shape of embeddingBackward that a step uses.
void prepareEmbeddingBackward(DeviceRank &rank, const EmbeddingShape &shape);

void embedding(DeviceRank &rank, const EmbeddingShape &shape, Buffer table,
               Buffer indices, Buffer y);
/// Adds each row of dy to its row of dtable, in the order of the indices.
/// dtable is overwritten unless `accumulate`.
void embeddingBackward(DeviceRank &rank, const EmbeddingShape &shape, Buffer dy,
                       Buffer indices, Buffer dtable, bool accumulate = false);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_EMBEDDING_H
