//===- Gemm.h - A product of float matrices --------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_CUBLASLT_GEMM_H
#define PIPEWRIGHT_TEST_DOUBLES_CUBLASLT_GEMM_H

#include <cstdint>

namespace pipewright::doubles {

/// d = a b, all by columns without gaps: a is m x k, b is k x n, d is m x n.
/// Every element is one sum with fused multiply-adds in ascending order of k,
/// whatever the sizes.
void multiply(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
              float *d);

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_CUBLASLT_GEMM_H
