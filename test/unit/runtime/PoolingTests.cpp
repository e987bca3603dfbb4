//===- PoolingTests.cpp - Pooling against plain loops ---------------------===//

#include "test/unit/runtime/OneRank.h"
#include "test/unit/runtime/WindowLayers.h"

#include <limits>

using namespace pipewright::runtime;

/// Where a pixel of a plane (a channel of a sample) lies.
static int64_t indexOf(const PoolingShape &s, int64_t plane, int64_t row,
                       int64_t column, int64_t rows, int64_t columns) {
  if (!s.channelsLast)
    return (plane * rows + row) * columns + column;
  return ((plane / s.c * rows + row) * columns + column) * s.c + plane % s.c;
}

static void checkMaxPool(const WindowLayer &layer) {
  const PoolingShape s = layer;
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
  checkMaxPool({.images = {2, 3, 8, 10}, .kernel = {2, 2}, .strides = {2, 2}});
}

TEST(MaxPool, ChannelsLast) {
  checkMaxPool({.images = {2, 3, 9, 10},
                .kernel = {3, 2},
                .strides = {2, 2},
                .padding = {1, 0, 1, 0},
                .channelsLast = true});
}

TEST(MaxPool, TwoByTwoInVectorsWithRest) {
  checkMaxPool({.images = {1, 3, 7, 75}, .kernel = {2, 2}, .strides = {2, 2}});
}

TEST(MaxPool, OverlappingWithPadding) {
  checkMaxPool({.images = {2, 2, 13, 150},
                .kernel = {3, 3},
                .strides = {2, 2},
                .padding = {1, 1, 1, 1}});
}

TEST(MaxPool, StrideThreeAndDilation) {
  checkMaxPool({.images = {1, 2, 14, 14},
                .kernel = {2, 3},
                .strides = {3, 3},
                .dilations = {2, 2},
                .padding = {1, 1, 1, 1}});
}

TEST(MaxPool, MinusInfinityPointsAtARealElement) {
  OneRank test;
  const PoolingShape s = WindowLayer{
      .images = {1, 1, 2, 2}, .kernel = {3, 3}, .padding = {1, 1, 0, 0}};
  const Buffer x = test.floats(4), y = test.floats(1), window = test.bytes(1);
  fill(test.rank, -std::numeric_limits<float>::infinity(), x);
  maxPool(test.rank, s, x, y, window);
  EXPECT_EQ(test.rank.data<uint8_t>(window)[0], 4);
}

static void checkAveragePool(const WindowLayer &layer) {
  const PoolingShape s = layer;
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
      checkAveragePool({.images = {2, 3, 9, 7},
                        .kernel = {3, 3},
                        .strides = {2, 2},
                        .padding = {1, 1, 1, 1},
                        .countIncludePad = include,
                        .channelsLast = channelsLast});
}
