//===- Embedding.h - Rows of a table ---------------------------*- C++ -*-===//
//
// Indices are i64 and in range: the data reader has checked them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_EMBEDDING_H
#define PIPEWRIGHT_RUNTIME_CPU_EMBEDDING_H

#include "runtime/calls/Embedding.h"
#include "runtime/rank/Rank.h"

namespace pipewright::runtime {

void embedding(Rank &rank, const EmbeddingShape &shape, Buffer table,
               Buffer indices, Buffer y);
/// Adds each row of dy to its row of dtable, in the order of the indices.
/// dtable is set to zero first unless `accumulate`.
void embeddingBackward(Rank &rank, const EmbeddingShape &shape, Buffer dy,
                       Buffer indices, Buffer dtable, bool accumulate = false);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_EMBEDDING_H
