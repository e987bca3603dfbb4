//===- Gemm.cpp - A product of float matrices -----------------------------===//

#include "test/doubles/cublasLt/Gemm.h"

#include <algorithm>
#include <cmath>
#include <vector>

/// Rows and columns of the result that are summed at once, in registers.
static constexpr int64_t blockRows = 32;
static constexpr int64_t blockColumns = 6;

/// `a`: k times blockRows elements; `rows` of the sums are stored.
template <int64_t columns>
static void multiplyBlock(int64_t rows, int64_t m, int64_t k, const float *a,
                          const float *b, float *d) {
  float sums[columns][blockRows] = {};
  for (int64_t p = 0; p < k; ++p)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < blockRows; ++i)
        sums[j][i] = std::fma(a[p * blockRows + i], b[j * k + p], sums[j][i]);
  for (int64_t j = 0; j < columns; ++j)
    std::copy_n(sums[j], rows, d + j * m);
}

static void multiplyBlocks(int64_t rows, int64_t m, int64_t n, int64_t k,
                           const float *a, const float *b, float *d) {
  int64_t j = 0;
  for (; j + blockColumns <= n; j += blockColumns)
    multiplyBlock<blockColumns>(rows, m, k, a, b + j * k, d + j * m);
  for (; j + 2 <= n; j += 2)
    multiplyBlock<2>(rows, m, k, a, b + j * k, d + j * m);
  for (; j < n; ++j)
    multiplyBlock<1>(rows, m, k, a, b + j * k, d + j * m);
}

void pipewright::doubles::multiply(int64_t m, int64_t n, int64_t k,
                                   const float *a, const float *b, float *d) {
  // A strip of rows lies together; zeros fill the last one up.
  std::vector<float> strip(k * blockRows);
  for (int64_t i = 0; i < m; i += blockRows) {
    const int64_t rows = std::min(blockRows, m - i);
    for (int64_t p = 0; p < k; ++p)
      std::copy_n(a + p * m + i, rows, strip.data() + p * blockRows);
    multiplyBlocks(rows, m, n, k, strip.data(), b, d + i);
  }
}
