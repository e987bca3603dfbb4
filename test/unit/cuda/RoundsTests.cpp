//===- RoundsTests.cpp - What can be connected at the same time -----------===//

#include "runtime/cuda/Rounds.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

using namespace pipewright::runtime;

using Lists = std::vector<std::vector<int64_t>>;
using Numbers = std::vector<int64_t>;

/// Both ways between neighbours, rank by rank.
static Lists neighbours(int64_t ranks) {
  Lists links;
  for (int64_t r = 0; r < ranks; ++r) {
    if (r > 0)
      links.push_back({r, r - 1});
    if (r + 1 < ranks)
      links.push_back({r, r + 1});
  }
  return links;
}

static int64_t countOf(const Numbers &rounds) {
  return 1 + *std::max_element(rounds.begin(), rounds.end());
}

TEST(Rounds, OfNeighboursAreFourHoweverManyRanksThereAre) {
  EXPECT_EQ(assignRounds(neighbours(5)), (Numbers{0, 1, 2, 3, 0, 1, 2, 3}));
  for (const int64_t ranks : {3, 64, 1000})
    EXPECT_EQ(countOf(assignRounds(neighbours(ranks))), 4);
}

TEST(Rounds, HaveEachRankOnce) {
  Lists groups = neighbours(16);
  for (int64_t r = 0; r < 8; ++r)
    groups.push_back({r, 15 - r});
  for (int64_t r = 0; r < 4; ++r)
    groups.push_back({r, r + 4, r + 8, r + 12});
  const Numbers rounds = assignRounds(groups);
  std::set<std::pair<int64_t, int64_t>> seen;
  for (size_t i = 0; i < groups.size(); ++i)
    for (const int64_t rank : groups[i])
      EXPECT_TRUE(seen.insert({rounds[i], rank}).second);
  // A rank is in six groups at most.
  EXPECT_LE(countOf(rounds), 11);
}

TEST(Rounds, OfNothingAreNone) {
  EXPECT_EQ(assignRounds({}), Numbers());
  EXPECT_EQ(assignRounds({{0, 1}, {}, {1, 0}, {}}), (Numbers{0, 0, 1, 0}));
}
