//===- ConvolutionTests.cpp - Convolutions on GPUs ------------------------===//

#include "test/unit/cuda/kernels/TwoRanks.h"
#include "test/unit/runtime/WindowLayers.h"

using namespace pipewright::runtime;

static void check(const WindowLayer &layer, bool hasBias = true) {
  const ConvolutionShape s = layer;
  const double tolerance = s.type == ElementType::BF16 ? 1e-2 : 1e-5;
  TwoRanks test;
  const int64_t inputs = s.n * s.c * s.h * s.w;
  const int64_t weights = s.o * (s.c / s.groups) * s.kh * s.kw;
  const int64_t outputs = s.n * s.o * s.outputHeight() * s.outputWidth();
  const Buffer x = test.numbers(inputs, s.type);
  const Buffer w = test.numbers(weights, s.type);
  const Buffer bias = hasBias ? test.numbers(s.o, s.type) : Buffer{};
  const Buffer dy = test.numbers(outputs, s.type);
  const Buffer y = test.numbers(outputs, s.type);
  const Buffer dx = test.numbers(inputs, s.type);
  const Buffer written = test.floats(weights), added = test.floats(weights);
  test.run(
      [&](auto &rank) {
        prepareConvolutionForward(rank, 1, s, hasBias);
        prepareConvolutionBackwardData(rank, 1, s);
        prepareConvolutionBackwardWeight(rank, 1, s);
      },
      [&](auto &rank) {
        convolutionForward(rank, 1, x, w, bias, y);
        convolutionBackwardData(rank, 1, dy, w, dx);
        convolutionBackwardWeight(rank, 1, dy, x, written);
        convolutionBackwardWeight(rank, 1, dy, x, added, true);
      });
  EXPECT_TRUE(test.near(y, s.type, tolerance)) << "y";
  EXPECT_TRUE(test.near(dx, s.type, tolerance)) << "dx";
  EXPECT_TRUE(test.near(written, ElementType::F32, tolerance)) << "dw";
  EXPECT_TRUE(test.near(added, ElementType::F32, tolerance)) << "dw, added";
}

TEST(DeviceConvolution, WithAndWithoutBias) {
  const WindowLayer s = {.images = {2, 3, 9, 7},
                         .outputs = 5,
                         .kernel = {3, 3},
                         .padding = {1, 1, 1, 1}};
  check(s, true);
  check(s, false);
}

TEST(DeviceConvolution, StridedAndLopsided) {
  check({.images = {1, 2, 10, 13},
         .outputs = 4,
         .kernel = {3, 2},
         .strides = {2, 3},
         .padding = {1, 0, 2, 1}});
}

TEST(DeviceConvolution, DilatedInGroups) {
  check({.images = {1, 6, 11, 11},
         .outputs = 4,
         .kernel = {3, 3},
         .dilations = {2, 3},
         .groups = 2});
}

TEST(DeviceConvolution, Bf16WithFloatWeightGradients) {
  if (!hasBFloat16Products())
    GTEST_SKIP() << "this CPU has none for oneDNN";
  check({.images = {2, 4, 8, 8},
         .outputs = 8,
         .kernel = {3, 3},
         .padding = {1, 1, 1, 1},
         .type = ElementType::BF16});
}

TEST(DeviceConvolution, ChannelsLast) {
  WindowLayer s = {.images = {2, 8, 9, 7},
                   .outputs = 12,
                   .kernel = {3, 2},
                   .strides = {2, 1},
                   .padding = {1, 0, 0, 1},
                   .channelsLast = true};
  check(s);
  s.groups = 4;
  check(s);
  s.type = ElementType::BF16;
  if (hasBFloat16Products())
    check(s);
}

TEST(DeviceConvolution, OfSinglePixels) {
  WindowLayer s = {.images = {2, 8, 9, 7},
                   .outputs = 16,
                   .kernel = {1, 1},
                   .channelsLast = true};
  check(s);
  // No products: filters of groups, strides, edges.
  s.groups = 2;
  check(s);
  s.groups = 1;
  s.padding = {1, 0, 0, 1};
  check(s);
  s.padding = {};
  s.strides = {2, 1};
  check(s);
  s.strides = {1, 1};
  s.type = ElementType::BF16;
  if (hasBFloat16Products())
    check(s);
}

TEST(DeviceConvolution, RoundsToTf32OnlyIfAsked) {
  const ConvolutionShape s = WindowLayer{.images = {2, 64, 10, 10},
                                         .outputs = 64,
                                         .kernel = {3, 3},
                                         .channelsLast = true};
  double differences[2];
  for (const auto mode : {Float32Mode::Full, Float32Mode::Tf32}) {
    TwoRanks test(1 << 20, mode);
    const Buffer x = test.floats(2 * 64 * 100), w = test.floats(64 * 64 * 9);
    const Buffer y = test.floats(2 * 64 * 64);
    test.run([&](auto &rank) { prepareConvolutionForward(rank, 0, s, false); },
             [&](auto &rank) { convolutionForward(rank, 0, x, w, {}, y); });
    const auto got = test.gpuFloats(y, ElementType::F32);
    const auto expected = test.cpu.read(y);
    double largest = 0;
    for (size_t i = 0; i < got.size(); ++i)
      largest = std::max<double>(largest, std::fabs(got[i] - expected[i]));
    differences[mode == Float32Mode::Tf32] = largest;
  }
  EXPECT_LT(differences[0], 1e-4);
  EXPECT_GT(differences[1], 1e-4);
  EXPECT_LT(differences[1], 1e-1);
}

TEST(DeviceConvolution, SaysWhatWasNotSetUp) {
  TwoRanks test;
  EXPECT_EQ(errorOf([&] {
              convolutionBackwardData(*test.gpu, 4, {0, 4}, {0, 4}, {0, 4});
            }),
            "the data gradient of convolution 4 was not set up");
}

TEST(DeviceConvolution, SaysWhichOperandIsNotAligned) {
  TwoRanks test;
  const ConvolutionShape s =
      WindowLayer{.images = {1, 1, 4, 4}, .outputs = 1, .kernel = {1, 1}};
  prepareConvolutionForward(*test.gpu, 0, s, false);
  EXPECT_EQ(errorOf([&] {
              convolutionForward(*test.gpu, 0, {4, 64}, {128, 4}, {},
                                 {192, 64});
            }),
            "the forward of a convolution has an operand that does not begin "
            "at a multiple of 16 bytes");
}
