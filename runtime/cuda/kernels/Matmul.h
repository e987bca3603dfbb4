//===- Matmul.h - Matrix products on the GPU -------------------*- C++ -*-===//
//
// By cuBLASLt. The algorithm of each shape is chosen in setUp by the library's
// heuristic, never by timing: the same program must give the same bits on
// every run.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MATMUL_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_MATMUL_H

#include "runtime/calls/Matmul.h"
#include "runtime/cuda/DeviceRank.h"

namespace pipewright::runtime {

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
