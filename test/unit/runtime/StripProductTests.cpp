//===- StripProductTests.cpp - Products of attention against plain loops --===//

#include "runtime/cpu/StripProduct.h"
#include "test/unit/runtime/OneRank.h"

using namespace pipewright::runtime;

static std::vector<float> someNumbers(int64_t count) {
  std::vector<float> numbers(count);
  for (int64_t i = 0; i < count; ++i)
    numbers[i] = static_cast<float>(i * 7919 % 1009) / 1009 - 0.5f;
  return numbers;
}

/// Behind each row of y lie numbers that must stay.
static constexpr int64_t margin = 5;

static void checkStrip(const StripProduct &p, bool transposedA) {
  const std::vector<float> a = someNumbers(p.rows * p.sums);
  const std::vector<float> b = someNumbers(p.sums * p.columns);
  const StripRows left = {a.data(), transposedA ? 1 : p.sums,
                          transposedA ? p.rows : 1};
  const int64_t stride = p.columns + margin;
  std::vector<float> y = someNumbers(p.rows * stride);
  std::vector<float> expected = y;
  for (int64_t i = 0; i < p.rows; ++i)
    for (int64_t j = 0; j < p.columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < p.sums; ++k)
        sum += static_cast<double>(a[i * left.row + k * left.sum]) *
               b[k * p.columns + j];
      float &out = expected[i * stride + j];
      out = static_cast<float>(p.alpha * sum + (p.adds ? out : 0));
    }
  multiplyStrip(p, left, {b.data(), p.columns}, y.data(), stride);
  EXPECT_TRUE(agree(y, expected, 1e-6))
      << p.rows << " x " << p.columns << " x " << p.sums;
}

TEST(StripProduct, AllNumbersOfRowsAndRaggedColumns) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 64})
    for (const int64_t columns : {1, 15, 16, 17, 48, 64, 65, 100})
      for (const bool transposed : {false, true}) {
        checkStrip({rows, columns, 33}, transposed);
        checkStrip({rows, columns, 7, 0.5f, true}, transposed);
      }
}

TEST(StripProduct, OneSum) { checkStrip({1, 1, 1}, false); }

TEST(StripProduct, TransposedRowsEndInZeros) {
  for (const auto &[rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {16, 16}, {65, 50}, {3, 100}}) {
    const int64_t stride = (rows + 15) / 16 * 16 + 16;
    const std::vector<float> from = someNumbers(rows * columns);
    std::vector<float> to(columns * stride, 9);
    std::vector<float> expected = to;
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < stride - 16; ++i)
        expected[j * stride + i] = i < rows ? from[i * columns + j] : 0;
    transposeRows({from.data(), columns}, rows, columns, to.data(), stride);
    EXPECT_EQ(to, expected) << rows << " x " << columns;
  }
}
