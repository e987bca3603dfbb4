//===- Embedding.h - Rows of a table ---------------------------*- C++ -*-===//
//
// Indices are i64 and in range: the data reader has checked them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_EMBEDDING_H
#define PIPEWRIGHT_RUNTIME_CPU_EMBEDDING_H

#include "runtime/core/Rank.h"

namespace pipewright::runtime {

/// table[rows, width], indices[count], result [count, width].
struct EmbeddingShape {
  int64_t rows = 0;
  int64_t width = 0;
  int64_t count = 0;
  /// Of table, y and dy: F32 or BF16. dtable is f32.
  ElementType type = ElementType::F32;
};

void embedding(Rank &rank, const EmbeddingShape &shape, Buffer table,
               Buffer indices, Buffer y);
/// Adds each row of dy to its row of dtable, in the order of the indices.
/// dtable is set to zero first unless `accumulate`.
void embeddingBackward(Rank &rank, const EmbeddingShape &shape, Buffer dy,
                       Buffer indices, Buffer dtable, bool accumulate = false);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_EMBEDDING_H
