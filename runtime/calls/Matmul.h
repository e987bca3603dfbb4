//===- Matmul.h - Matrix products by library calls -------------*- C++ -*-===//
//
// y = alpha * op(a) * op(b) + beta * y, for one row-major matrix or a batch of
// them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_MATMUL_H
#define PIPEWRIGHT_RUNTIME_CALLS_MATMUL_H

#include "runtime/calls/Fields.h"
#include "runtime/core/Arena.h"

namespace pipewright::runtime {

class DeviceRank;

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

  PIPEWRIGHT_FIELDS(batch, m, n, k, transposeA, transposeB, broadcastB, alpha,
                    beta, type, result)
};

/// In setUp, once for each shape that a step uses; on CPUs for shapes of bf16
/// alone. Throws an Error if the library has no algorithm.
template <class AnyRank>
void prepareMatmul(AnyRank &rank, const MatmulShape &shape);

template <class AnyRank>
void matmul(AnyRank &rank, const MatmulShape &shape, Buffer a, Buffer b,
            Buffer y);

/// What a GPU does in the kernel of a product beside it, for one matrix (no
/// batch). GELU is the one with tanh. `bias` has n elements of y's type, `aux`
/// is like y; n must be a multiple of 8 where there is an aux.
enum class MatmulEpilogue {
  None,
  /// y = a b + bias
  Bias,
  /// aux = a b + bias, y = gelu(aux)
  BiasGelu,
  /// y = a b * gelu'(aux)
  GeluGradient,
  /// The same, and bias = sums of y over rows.
  GeluBiasGradient,
  /// y = a b, and bias = sums of b over k: with a = x^T and b = dy, the
  /// gradients of a weight and its bias in one.
  BiasGradient
};

/// On GPUs only. `bias` and `aux` have zero bytes where the epilogue has none.
/// Gradients of biases are overwritten.
void prepareMatmul(DeviceRank &rank, const MatmulShape &shape,
                   MatmulEpilogue epilogue);
void matmul(DeviceRank &rank, const MatmulShape &shape, MatmulEpilogue epilogue,
            Buffer a, Buffer b, Buffer y, Buffer bias, Buffer aux);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_MATMUL_H
