//===- PoolingTests.cpp - Pooling against plain loops ---------------------===//

#include "test/unit/runtime/OneRank.h"

#include <limits>

using namespace pipewright::runtime;

/// Where a pixel of a plane (a channel of a sample) lies.
static int64_t indexOf(const PoolingShape &s, int64_t plane, int64_t row,
                       int64_t column, int64_t rows, int64_t columns) {
  if (!s.channelsLast)
    return (plane * rows + row) * columns + column;
  return ((plane / s.c * rows + row) * columns + column) * s.c + plane % s.c;
}

static void checkMaxPool(const PoolingShape &s) {
  OneRank test;
  const int64_t xs = s.n * s.c * s.h * s.w, ys = s.n * s.c * s.oh * s.ow;
  const Buffer x = test.randomFloats(xs), dy = test.randomFloats(ys);
  const Buffer y = test.floats(ys), window = test.bytes(ys);
  const Buffer dx = test.randomFloats(xs);
  std::vector<float> yRight(ys), dxRight(xs, 0);
  std::vector<int> windowRight(ys);
  for (int64_t p = 0; p < s.n * s.c; ++p)
    for (int64_t r = 0; r < s.oh; ++r)
      for (int64_t c = 0; c < s.ow; ++c) {
        float best = -std::numeric_limits<float>::infinity();
        int64_t from = -1;
        int position = 0;
        for (int64_t i = 0; i < s.kh; ++i)
          for (int64_t j = 0; j < s.kw; ++j) {
            const int64_t row = r * s.strideH - s.padTop + i * s.dilationH;
            const int64_t col = c * s.strideW - s.padLeft + j * s.dilationW;
            if (row < 0 || row >= s.h || col < 0 || col >= s.w)
              continue;
            const int64_t at = indexOf(s, p, row, col, s.h, s.w);
            if (test.at(x)[at] > best) {
              best = test.at(x)[at];
              from = at;
              position = static_cast<int>(i * s.kw + j);
            }
          }
        const int64_t out = indexOf(s, p, r, c, s.oh, s.ow);
        yRight[out] = best;
        windowRight[out] = position;
        dxRight[from] += test.at(dy)[out];
      }
  maxPool(test.rank, s, x, y, window);
  EXPECT_EQ(test.read(y), yRight);
  for (int64_t i = 0; i < ys; ++i)
    ASSERT_EQ(test.rank.data<uint8_t>(window)[i], windowRight[i]);
  maxPoolBackward(test.rank, s, dy, window, dx);
  EXPECT_TRUE(agree(test.read(dx), dxRight, 1e-6));
}

TEST(MaxPool, TwoByTwo) {
  checkMaxPool({.n = 2,
                .c = 3,
                .h = 8,
                .w = 10,
                .oh = 4,
                .ow = 5,
                .kh = 2,
                .kw = 2,
                .strideH = 2,
                .strideW = 2});
}

TEST(MaxPool, ChannelsLast) {
  checkMaxPool({.n = 2,
                .c = 3,
                .h = 9,
                .w = 10,
                .oh = 5,
                .ow = 5,
                .kh = 3,
                .kw = 2,
                .strideH = 2,
                .strideW = 2,
                .padTop = 1,
                .padBottom = 1,
                .channelsLast = true});
}

TEST(MaxPool, TwoByTwoInVectorsWithRest) {
  checkMaxPool({.n = 1,
                .c = 3,
                .h = 7,
                .w = 75,
                .oh = 3,
                .ow = 37,
                .kh = 2,
                .kw = 2,
                .strideH = 2,
                .strideW = 2});
}

TEST(MaxPool, OverlappingWithPadding) {
  checkMaxPool({.n = 2,
                .c = 2,
                .h = 13,
                .w = 150,
                .oh = 7,
                .ow = 75,
                .kh = 3,
                .kw = 3,
                .strideH = 2,
                .strideW = 2,
                .padTop = 1,
                .padLeft = 1,
                .padBottom = 1,
                .padRight = 1});
}

TEST(MaxPool, StrideThreeAndDilation) {
  checkMaxPool({.n = 1,
                .c = 2,
                .h = 14,
                .w = 14,
                .oh = 4,
                .ow = 4,
                .kh = 2,
                .kw = 3,
                .strideH = 3,
                .strideW = 3,
                .padTop = 1,
                .padLeft = 1,
                .padBottom = 1,
                .padRight = 1,
                .dilationH = 2,
                .dilationW = 2});
}

TEST(MaxPool, MinusInfinityPointsAtARealElement) {
  OneRank test;
  const PoolingShape s = {.n = 1,
                          .c = 1,
                          .h = 2,
                          .w = 2,
                          .oh = 1,
                          .ow = 1,
                          .kh = 3,
                          .kw = 3,
                          .strideH = 1,
                          .strideW = 1,
                          .padTop = 1,
                          .padLeft = 1};
  const Buffer x = test.floats(4), y = test.floats(1), window = test.bytes(1);
  fill(test.rank, -std::numeric_limits<float>::infinity(), x);
  maxPool(test.rank, s, x, y, window);
  EXPECT_EQ(test.rank.data<uint8_t>(window)[0], 4);
}

static void checkAveragePool(const PoolingShape &s) {
  OneRank test;
  const int64_t xs = s.n * s.c * s.h * s.w, ys = s.n * s.c * s.oh * s.ow;
  const Buffer x = test.randomFloats(xs), dy = test.randomFloats(ys);
  const Buffer y = test.floats(ys), dx = test.floats(xs);
  std::vector<float> yRight(ys, 0), dxRight(xs, 0);
  for (int64_t p = 0; p < s.n * s.c; ++p)
    for (int64_t r = 0; r < s.oh; ++r)
      for (int64_t c = 0; c < s.ow; ++c) {
        std::vector<int64_t> inside;
        for (int64_t i = 0; i < s.kh; ++i)
          for (int64_t j = 0; j < s.kw; ++j) {
            const int64_t row = r * s.strideH - s.padTop + i;
            const int64_t col = c * s.strideW - s.padLeft + j;
            if (row >= 0 && row < s.h && col >= 0 && col < s.w)
              inside.push_back(indexOf(s, p, row, col, s.h, s.w));
          }
        const float divisor = s.countIncludePad ? s.kh * s.kw : inside.size();
        const int64_t out = indexOf(s, p, r, c, s.oh, s.ow);
        for (int64_t at : inside) {
          yRight[out] += test.at(x)[at] / divisor;
          dxRight[at] += test.at(dy)[out] / divisor;
        }
      }
  averagePool(test.rank, s, x, y);
  EXPECT_TRUE(agree(test.read(y), yRight, 1e-6));
  averagePoolBackward(test.rank, s, dy, dx);
  EXPECT_TRUE(agree(test.read(dx), dxRight, 1e-6));
}

TEST(AveragePool, PaddingCountsOrNot) {
  for (const bool include : {false, true})
    for (const bool channelsLast : {false, true})
      checkAveragePool({.n = 2,
                        .c = 3,
                        .h = 9,
                        .w = 7,
                        .oh = 5,
                        .ow = 4,
                        .kh = 3,
                        .kw = 3,
                        .strideH = 2,
                        .strideW = 2,
                        .padTop = 1,
                        .padLeft = 1,
                        .padBottom = 1,
                        .padRight = 1,
                        .countIncludePad = include,
                        .channelsLast = channelsLast});
}
