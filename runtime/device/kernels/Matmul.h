//===- Matmul.h - Matrix products on the GPU -------------------*- C++ -*-===//
//
// By cuBLASLt. The algorithm of each shape is chosen in setUp by the library's
// heuristic, never by timing: the same program must give the same bits on
// every run.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_DEVICE_KERNELS_MATMUL_H
#define PIPEWRIGHT_RUNTIME_DEVICE_KERNELS_MATMUL_H

#include "runtime/device/DeviceRank.h"
#include "runtime/kernels/Matmul.h"

namespace pipewright::runtime {

/// In setUp, once for each shape that a step uses.
void prepareMatmul(DeviceRank &rank, const MatmulShape &shape);

void matmul(DeviceRank &rank, const MatmulShape &shape, Buffer a, Buffer b,
            Buffer y);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_DEVICE_KERNELS_MATMUL_H
