//===- BFloat16Tests.cpp - bf16 kernels against their f32 selves ----------===//
//
// A kernel in bf16 computes what it computes in f32 from the same numbers,
// rounded once. So each runs in both, on numbers that bf16 has.
//
//===----------------------------------------------------------------------===//

#include "test/unit/runtime/AttentionLayer.h"
#include "test/unit/runtime/OneRank.h"
#include "test/unit/runtime/WindowLayers.h"

#include "runtime/core/BFloat16.h"

#include <cstring>
#include <limits>

using namespace pipewright::runtime;

namespace {

/// A bf16 buffer and an f32 one with the same values.
struct Twin {
  Buffer narrow, wide;
};

class Twins : public OneRank {
public:
  Twin random(int64_t count) {
    Twin twin = {bytes(2 * count), randomFloats(count)};
    narrow(at(twin.wide), count, shorts(twin));
    widen(shorts(twin), count, at(twin.wide));
    return twin;
  }
  Twin empty(int64_t count) { return {bytes(2 * count), floats(count)}; }

  BFloat16 *shorts(const Twin &twin) {
    return rank.data<BFloat16>(twin.narrow);
  }
  /// The bf16 result, and the f32 one as it is or rounded.
  std::vector<float> got(const Twin &twin) {
    std::vector<float> values(twin.wide.bytes / 4);
    widen(shorts(twin), values.size(), values.data());
    return values;
  }
  std::vector<float> rounded(const Twin &twin) {
    std::vector<float> values = read(twin.wide);
    for (float &value : values)
      value = widen(narrow(value));
    return values;
  }
};

/// Half a unit in the last of bf16's eight digits, and sums in another order.
constexpr double oneRounding = 0x1p-8 + 1e-5;

template <class Shape>
Shape inBFloat16(Shape shape) {
  shape.type = ElementType::BF16;
  return shape;
}

} // namespace

TEST(BFloat16, RoundsToNearestTiesToEven) {
  EXPECT_EQ(narrow(1.0f), 0x3F80);
  EXPECT_EQ(narrow(1.0f + 0x1p-8f), 0x3F80);
  EXPECT_EQ(narrow(1.0f + 0x1p-8f + 0x1p-20f), 0x3F81);
  EXPECT_EQ(narrow(1.0f + 3 * 0x1p-8f), 0x3F82);
  EXPECT_EQ(narrow(-0.0f), 0x8000);
  EXPECT_EQ(narrow(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(narrow(-std::numeric_limits<float>::infinity()), 0xFF80);
  // Small numbers stay: 2^-133 is the least.
  EXPECT_EQ(narrow(0x1p-133f), 1);
  for (const uint32_t bits : {0x7F800001u, 0xFFFFFFFFu, 0x7FFFFFFFu}) {
    const float nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(widen(narrow(nan)))) << bits;
  }
}

TEST_F(BFloat16Products, MatmulRoundsOnce) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      Twins test;
      MatmulShape s = {.batch = 2,
                       .m = 13,
                       .n = 37,
                       .k = 29,
                       .transposeA = ta,
                       .transposeB = tb};
      const Twin a = test.random(2 * 13 * 29), b = test.random(2 * 29 * 37);
      const Twin y = test.empty(2 * 13 * 37);
      matmul(test.rank, s, a.wide, b.wide, y.wide);
      s.type = s.result = ElementType::BF16;
      prepareMatmul(test.rank, s);
      matmul(test.rank, s, a.narrow, b.narrow, y.narrow);
      EXPECT_TRUE(agree(test.got(y), test.read(y.wide), oneRounding));
    }
}

TEST_F(BFloat16Products, MatmulAddsToFloats) {
  Twins test;
  MatmulShape s = {.m = 33, .n = 20, .k = 65, .transposeA = true, .beta = 1};
  const Twin a = test.random(33 * 65), b = test.random(65 * 20);
  const Buffer expected = test.randomFloats(33 * 20);
  const Buffer y = test.floats(33 * 20);
  copy(test.rank, expected, y);
  matmul(test.rank, s, a.wide, b.wide, expected);
  s.type = ElementType::BF16;
  matmul(test.rank, s, a.narrow, b.narrow, y);
  // Nothing is rounded: products of bf16 numbers are f32 numbers.
  EXPECT_TRUE(agree(test.read(y), test.read(expected), 1e-6));
}

TEST_F(BFloat16Products, MatmulSharesTheSecondOperand) {
  for (const bool transposeA : {false, true}) {
    Twins test;
    MatmulShape s = {.batch = 3,
                     .m = 7,
                     .n = 5,
                     .k = 11,
                     .transposeA = transposeA,
                     .broadcastB = true};
    const Twin a = test.random(3 * 7 * 11), b = test.random(11 * 5);
    const Twin y = test.empty(3 * 7 * 5);
    matmul(test.rank, s, a.wide, b.wide, y.wide);
    s.type = s.result = ElementType::BF16;
    matmul(test.rank, s, a.narrow, b.narrow, y.narrow);
    EXPECT_TRUE(agree(test.got(y), test.read(y.wide), oneRounding));
  }
}

TEST_F(BFloat16Products, ConvolutionInAllDirections) {
  for (const int64_t groups : {1, 2}) {
    Twins test;
    const ConvolutionShape s = WindowLayer{.images = {2, 6, 9, 11},
                                           .outputs = 8,
                                           .kernel = {3, 3},
                                           .strides = {2, 1},
                                           .padding = {1, 1, 1, 1},
                                           .groups = groups};
    const int64_t ys = s.n * s.o * s.outputHeight() * s.outputWidth();
    const int64_t ws = s.o * s.c / groups * 9;
    const Twin x = test.random(s.n * s.c * s.h * s.w), w = test.random(ws);
    const Twin bias = test.random(s.o), dy = test.random(ys);
    const Twin y = test.empty(ys), dx = test.empty(s.n * s.c * s.h * s.w);
    const Buffer dw = test.floats(ws), dwRight = test.floats(ws);
    const ConvolutionShape narrow = inBFloat16(s);
    for (const int64_t number : {0, 1}) {
      prepareConvolutionForward(test.rank, number, number ? narrow : s, true);
      prepareConvolutionBackwardData(test.rank, number, number ? narrow : s);
      prepareConvolutionBackwardWeight(test.rank, number, number ? narrow : s);
    }
    convolutionForward(test.rank, 0, x.wide, w.wide, bias.wide, y.wide);
    convolutionForward(test.rank, 1, x.narrow, w.narrow, bias.narrow, y.narrow);
    EXPECT_TRUE(agree(test.got(y), test.read(y.wide), oneRounding));
    convolutionBackwardData(test.rank, 0, dy.wide, w.wide, dx.wide);
    convolutionBackwardData(test.rank, 1, dy.narrow, w.narrow, dx.narrow);
    EXPECT_TRUE(agree(test.got(dx), test.read(dx.wide), oneRounding));
    convolutionBackwardWeight(test.rank, 0, dy.wide, x.wide, dwRight);
    convolutionBackwardWeight(test.rank, 1, dy.narrow, x.narrow, dw);
    EXPECT_TRUE(agree(test.read(dw), test.read(dwRight), 1e-5));
    // And once more on top.
    convolutionBackwardWeight(test.rank, 0, dy.wide, x.wide, dwRight, true);
    convolutionBackwardWeight(test.rank, 1, dy.narrow, x.narrow, dw, true);
    EXPECT_TRUE(agree(test.read(dw), test.read(dwRight), 1e-5));
  }
}

namespace {

/// The operands and results of one attention in both types.
struct TwinAttention {
  TwinAttention(const AttentionLayer &layer, int64_t threads)
      : s(layer), columns(s.columns ? s.columns : s.rows),
        rowsSize(s.batch * s.heads * s.rows * s.depth),
        keysSize(s.batch * s.heads / s.group() * columns * s.depth),
        q(test.random(rowsSize)), k(test.random(keysSize)),
        v(test.random(keysSize)), dO(test.random(rowsSize)),
        o(test.empty(rowsSize)), dq(test.empty(rowsSize)),
        dk(test.empty(keysSize)), dv(test.empty(keysSize)),
        mask(test.randomFloats(s.maskBatch * s.maskHeads * s.maskRows *
                               s.maskColumns)),
        dMask(test.floats(mask.bytes / 4)),
        dMaskRight(test.floats(mask.bytes / 4)),
        stats(test.floats(2 * rowsSize / s.depth)),
        statsRight(test.floats(2 * rowsSize / s.depth)) {
    test.rank.setThreads(threads);
    prepareAttention(test.rank, inBFloat16(s));
  }

  void run() {
    const AttentionShape narrow = inBFloat16(s);
    attention(test.rank, narrow, 1, q.narrow, k.narrow, v.narrow, mask,
              o.narrow, stats);
    attentionBackward(test.rank, narrow, 1, dO.narrow, q.narrow, k.narrow,
                      v.narrow, o.narrow, stats, mask, dq.narrow, dk.narrow,
                      dv.narrow, dMask);
  }
  void runInFloats() {
    attention(test.rank, s, 1, q.wide, k.wide, v.wide, mask, o.wide,
              statsRight);
    attentionBackward(test.rank, s, 1, dO.wide, q.wide, k.wide, v.wide, o.wide,
                      statsRight, mask, dq.wide, dk.wide, dv.wide, dMaskRight);
  }

  AttentionShape s;
  int64_t columns, rowsSize, keysSize;
  Twins test;
  Twin q, k, v, dO, o, dq, dk, dv;
  Buffer mask, dMask, dMaskRight, stats, statsRight;
};

} // namespace

/// Products of bf16 numbers are exact and sums f32, so the softmax is as good
/// as in f32; what products read of it is rounded, and so is the result.
static void checkAttention(const AttentionLayer &layer, float hidden = 0) {
  TwinAttention test(layer, 2);
  for (int64_t i = 0; hidden != 0 && i < 5 * test.s.maskColumns; ++i)
    test.test.at(test.mask)[i] = hidden;
  test.run();
  test.runInFloats();
  EXPECT_TRUE(
      agree(test.test.read(test.stats), test.test.read(test.statsRight), 1e-6));
  for (const Twin &result : {test.o, test.dq, test.dk, test.dv})
    EXPECT_TRUE(agree(test.test.got(result), test.test.read(result.wide),
                      2 * oneRounding));
  EXPECT_TRUE(
      agree(test.test.read(test.dMask), test.test.read(test.dMaskRight), 1e-5));
}

TEST_F(BFloat16Products, AttentionIsCloseToFloats) {
  checkAttention({.vectors = {2, 3, 37, 11}});
  checkAttention({.vectors = {1, 2, 128, 64}, .scale = 0.125f, .causal = true});
}

TEST_F(BFloat16Products, AttentionMasksAndDrops) {
  checkAttention({.vectors = {2, 3, 70, 24},
                  .scale = 0.2f,
                  .causal = true,
                  .dropoutRate = 0.1f,
                  .dropoutId = 5,
                  .mask = {1, 1, 1, 70}});
  checkAttention(
      {.vectors = {2, 2, 70, 8}, .columns = 129, .mask = {2, 1, 70, 129}});
}

TEST_F(BFloat16Products, AttentionSharesKeysAmongHeads) {
  checkAttention({.vectors = {2, 4, 70, 16},
                  .scale = 0.25f,
                  .causal = true,
                  .keyHeads = 2});
  checkAttention({.vectors = {2, 3, 1, 8},
                  .columns = 9,
                  .mask = {1, 3, 1, 9},
                  .keyHeads = 1});
}

TEST_F(BFloat16Products, AttentionBoundsScoresAndGivesMasksGradients) {
  checkAttention({.vectors = {2, 4, 70, 16},
                  .scale = 0.25f,
                  .causal = true,
                  .mask = {1, 4, 70, 70},
                  .keyHeads = 2,
                  .softcap = 1.5f,
                  .maskGradient = true});
  checkAttention({.vectors = {2, 2, 37, 11},
                  .mask = {2, 1, 37, 37},
                  .maskGradient = true});
}

/// The first rows are masked in all columns.
TEST_F(BFloat16Products, AttentionHidesWholeRows) {
  for (const float hidden : {-1e4f, -1e9f, -std::numeric_limits<float>::max(),
                             -std::numeric_limits<float>::infinity()})
    checkAttention(
        {.vectors = {1, 2, 64, 16}, .scale = 0.25f, .mask = {1, 1, 64, 64}},
        hidden);
}

TEST_F(BFloat16Products, AttentionOverMoreBlocksThanSetsOfProducts) {
  checkAttention({.vectors = {1, 1, 1111, 8}, .scale = 0.3f, .causal = true});
}

TEST_F(BFloat16Products, AttentionIsTheSameOnAnyNumberOfThreads) {
  std::vector<float> first;
  for (const int64_t threads : {1, 2, 3}) {
    TwinAttention test({.vectors = {2, 6, 100, 16},
                        .causal = true,
                        .dropoutRate = 0.2f,
                        .keyHeads = 3},
                       threads);
    test.run();
    std::vector<float> all = test.test.read(test.stats);
    for (const Twin &result : {test.o, test.dq, test.dk, test.dv})
      for (const float value : test.test.got(result))
        all.push_back(value);
    if (first.empty())
      first = all;
    EXPECT_EQ(all, first) << threads << " threads";
  }
}

TEST(BFloat16, AttentionMustBeSetUp) {
  Twins test;
  const AttentionShape s = AttentionLayer{.vectors = {1, 1, 4, 4}};
  const Twin x = test.random(16), y = test.empty(16);
  EXPECT_TRUE(contains(errorOf([&] {
                         attention(test.rank, inBFloat16(s), 0, x.narrow,
                                   x.narrow, x.narrow, Buffer(), y.narrow,
                                   test.floats(8));
                       }),
                       "attention of 4 rows was not set up"));
}

TEST(BFloat16, PoolingRoundsOnce) {
  for (const int64_t stride : {1, 2}) {
    Twins test;
    const PoolingShape s = WindowLayer{
        .images = {2, 3, 8, 10}, .kernel = {2, 2}, .strides = {stride, stride}};
    const PoolingShape narrow = inBFloat16(s);
    const int64_t xs = 6 * s.h * s.w, ys = 6 * s.oh * s.ow;
    const Twin x = test.random(xs), dy = test.random(ys);
    const Twin y = test.empty(ys), dx = test.empty(xs);
    const Buffer window = test.bytes(ys), windowRight = test.bytes(ys);
    maxPool(test.rank, s, x.wide, y.wide, windowRight);
    maxPool(test.rank, narrow, x.narrow, y.narrow, window);
    EXPECT_EQ(test.got(y), test.rounded(y));
    EXPECT_EQ(std::memcmp(test.rank.data<char>(window),
                          test.rank.data<char>(windowRight), ys),
              0);
    maxPoolBackward(test.rank, s, dy.wide, window, dx.wide);
    maxPoolBackward(test.rank, narrow, dy.narrow, window, dx.narrow);
    EXPECT_EQ(test.got(dx), test.rounded(dx));
    averagePool(test.rank, s, x.wide, y.wide);
    averagePool(test.rank, narrow, x.narrow, y.narrow);
    EXPECT_EQ(test.got(y), test.rounded(y));
    averagePoolBackward(test.rank, s, dy.wide, dx.wide);
    averagePoolBackward(test.rank, narrow, dy.narrow, dx.narrow);
    EXPECT_EQ(test.got(dx), test.rounded(dx));
  }
}

TEST(BFloat16, DropoutDropsTheSameElements) {
  Twins test;
  const DropoutShape s = {.elements = 3000, .rate = 0.3f, .id = 7};
  const Twin x = test.random(3000), y = test.empty(3000);
  dropout(test.rank, s, 2, x.wide, y.wide);
  dropout(test.rank, inBFloat16(s), 2, x.narrow, y.narrow);
  EXPECT_EQ(test.got(y), test.rounded(y));
}

TEST(BFloat16, EmbeddingCopiesRowsAndSumsFloats) {
  Twins test;
  const EmbeddingShape s = {.rows = 5, .width = 9, .count = 4};
  const Twin table = test.random(45), y = test.empty(36), dy = test.random(36);
  const Buffer indices = test.bytes(32);
  const int64_t values[4] = {4, 1, 4, 4};
  setValues(test.rank, values, indices);
  embedding(test.rank, s, table.wide, indices, y.wide);
  embedding(test.rank, inBFloat16(s), table.narrow, indices, y.narrow);
  EXPECT_EQ(test.got(y), test.read(y.wide));
  const Buffer dtable = test.randomFloats(45), right = test.floats(45);
  copy(test.rank, dtable, right);
  embeddingBackward(test.rank, s, dy.wide, indices, right, true);
  embeddingBackward(test.rank, inBFloat16(s), dy.narrow, indices, dtable, true);
  EXPECT_EQ(test.read(dtable), test.read(right));
}
