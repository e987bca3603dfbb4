//===- Matmul.h - Matrix products over row-major buffers -------*- C++ -*-===//
//
// y = alpha * op(a) * op(b) + beta * y, for one matrix or a batch of them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_MATMUL_H
#define PIPEWRIGHT_RUNTIME_CPU_MATMUL_H

#include "runtime/core/Rank.h"

namespace pipewright::runtime {

/// y[batch, m, n], a[batch, m, k] (or [k, m] when transposed), b[batch, k, n]
/// (or [n, k]), all dense.
struct MatmulShape {
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transposeA = false;
  bool transposeB = false;
  /// One b for the whole batch.
  bool broadcastB = false;
  float alpha = 1;
  /// 0: y is overwritten; 1: the product is added to y.
  float beta = 0;
  /// Of a and b: F32 or BF16. Sums are f32.
  ElementType type = ElementType::F32;
  /// Of y: F32, or BF16 where `type` is BF16 and beta is 0.
  ElementType result = ElementType::F32;
};

/// Called in setUp, once per bf16 shape used in a step: its primitive.
void prepareMatmul(Rank &rank, const MatmulShape &shape);

void matmul(Rank &rank, const MatmulShape &shape, Buffer a, Buffer b, Buffer y);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_MATMUL_H
