//===- KeptValueTests.cpp - What a backward keeps of its forward ----------===//
//
// Choices are compared with all sets of values that could be kept.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/KeptValues.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

using namespace pipewright;

namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// Seconds to have all needed values again where only these are kept; none
/// where they cannot be had.
std::optional<double> secondsWith(const ForwardGraph &graph,
                                  const std::vector<bool> &isKept) {
  std::vector<int32_t> maker(graph.values.size(), -1);
  for (size_t i = 0; i < graph.ops.size(); ++i)
    for (int32_t result : graph.ops[i].results)
      maker[result] = static_cast<int32_t>(i);
  std::vector<bool> isRepeated(graph.ops.size());
  std::function<bool(int32_t)> have = [&](int32_t value) {
    if (isKept[value])
      return true;
    if (maker[value] < 0)
      return false;
    if (isRepeated[maker[value]])
      return true;
    isRepeated[maker[value]] = true;
    return std::ranges::all_of(graph.ops[maker[value]].operands, have);
  };
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].isNeeded && !have(static_cast<int32_t>(i)))
      return std::nullopt;
  double seconds = 0;
  for (size_t i = 0; i < graph.ops.size(); ++i)
    if (isRepeated[i])
      seconds += graph.ops[i].seconds;
  return seconds;
}

int64_t bytesOf(const ForwardGraph &graph, const std::vector<bool> &isKept) {
  int64_t bytes = 0;
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (isKept[i])
      bytes += graph.values[i].bytes;
  return bytes;
}

/// Of all sets of values: the least time within a limit, and the fewest bytes.
struct AllSets {
  std::vector<std::pair<int64_t, double>> possible;

  explicit AllSets(const ForwardGraph &graph) {
    for (uint32_t set = 0; set < 1u << graph.values.size(); ++set) {
      std::vector<bool> isKept(graph.values.size());
      for (size_t i = 0; i < isKept.size(); ++i)
        isKept[i] = set >> i & 1;
      if (std::optional<double> seconds = secondsWith(graph, isKept))
        possible.emplace_back(bytesOf(graph, isKept), *seconds);
    }
  }
  int64_t fewestBytes() const { return std::ranges::min(possible).first; }
  std::optional<double> secondsWithin(int64_t limit) const {
    std::optional<double> least;
    for (auto [bytes, seconds] : possible)
      if (bytes <= limit && (!least || seconds < *least))
        least = seconds;
    return least;
  }
};

/// Ops of one to three operands and one or two results, whole numbers as bytes
/// and seconds.
ForwardGraph randomGraph(std::mt19937 &random, int64_t ops) {
  auto upTo = [&](int64_t most) {
    return static_cast<int64_t>(random() % (most + 1));
  };
  ForwardGraph graph;
  const int64_t given = 1 + upTo(1);
  for (int64_t i = 0; i < given; ++i)
    graph.values.push_back({1 + upTo(5), upTo(3) == 0});
  for (int64_t i = 0; i < ops; ++i) {
    ForwardGraph::Op op{static_cast<double>(upTo(6)), {}, {}};
    const int64_t made = static_cast<int64_t>(graph.values.size());
    for (int64_t k = upTo(2); k >= 0; --k) {
      // Mostly what was made just before, sometimes what is far.
      const int64_t back =
          upTo(3) ? upTo(std::min<int64_t>(made, 3) - 1) : upTo(made - 1);
      op.operands.push_back(static_cast<int32_t>(made - 1 - back));
    }
    for (int64_t k = upTo(4) == 0; k >= 0; --k) {
      op.results.push_back(static_cast<int32_t>(graph.values.size()));
      graph.values.push_back({1 + upTo(8), upTo(1) == 0});
    }
    graph.ops.push_back(op);
  }
  return graph;
}

/// What it says of itself is what its values come to.
void expectItIsSo(const ForwardGraph &graph, const KeptValues &chosen) {
  std::vector<bool> isKept(graph.values.size());
  for (int32_t value : chosen.values)
    isKept[value] = true;
  EXPECT_EQ(chosen.bytes, bytesOf(graph, isKept));
  const std::optional<double> seconds = secondsWith(graph, isKept);
  ASSERT_TRUE(seconds);
  EXPECT_LE(*seconds, chosen.seconds);
}

TEST(KeptValues, NoSetOfValuesIsBetter) {
  std::mt19937 random(1);
  int within = 0, beyond = 0;
  for (int round = 0; round < 500; ++round) {
    const ForwardGraph graph = randomGraph(random, 3 + random() % 6);
    const AllSets all(graph);
    int64_t whole = 0;
    for (const ForwardGraph::Value &value : graph.values)
      whole += value.bytes;
    for (int64_t limit = 0; limit <= whole; limit += 1 + whole / 6) {
      const KeptValues chosen = chooseKept(graph, limit);
      expectItIsSo(graph, chosen);
      if (std::optional<double> least = all.secondsWithin(limit)) {
        EXPECT_LE(chosen.bytes, limit);
        EXPECT_EQ(chosen.seconds, *least) << "round " << round;
        ++within;
      } else {
        EXPECT_EQ(chosen.bytes, all.fewestBytes()) << "round " << round;
        ++beyond;
      }
    }
  }
  EXPECT_GT(within, 1000);
  EXPECT_GT(beyond, 100);
}

/// x -> a (needed, 4 bytes) -> b (not needed, 1) -> c (needed, 4) -> x'
ForwardGraph layers(int32_t count) {
  ForwardGraph graph;
  graph.values.push_back({1, true});
  for (int32_t i = 0; i < count; ++i) {
    const auto x = static_cast<int32_t>(graph.values.size()) - 1;
    graph.values.insert(graph.values.end(),
                        {{4, true}, {1, false}, {4, true}, {1, true}});
    graph.ops.push_back({2, {x}, {x + 1}});
    graph.ops.push_back({3, {x + 1}, {x + 2}});
    graph.ops.push_back({1, {x + 2}, {x + 3}});
    // What a layer adds to.
    graph.ops.push_back({1, {x, x + 3}, {x + 4}});
  }
  return graph;
}

TEST(KeptValues, AllThatIsNeededIsKeptWhereThereIsRoom) {
  const KeptValues chosen = chooseKept(layers(10), unlimited);
  EXPECT_EQ(chosen.bytes, 91);
  EXPECT_EQ(chosen.seconds, 0);
}

TEST(KeptValues, WhatTheNextOpMakesInLittleTimeGoesFirst) {
  // In each layer one second frees the 4 bytes of c for the 1 of b.
  const KeptValues chosen = chooseKept(layers(10), 91 - 3 * 4);
  EXPECT_EQ(chosen.bytes, 91 - 3 * 4);
  EXPECT_EQ(chosen.seconds, 4);
}

TEST(KeptValues, WhereNothingFitsAllIsMadeOfWhatIsGiven) {
  const KeptValues chosen = chooseKept(layers(10), 0);
  EXPECT_EQ(chosen.values, std::vector<int32_t>({0}));
  EXPECT_EQ(chosen.seconds, 10 * 7);
}

TEST(KeptValues, ManyLayersAreChosenFrom) {
  const KeptValues chosen = chooseKept(layers(200), 901);
  EXPECT_LE(chosen.bytes, 901);
  // Half of what all need: c goes everywhere, and then some of a.
  EXPECT_GT(chosen.seconds, 200);
  EXPECT_LT(chosen.seconds, 700);
}

TEST(KeptValues, WhereManyValuesAreOpenAChoiceIsMadeAllTheSame) {
  // One op that reads thirty others.
  ForwardGraph graph;
  graph.values.push_back({1, false});
  ForwardGraph::Op last{1, {}, {31}};
  for (int32_t i = 1; i <= 30; ++i) {
    graph.values.push_back({2, i % 2 == 0});
    graph.ops.push_back({1, {0}, {i}});
    last.operands.push_back(i);
  }
  graph.values.push_back({1, true});
  graph.ops.push_back(last);
  for (int64_t limit : {0, 10, 20, 31, 100}) {
    const KeptValues chosen = chooseKept(graph, limit);
    expectItIsSo(graph, chosen);
    EXPECT_TRUE(chosen.bytes <= limit || limit < 31);
  }
}

TEST(KeptValues, WithoutOpsWhatIsNeededIsKept) {
  const KeptValues chosen = chooseKept({{{3, true}, {5, false}}, {}}, 0);
  EXPECT_EQ(chosen.values, std::vector<int32_t>({0}));
  EXPECT_EQ(chosen.bytes, 3);
  EXPECT_TRUE(chooseKept({}, 0).values.empty());
}

} // namespace
