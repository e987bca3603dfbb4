//===- FewRows.cpp - Products of few rows by a transposed matrix ----------===//

#include "runtime/cpu/FewRows.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/VectorMath.h"

#include <cstring>

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

typedef float Quarter __attribute__((vector_size(16)));

/// The halves of each are added, as sumLanes does.
static Floats halvesOf(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19,
                                 20, 21, 22, 23) +
         __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26,
                                 27, 28, 29, 30, 31);
}

/// Of four: quarters of four numbers each.
static Floats quartersOf(const Floats (&v)[blockRows][blockColumns],
                         int64_t column) {
  const Floats ab = halvesOf(v[0][column], v[1][column]);
  const Floats cd = halvesOf(v[2][column], v[3][column]);
  return __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18,
                                 19, 24, 25, 26, 27) +
         __builtin_shufflevector(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22,
                                 23, 28, 29, 30, 31);
}

/// In each quarter of the result two numbers of that of `a`, and two of `b`.
static Floats pairsOf(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25,
                                 12, 13, 28, 29) +
         __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26,
                                 27, 14, 15, 30, 31);
}

/// What sumLanes makes of each of 16 vectors, row by row.
static Floats sumsOf(const Floats (&v)[blockRows][blockColumns]) {
  const Floats ab = pairsOf(quartersOf(v, 0), quartersOf(v, 1));
  const Floats cd = pairsOf(quartersOf(v, 2), quartersOf(v, 3));
  return __builtin_shufflevector(ab, cd, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24,
                                 26, 12, 14, 28, 30) +
         __builtin_shufflevector(ab, cd, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25,
                                 27, 13, 15, 29, 31);
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
  if constexpr (Rows == blockRows) {
    const Floats all = s.alpha * sumsOf(sums);
    for (int64_t r = 0; r < Rows; ++r)
      std::memcpy(y + r * s.n,
                  reinterpret_cast<const float *>(&all) + r * blockColumns,
                  sizeof(Quarter));
  } else {
    for (int64_t c = 0; c < blockColumns; ++c)
      y[c] = s.alpha * sumLanes(sums[0][c]);
  }
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
