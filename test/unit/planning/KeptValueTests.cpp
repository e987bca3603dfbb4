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
#include <map>
#include <optional>
#include <random>
#include <set>

using namespace pipewright;

namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// What it takes to have all needed values again where only some are kept.
struct Again {
  double seconds = 0;
  /// The most that a run makes of what is needed.
  int64_t bytes = 0;
};

class Oracle {
public:
  explicit Oracle(const ForwardGraph &graph)
      : graph(graph), maker(graph.values.size(), -1),
        isForced(graph.values.size()), isFree(graph.values.size()) {
    for (size_t i = 0; i < graph.ops.size(); ++i)
      for (int32_t result : graph.ops[i].results)
        maker[result] = static_cast<int32_t>(i);
    std::vector<std::set<int32_t>> readers(graph.values.size());
    for (const ForwardGraph::Op &op : graph.ops)
      for (int32_t operand : op.operands)
        readers[operand].insert(op.run);
    for (size_t i = 0; i < graph.values.size(); ++i) {
      if (maker[i] < 0)
        isForced[i] = graph.values[i].isNeeded;
      else
        for (int32_t run : readers[i])
          isForced[i] = isForced[i] || run != graph.ops[maker[i]].run;
      isFree[i] = maker[i] < 0 && readers[i].size() > 1 && !isForced[i];
    }
  }

  /// None where values are lost, or not kept that always are.
  std::optional<Again> againWith(const std::vector<bool> &isKept) const {
    std::vector<bool> isRepeated(graph.ops.size());
    std::function<bool(int32_t)> have = [&](int32_t value) {
      if (isKept[value] || isFree[value])
        return true;
      if (maker[value] < 0)
        return false;
      if (isRepeated[maker[value]])
        return true;
      isRepeated[maker[value]] = true;
      return std::ranges::all_of(graph.ops[maker[value]].operands, have);
    };
    for (size_t i = 0; i < graph.values.size(); ++i)
      if ((isForced[i] && !isKept[i]) || (isFree[i] && isKept[i]) ||
          (graph.values[i].isNeeded && !have(static_cast<int32_t>(i))))
        return std::nullopt;
    Again again;
    std::map<int32_t, int64_t> made;
    for (size_t i = 0; i < graph.ops.size(); ++i)
      if (isRepeated[i]) {
        again.seconds += graph.ops[i].seconds;
        for (int32_t result : graph.ops[i].results)
          if (!isForced[result] && graph.values[result].isNeeded)
            made[graph.ops[i].run] += graph.values[result].bytes;
      }
    for (auto [run, bytes] : made)
      again.bytes = std::max(again.bytes, bytes);
    return again;
  }

  int64_t bytesOf(const std::vector<bool> &isKept) const {
    int64_t bytes = 0;
    for (size_t i = 0; i < graph.values.size(); ++i)
      if (isKept[i])
        bytes += graph.values[i].bytes;
    return bytes;
  }

private:
  const ForwardGraph &graph;
  /// The op that makes a value, or -1.
  std::vector<int32_t> maker;
  std::vector<bool> isForced, isFree;
};

/// Of all sets of values: the least time within a limit, and the fewest bytes.
struct AllSets {
  std::vector<std::pair<int64_t, double>> possible;

  AllSets(const ForwardGraph &graph, int64_t forwards) {
    const Oracle oracle(graph);
    for (uint32_t set = 0; set < 1u << graph.values.size(); ++set) {
      std::vector<bool> isKept(graph.values.size());
      for (size_t i = 0; i < isKept.size(); ++i)
        isKept[i] = set >> i & 1;
      if (std::optional<Again> again = oracle.againWith(isKept))
        possible.emplace_back(forwards * oracle.bytesOf(isKept) + again->bytes,
                              again->seconds);
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
/// and seconds, up to `perRun` ops in a run.
ForwardGraph randomGraph(std::mt19937 &random, int64_t ops, int64_t perRun) {
  auto upTo = [&](int64_t most) {
    return static_cast<int64_t>(random() % (most + 1));
  };
  ForwardGraph graph;
  const int64_t given = 1 + upTo(1);
  for (int64_t i = 0; i < given; ++i)
    graph.values.push_back({1 + upTo(5), upTo(3) == 0});
  for (int64_t i = 0; i < ops; ++i) {
    ForwardGraph::Op op{
        static_cast<double>(upTo(6)), {}, {}, static_cast<int32_t>(i / perRun)};
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
  const Oracle oracle(graph);
  std::vector<bool> isKept(graph.values.size());
  for (int32_t value : chosen.values)
    isKept[value] = true;
  EXPECT_EQ(chosen.bytes, oracle.bytesOf(isKept));
  const std::optional<Again> again = oracle.againWith(isKept);
  ASSERT_TRUE(again);
  EXPECT_LE(again->seconds, chosen.seconds);
  EXPECT_LE(again->bytes, chosen.again);
}

TEST(KeptValues, NoSetOfValuesIsBetter) {
  std::mt19937 random(1);
  int within = 0, beyond = 0;
  KeptChooser chooser;
  for (int round = 0; round < 500; ++round) {
    const int64_t forwards = 1 + random() % 4;
    const ForwardGraph graph =
        randomGraph(random, 3 + random() % 6, 2 + random() % 6);
    const AllSets all(graph, forwards);
    int64_t whole = 0;
    for (const ForwardGraph::Value &value : graph.values)
      whole += value.bytes * forwards;
    for (int64_t limit = 0; limit <= whole; limit += 1 + whole / 6) {
      const KeptValues chosen = chooser.choose(graph, forwards, limit);
      expectItIsSo(graph, chosen);
      if (std::optional<double> least = all.secondsWithin(limit)) {
        EXPECT_LE(chosen.bytesOf(forwards), limit);
        EXPECT_EQ(chosen.seconds, *least) << "round " << round;
        ++within;
      } else {
        EXPECT_EQ(chosen.bytesOf(forwards), all.fewestBytes())
            << "round " << round;
        ++beyond;
      }
    }
  }
  EXPECT_GT(within, 1000);
  EXPECT_GT(beyond, 100);
}

/// Values that have nothing to do with each other are a knapsack. There are so
/// many choices that not all of them are followed.
TEST(KeptValues, ManyChoicesAreCloseToTheBest) {
  std::mt19937 random(3);
  ForwardGraph graph;
  graph.values.push_back({1, false});
  for (int32_t run = 0; run < 8; ++run)
    for (int i = 0; i < 9; ++i) {
      // What takes longer is larger, so that few choices beat others.
      const auto bytes = 1 + static_cast<int64_t>(random() % 5000);
      graph.ops.push_back({static_cast<double>(bytes + random() % 500),
                           {0},
                           {static_cast<int32_t>(graph.values.size())},
                           run});
      graph.values.push_back({bytes, true});
    }
  int64_t whole = 0;
  for (const ForwardGraph::Value &value : graph.values)
    whole += value.bytes;
  // By bytes: the seconds of what cannot be kept in them.
  std::vector<double> least(whole + 1, 0);
  for (const ForwardGraph::Op &op : graph.ops) {
    const int64_t bytes = graph.values[op.results[0]].bytes;
    for (int64_t room = whole; room >= 0; --room)
      least[room] = room < bytes ? least[room] + op.seconds
                                 : std::min(least[room] + op.seconds,
                                            least[room - bytes]);
  }
  // What is made again, once for so many forwards, takes little.
  constexpr int64_t forwards = 10000;
  KeptChooser chooser;
  for (int64_t room = whole / 8; room < whole; room += whole / 8) {
    const KeptValues chosen = chooser.choose(graph, forwards, forwards * room);
    expectItIsSo(graph, chosen);
    EXPECT_LE(chosen.bytesOf(forwards), forwards * room);
    EXPECT_GE(chosen.seconds, least[room]);
    EXPECT_LE(chosen.seconds, least[room - room / 500]);
  }
}

/// In each layer x -> a (needed, 4 bytes) -> b (not needed, 1) -> c (needed,
/// 4), and x + d, made of c, goes to the next.
ForwardGraph layers(int32_t count) {
  ForwardGraph graph;
  graph.values.push_back({1, true});
  for (int32_t i = 0; i < count; ++i) {
    const auto x = static_cast<int32_t>(graph.values.size()) - 1;
    graph.values.insert(
        graph.values.end(),
        {{4, true}, {1, false}, {4, true}, {1, false}, {1, true}});
    graph.ops.push_back({2, {x}, {x + 1}, i});
    graph.ops.push_back({3, {x + 1}, {x + 2}, i});
    graph.ops.push_back({1, {x + 2}, {x + 3}, i});
    graph.ops.push_back({1, {x + 3}, {x + 4}, i});
    graph.ops.push_back({1, {x, x + 4}, {x + 5}, i});
  }
  return graph;
}

TEST(KeptValues, AllThatIsNeededIsKeptWhereThereIsRoom) {
  const KeptValues chosen = KeptChooser().choose(layers(10), 1, unlimited);
  EXPECT_EQ(chosen.bytes, 91);
  EXPECT_EQ(chosen.again, 0);
  EXPECT_EQ(chosen.seconds, 0);
}

TEST(KeptValues, WhatIsMadeInLittleTimeGoesFirst) {
  // In each layer one second frees the 4 bytes of c for the 1 of b; 4 bytes are
  // made again at a time.
  const KeptValues chosen = KeptChooser().choose(layers(10), 1, 91 - 3 * 3 + 4);
  EXPECT_EQ(chosen.bytes, 91 - 3 * 3);
  EXPECT_EQ(chosen.again, 4);
  EXPECT_EQ(chosen.seconds, 3);
}

TEST(KeptValues, OfManyForwardsOneMakesAgain) {
  const KeptValues chosen =
      KeptChooser().choose(layers(10), 8, 8 * (91 - 3 * 3) + 4);
  EXPECT_EQ(chosen.bytes, 91 - 3 * 3);
  EXPECT_EQ(chosen.seconds, 3);
}

TEST(KeptValues, WhereNothingFitsLayersAreMadeOfWhatTheyAreGiven) {
  const KeptValues chosen = KeptChooser().choose(layers(10), 100, 0);
  // Nobody is given what the last one makes.
  EXPECT_EQ(chosen.bytes, 10);
  EXPECT_EQ(chosen.again, 4 + 4 + 1);
  EXPECT_EQ(chosen.seconds, 10 * 6 + 2);
}

TEST(KeptValues, ManyLayersAreChosenFrom) {
  const KeptValues chosen = KeptChooser().choose(layers(200), 4, 4 * 901);
  EXPECT_LE(chosen.bytesOf(4), 4 * 901);
  // Half of what all need: c goes everywhere, and then some of a.
  EXPECT_GT(chosen.seconds, 200);
  EXPECT_LT(chosen.seconds, 900);
}

TEST(KeptValues, LayersOfOneRunAreMadeAgainTogether) {
  ForwardGraph graph = layers(60);
  for (ForwardGraph::Op &op : graph.ops)
    op.run = 0;
  const KeptValues together = KeptChooser().choose(graph, 16, 0);
  EXPECT_EQ(together.bytes, 1);
  EXPECT_EQ(together.seconds, 60 * 8);
  // With room for what layers give to each other less is computed again.
  const KeptValues apart = KeptChooser().choose(layers(60), 16, 16 * 100);
  EXPECT_TRUE(apart.isBetter(together, 16, 16 * 100));
  EXPECT_FALSE(together.isBetter(apart, 16, 16 * 100));
  // Without, it is the other way round.
  EXPECT_TRUE(
      together.isBetter(KeptChooser().choose(layers(60), 16, 0), 16, 16 * 50));
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
    const KeptValues chosen = KeptChooser().choose(graph, 1, limit);
    expectItIsSo(graph, chosen);
    EXPECT_TRUE(chosen.bytesOf(1) <= limit || limit < 31);
  }
}

TEST(KeptValues, WithoutOpsWhatIsNeededIsKept) {
  const KeptValues chosen =
      KeptChooser().choose({{{3, true}, {5, false}}, {}}, 1, 0);
  EXPECT_EQ(chosen.values, std::vector<int32_t>({0}));
  EXPECT_EQ(chosen.bytes, 3);
  EXPECT_TRUE(KeptChooser().choose({}, 1, 0).values.empty());
}

} // namespace
