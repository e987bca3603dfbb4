//===- PoolingTests.cpp - Pooling on GPUs ---------------------------------===//

#include "test/unit/cuda/kernels/TwoRanks.h"

using namespace pipewright::runtime;

static PoolingShape outputSized(PoolingShape s) {
  s.oh = (s.h + s.padTop + s.padBottom - s.dilationH * (s.kh - 1) - 1) /
             s.strideH +
         1;
  s.ow = (s.w + s.padLeft + s.padRight - s.dilationW * (s.kw - 1) - 1) /
             s.strideW +
         1;
  return s;
}

/// All four calls: the same bits.
static void check(PoolingShape shape) {
  const PoolingShape s = outputSized(shape);
  TwoRanks test;
  const int64_t inputs = s.n * s.c * s.h * s.w;
  const int64_t outputs = s.n * s.c * s.oh * s.ow;
  const Buffer x = test.numbers(inputs, s.type);
  const Buffer dy = test.numbers(outputs, s.type);
  const Buffer y = test.numbers(outputs, s.type);
  const Buffer window = test.bytes(outputs);
  const Buffer unnamed = test.numbers(outputs, s.type);
  const Buffer dx = test.numbers(inputs, s.type);
  const Buffer mean = test.numbers(outputs, s.type);
  const Buffer dMean = test.numbers(inputs, s.type);
  test.run([&](auto &rank) {
    maxPool(rank, s, x, y, window);
    maxPool(rank, s, x, unnamed, {});
    maxPoolBackward(rank, s, dy, window, dx);
    averagePool(rank, s, x, mean);
    averagePoolBackward(rank, s, dy, dMean);
  });
  EXPECT_TRUE(test.same(y));
  EXPECT_TRUE(test.same(window));
  EXPECT_TRUE(test.same(unnamed));
  EXPECT_TRUE(test.same(dx));
  EXPECT_TRUE(test.same(mean));
  EXPECT_TRUE(test.same(dMean));
}

TEST(DevicePooling, TwoByTwo) {
  check({.n = 2,
         .c = 3,
         .h = 8,
         .w = 20,
         .kh = 2,
         .kw = 2,
         .strideH = 2,
         .strideW = 2});
}

TEST(DevicePooling, OverlappingWindowsWithPadding) {
  check({.n = 2,
         .c = 2,
         .h = 15,
         .w = 13,
         .kh = 3,
         .kw = 3,
         .strideH = 2,
         .strideW = 2,
         .padTop = 1,
         .padLeft = 1,
         .padBottom = 1,
         .padRight = 1});
}

TEST(DevicePooling, DilatedAndLopsided) {
  check({.n = 1,
         .c = 3,
         .h = 12,
         .w = 17,
         .kh = 3,
         .kw = 2,
         .strideH = 1,
         .strideW = 3,
         .padTop = 2,
         .padRight = 1,
         .dilationH = 2,
         .dilationW = 3});
}

TEST(DevicePooling, PaddingCounts) {
  check({.n = 1,
         .c = 1,
         .h = 6,
         .w = 6,
         .kh = 3,
         .kw = 3,
         .padTop = 1,
         .padLeft = 1,
         .padBottom = 1,
         .padRight = 1,
         .countIncludePad = true});
}

TEST(DevicePooling, WholePlaneOfManyBlocks) {
  check({.n = 1, .c = 2, .h = 24, .w = 24, .kh = 24, .kw = 10});
}

TEST(DevicePooling, Bf16) {
  check({.n = 1,
         .c = 2,
         .h = 9,
         .w = 9,
         .kh = 3,
         .kw = 3,
         .strideH = 2,
         .strideW = 2,
         .padTop = 1,
         .padLeft = 1,
         .padBottom = 1,
         .padRight = 1,
         .type = ElementType::BF16});
}

/// In single channels, and 16 bytes of them at once.
TEST(DevicePooling, ChannelsLast) {
  PoolingShape s = {.n = 2,
                    .h = 9,
                    .w = 7,
                    .kh = 3,
                    .kw = 2,
                    .strideH = 2,
                    .strideW = 2,
                    .padTop = 1,
                    .padLeft = 1,
                    .padBottom = 1,
                    .channelsLast = true};
  for (const auto type : {ElementType::F32, ElementType::BF16})
    for (const int64_t channels : {3, 16}) {
      s.type = type;
      s.c = channels;
      check(s);
    }
}

TEST(DevicePooling, ChannelsLastOfManyBlocks) {
  check({.n = 2,
         .c = 12,
         .h = 17,
         .w = 17,
         .kh = 2,
         .kw = 2,
         .dilationW = 2,
         .channelsLast = true});
}

TEST(DevicePooling, WindowOfMinusInfinityPointsAtWhatExists) {
  const PoolingShape s = outputSized({.n = 1,
                                      .c = 1,
                                      .h = 2,
                                      .w = 2,
                                      .kh = 2,
                                      .kw = 2,
                                      .padTop = 1,
                                      .padLeft = 1});
  TwoRanks test;
  const float infinity = std::numeric_limits<float>::infinity();
  const Buffer x = test.values(std::vector<float>(4, -infinity));
  const Buffer y = test.floats(4), window = test.bytes(4);
  test.run([&](auto &rank) { maxPool(rank, s, x, y, window); });
  EXPECT_TRUE(test.same(y));
  EXPECT_TRUE(test.same(window));
}
