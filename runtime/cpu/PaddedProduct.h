//===- PaddedProduct.h - Products of matrices with long rows ----*- C++ -*-===//
//
// dnnl_sgemm reads operands as they lie when the product has few rows or
// columns. If their rows begin at multiples of 2 KiB, they share few sets of
// the first-level cache. Copied by blocks into rows of other lengths, in the
// second-level cache, they do not.
// One thread of an AMD EPYC, GFLOP/s of dnnl_sgemm / of blocks:
//   m x n x k         NN        TN
//   16 x 2048 x 512   42 / 56   44 / 65
//   64 x 2048 x 512   43 / 75   41 / 70
//   256 x 3072 x 768  44 / 75   39 / 78
//   512 x 512 x 512   58 / 93   57 / 88
//   1024 x 256 x 1024 same      46 / 77
// With AVX-512 it slows down for a transposed a alone. One thread of an Intel
// Xeon:
//   m x n x k         TN
//   1024 x 256 x 1024 89 / 112
//   2048 x 256 x 1024 85 / 121
//   1024 x 512 x 512  148 / 164
//   4096 x 512 x 512  97 / 106
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_PADDEDPRODUCT_H
#define PIPEWRIGHT_RUNTIME_CPU_PADDEDPRODUCT_H

#include "runtime/calls/Matmul.h"

namespace pipewright::runtime {

class Rank;

/// Whether one product of this shape is faster by multiplyPadded. Depends on
/// the shape and on the CPU.
bool isFasterPadded(const MatmulShape &shape);

/// y = alpha * op(a) * op(b) + beta * y, of one product, on the rank's threads.
void multiplyPadded(Rank &rank, const MatmulShape &shape, const float *a,
                    const float *b, float *y);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_PADDEDPRODUCT_H
