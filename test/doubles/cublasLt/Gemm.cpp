//===- Gemm.cpp - A product of float matrices -----------------------------===//

#include "test/doubles/cublasLt/Gemm.h"

#include <algorithm>
#include <cmath>

/// Rows and columns of the result that are summed at once, in registers.
static constexpr int64_t blockRows = 32;
static constexpr int64_t blockColumns = 8;

template <int64_t rows>
static void multiplyBlock(int64_t columns, int64_t m, int64_t k, const float *a,
                          const float *b, float *d) {
  float sums[blockColumns][rows] = {};
  for (int64_t p = 0; p < k; ++p)
    for (int64_t j = 0; j < blockColumns; ++j) {
      // Columns that are not there repeat the last one.
      const float factor = b[std::min(j, columns - 1) * k + p];
      for (int64_t i = 0; i < rows; ++i)
        sums[j][i] = std::fma(a[p * m + i], factor, sums[j][i]);
    }
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i)
      d[j * m + i] = sums[j][i];
}

void pipewright::doubles::multiply(int64_t m, int64_t n, int64_t k,
                                   const float *a, const float *b, float *d) {
  for (int64_t j = 0; j < n; j += blockColumns) {
    const int64_t columns = std::min(blockColumns, n - j);
    int64_t i = 0;
    for (; i + blockRows <= m; i += blockRows)
      multiplyBlock<blockRows>(columns, m, k, a + i, b + j * k, d + j * m + i);
    for (; i + 4 <= m; i += 4)
      multiplyBlock<4>(columns, m, k, a + i, b + j * k, d + j * m + i);
    for (; i < m; ++i)
      multiplyBlock<1>(columns, m, k, a + i, b + j * k, d + j * m + i);
  }
}
