//===- AttentionTests.cpp - Attention on GPUs -----------------------------===//

#include "test/unit/cuda/kernels/TwoRanks.h"
#include "test/unit/runtime/AttentionLayer.h"

#include <gmock/gmock.h>

using namespace pipewright::runtime;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

/// Compares with the CPU what the kernels that `settings` ask for compute.
/// Returns what they say about themselves.
static std::string check(const AttentionLayer &layer,
                         const DeviceSettings &settings = {},
                         const std::vector<float> &maskValues = {}) {
  const AttentionShape s = layer;
  const double tolerance = s.type == ElementType::BF16 ? 8e-3 : 1e-5;
  TwoRanks test(16 << 20, Float32Mode::Full, settings);
  const int64_t columns = s.columns ? s.columns : s.rows;
  const int64_t rowElements = s.batch * s.heads * s.rows * s.depth;
  const int64_t columnElements =
      s.batch * s.heads / s.group() * columns * s.depth;
  const Buffer q = test.numbers(rowElements, s.type);
  const Buffer k = test.numbers(columnElements, s.type);
  const Buffer v = test.numbers(columnElements, s.type);
  const Buffer dO = test.numbers(rowElements, s.type);
  const Buffer mask =
      !maskValues.empty() ? test.values(maskValues)
      : layer.isMasked()
          ? test.floats(s.maskBatch * s.maskHeads * s.maskRows * s.maskColumns)
          : Buffer{};
  const Buffer o = test.numbers(rowElements, s.type);
  const Buffer stats = test.floats(2 * s.batch * s.heads * s.rows);
  const Buffer dq = test.numbers(rowElements, s.type);
  const Buffer dk = test.numbers(columnElements, s.type);
  const Buffer dv = test.numbers(columnElements, s.type);
  const Buffer dMask = s.maskGradient ? test.floats(mask.bytes / 4) : Buffer();
  test.run([&](auto &rank) { prepareAttention(rank, s); },
           [&](auto &rank) {
             attention(rank, s, 1, q, k, v, mask, o, stats);
             attentionBackward(rank, s, 1, dO, q, k, v, o, stats, mask, dq, dk,
                               dv, dMask);
           });
  SCOPED_TRACE(test.gpu->remarks());
  EXPECT_TRUE(test.near(o, s.type, tolerance)) << "o";
  // cuDNN keeps what it likes there.
  if (settings.attention != AttentionBy::Cudnn)
    EXPECT_TRUE(test.near(stats, ElementType::F32, tolerance)) << "stats";
  EXPECT_TRUE(test.near(dq, s.type, 2 * tolerance)) << "dq";
  EXPECT_TRUE(test.near(dk, s.type, 2 * tolerance)) << "dk";
  EXPECT_TRUE(test.near(dv, s.type, 2 * tolerance)) << "dv";
  if (s.maskGradient)
    EXPECT_TRUE(test.near(dMask, ElementType::F32, 2 * tolerance)) << "dMask";
  return test.gpu->remarks();
}

/// By cuDNN and by our own kernels, at the same tolerance.
static void checkBoth(const AttentionLayer &s) {
  EXPECT_THAT(check(s, {.attention = AttentionBy::Cudnn}),
              HasSubstr(": cuDNN "));
  EXPECT_THAT(check(s, {.attention = AttentionBy::Own}),
              HasSubstr(": own kernels, because of --attention own"));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

TEST(DeviceAttention, OddSizes) {
  check({.vectors = {2, 2, 37, 11}, .scale = 0.3f});
}

TEST(DeviceAttention, EveryLengthOfVectors) {
  for (const int64_t depth : {32, 33, 64, 100, 128, 200, 256})
    check({.vectors = {1, 1, 20, depth}, .scale = 0.1f});
}

TEST(DeviceAttention, CausalOverSeveralTiles) {
  check({.vectors = {1, 2, 75, 16}, .scale = 0.25f, .causal = true});
}

TEST(DeviceAttention, MoreKeysThanRowsAndFewer) {
  check({.vectors = {1, 2, 5, 8}, .columns = 70});
  check({.vectors = {1, 1, 70, 8}, .columns = 5});
  check({.vectors = {1, 1, 70, 8}, .columns = 40, .causal = true});
}

TEST(DeviceAttention, HeadsThatShareKeys) {
  check({.vectors = {2, 4, 37, 8}, .columns = 40, .keyHeads = 2});
  check({.vectors = {1, 3, 1, 8}, .columns = 9, .keyHeads = 1});
  check({.vectors = {2, 3, 33, 16},
         .scale = 0.25f,
         .causal = true,
         .dropoutRate = 0.4f,
         .dropoutId = 9,
         .mask = {2, 3, 1, 33},
         .keyHeads = 1});
}

TEST(DeviceAttention, BoundedScores) {
  for (const float softcap : {0.05f, 0.7f, 50.0f})
    check({.vectors = {2, 2, 37, 11},
           .scale = 0.5f,
           .causal = true,
           .mask = {1, 2, 37, 1},
           .softcap = softcap});
}

TEST(DeviceAttention, GradientsOfMasks) {
  for (const auto &[samples, heads] :
       {std::pair(1, 4), std::pair(2, 1), std::pair(1, 1), std::pair(2, 4)})
    check({.vectors = {2, 4, 37, 8},
           .mask = {samples, heads, 37, 37},
           .keyHeads = 2,
           .maskGradient = true});
  for (const int64_t heads : {1, 2})
    check({.vectors = {6, 2, 20, 8},
           .mask = {3, heads, 20, 20},
           .maskGradient = true});
  check({.vectors = {2, 1, 20, 100},
         .columns = 33,
         .scale = 0.25f,
         .causal = true,
         .dropoutRate = 0.4f,
         .dropoutId = 9,
         .mask = {1, 1, 20, 33},
         .softcap = 2,
         .maskGradient = true});
}

TEST(DeviceAttention, StretchedMasks) {
  check({.vectors = {2, 2, 9, 8}, .mask = {1, 1, 9, 9}});
  check({.vectors = {2, 2, 9, 8}, .mask = {2, 1, 1, 9}});
  check({.vectors = {2, 2, 9, 8}, .mask = {1, 2, 9, 1}});
  check({.vectors = {6, 2, 9, 8}, .mask = {3, 1, 9, 9}});
}

TEST(DeviceAttention, DropsWhatTheCpuDrops) {
  // Rows of a length that is, and is not, a multiple of four.
  for (const int64_t rows : {36, 37})
    check({.vectors = {1, 2, rows, 8},
           .scale = 0.3f,
           .causal = true,
           .dropoutRate = 0.4f,
           .dropoutId = 9});
}

TEST(DeviceAttention, MaskThatHidesAWholeTile) {
  const AttentionShape s = AttentionLayer{
      .vectors = {1, 1, 3, 8}, .columns = 40, .mask = {1, 1, 1, 40}};
  TwoRanks test;
  std::vector<float> hidden(40, -std::numeric_limits<float>::infinity());
  hidden[35] = 0.5f;
  hidden[39] = 0;
  const Buffer q = test.floats(24), k = test.floats(320), v = test.floats(320);
  const Buffer mask = test.values(hidden), o = test.floats(24);
  const Buffer stats = test.floats(6);
  test.run([&](auto &rank) { prepareAttention(rank, s); },
           [&](auto &rank) { attention(rank, s, 0, q, k, v, mask, o, stats); });
  EXPECT_TRUE(test.near(o, ElementType::F32, 1e-5));
  EXPECT_TRUE(test.near(stats, ElementType::F32, 1e-5));
}

/// The first rows see nothing, or all columns alike, by what models write into
/// masks.
class HiddenRows : public ::testing::TestWithParam<float> {
protected:
  HiddenRows() : mask(12 * 70) {
    for (size_t i = 0; i < mask.size(); ++i)
      mask[i] = i / 70 < 5 || i % 70 > 60 ? GetParam() : 0;
  }

  AttentionLayer s = {.vectors = {1, 1, 12, 16},
                      .columns = 70,
                      .scale = 0.25f,
                      .mask = {1, 1, 12, 70}};
  std::vector<float> mask;
};

TEST_P(HiddenRows, InFloats) {
  EXPECT_THAT(check(s, {}, mask), HasSubstr(": own kernels"));
}

static std::vector<float> widened(const std::vector<char> &narrow) {
  std::vector<float> values;
  for (size_t at = 0; at < narrow.size(); at += 2) {
    uint16_t bits;
    std::memcpy(&bits, &narrow[at], 2);
    values.push_back(std::bit_cast<float>(uint32_t{bits} << 16));
  }
  return values;
}

/// Against floats on the CPU, which need not know bf16.
TEST_P(HiddenRows, InBf16) {
  TwoRanks test;
  // q, k, v, dO, o, dq, dk, dv
  Buffer narrow[8], floats[8];
  for (int i = 0; i < 8; ++i) {
    const bool isOfRows = i == 0 || (i > 2 && i < 6);
    narrow[i] = test.narrow((isOfRows ? 12 : 70) * 16);
    const char *data = test.cpu.rank.data<char>(narrow[i]);
    floats[i] = test.values(widened({data, data + narrow[i].bytes}));
  }
  const Buffer added = test.values(mask), stats = test.floats(24);
  auto run = [&](auto &rank, const AttentionShape &shape, const Buffer *b) {
    attention(rank, shape, 1, b[0], b[1], b[2], added, b[4], stats);
    attentionBackward(rank, shape, 1, b[3], b[0], b[1], b[2], b[4], stats,
                      added, b[5], b[6], b[7]);
  };
  AttentionShape inBf16 = s;
  inBf16.type = ElementType::BF16;
  prepareAttention(test.cpu.rank, s);
  run(test.cpu.rank, s, floats);
  prepareAttention(*test.gpu, inBf16);
  test.runOnGpu([&](DeviceRank &rank) { run(rank, inBf16, narrow); });
  for (int i = 4; i < 8; ++i)
    EXPECT_TRUE(
        agree(widened(test.onGpu(narrow[i])), test.cpu.read(floats[i]), 1.6e-2))
        << "result " << i;
}

INSTANTIATE_TEST_SUITE_P(
    DeviceAttention, HiddenRows,
    ::testing::Values(-1e4f, -1e9f, -std::numeric_limits<float>::max(),
                      -std::numeric_limits<float>::infinity()));

using DeviceAttentionInBf16 = BFloat16Products;

TEST_F(DeviceAttentionInBf16, EveryLengthOfVectors) {
  for (const int64_t depth : {8, 64, 128, 200})
    checkBoth({.vectors = {1, 2, 40, depth},
               .scale = 0.125f,
               .causal = true,
               .type = ElementType::BF16});
}

TEST_F(DeviceAttentionInBf16, OverSeveralTiles) {
  for (const int64_t depth : {16, 64, 128}) {
    const AttentionLayer s = {.vectors = {1, 2, 150, depth},
                              .scale = 0.125f,
                              .causal = true,
                              .type = ElementType::BF16};
    checkBoth(s);
    AttentionLayer dropping = s;
    dropping.causal = false;
    dropping.dropoutRate = 0.4f;
    dropping.dropoutId = 9;
    EXPECT_THAT(check(dropping), HasSubstr("own kernels"));
  }
}

TEST_F(DeviceAttentionInBf16, NotCausalMoreKeysThanRowsAndFewer) {
  checkBoth({.vectors = {2, 2, 5, 16},
             .columns = 70,
             .scale = 0.25f,
             .type = ElementType::BF16});
  checkBoth({.vectors = {1, 1, 70, 8},
             .columns = 37,
             .causal = true,
             .type = ElementType::BF16});
}

TEST_F(DeviceAttentionInBf16, MultiplesOf128Keys) {
  const auto expectCudnn = [](const AttentionLayer &layer) {
    EXPECT_THAT(check(layer, {.attention = AttentionBy::Cudnn}),
                HasSubstr(": cuDNN "));
  };
  for (const int64_t rows : {128, 256})
    expectCudnn({.vectors = {1, 2, rows, 64},
                 .scale = 0.125f,
                 .causal = true,
                 .type = ElementType::BF16});
  expectCudnn({.vectors = {2, 1, 70, 64},
               .columns = 128,
               .scale = 0.125f,
               .type = ElementType::BF16});
}

TEST_F(DeviceAttentionInBf16, HeadsThatShareKeys) {
  EXPECT_THAT(check({.vectors = {2, 4, 70, 16},
                     .scale = 0.25f,
                     .causal = true,
                     .type = ElementType::BF16,
                     .keyHeads = 2}),
              HasSubstr("attention  2x4(2)x70x16 bf16 causal: own kernels, "
                        "because several heads of q read one of k and v"));
}

TEST_F(DeviceAttentionInBf16, BoundedScoresAndGradientsOfMasks) {
  for (const auto &[rows, depth] : {std::pair<int64_t, int64_t>(70, 16),
                                    std::pair<int64_t, int64_t>(20, 100),
                                    std::pair<int64_t, int64_t>(12, 200)})
    EXPECT_THAT(check({.vectors = {2, 2, rows, depth},
                       .scale = 0.25f,
                       .causal = true,
                       .mask = {1, 2, rows, rows},
                       .type = ElementType::BF16,
                       .softcap = 1.5f,
                       .maskGradient = true}),
                HasSubstr("because its scores are bounded"));
  EXPECT_THAT(check({.vectors = {2, 4, 37, 16},
                     .mask = {2, 1, 37, 37},
                     .type = ElementType::BF16,
                     .keyHeads = 4,
                     .maskGradient = true}),
              HasSubstr("because cuDNN's gradients are wrong where there is a "
                        "mask"));
}

TEST_F(DeviceAttentionInBf16, MasksAndOddSizes) {
  const auto expectOwn = [](const AttentionLayer &layer) {
    EXPECT_THAT(check(layer),
                HasSubstr("own kernels, because cuDNN's gradients are wrong "
                          "where there is a mask"));
  };
  expectOwn({.vectors = {2, 2, 37, 16},
             .columns = 70,
             .scale = 0.25f,
             .mask = {2, 1, 37, 70},
             .type = ElementType::BF16});
  // As BERT has it.
  expectOwn({.vectors = {2, 2, 16, 16},
             .scale = 0.25f,
             .mask = {2, 1, 1, 16},
             .type = ElementType::BF16});
}

/// Two samples at once; some heads of one. How many depends on what an engine
/// wants for each.
static const AttentionLayer inParts = {.vectors = {4, 6, 32, 16},
                                       .scale = 0.25f,
                                       .causal = true,
                                       .type = ElementType::BF16};

static DeviceSettings workspaceFor(int64_t heads) {
  return {.attention = AttentionBy::Cudnn,
          .attentionWorkspace = heads * 2 * 32 * 32 + 256};
}

TEST_F(DeviceAttentionInBf16, BatchesGoInPartsWhereWorkspaceIsScarce) {
  for (const int64_t heads : {12, 5})
    EXPECT_THAT(check(inParts, workspaceFor(heads)),
                ContainsRegex(", backward in [0-9]+ parts"));
}

TEST_F(DeviceAttentionInBf16, PartsOfTheDouble) {
  EXPECT_THAT(check(inParts, workspaceFor(12)),
              HasSubstr(", backward in 2 parts"));
  EXPECT_THAT(check(inParts, workspaceFor(5)),
              HasSubstr(", backward in 8 parts"));
}

TEST(DeviceAttention, SaysWhyCudnnDoesNotTakeIt) {
  const AttentionShape s =
      AttentionLayer{.vectors = {1, 2, 8, 16}, .type = ElementType::BF16};
  auto remark = [](const AttentionShape &shape,
                   const DeviceSettings &settings = {}) {
    TwoRanks test(16 << 20, Float32Mode::Full, settings);
    prepareAttention(*test.gpu, shape);
    // Shapes that several layers share are said once.
    prepareAttention(*test.gpu, shape);
    return test.gpu->remarks();
  };
  EXPECT_THAT(remark(s),
              MatchesRegex("attention  1x2x8x16 bf16: cuDNN [0-9.]+, engines "
                           "[0-9]+ and [0-9]+\n"));
  AttentionShape other = s;
  other.type = ElementType::F32;
  EXPECT_EQ(remark(other), "attention  1x2x8x16 f32: own kernels, because "
                           "cuDNN has no backward pass in f32\n");
  other = s;
  other.dropoutRate = 0.1f;
  EXPECT_EQ(remark(other),
            "attention  1x2x8x16 bf16: own kernels, because cuDNN draws other "
            "random numbers for dropout\n");
  other = s;
  other.depth = 11;
  EXPECT_THAT(remark(other),
              MatchesRegex("attention  1x2x8x11 bf16: own kernels, because "
                           "cuDNN [0-9.]+: no engine knows it\n"));
  EXPECT_THAT(remark(s, {.attentionWorkspace = 100}),
              MatchesRegex("attention  1x2x8x16 bf16: own kernels, because "
                           ".* 100.*\n"));
}

TEST(DeviceAttention, FailsWhereCudnnIsInsistedOn) {
  TwoRanks test(16 << 20, Float32Mode::Full, {.attention = AttentionBy::Cudnn});
  EXPECT_EQ(errorOf([&] {
              prepareAttention(*test.gpu,
                               AttentionLayer{.vectors = {1, 2, 8, 16},
                                              .columns = 9,
                                              .causal = true});
            }),
            "--attention cudnn: attention over 1x2x8(9)x16 f32 causal is not "
            "possible by cuDNN (cuDNN has no backward pass in f32); "
            "--attention auto uses own kernels there");
}

TEST_F(DeviceAttentionInBf16, DropsWhatTheCpuDrops) {
  for (const int64_t rows : {36, 37})
    check({.vectors = {1, 2, rows, 16},
           .scale = 0.25f,
           .dropoutRate = 0.4f,
           .dropoutId = 9,
           .type = ElementType::BF16});
}

TEST_F(DeviceAttentionInBf16, OddLengthsOfVectors) {
  for (const int64_t depth : {11, 100})
    EXPECT_THAT(check({.vectors = {1, 2, 40, depth},
                       .scale = 0.125f,
                       .causal = true,
                       .type = ElementType::BF16}),
                HasSubstr("own kernels"));
}

TEST(DeviceAttention, SaysWhichDepthIsTooLarge) {
  TwoRanks test;
  EXPECT_EQ(errorOf([&] {
              prepareAttention(*test.gpu,
                               AttentionLayer{.vectors = {1, 1, 8, 320}});
            }),
            "attention over vectors of 320 elements: kernels for GPUs go to "
            "256");
}
