//===- MatmulTests.cpp - Matrix products against plain loops --------------===//

#include "runtime/core/Error.h"
#include "runtime/cpu/PaddedProduct.h"
#include "runtime/cpu/Parallel.h"
#include "test/unit/runtime/OneRank.h"

#include <algorithm>
#include <array>

using namespace pipewright::runtime;

static std::vector<float> naiveMatmul(const MatmulShape &s,
                                      const std::vector<float> &a,
                                      const std::vector<float> &b,
                                      std::vector<float> y) {
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < s.k; ++k) {
          const float av =
              a[n * s.m * s.k + (s.transposeA ? k * s.m + i : i * s.k + k)];
          const float bv = b[(s.broadcastB ? 0 : n * s.k * s.n) +
                             (s.transposeB ? j * s.k + k : k * s.n + j)];
          sum += static_cast<double>(av) * bv;
        }
        float &out = y[(n * s.m + i) * s.n + j];
        out = static_cast<float>(s.alpha * sum + s.beta * out);
      }
  return y;
}

static void checkMatmul(const MatmulShape &s) {
  OneRank test;
  const Buffer a = test.randomFloats(s.batch * s.m * s.k);
  const Buffer b = test.randomFloats((s.broadcastB ? 1 : s.batch) * s.k * s.n);
  const Buffer y = test.randomFloats(s.batch * s.m * s.n);
  const auto expected =
      naiveMatmul(s, test.read(a), test.read(b), test.read(y));
  matmul(test.rank, s, a, b, y);
  EXPECT_TRUE(agree(test.read(y), expected, 1e-5));
}

TEST(Matmul, AllTranspositionsOfOddSizes) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      checkMatmul(
          {.m = 13, .n = 37, .k = 29, .transposeA = ta, .transposeB = tb});
}

TEST(Matmul, FewRowsByATransposedMatrix) {
  for (const int64_t m : {1, 3, 4, 7, 16, 17})
    checkMatmul({.m = m, .n = 36, .k = 48, .transposeB = true, .alpha = 0.5f});
}

// Which thread computes which columns must not matter.
TEST(Matmul, FewRowsGiveSameBitsOnAllThreads) {
  const MatmulShape s = {.m = 6, .n = 256, .k = 512, .transposeB = true};
  OneRank test;
  const Buffer a = test.randomFloats(6 * 512);
  const Buffer b = test.randomFloats(256 * 512);
  const Buffer y = test.floats(6 * 256);
  matmul(test.rank, s, a, b, y);
  const auto alone = test.read(y);
  for (const int64_t threads : {2, 3, 4}) {
    fill(test.rank, 7, y);
    test.rank.setThreads(threads);
    matmul(test.rank, s, a, b, y);
    EXPECT_EQ(alone, test.read(y)) << threads;
  }
}

// On whatever CPU: rows and columns of y are shared out to threads, blocks of
// sums and columns have rests, and either operand is copied, both or none.
TEST(Matmul, OperandsCopiedByBlocks) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const auto &[m, n, k] : {std::array<int64_t, 3>{3, 512, 300},
                                    {5, 1040, 20},
                                    {512, 48, 300},
                                    {1024, 512, 20}}) {
        const MatmulShape s = {.m = m,
                               .n = n,
                               .k = k,
                               .transposeA = ta,
                               .transposeB = tb,
                               .alpha = 0.5f,
                               .beta = 1};
        OneRank test;
        const Buffer a = test.randomFloats(m * k);
        const Buffer b = test.randomFloats(k * n);
        const Buffer y = test.randomFloats(m * n);
        const auto before = test.read(y);
        const auto expected =
            naiveMatmul(s, test.read(a), test.read(b), before);
        for (const int64_t threads : {1, 2, 3}) {
          std::copy(before.begin(), before.end(), test.rank.data<float>(y));
          test.rank.setThreads(threads);
          multiplyPadded(test.rank, s, test.rank.data<float>(a),
                         test.rank.data<float>(b), test.rank.data<float>(y));
          EXPECT_TRUE(agree(test.read(y), expected, 1e-5))
              << m << " x " << n << " x " << k << ", threads " << threads;
        }
      }
}

// What AVX-512 copies the first operand for: two blocks of sums, one of them
// shorter, few columns.
TEST(Matmul, GradientOfALargeWeight) {
  checkMatmul({.m = 1024, .n = 72, .k = 516, .transposeA = true, .beta = 1.0f});
}

TEST(Matmul, BatchHasOwnOperands) {
  checkMatmul({.batch = 5, .m = 7, .n = 17, .k = 9, .transposeB = true});
}

TEST(Matmul, BatchSharesTheSecondOperand) {
  checkMatmul({.batch = 3, .m = 7, .n = 5, .k = 11, .broadcastB = true});
  checkMatmul({.batch = 3,
               .m = 7,
               .n = 5,
               .k = 11,
               .transposeA = true,
               .broadcastB = true});
}

TEST(Matmul, AddsToTheResultScaled) {
  checkMatmul({.m = 33, .n = 20, .k = 64, .alpha = 0.5f, .beta = 1});
}

// oneDNN cuts a product by the number of threads that it may use, which changes
// the order of its sums. So one thread for each product here: what is tested is
// that it does not matter which thread of the rank computes which product.
TEST(Matmul, SplittingABatchChangesNoBits) {
  const MatmulShape s = {.batch = 6, .m = 40, .n = 50, .k = 60};
  OneRank test;
  const Buffer a = test.randomFloats(6 * 40 * 60);
  const Buffer b = test.randomFloats(6 * 60 * 50);
  const Buffer y = test.floats(6 * 40 * 50);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  matmul(test.rank, s, a, b, y);
  const auto alone = test.read(y);
  for (const int64_t split : {2, 4, 6}) {
    fill(test.rank, 7, y);
    test.rank.setThreads(split);
    matmul(test.rank, s, a, b, y);
    EXPECT_EQ(alone, test.read(y)) << split;
  }
  omp_set_num_threads(threads);
}

// The contract of the runtime: same program, same number of threads, same bits.
TEST(Matmul, SameThreadsGiveSameBits) {
  const MatmulShape s = {.batch = 1, .m = 130, .n = 70, .k = 900};
  OneRank test;
  const Buffer a = test.randomFloats(130 * 900);
  const Buffer b = test.randomFloats(900 * 70);
  const Buffer y = test.floats(130 * 70);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(2);
  test.rank.setThreads(2);
  matmul(test.rank, s, a, b, y);
  const auto first = test.read(y);
  for (int i = 0; i < 20; ++i) {
    fill(test.rank, 7, y);
    matmul(test.rank, s, a, b, y);
    ASSERT_EQ(first, test.read(y)) << i;
  }
  omp_set_num_threads(threads);
}

TEST(Memory, ZeroCopyAccumulateFill) {
  OneRank test;
  const Buffer a = test.randomFloats(1001);
  const Buffer b = test.floats(1001);
  fill(test.rank, 2, b);
  EXPECT_EQ(test.read(b), std::vector<float>(1001, 2));
  accumulate(test.rank, a, b);
  EXPECT_EQ(test.at(b)[77], test.at(a)[77] + 2);
  copy(test.rank, a, b);
  EXPECT_EQ(test.read(b), test.read(a));
  zero(test.rank, b);
  EXPECT_EQ(test.read(b), std::vector<float>(1001, 0));
}

TEST(Embedding, GathersRowsAndScattersGradients) {
  OneRank test;
  const EmbeddingShape shape = {.rows = 7, .width = 19, .count = 5};
  const Buffer table = test.randomFloats(7 * 19);
  const Buffer indices = test.bytes(5 * 8);
  const int64_t index[5] = {3, 0, 3, 6, 3};
  std::copy(index, index + 5, test.rank.data<int64_t>(indices));
  const Buffer y = test.floats(5 * 19);
  embedding(test.rank, shape, table, indices, y);
  for (int i = 0; i < 5; ++i)
    for (int c = 0; c < 19; ++c)
      EXPECT_EQ(test.at(y)[i * 19 + c], test.at(table)[index[i] * 19 + c]);

  const Buffer dTable = test.randomFloats(7 * 19);
  embeddingBackward(test.rank, shape, y, indices, dTable);
  std::vector<float> expected(7 * 19, 0);
  for (int i = 0; i < 5; ++i)
    for (int c = 0; c < 19; ++c)
      expected[index[i] * 19 + c] += test.at(y)[i * 19 + c];
  EXPECT_EQ(test.read(dTable), expected);
  embeddingBackward(test.rank, shape, y, indices, dTable, true);
  for (float &value : expected)
    value *= 2;
  EXPECT_TRUE(agree(test.read(dTable), expected, 1e-6));
}

TEST(Embedding, ThePaddingRowHasNoGradient) {
  OneRank test;
  const EmbeddingShape shape = {
      .rows = 3, .width = 2, .count = 3, .paddingRow = 1};
  const Buffer indices = test.bytes(3 * 8), dy = test.floats(3 * 2);
  const Buffer dTable = test.randomFloats(3 * 2);
  for (int i = 0; i < 3; ++i) {
    test.rank.data<int64_t>(indices)[i] = i;
    test.at(dy)[2 * i] = test.at(dy)[2 * i + 1] = static_cast<float>(i + 1);
  }
  embeddingBackward(test.rank, shape, dy, indices, dTable);
  EXPECT_EQ(test.read(dTable), std::vector<float>({1, 1, 0, 0, 3, 3}));
  embeddingBackward(test.rank, shape, dy, indices, dTable, true);
  EXPECT_EQ(test.read(dTable), std::vector<float>({2, 2, 0, 0, 6, 6}));
}

TEST(Embedding, RowsThatTheTableHasNotAreRefused) {
  OneRank test;
  const EmbeddingShape shape = {.rows = 7, .width = 19, .count = 2};
  const Buffer table = test.randomFloats(7 * 19);
  const Buffer indices = test.bytes(2 * 8);
  const Buffer y = test.floats(2 * 19);
  for (const int64_t index : {int64_t(-1), int64_t(7), INT64_MAX}) {
    test.rank.data<int64_t>(indices)[0] = 6;
    test.rank.data<int64_t>(indices)[1] = index;
    EXPECT_THROW(embedding(test.rank, shape, table, indices, y), Error);
  }
}

TEST(Labels, OthersThanClassesAndTheIgnoredOneAreRefused) {
  OneRank test;
  const LabelShape shape = {.count = 2, .classes = 7, .ignored = -100};
  const Buffer labels = test.bytes(2 * 8);
  const auto check = [&](int64_t label) {
    test.rank.data<int64_t>(labels)[0] = 6;
    test.rank.data<int64_t>(labels)[1] = label;
    checkLabels(test.rank, shape, labels);
  };
  for (const int64_t label : {int64_t(0), int64_t(6), int64_t(-100)})
    EXPECT_NO_THROW(check(label));
  for (const int64_t label : {int64_t(-1), int64_t(7), INT64_MAX, INT64_MIN})
    EXPECT_THROW(check(label), Error);
}
