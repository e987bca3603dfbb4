//===- AttentionTests.cpp - Attention on GPUs -----------------------------===//

#include "test/unit/device/kernels/TwoRanks.h"

using namespace pipewright::runtime;

static void check(const AttentionShape &s, bool masked = false) {
  const double tolerance = s.type == ElementType::BF16 ? 8e-3 : 1e-5;
  TwoRanks test;
  const int64_t columns = s.columns ? s.columns : s.rows;
  const int64_t rowElements = s.batch * s.heads * s.rows * s.depth;
  const int64_t columnElements = s.batch * s.heads * columns * s.depth;
  const Buffer q = test.numbers(rowElements, s.type);
  const Buffer k = test.numbers(columnElements, s.type);
  const Buffer v = test.numbers(columnElements, s.type);
  const Buffer dO = test.numbers(rowElements, s.type);
  const Buffer mask =
      masked
          ? test.floats(s.maskBatch * s.maskHeads * s.maskRows * s.maskColumns)
          : Buffer{};
  const Buffer o = test.numbers(rowElements, s.type);
  const Buffer lse = test.floats(s.batch * s.heads * s.rows);
  const Buffer dq = test.numbers(rowElements, s.type);
  const Buffer dk = test.numbers(columnElements, s.type);
  const Buffer dv = test.numbers(columnElements, s.type);
  test.run([&](auto &rank) { prepareAttention(rank, s); },
           [&](auto &rank) {
             attention(rank, s, 1, q, k, v, mask, o, lse);
             attentionBackward(rank, s, 1, dO, q, k, v, o, lse, mask, dq, dk,
                               dv);
           });
  EXPECT_TRUE(test.near(o, s.type, tolerance)) << "o";
  EXPECT_TRUE(test.near(lse, ElementType::F32, tolerance)) << "lse";
  EXPECT_TRUE(test.near(dq, s.type, 2 * tolerance)) << "dq";
  EXPECT_TRUE(test.near(dk, s.type, 2 * tolerance)) << "dk";
  EXPECT_TRUE(test.near(dv, s.type, 2 * tolerance)) << "dv";
}

TEST(DeviceAttention, OddSizes) {
  check({.batch = 2, .heads = 2, .rows = 37, .depth = 11, .scale = 0.3f});
}

TEST(DeviceAttention, EveryLengthOfVectors) {
  for (const int64_t depth : {32, 33, 64, 100, 128, 200, 256})
    check({.batch = 1, .heads = 1, .rows = 20, .depth = depth, .scale = 0.1f});
}

TEST(DeviceAttention, CausalOverSeveralTiles) {
  check({.batch = 1,
         .heads = 2,
         .rows = 75,
         .depth = 16,
         .scale = 0.25f,
         .causal = true});
}

TEST(DeviceAttention, MoreKeysThanRowsAndFewer) {
  check({.batch = 1, .heads = 2, .rows = 5, .columns = 70, .depth = 8});
  check({.batch = 1, .heads = 1, .rows = 70, .columns = 5, .depth = 8});
  check({.batch = 1,
         .heads = 1,
         .rows = 70,
         .columns = 40,
         .depth = 8,
         .causal = true});
}

TEST(DeviceAttention, StretchedMasks) {
  check({.batch = 2,
         .heads = 2,
         .rows = 9,
         .depth = 8,
         .maskRows = 9,
         .maskColumns = 9},
        true);
  check({.batch = 2,
         .heads = 2,
         .rows = 9,
         .depth = 8,
         .maskBatch = 2,
         .maskColumns = 9},
        true);
  check({.batch = 2,
         .heads = 2,
         .rows = 9,
         .depth = 8,
         .maskHeads = 2,
         .maskRows = 9},
        true);
}

TEST(DeviceAttention, DropsWhatTheCpuDrops) {
  // Rows of a length that is, and is not, a multiple of four.
  for (const int64_t rows : {36, 37})
    check({.batch = 1,
           .heads = 2,
           .rows = rows,
           .depth = 8,
           .scale = 0.3f,
           .causal = true,
           .dropoutRate = 0.4f,
           .dropoutId = 9});
}

TEST(DeviceAttention, MaskThatHidesAWholeTile) {
  AttentionShape s = {.batch = 1,
                      .heads = 1,
                      .rows = 3,
                      .columns = 40,
                      .depth = 8,
                      .maskColumns = 40};
  TwoRanks test;
  std::vector<float> hidden(40, -std::numeric_limits<float>::infinity());
  hidden[35] = 0.5f;
  hidden[39] = 0;
  const Buffer q = test.floats(24), k = test.floats(320), v = test.floats(320);
  const Buffer mask = test.values(hidden), o = test.floats(24);
  const Buffer lse = test.floats(3);
  test.run([&](auto &rank) { prepareAttention(rank, s); },
           [&](auto &rank) { attention(rank, s, 0, q, k, v, mask, o, lse); });
  EXPECT_TRUE(test.near(o, ElementType::F32, 1e-5));
  EXPECT_TRUE(test.near(lse, ElementType::F32, 1e-5));
}

TEST(DeviceAttention, Bf16ByTensorCores) {
  for (const int64_t depth : {8, 11, 64, 100, 128, 200})
    check({.batch = 1,
           .heads = 2,
           .rows = 40,
           .depth = depth,
           .scale = 0.125f,
           .causal = true,
           .type = ElementType::BF16});
}

TEST(DeviceAttention, Bf16MasksAndOddSizes) {
  check({.batch = 2,
         .heads = 2,
         .rows = 37,
         .columns = 70,
         .depth = 16,
         .scale = 0.25f,
         .maskBatch = 2,
         .maskRows = 37,
         .maskColumns = 70,
         .type = ElementType::BF16},
        true);
}

TEST(DeviceAttention, Bf16DropsWhatTheCpuDrops) {
  for (const int64_t rows : {36, 37})
    check({.batch = 1,
           .heads = 2,
           .rows = rows,
           .depth = 16,
           .scale = 0.25f,
           .dropoutRate = 0.4f,
           .dropoutId = 9,
           .type = ElementType::BF16});
}

TEST(DeviceAttention, SaysWhichDepthIsTooLarge) {
  TwoRanks test;
  EXPECT_EQ(errorOf([&] {
              prepareAttention(
                  *test.gpu, {.batch = 1, .heads = 1, .rows = 8, .depth = 320});
            }),
            "attention over vectors of 320 elements: kernels for GPUs go to "
            "256");
}
