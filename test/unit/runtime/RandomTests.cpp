//===- RandomTests.cpp - Philox and dropout -------------------------------===//

#include "test/unit/runtime/OneRank.h"

#include "runtime/cpu/RandomFactors.h"

using namespace pipewright::runtime;

// Known answers of the authors' own implementation (Random123, kat_vectors).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0, 0, 0),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                     0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, ~0u, ~0u, ~0u, ~0u),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                                     0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x243f6a88, 0x85a308d3, 0x13198a2e,
                   0x03707344),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420,
                                     0x24126ea1}));
}

// Element e of dropout `id` takes word e % 4 of the counter (e / 4, id,
// micro-batch, step).
TEST(Dropout, FollowsItsDefinition) {
  OneRank test;
  const Buffer x = test.randomFloats(1237), y = test.floats(1237);
  dropout(test.rank, {.elements = 1237, .rate = 0.25f, .id = 9}, 6, x, y);
  for (uint32_t e = 0; e < 1237; ++e) {
    const uint32_t word = philox(42, e / 4, 9, 6, 3)[e % 4];
    const float expected = word < 0x40000000u ? 0 : test.at(x)[e] * (1 / 0.75f);
    ASSERT_EQ(test.at(y)[e], expected) << e;
  }
}

TEST(Dropout, InPlaceAndWithThreads) {
  OneRank test;
  constexpr int64_t count = 200000;
  const Buffer x = test.randomFloats(count), y = test.floats(count);
  const DropoutShape shape = {.elements = count, .rate = 0.1f, .id = 1};
  dropout(test.rank, shape, 0, x, y);
  test.rank.setThreads(2);
  dropout(test.rank, shape, 0, x, x);
  EXPECT_EQ(test.read(x), test.read(y));
}

TEST(RandomFactors, AnyStartGivesTheSameNumbers) {
  const RandomStream stream = {7, 1, 2, 3};
  std::vector<float> all(300), part(300);
  randomFactors(stream, 0.5f, 0, 300, all.data());
  for (int64_t first : {1, 2, 3, 63, 64, 65}) {
    randomFactors(stream, 0.5f, first, 300 - first, part.data());
    for (int64_t i = 0; i < 300 - first; ++i)
      ASSERT_EQ(part[i], all[first + i]);
  }
}
