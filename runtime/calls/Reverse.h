//===- Reverse.h - Rows in reverse order by library calls ------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_REVERSE_H
#define PIPEWRIGHT_RUNTIME_CALLS_REVERSE_H

#include "runtime/calls/Fields.h"
#include "runtime/core/Arena.h"

namespace pipewright::runtime {

/// x and y [rows, width].
struct ReverseShape {
  int64_t rows = 0;
  int64_t width = 0;
  /// Of x and y: F32 or BF16.
  ElementType type = ElementType::F32;

  PIPEWRIGHT_FIELDS(rows, width, type)
};

/// Row i of y becomes row rows - 1 - i of x; they may not overlap.
template <class AnyRank>
void reverseRows(AnyRank &rank, const ReverseShape &shape, Buffer x, Buffer y);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_REVERSE_H
