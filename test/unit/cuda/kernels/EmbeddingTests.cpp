//===- EmbeddingTests.cpp - Rows of a table on GPUs -----------------------===//

#include "test/unit/cuda/kernels/TwoRanks.h"

using namespace pipewright::runtime;

/// Indices as a text has them: a few rows often, most never.
static std::vector<int64_t> someIndices(int64_t count, int64_t rows) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = philox(1, i, 0, 0, 0)[0];
    indices.push_back(word % 3 ? word / 3 % std::min<int64_t>(rows, 4)
                               : word / 3 % rows);
  }
  return indices;
}

static void check(EmbeddingShape s, int64_t shift = 0) {
  TwoRanks test;
  const int64_t width = byteWidth(s.type);
  const Buffer table = TwoRanks::odd(
      test.numbers(s.rows * s.width + shift, s.type), shift * width);
  const Buffer dy = TwoRanks::odd(
      test.numbers(s.count * s.width + shift, s.type), shift * width);
  const Buffer indices = test.values(someIndices(s.count, s.rows));
  const Buffer y = test.numbers(s.count * s.width, s.type);
  const Buffer written = test.floats(s.rows * s.width);
  const Buffer added = test.floats(s.rows * s.width);
  test.run(
      [&](auto &rank) {
        if constexpr (std::is_same_v<decltype(rank), DeviceRank &>)
          prepareEmbeddingBackward(rank, s);
      },
      [&](auto &rank) {
        embedding(rank, s, table, indices, y);
        embeddingBackward(rank, s, dy, indices, written);
        embeddingBackward(rank, s, dy, indices, added, true);
      });
  EXPECT_TRUE(test.same(y));
  EXPECT_TRUE(test.same(written));
  EXPECT_TRUE(test.same(added));
}

TEST(DeviceEmbedding, WidthsOfWholePacks) {
  check({.rows = 50, .width = 64, .count = 300});
  check({.rows = 7, .width = 260, .count = 20});
}

TEST(DeviceEmbedding, OddWidths) {
  check({.rows = 33, .width = 1, .count = 100});
  check({.rows = 33, .width = 7, .count = 100});
  check({.rows = 20, .width = 65, .count = 70});
}

TEST(DeviceEmbedding, PartsOfBuffers) {
  check({.rows = 12, .width = 8, .count = 40}, 1);
}

TEST(DeviceEmbedding, MoreRowsThanOneBlockScans) {
  check({.rows = 3001, .width = 4, .count = 513});
}

TEST(DeviceEmbedding, OneRowForAll) {
  check({.rows = 1, .width = 16, .count = 200});
}

TEST(DeviceEmbedding, Bf16RowsWithFloatGradients) {
  check({.rows = 50, .width = 64, .count = 300, .type = ElementType::BF16});
  check({.rows = 20, .width = 9, .count = 90, .type = ElementType::BF16});
  check({.rows = 20, .width = 8, .count = 90, .type = ElementType::BF16}, 1);
}
