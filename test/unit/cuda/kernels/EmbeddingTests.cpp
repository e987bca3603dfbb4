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

TEST(DeviceEmbedding, ThePaddingRowHasNoGradient) {
  check({.rows = 20, .width = 16, .count = 90, .paddingRow = 0});
  check({.rows = 20, .width = 9, .count = 90, .paddingRow = 3});
}

TEST(DeviceEmbedding, Bf16RowsWithFloatGradients) {
  check({.rows = 50, .width = 64, .count = 300, .type = ElementType::BF16});
  check({.rows = 20, .width = 9, .count = 90, .type = ElementType::BF16});
  check({.rows = 20, .width = 8, .count = 90, .type = ElementType::BF16}, 1);
}

/// What a step says whose body is `call`; "" if nothing is wrong.
template <class Call>
static std::string messageOf(TwoRanks &test, const Call &call) {
  try {
    test.runOnGpu(call);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

// The double ends a run at any access outside of its allocation; beside that,
// what lies around the table stays as it was.
TEST(DeviceEmbedding, RowsThatTheTableHasNotAreRefused) {
  const EmbeddingShape s = {.rows = 7, .width = 20, .count = 300};
  for (const int64_t index :
       {int64_t{-1}, int64_t{7}, INT64_MAX, INT64_MIN, int64_t{1} << 40}) {
    TwoRanks test;
    const Buffer table = test.floats(s.rows * s.width);
    const Buffer dy = test.floats(s.count * s.width);
    std::vector<int64_t> rows = someIndices(s.count, s.rows);
    rows[271] = index;
    const Buffer indices = test.values(rows);
    const Buffer y = test.floats(s.count * s.width);
    const Buffer before = test.floats(64);
    const Buffer gradient = test.floats(s.rows * s.width);
    const Buffer behind = test.floats(64);
    prepareEmbeddingBackward(*test.gpu, s);
    EXPECT_EQ(messageOf(test,
                        [&](DeviceRank &rank) {
                          embedding(rank, s, table, indices, y);
                          embeddingBackward(rank, s, dy, indices, gradient);
                        }),
              "the model looks up row " + std::to_string(index) +
                  " of a table with 7 rows");
    EXPECT_TRUE(test.same(before));
    EXPECT_TRUE(test.same(behind));
    EXPECT_TRUE(test.same(table));
  }
}

TEST(DeviceLabels, OthersThanClassesAndTheIgnoredOneAreRefused) {
  for (const auto &[label, message] :
       std::vector<std::pair<int64_t, std::string>>{
           {9, ""},
           {-100, ""},
           {10, "the model makes label 10 for a loss with 10 classes"},
           {-1, "the model makes label -1 for a loss with 10 classes"}}) {
    TwoRanks test;
    std::vector<int64_t> some(300, 3);
    some[299] = label;
    const Buffer labels = test.values(some);
    EXPECT_EQ(messageOf(test,
                        [&, labels](DeviceRank &rank) {
                          checkLabels(
                              rank,
                              {.count = 300, .classes = 10, .ignored = -100},
                              labels);
                        }),
              message);
  }
}

// The label comes one run later through each of two buffers that runs do not
// write anew: it is there when the task is replayed from its graph.
TEST(DeviceLabels, ReplaysOfAGraphRefuseToo) {
  TwoRanks test;
  const Buffer wrong = test.values(std::vector<int64_t>{12});
  const Buffer next = test.cpu.bytes(8), labels = test.cpu.bytes(8);
  EXPECT_EQ(messageOf(test,
                      [&](DeviceRank &rank) {
                        checkLabels(rank, {.count = 1, .classes = 10}, labels);
                        copy(rank, next, labels);
                        copy(rank, wrong, next);
                      }),
            "the model makes label 12 for a loss with 10 classes");
  EXPECT_EQ(test.gpu->graphs(), 1);
}
