//===- AttentionStrideTests.cpp - Rows before heads on CPUs ---------------===//

#include "test/unit/runtime/AttentionLayer.h"
#include "test/unit/runtime/OneRank.h"

#include <cstring>

using namespace pipewright::runtime;

namespace {
/// The operands and results of one attention, in one order of rows and heads.
struct Vectors {
  Buffer q, k, v, dO, o, stats, dq, dk, dv, dMask;
};
} // namespace

static std::vector<char> bytesOf(OneRank &test, Buffer buffer) {
  const char *data = test.rank.data<char>(buffer);
  return {data, data + buffer.bytes};
}

static Buffer holding(OneRank &test, const std::vector<char> &bytes) {
  const Buffer buffer = test.bytes(static_cast<int64_t>(bytes.size()));
  std::memcpy(test.rank.data<char>(buffer), bytes.data(), bytes.size());
  return buffer;
}

/// Operands with rows before heads, one by one and packed, against dense ones:
/// only addresses differ, so all bits are the same.
static void checkStrides(const AttentionLayer &layer) {
  const AttentionShape s = layer;
  OneRank test;
  const int64_t columns = s.columns ? s.columns : s.rows;
  const int64_t keyHeads = s.heads / s.group();
  const int64_t count = s.batch * s.heads * s.rows * s.depth;
  const int64_t keyCount = s.batch * keyHeads * columns * s.depth;
  const int64_t masks = s.maskBatch * s.maskHeads * s.maskRows * s.maskColumns;
  const Buffer mask = layer.isMasked() ? test.randomFloats(masks) : Buffer();
  // What is not written stays random.
  auto make = [&] {
    return Vectors{test.randomFloats(count),    test.randomFloats(keyCount),
                   test.randomFloats(keyCount), test.randomFloats(count),
                   test.randomFloats(count),    test.randomFloats(2 * count),
                   test.randomFloats(count),    test.randomFloats(keyCount),
                   test.randomFloats(keyCount), test.randomFloats(masks)};
  };
  auto byRows = [&](std::initializer_list<Buffer> parts) {
    std::vector<std::vector<char>> all;
    for (const Buffer part : parts)
      all.push_back(bytesOf(test, part));
    return interleaved(s, all[0].size() / (s.batch * s.rows * s.depth * 4),
                       s.rows, all);
  };
  auto byKeys = [&](Buffer part) {
    return interleaved(s, keyHeads, columns, {bytesOf(test, part)});
  };
  const Vectors dense = make();
  Vectors rows = make();
  rows.q = holding(test, byRows({dense.q}));
  rows.k = holding(test, byKeys(dense.k));
  rows.v = holding(test, byKeys(dense.v));
  rows.dO = holding(test, byRows({dense.dO}));
  AttentionShape strided = s;
  strided.inputStride = strided.outputStride = s.heads * s.depth;
  for (const auto &[shape, x] :
       {std::pair(s, dense), std::pair(strided, rows)}) {
    prepareAttention(test.rank, shape);
    attention(test.rank, shape, 1, x.q, x.k, x.v, mask, x.o, x.stats);
    attentionBackward(test.rank, shape, 1, x.dO, x.q, x.k, x.v, x.o, x.stats,
                      mask, x.dq, x.dk, x.dv, x.dMask);
  }
  auto statsOf = [&](Buffer stats) {
    return bytesOf(test, stats.at(0, 8 * s.batch * s.heads * s.rows));
  };
  EXPECT_EQ(bytesOf(test, rows.o), byRows({dense.o}));
  EXPECT_EQ(statsOf(rows.stats), statsOf(dense.stats));
  EXPECT_EQ(bytesOf(test, rows.dq), byRows({dense.dq}));
  EXPECT_EQ(bytesOf(test, rows.dk), byKeys(dense.dk));
  EXPECT_EQ(bytesOf(test, rows.dv), byKeys(dense.dv));
  if (s.maskGradient)
    EXPECT_EQ(bytesOf(test, rows.dMask), bytesOf(test, dense.dMask));
  if (s.columns || s.keyHeads)
    return;

  AttentionShape packed = strided;
  packed.inputStride *= 3;
  const Vectors x = make();
  const Buffer qkv = holding(test, byRows({dense.q, dense.k, dense.v}));
  const Buffer dqkv = test.randomFloats(3 * count);
  prepareAttention(test.rank, packed);
  packedAttention(test.rank, packed, 1, qkv, mask, x.o, x.stats);
  packedAttentionBackward(test.rank, packed, 1, rows.dO, qkv, x.o, x.stats,
                          mask, dqkv, x.dMask);
  EXPECT_EQ(bytesOf(test, x.o), byRows({dense.o}));
  EXPECT_EQ(statsOf(x.stats), statsOf(dense.stats));
  EXPECT_EQ(bytesOf(test, dqkv), byRows({dense.dq, dense.dk, dense.dv}));
}

TEST(AttentionStrides, RowsBeforeHeads) {
  // Whole vectors or not; a last block of few rows, or of its own.
  for (const int64_t depth : {16, 11})
    for (const int64_t rows : {1, 37, 65, 66, 79, 80, 200})
      for (const bool causal : {false, true})
        checkStrides(
            {.vectors = {2, 3, rows, depth}, .scale = 0.3f, .causal = causal});
}

TEST(AttentionStrides, KeysOfOtherNumbers) {
  checkStrides({.vectors = {2, 2, 20, 16}, .columns = 70, .scale = 0.3f});
  checkStrides({.vectors = {1, 2, 70, 64}, .columns = 1030, .scale = 0.1f});
  checkStrides({.vectors = {2, 4, 37, 16}, .causal = true, .keyHeads = 2});
  checkStrides({.vectors = {2, 6, 20, 8}, .columns = 70, .keyHeads = 1});
}

TEST(AttentionStrides, MasksBoundsAndDropout) {
  checkStrides({.vectors = {2, 2, 35, 8},
                .dropoutRate = 0.4f,
                .dropoutId = 9,
                .mask = {2, 1, 1, 35}});
  checkStrides({.vectors = {4, 2, 33, 16},
                .scale = 0.4f,
                .mask = {2, 2, 33, 33},
                .softcap = 2,
                .maskGradient = true});
}

TEST(AttentionStrides, SaysWhatItCannotReadBy) {
  OneRank test;
  const AttentionShape packed = AttentionLayer{
      .vectors = {1, 2, 8, 16}, .inputStride = 32, .outputStride = 32};
  const Buffer qkv = test.randomFloats(3 * 256);
  const Buffer o = test.floats(256), stats = test.floats(32);
  EXPECT_EQ(errorOf([&] {
              packedAttention(test.rank, packed, 0, qkv, Buffer(), o, stats);
            }),
            "packed attention expects rows of 3 x 2 x 16 elements and as many "
            "keys as rows, but got rows of 32");
  AttentionShape bf16 = packed;
  bf16.type = ElementType::BF16;
  EXPECT_EQ(errorOf([&] { prepareAttention(test.rank, bf16); }),
            "attention in bf16 on a CPU expects dense operands, heads before "
            "rows, but got strides of 32 and 32 elements, which it reads by in "
            "f32 only");
}
