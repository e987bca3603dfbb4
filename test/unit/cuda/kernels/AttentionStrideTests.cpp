//===- AttentionStrideTests.cpp - Rows before heads on GPUs ---------------===//

#include "test/unit/cuda/kernels/TwoRanks.h"
#include "test/unit/runtime/AttentionLayer.h"

#include <gmock/gmock.h>

using namespace pipewright::runtime;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// Operands with rows before heads, one by one and packed, against dense ones:
/// only addresses differ, so all bits are the same.
static std::string checkStrides(const AttentionLayer &layer,
                                const DeviceSettings &settings = {}) {
  const AttentionShape s = layer;
  TwoRanks test(16 << 20, Float32Mode::Full, settings);
  const int64_t keyHeads = s.heads / s.group();
  const int64_t count = s.batch * s.heads * s.rows * s.depth;
  const int64_t keyCount = count / s.group();
  Buffer dense[8], mask;
  for (int i = 0; i < 8; ++i) {
    const bool isOfKeys = i == 1 || i == 2 || i > 5;
    dense[i] = test.numbers(isOfKeys ? keyCount : count, s.type);
  }
  if (layer.isMasked())
    mask = test.floats(s.maskBatch * s.maskHeads * s.maskRows * s.maskColumns);
  const auto [q, k, v, dO, o, dq, dk, dv] = dense;
  auto before = [&](std::initializer_list<Buffer> buffers, int64_t heads) {
    std::vector<std::vector<char>> parts;
    for (const Buffer buffer : buffers) {
      const char *data = test.cpu.rank.data<char>(buffer);
      parts.emplace_back(data, data + buffer.bytes);
    }
    return test.values(interleaved(s, heads, s.rows, parts));
  };
  const Buffer rowsQ = before({q}, s.heads), rowsDO = before({dO}, s.heads);
  const Buffer rowsK = before({k}, keyHeads), rowsV = before({v}, keyHeads);
  const std::vector<float> zeros(2 * s.batch * s.heads * s.rows);
  const Buffer stats[3] = {test.values(zeros), test.values(zeros),
                           test.values(zeros)};
  // What is not written stays garbage.
  const Buffer rowsO = test.numbers(count, s.type);
  const Buffer rowsDq = test.numbers(count, s.type);
  const Buffer rowsDk = test.numbers(keyCount, s.type);
  const Buffer rowsDv = test.numbers(keyCount, s.type);
  // Thirds have as many heads each.
  const bool hasThirds = s.group() == 1;
  const Buffer qkv = hasThirds ? before({q, k, v}, s.heads) : Buffer();
  const Buffer packedO = test.numbers(count, s.type);
  const Buffer dqkv = test.numbers(3 * count, s.type);

  AttentionShape rows = s, packed = s;
  rows.outputStride = packed.outputStride = s.heads * s.depth;
  rows.inputStride = rows.outputStride;
  packed.inputStride = 3 * packed.outputStride;
  for (const AttentionShape &shape : {s, rows, packed})
    prepareAttention(*test.gpu, shape);
  test.runOnGpu([&](DeviceRank &rank) {
    attention(rank, s, 1, q, k, v, mask, o, stats[0]);
    attentionBackward(rank, s, 1, dO, q, k, v, o, stats[0], mask, dq, dk, dv);
    attention(rank, rows, 1, rowsQ, rowsK, rowsV, mask, rowsO, stats[1]);
    attentionBackward(rank, rows, 1, rowsDO, rowsQ, rowsK, rowsV, rowsO,
                      stats[1], mask, rowsDq, rowsDk, rowsDv);
    if (!hasThirds)
      return;
    packedAttention(rank, packed, 1, qkv, mask, packedO, stats[2]);
    packedAttentionBackward(rank, packed, 1, rowsDO, qkv, packedO, stats[2],
                            mask, dqkv);
  });
  auto expect = [&](const char *name, Buffer got, const Buffer &expected,
                    int64_t heads) {
    EXPECT_TRUE(test.onGpu(got) ==
                interleaved(s, heads, s.rows, {test.onGpu(expected)}))
        << name;
  };
  expect("o", rowsO, o, s.heads);
  expect("dq", rowsDq, dq, s.heads);
  expect("dk", rowsDk, dk, keyHeads);
  expect("dv", rowsDv, dv, keyHeads);
  EXPECT_TRUE(test.onGpu(stats[1]) == test.onGpu(stats[0]));
  if (!hasThirds)
    return test.gpu->remarks();
  expect("packed o", packedO, o, s.heads);
  EXPECT_TRUE(test.onGpu(dqkv) ==
              interleaved(s, s.heads, s.rows,
                          {test.onGpu(dq), test.onGpu(dk), test.onGpu(dv)}));
  EXPECT_TRUE(test.onGpu(stats[2]) == test.onGpu(stats[0]));
  return test.gpu->remarks();
}

TEST(DeviceAttentionStrides, RowsBeforeHeads) {
  // Vectors of 16 bytes or not, whole tiles or not.
  for (const int64_t depth : {16, 11})
    checkStrides({.vectors = {2, 3, 37, depth}, .scale = 0.3f, .causal = true});
  checkStrides({.vectors = {2, 2, 9, 8},
                .dropoutRate = 0.4f,
                .dropoutId = 9,
                .mask = {2, 1, 1, 9}});
}

TEST(DeviceAttentionStrides, RowsBeforeHeadsThatShareKeys) {
  for (const auto type : {ElementType::F32, ElementType::BF16})
    checkStrides({.vectors = {2, 4, 37, 16},
                  .scale = 0.3f,
                  .causal = true,
                  .type = type,
                  .keyHeads = 2});
}

TEST(DeviceAttentionStrides, Bf16RowsBeforeHeads) {
  AttentionLayer s = {.vectors = {4, 6, 32, 16},
                      .scale = 0.25f,
                      .causal = true,
                      .type = ElementType::BF16};
  EXPECT_THAT(checkStrides(s, {.attention = AttentionBy::Own}),
              HasSubstr("own kernels"));
  EXPECT_THAT(checkStrides(s, {.attention = AttentionBy::Cudnn}),
              ContainsRegex("cuDNN .*, engines [0-9]+ and [0-9]+\n"));
  // Two samples, some heads of one.
  const int64_t ofHead = 2 * 32 * 32;
  for (const int64_t heads : {12, 5})
    EXPECT_THAT(checkStrides(s, {.attention = AttentionBy::Cudnn,
                                 .attentionWorkspace = heads * ofHead + 256}),
                ContainsRegex("backward in [0-9]+ parts\n"));
  s.vectors[3] = 11;
  EXPECT_THAT(checkStrides(s), HasSubstr("own kernels"));
}

/// As BERT has it.
TEST(DeviceAttentionStrides, Bf16RowsBeforeHeadsWithMasks) {
  checkStrides({.vectors = {2, 2, 16, 16},
                .scale = 0.25f,
                .mask = {2, 1, 1, 16},
                .type = ElementType::BF16});
}

TEST(DeviceAttentionStrides, SaysWhichStridesItExpects) {
  const AttentionShape s = AttentionLayer{
      .vectors = {1, 2, 8, 16}, .inputStride = 32, .outputStride = 32};
  TwoRanks test;
  const Buffer qkv = test.floats(3 * 256);
  const Buffer o = test.floats(256), stats = test.floats(32);
  EXPECT_EQ(errorOf([&] {
              packedAttention(*test.gpu, s, 0, qkv, Buffer(), o, stats);
            }),
            "packed attention expects rows of 3 x 2 x 16 elements and as many "
            "keys as rows, but got rows of 32");
}
