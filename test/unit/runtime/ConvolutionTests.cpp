//===- ConvolutionTests.cpp - Convolutions against plain loops ------------===//

#include "test/unit/runtime/OneRank.h"
#include "test/unit/runtime/WindowLayers.h"

#include <array>

using namespace pipewright::runtime;

/// Where an element lies among images (or filters) of c x h x w.
static int64_t indexOf(const ConvolutionShape &s, int64_t n, int64_t c,
                       int64_t h, int64_t w, const std::array<int64_t, 3> &of) {
  if (s.channelsLast)
    return ((n * of[1] + h) * of[2] + w) * of[0] + c;
  return ((n * of[0] + c) * of[1] + h) * of[2] + w;
}

/// Calls body(y index, x index, w index) for each product of a convolution.
template <class Body>
static void forProducts(const ConvolutionShape &s, const Body &body) {
  const int64_t oh = s.outputHeight(), ow = s.outputWidth();
  const int64_t cg = s.c / s.groups, og = s.o / s.groups;
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t o = 0; o < s.o; ++o)
      for (int64_t y = 0; y < oh; ++y)
        for (int64_t x = 0; x < ow; ++x)
          for (int64_t c = 0; c < cg; ++c)
            for (int64_t i = 0; i < s.kh; ++i)
              for (int64_t j = 0; j < s.kw; ++j) {
                const int64_t row = y * s.strideH - s.padTop + i * s.dilationH;
                const int64_t col = x * s.strideW - s.padLeft + j * s.dilationW;
                if (row < 0 || row >= s.h || col < 0 || col >= s.w)
                  continue;
                const int64_t channel = o / og * cg + c;
                body(indexOf(s, n, o, y, x, {s.o, oh, ow}),
                     indexOf(s, n, channel, row, col, {s.c, s.h, s.w}),
                     indexOf(s, o, c, i, j, {cg, s.kh, s.kw}));
              }
}

static std::vector<float> toFloats(const std::vector<double> &values) {
  return std::vector<float>(values.begin(), values.end());
}

/// All three directions against one triple of loops.
static void checkConvolution(const WindowLayer &layer, double tolerance) {
  const ConvolutionShape s = layer;
  OneRank test;
  const int64_t xs = s.n * s.c * s.h * s.w;
  const int64_t ws = s.o * s.c / s.groups * s.kh * s.kw;
  const int64_t ys = s.n * s.o * s.outputHeight() * s.outputWidth();
  const Buffer x = test.randomFloats(xs), w = test.randomFloats(ws);
  const Buffer bias = test.randomFloats(s.o), dy = test.randomFloats(ys);
  const Buffer y = test.floats(ys), dx = test.floats(xs);
  const Buffer dw = test.randomFloats(ws);
  const float *xv = test.at(x), *wv = test.at(w), *dyv = test.at(dy);
  std::vector<double> yRight(ys), dxRight(xs), dwRight(ws);
  const int64_t plane = s.outputHeight() * s.outputWidth();
  for (int64_t i = 0; i < ys; ++i)
    yRight[i] = test.at(bias)[s.channelsLast ? i % s.o : i / plane % s.o];
  forProducts(s, [&](int64_t yi, int64_t xi, int64_t wi) {
    yRight[yi] += static_cast<double>(xv[xi]) * wv[wi];
    dxRight[xi] += static_cast<double>(dyv[yi]) * wv[wi];
    dwRight[wi] += static_cast<double>(dyv[yi]) * xv[xi];
  });

  prepareConvolutionForward(test.rank, 0, s, true);
  prepareConvolutionBackwardData(test.rank, 0, s);
  prepareConvolutionBackwardWeight(test.rank, 0, s);
  // Twice: scratch of one call must not leak into the next.
  for (int round = 0; round < 2; ++round) {
    convolutionForward(test.rank, 0, x, w, bias, y);
    EXPECT_TRUE(agree(test.read(y), toFloats(yRight), tolerance));
    convolutionBackwardData(test.rank, 0, dy, w, dx);
    EXPECT_TRUE(agree(test.read(dx), toFloats(dxRight), tolerance));
    convolutionBackwardWeight(test.rank, 0, dy, x, dw);
    EXPECT_TRUE(agree(test.read(dw), toFloats(dwRight), tolerance));
  }
  convolutionBackwardWeight(test.rank, 0, dy, x, dw, true);
  for (double &value : dwRight)
    value *= 2;
  EXPECT_TRUE(agree(test.read(dw), toFloats(dwRight), tolerance));
}

TEST(Convolution, FewChannelsOddSize) {
  checkConvolution({.images = {2, 3, 11, 9},
                    .outputs = 7,
                    .kernel = {3, 3},
                    .padding = {1, 1, 1, 1}},
                   1e-5);
}

TEST(Convolution, StrideAndUnevenPadding) {
  checkConvolution({.images = {2, 3, 15, 15},
                    .outputs = 16,
                    .kernel = {7, 7},
                    .strides = {2, 2},
                    .padding = {3, 2, 3, 4}},
                   1e-5);
}

TEST(Convolution, ChannelsLast) {
  WindowLayer s = {.images = {2, 6, 11, 9},
                   .outputs = 4,
                   .kernel = {3, 2},
                   .strides = {2, 1},
                   .padding = {1, 0, 0, 1},
                   .channelsLast = true};
  checkConvolution(s, 1e-5);
  s.groups = 2;
  checkConvolution(s, 1e-5);
}

TEST(Convolution, Dilation) {
  checkConvolution({.images = {1, 16, 12, 13},
                    .outputs = 16,
                    .kernel = {3, 3},
                    .dilations = {2, 2},
                    .padding = {2, 2, 2, 2}},
                   1e-5);
}

TEST(Convolution, Groups) {
  checkConvolution({.images = {2, 8, 6, 6},
                    .outputs = 12,
                    .kernel = {3, 3},
                    .padding = {1, 1, 1, 1},
                    .groups = 4},
                   1e-5);
}

TEST(Convolution, OneByOne) {
  checkConvolution({.images = {2, 33, 5, 5}, .outputs = 17, .kernel = {1, 1}},
                   1e-5);
}

// 64 tiles of 4 x 4 and more than 32 channels: the rule picks Winograd, whose
// rounding is some times larger.
TEST(Convolution, WinogradAgreesToo) {
  checkConvolution({.images = {4, 32, 16, 16},
                    .outputs = 48,
                    .kernel = {3, 3},
                    .padding = {1, 1, 1, 1}},
                   2e-5);
}

TEST(Convolution, KeptPackedWeightFollowsAnUpdate) {
  OneRank test;
  const ConvolutionShape s = WindowLayer{.images = {1, 16, 6, 6},
                                         .outputs = 32,
                                         .kernel = {3, 3},
                                         .padding = {1, 1, 1, 1},
                                         .keepPackedWeight = true};
  const Buffer x = test.randomFloats(16 * 36), y = test.floats(32 * 36);
  const Buffer w = test.randomFloats(32 * 16 * 9);
  prepareConvolutionForward(test.rank, 5, s, false);
  convolutionForward(test.rank, 5, x, w, {}, y);
  const auto before = test.read(y);
  for (int64_t i = 0; i < w.bytes / 4; ++i)
    test.at(w)[i] *= 2;
  test.rank.beginStep(4, 0.1f);
  convolutionForward(test.rank, 5, x, w, {}, y);
  EXPECT_FLOAT_EQ(test.at(y)[10], 2 * before[10]);
  EXPECT_GT(test.rank.scratchBytes(), 0);
  // Another version of the weights, elsewhere, with no update between.
  const Buffer old = test.floats(32 * 16 * 9);
  for (int64_t i = 0; i < w.bytes / 4; ++i)
    test.at(old)[i] = test.at(w)[i] / 2;
  convolutionForward(test.rank, 5, x, old, {}, y);
  EXPECT_FLOAT_EQ(test.at(y)[10], before[10]);
}

TEST(Convolution, NotSetUpIsAnError) {
  OneRank test;
  const Buffer x = test.floats(16);
  EXPECT_EQ(errorOf([&] { convolutionForward(test.rank, 9, x, x, {}, x); }),
            "the forward of convolution 9 was not set up");
}
