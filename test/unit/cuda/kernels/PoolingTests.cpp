//===- PoolingTests.cpp - Pooling on GPUs ---------------------------------===//

#include "test/unit/cuda/kernels/TwoRanks.h"
#include "test/unit/runtime/WindowLayers.h"

using namespace pipewright::runtime;

/// All four calls: the same bits.
static void check(const WindowLayer &layer) {
  const PoolingShape s = layer;
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
  check({.images = {2, 3, 8, 20}, .kernel = {2, 2}, .strides = {2, 2}});
}

TEST(DevicePooling, OverlappingWindowsWithPadding) {
  check({.images = {2, 2, 15, 13},
         .kernel = {3, 3},
         .strides = {2, 2},
         .padding = {1, 1, 1, 1}});
}

TEST(DevicePooling, DilatedAndLopsided) {
  check({.images = {1, 3, 12, 17},
         .kernel = {3, 2},
         .strides = {1, 3},
         .dilations = {2, 3},
         .padding = {2, 0, 0, 1}});
}

TEST(DevicePooling, PaddingCounts) {
  check({.images = {1, 1, 6, 6},
         .kernel = {3, 3},
         .padding = {1, 1, 1, 1},
         .countIncludePad = true});
}

TEST(DevicePooling, WholePlaneOfManyBlocks) {
  check({.images = {1, 2, 24, 24}, .kernel = {24, 10}});
}

TEST(DevicePooling, Bf16) {
  check({.images = {1, 2, 9, 9},
         .kernel = {3, 3},
         .strides = {2, 2},
         .padding = {1, 1, 1, 1},
         .type = ElementType::BF16});
}

/// In single channels, and 16 bytes of them at once.
TEST(DevicePooling, ChannelsLast) {
  WindowLayer s = {.images = {2, 3, 9, 7},
                   .kernel = {3, 2},
                   .strides = {2, 2},
                   .padding = {1, 1, 1, 0},
                   .channelsLast = true};
  for (const auto type : {ElementType::F32, ElementType::BF16})
    for (const int64_t channels : {3, 16}) {
      s.type = type;
      s.images[1] = channels;
      check(s);
    }
}

TEST(DevicePooling, ChannelsLastOfManyBlocks) {
  check({.images = {2, 12, 17, 17},
         .kernel = {2, 2},
         .dilations = {1, 2},
         .channelsLast = true});
}

TEST(DevicePooling, WindowOfMinusInfinityPointsAtWhatExists) {
  const PoolingShape s = WindowLayer{
      .images = {1, 1, 2, 2}, .kernel = {2, 2}, .padding = {1, 1, 0, 0}};
  TwoRanks test;
  const float infinity = std::numeric_limits<float>::infinity();
  const Buffer x = test.values(std::vector<float>(4, -infinity));
  const Buffer y = test.floats(4), window = test.bytes(4);
  test.run([&](auto &rank) { maxPool(rank, s, x, y, window); });
  EXPECT_TRUE(test.same(y));
  EXPECT_TRUE(test.same(window));
}
