//===- FewRows.cpp - Products of few rows by a transposed matrix ----------===//

#include "runtime/cpu/FewRows.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/VectorMath.h"

using namespace pipewright::runtime;

/// Sums that are open at a time: 16 of the 32 vector registers.
static constexpr int64_t blockRows = 4, blockColumns = 4;

bool pipewright::runtime::hasFewRows([[maybe_unused]] const MatmulShape &s) {
#ifdef __AVX512F__
  return s.type == ElementType::F32 && s.batch == 1 && s.transposeB &&
         !s.transposeA && s.beta == 0 && s.m <= 16 && s.k % vectorLanes == 0 &&
         s.n % blockColumns == 0;
#else
  return false;
#endif
}

/// The same tree as sumLanes, in registers.
static float sumOf(Floats v) {
  typedef float Half __attribute__((vector_size(32)));
  typedef float Quarter __attribute__((vector_size(16)));
  const Half half = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const Quarter quarter = __builtin_shufflevector(half, half, 0, 1, 2, 3) +
                          __builtin_shufflevector(half, half, 4, 5, 6, 7);
  return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

/// `Rows` rows and four columns of y.
template <int64_t Rows>
static void multiplyBlock(const MatmulShape &s, const float *a, const float *b,
                          float *y) {
  Floats sums[Rows][blockColumns] = {};
  for (int64_t k = 0; k < s.k; k += vectorLanes) {
    Floats columns[blockColumns];
    for (int64_t c = 0; c < blockColumns; ++c)
      columns[c] = loadFloats(b + c * s.k + k);
    for (int64_t r = 0; r < Rows; ++r) {
      const Floats row = loadFloats(a + r * s.k + k);
      for (int64_t c = 0; c < blockColumns; ++c)
        sums[r][c] += row * columns[c];
    }
  }
  for (int64_t r = 0; r < Rows; ++r)
    for (int64_t c = 0; c < blockColumns; ++c)
      y[r * s.n + c] = s.alpha * sumOf(sums[r][c]);
}

void pipewright::runtime::multiplyFewRows(const MatmulShape &s, const float *a,
                                          const float *b, float *y,
                                          int64_t threads) {
  const int64_t blocks = s.n / blockColumns;
  parallelFor(threads, blocks, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t column = block * blockColumns;
      int64_t row = 0;
      for (; row + blockRows <= s.m; row += blockRows)
        multiplyBlock<blockRows>(s, a + row * s.k, b + column * s.k,
                                 y + row * s.n + column);
      for (; row < s.m; ++row)
        multiplyBlock<1>(s, a + row * s.k, b + column * s.k,
                         y + row * s.n + column);
    }
  });
}
