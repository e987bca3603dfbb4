//===- OrthogonalizeTests.cpp - Newton and Schulz in f32 and f64 ----------===//

#include "test/unit/runtime/OneRank.h"

#include <cmath>

using namespace pipewright::runtime;

namespace {

using Matrix = std::vector<double>;

/// a [m, k] times b [k, n].
Matrix product(const Matrix &a, const Matrix &b, int64_t m, int64_t k,
               int64_t n) {
  Matrix y(m * n);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < k; ++j)
      for (int64_t c = 0; c < n; ++c)
        y[i * n + c] += a[i * k + j] * b[j * n + c];
  return y;
}

Matrix transposed(const Matrix &a, int64_t rows, int64_t columns) {
  Matrix y(a.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      y[j * rows + i] = a[i * columns + j];
  return y;
}

/// x <- a x + (b s + c s s) x, s = x x^T, of a matrix that is not taller than
/// wide.
Matrix iterate(Matrix x, int64_t rows, int64_t columns) {
  for (int step = 0; step < 5; ++step) {
    const Matrix s =
        product(x, transposed(x, rows, columns), rows, columns, rows);
    Matrix p = product(s, s, rows, rows, rows);
    for (size_t i = 0; i < s.size(); ++i)
      p[i] = -4.7750 * s[i] + 2.0315 * p[i];
    const Matrix y = product(p, x, rows, rows, columns);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = 3.4445 * x[i] + y[i];
  }
  return x;
}

/// Fills a matrix of norm 1 and compares what becomes of it.
void check(int64_t rows, int64_t columns) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
  OneRank test;
  const OrthogonalizeShape shape = {rows, columns};
  const Buffer x = test.randomFloats(rows * columns);
  const Buffer workspace = test.randomFloats(shape.workspaceBytes() / 4);
  float *values = test.rank.data<float>(x);
  double squares = 0;
  for (int64_t i = 0; i < rows * columns; ++i)
    squares += static_cast<double>(values[i]) * values[i];
  Matrix expected;
  for (int64_t i = 0; i < rows * columns; ++i) {
    values[i] = static_cast<float>(values[i] / std::sqrt(squares));
    expected.push_back(values[i]);
  }
  prepareOrthogonalize(test.rank, shape);
  orthogonalize(test.rank, shape, x, workspace);
  const bool isTall = rows > columns;
  if (isTall)
    expected =
        transposed(iterate(transposed(expected, rows, columns), columns, rows),
                   columns, rows);
  else
    expected = iterate(expected, rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i)
    ASSERT_NEAR(values[i], expected[i], 1e-4) << i;
  // Singular values are near 1: so are squares of rows, or of columns.
  const int64_t count = std::min(rows, columns);
  for (int64_t i = 0; i < count; ++i) {
    double length = 0;
    for (int64_t j = 0; j < std::max(rows, columns); ++j)
      length += std::pow(
          isTall ? values[j * columns + i] : values[i * columns + j], 2);
    EXPECT_GT(length, 0.3);
    EXPECT_LT(length, 1.6);
  }
}

TEST(Orthogonalize, AgreesWithTheIterationInDouble) {
  for (auto [rows, columns] : {std::pair(1, 1),
                               {1, 9},
                               {9, 1},
                               {4, 4},
                               {3, 17},
                               {17, 3},
                               {33, 65},
                               {65, 33},
                               {64, 64}})
    check(rows, columns);
}

// A product whose rows are long is computed in other ways.
TEST(Orthogonalize, OfLargeMatrices) {
  check(256, 1024);
  check(1024, 256);
}

TEST(Orthogonalize, NothingStaysNothing) {
  OneRank test;
  const OrthogonalizeShape shape = {5, 8};
  const Buffer x = test.randomFloats(40);
  const Buffer workspace = test.randomFloats(shape.workspaceBytes() / 4);
  zero(test.rank, x);
  orthogonalize(test.rank, shape, x, workspace);
  EXPECT_EQ(test.read(x), std::vector<float>(40));
}

} // namespace
