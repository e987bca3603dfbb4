//===- Orthogonalize.h - The nearest orthogonal matrix ---------*- C++ -*-===//
//
// Newton and Schulz's iteration with the coefficients of Muon (K. Jordan and
// others, 2024): five steps take singular values from (0, 1] to about 1. A step
// is three products.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_ORTHOGONALIZE_H
#define PIPEWRIGHT_RUNTIME_CALLS_ORTHOGONALIZE_H

#include "runtime/calls/Matmul.h"
#include "runtime/calls/Memory.h"

#include <algorithm>
#include <utility>

namespace pipewright::runtime {

/// A matrix [rows, columns] of f32.
struct OrthogonalizeShape {
  int64_t rows = 0, columns = 0;

  PIPEWRIGHT_FIELDS(rows, columns)

  static constexpr int kSteps = 5;

  int64_t least() const { return std::min(rows, columns); }
  int64_t bytes() const { return rows * columns * int64_t{sizeof(float)}; }
  /// Of a product of the matrix and itself, to where a buffer may begin.
  int64_t squareBytes() const {
    return (least() * least() * int64_t{sizeof(float)} + 63) / 64 * 64;
  }
  /// What the iteration needs beside the matrix: two squares and another
  /// matrix.
  int64_t workspaceBytes() const { return 2 * squareBytes() + bytes(); }
  /// The arithmetic of all steps.
  int64_t operations() const {
    return kSteps * 2 * least() * least() *
           (2 * std::max(rows, columns) + least());
  }

  /// s = x x^T, or x^T x where that is smaller.
  MatmulShape gram() const {
    return {.m = least(),
            .n = least(),
            .k = std::max(rows, columns),
            .transposeA = rows > columns,
            .transposeB = rows <= columns};
  }
  /// p = b s + c s s, where p is s already.
  MatmulShape polynomial() const {
    return {.m = least(),
            .n = least(),
            .k = least(),
            .alpha = 2.0315f,
            .beta = -4.7750f};
  }
  /// y = a x + p x, or a x + x p, where y is x already.
  MatmulShape step() const {
    return {.m = rows, .n = columns, .k = least(), .beta = 3.4445f};
  }
};

/// In setUp, once for each shape.
template <class AnyRank>
void prepareOrthogonalize(AnyRank &rank, const OrthogonalizeShape &shape) {
  prepareMatmul(rank, shape.gram());
  prepareMatmul(rank, shape.polynomial());
  prepareMatmul(rank, shape.step());
}

/// Makes `x`, whose norm is at most 1, orthogonal in place. `workspace` has
/// workspaceBytes().
template <class AnyRank>
void orthogonalize(AnyRank &rank, const OrthogonalizeShape &shape, Buffer x,
                   Buffer workspace) {
  const int64_t square = shape.squareBytes(),
                bytes = shape.least() * shape.least() * int64_t{sizeof(float)};
  const Buffer s = workspace.at(0, bytes), p = workspace.at(square, bytes),
               y = workspace.at(2 * square, shape.bytes());
  Buffer from = x, to = y;
  for (int step = 0; step < OrthogonalizeShape::kSteps; ++step) {
    matmul(rank, shape.gram(), from, from, s);
    copy(rank, s, p);
    matmul(rank, shape.polynomial(), s, s, p);
    copy(rank, from, to);
    if (shape.rows <= shape.columns)
      matmul(rank, shape.step(), p, from, to);
    else
      matmul(rank, shape.step(), from, p, to);
    std::swap(from, to);
  }
  if (from.offset != x.offset)
    copy(rank, from, x);
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_ORTHOGONALIZE_H
