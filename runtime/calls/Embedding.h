//===- Embedding.h - Rows of a table by library calls ----------*- C++ -*-===//
//
// Indices are i64. Others than [0, rows) are refused: at once on a CPU, at the
// end of the step on a GPU.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_EMBEDDING_H
#define PIPEWRIGHT_RUNTIME_CALLS_EMBEDDING_H

#include "runtime/calls/Fields.h"
#include "runtime/core/Arena.h"

namespace pipewright::runtime {

class DeviceRank;

/// table[rows, width], indices[count], result [count, width].
struct EmbeddingShape {
  int64_t rows = 0;
  int64_t width = 0;
  int64_t count = 0;
  /// embeddingBackward adds nothing to this row; -1 is none.
  int64_t paddingRow = -1;
  /// Of table, y and dy: F32 or BF16. dtable is f32.
  ElementType type = ElementType::F32;

  PIPEWRIGHT_FIELDS(rows, width, count, paddingRow, type)
};

template <class AnyRank>
void embedding(AnyRank &rank, const EmbeddingShape &shape, Buffer table,
               Buffer indices, Buffer y);

/// On GPUs only: in setUp, once for each shape of embeddingBackward that a step
/// uses.
void prepareEmbeddingBackward(DeviceRank &rank, const EmbeddingShape &shape);
/// Adds each row of dy to its row of dtable, in the order of the indices.
/// dtable is set to zero first unless `accumulate`.
template <class AnyRank>
void embeddingBackward(AnyRank &rank, const EmbeddingShape &shape, Buffer dy,
                       Buffer indices, Buffer dtable, bool accumulate = false);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_EMBEDDING_H
