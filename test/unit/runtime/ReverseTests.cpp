//===- ReverseTests.cpp - Rows in reverse order ---------------------------===//

#include "test/unit/runtime/OneRank.h"

using namespace pipewright::runtime;

TEST(Reverse, MovesWholeRows) {
  OneRank test;
  const Buffer x = test.randomFloats(3 * 2), y = test.floats(3 * 2);
  reverseRows(test.rank, {.rows = 3, .width = 2}, x, y);
  const std::vector<float> in = test.read(x), out = test.read(y);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(out[i], in[(2 - i / 2) * 2 + i % 2]);
}

TEST(Reverse, Bf16HasRowsOfHalfTheBytes) {
  OneRank test;
  const Buffer x = test.bytes(3 * 2), y = test.bytes(3 * 2);
  for (int16_t i = 0; i < 3; ++i)
    test.rank.data<int16_t>(x)[i] = i;
  reverseRows(test.rank, {.rows = 3, .width = 1, .type = ElementType::BF16}, x,
              y);
  for (int16_t i = 0; i < 3; ++i)
    EXPECT_EQ(test.rank.data<int16_t>(y)[i], 2 - i);
}
