//===- FewRows.h - Products of few rows by a transposed matrix --*- C++ -*-===//
//
// A few rows, such as the state of a recurrent layer, are multiplied by a
// matrix that is stored the other way round, not so often that it would be
// transposed for all (nn-share-transposes). oneDNN copies such a matrix first,
// at each call; dot products read it as it lies. One thread, AVX-512, GFLOP/s
// of oneDNN / of dot products:
//   m x n x k          4           8           16          32
//   m x 1024 x 256     77 / 92     81 / 95     73 / 96     89 / 93
//   m x 256 x 1024     51 / 95     51 / 87     35 / 91     54 / 93
//   m x 768 x 192      79 / 90     81 / 92     90 / 93    100 / 93
//   m x 64 x 64        58 / 64     63 / 67     42 / 69     59 / 69
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CPU_FEWROWS_H
#define PIPEWRIGHT_RUNTIME_CPU_FEWROWS_H

#include "runtime/calls/Matmul.h"

namespace pipewright::runtime {

/// Whether multiplyFewRows can compute one product of this shape, and is the
/// faster one. Depends on the shape and on what this file was compiled for.
bool hasFewRows(const MatmulShape &shape);

/// y[m, n] = alpha * a[m, k] * b[n, k]^T, on some threads. Each element is a
/// sum of 16 sums, in an order that depends on k alone.
void multiplyFewRows(const MatmulShape &shape, const float *a, const float *b,
                     float *y, int64_t threads);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CPU_FEWROWS_H
