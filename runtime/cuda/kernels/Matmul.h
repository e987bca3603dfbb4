//===- Matmul.h - Matrix products on the GPU -------------------*- C++ -*-===//
//
// By cuBLASLt. The algorithm of each shape is chosen in setUp by the library's
// heuristic, never by timing: the same program must give the same bits on
// every run.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MATMUL_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MATMUL_H

#include "runtime/cpu/Matmul.h"
#include "runtime/cuda/DeviceRank.h"

namespace pipewright::runtime {

/// What cuBLASLt does in the kernel of a product beside it, for one matrix (no
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

/// In setUp, once for each shape that a step uses. Throws an Error if cuBLASLt
/// has no algorithm.
void prepareMatmul(DeviceRank &rank, const MatmulShape &shape,
                   MatmulEpilogue epilogue = MatmulEpilogue::None);

void matmul(DeviceRank &rank, const MatmulShape &shape, Buffer a, Buffer b,
            Buffer y);
/// `bias` and `aux` have zero bytes where the epilogue has none. Gradients of
/// biases are overwritten.
void matmul(DeviceRank &rank, const MatmulShape &shape, MatmulEpilogue epilogue,
            Buffer a, Buffer b, Buffer y, Buffer bias, Buffer aux);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MATMUL_H
