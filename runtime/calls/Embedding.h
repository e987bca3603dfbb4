//===- Embedding.h - Sizes of tables and lookups ----------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_EMBEDDING_H
#define PIPEWRIGHT_RUNTIME_CALLS_EMBEDDING_H

#include "runtime/calls/Fields.h"

namespace pipewright::runtime {

/// table[rows, width], indices[count], result [count, width].
struct EmbeddingShape {
  int64_t rows = 0;
  int64_t width = 0;
  int64_t count = 0;
  /// Of table, y and dy: F32 or BF16. dtable is f32.
  ElementType type = ElementType::F32;

  PIPEWRIGHT_FIELDS(rows, width, count, type)
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_EMBEDDING_H
