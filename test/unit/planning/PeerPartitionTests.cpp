//===- PeerPartitionTests.cpp - How others cut a chain of layers ----------===//
//
// Against vectors of a second implementation, which follows the published code
// line by line, and against all cuts.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/PeerPartitions.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

using namespace pipewright;

using Begins = std::vector<int64_t>;

static std::vector<double> sumsOf(const std::vector<double> &costs,
                                  const Begins &begins) {
  std::vector<double> sums;
  for (size_t part = 0; part < begins.size(); ++part)
    sums.push_back(std::accumulate(costs.begin() + begins[part],
                                   part + 1 < begins.size()
                                       ? costs.begin() + begins[part + 1]
                                       : costs.end(),
                                   0.0));
  return sums;
}

static double mostOf(const std::vector<double> &costs, const Begins &begins) {
  const std::vector<double> sums = sumsOf(costs, begins);
  return *std::max_element(sums.begin(), sums.end());
}

/// The least that the largest part can be, of all cuts.
static double leastMost(const std::vector<double> &costs, int64_t parts) {
  const auto layers = static_cast<int64_t>(costs.size());
  std::vector<bool> isBegin(layers - 1, false);
  std::fill(isBegin.end() - (parts - 1), isBegin.end(), true);
  double least = std::numeric_limits<double>::infinity();
  do {
    Begins begins = {0};
    for (int64_t i = 0; i < layers - 1; ++i)
      if (isBegin[i])
        begins.push_back(i + 1);
    least = std::min(least, mostOf(costs, begins));
  } while (std::next_permutation(isBegin.begin(), isBegin.end()));
  return least;
}

static bool areParts(const Begins &begins, int64_t layers, int64_t parts) {
  return static_cast<int64_t>(begins.size()) == parts && begins[0] == 0 &&
         begins.back() < layers &&
         std::adjacent_find(begins.begin(), begins.end(),
                            std::greater_equal<>()) == begins.end();
}

TEST(PeerPartitions, UniformGivesTheFirstPartsOneMore) {
  EXPECT_EQ(cutAsDeepSpeedUniform(10, 4), Begins({0, 3, 6, 8}));
  EXPECT_EQ(cutAsDeepSpeedUniform(8, 4), Begins({0, 2, 4, 6}));
  EXPECT_EQ(cutAsDeepSpeedUniform(3, 3), Begins({0, 1, 2}));
}

TEST(PeerPartitions, TheCheapestLayerCountsAsNone) {
  // In two: 8 and 17 in place of 12 and 13.
  EXPECT_EQ(cutAsTorchgpipe({4, 4, 4, 4, 9}, 2), Begins({0, 2}));
  // All alike: the last part has what is over.
  EXPECT_EQ(cutAsTorchgpipe({5, 5, 5, 5, 5}, 3), Begins({0, 1, 2}));
  EXPECT_EQ(cutAsTorchgpipe({1, 2, 3, 4, 5, 6}, 2), Begins({0, 4}));
}

TEST(PeerPartitions, AreThoseOfASecondImplementation) {
  struct Case {
    std::vector<double> costs;
    int64_t parts;
    Begins deepSpeed, torchgpipe;
  };
  const Case cases[] = {
      {{12, 17, 1, 15, 8, 2, 6, 4, 12, 16, 8, 13, 18, 4},
       4,
       {0, 3, 8, 11},
       {0, 3, 6, 10}},
      {{1, 7, 14, 9, 6, 13, 6, 3, 5, 20, 20, 15, 5, 5},
       3,
       {0, 5, 10},
       {0, 5, 10}},
      {{7, 7, 6, 6, 10}, 2, {0, 3}, {0, 2}},
      {{18, 7, 6, 7, 13, 10, 1, 12, 14, 6}, 3, {0, 3, 7}, {0, 3, 6}},
      {{3, 11, 10, 20, 19, 1, 20}, 4, {0, 3, 4, 6}, {0, 2, 4, 5}},
      {{10, 12, 10, 16, 11, 6, 16, 16, 6, 2}, 2, {0, 4}, {0, 5}},
      {{12, 13, 1, 18, 14, 12, 13, 19, 1}, 2, {0, 5}, {0, 4}},
      {{6, 20, 7, 4, 8, 15, 12, 17, 12, 17, 9, 15}, 2, {0, 7}, {0, 7}},
      {{10, 2, 14, 3, 7, 11}, 4, {0, 2, 3, 5}, {0, 1, 3, 5}},
      {{5, 11, 9, 18, 3, 10, 11, 10, 6, 3, 5, 10, 16},
       4,
       {0, 3, 6, 10},
       {0, 3, 6, 9}},
  };
  for (const Case &one : cases) {
    EXPECT_EQ(cutAsDeepSpeedBalanced(one.costs, one.parts), one.deepSpeed);
    EXPECT_EQ(cutAsTorchgpipe(one.costs, one.parts), one.torchgpipe);
  }
}

TEST(PeerPartitions, TorchgpipeMayLeaveAPartEmpty) {
  EXPECT_TRUE(cutAsTorchgpipe({3, 3, 3, 8, 10, 6}, 5).empty());
}

TEST(PeerPartitions, OfEqualCutsTheLatest) {
  EXPECT_EQ(cutAsDeepSpeedBalanced({1, 0, 1}, 2), Begins({0, 2}));
  EXPECT_EQ(cutAsDeepSpeedBalanced({1, 1, 1, 1, 1}, 2), Begins({0, 3}));
}

TEST(PeerPartitions, AreNearTheBestButNotIt) {
  std::mt19937 random(11);
  int64_t exact[2] = {0, 0}, none = 0;
  double worst[2] = {1, 1};
  const int64_t rounds = 400;
  for (int64_t round = 0; round < rounds; ++round) {
    const int64_t layers = 3 + random() % 9;
    const int64_t parts = 2 + random() % std::min<int64_t>(layers - 2, 4);
    std::vector<double> costs(layers);
    for (double &cost : costs)
      cost = 1 + random() % 9;
    const double least = leastMost(costs, parts);
    const Begins cuts[2] = {cutAsDeepSpeedBalanced(costs, parts),
                            cutAsTorchgpipe(costs, parts)};
    for (int i : {0, 1}) {
      if (i == 1 && cuts[i].empty()) {
        ++none;
        continue;
      }
      ASSERT_TRUE(areParts(cuts[i], layers, parts));
      const double ratio = mostOf(costs, cuts[i]) / least;
      exact[i] += ratio == 1;
      worst[i] = std::max(worst[i], ratio);
    }
  }
  // DeepSpeed's is mostly the best one, torchgpipe's about every other time.
  EXPECT_GT(exact[0], rounds * 8 / 10);
  EXPECT_LT(exact[0], rounds);
  EXPECT_GT(exact[1], rounds * 3 / 10);
  EXPECT_LT(exact[1], rounds * 8 / 10);
  EXPECT_LT(worst[0], 1.5);
  EXPECT_LT(worst[1], 2);
  EXPECT_GT(worst[1], 1.2);
  EXPECT_LT(none, rounds / 20);
}
