//===- StageGraphTests.cpp - Where models are cut -------------------------===//

#include "passes/planning/StageGraph.h"

#include "llvm/ADT/STLExtras.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <limits>
#include <random>

using namespace pipewright;

namespace {

using Begins = llvm::SmallVector<int32_t>;

/// A chain: each node reads what the node before it made.
StageGraph chain(std::vector<double> costs, std::vector<int64_t> bytes) {
  StageGraph graph;
  for (double cost : costs)
    graph.nodes.push_back({cost, true, {}});
  for (size_t i = 0; i < bytes.size(); ++i)
    graph.values.push_back({int32_t(i), int32_t(i) + 1, bytes[i]});
  return graph;
}

Begins cut(const StageGraph &graph, int64_t stages) {
  auto begins = cutIntoStages(graph, stages);
  EXPECT_TRUE(bool(begins));
  return begins ? *begins : Begins();
}

std::string refusal(const StageGraph &graph, int64_t stages) {
  auto begins = cutIntoStages(graph, stages);
  EXPECT_FALSE(bool(begins));
  return begins ? "" : llvm::toString(begins.takeError());
}

TEST(StageGraph, OneStageHasEverything) {
  EXPECT_EQ(cut(chain({3, 1, 2}, {8, 8}), 1), Begins({0}));
}

TEST(StageGraph, EqualCostsMakeEqualStages) {
  EXPECT_EQ(cut(chain({1, 1, 1, 1}, {8, 8, 8}), 2), Begins({0, 2}));
  EXPECT_EQ(cut(chain({1, 1, 1, 1}, {8, 8, 8}), 4), Begins({0, 1, 2, 3}));
}

TEST(StageGraph, TheMostExpensiveStageIsAsCheapAsPossible) {
  // 10 | 1 2 3 4: any other cut makes a stage of more than 10.
  EXPECT_EQ(cut(chain({10, 1, 2, 3, 4}, {8, 8, 8, 8}), 2), Begins({0, 1}));
}

TEST(StageGraph, AmongEquallyCheapCutsTheFewestBytesCross) {
  // The two middle nodes cost nothing, so three cuts balance alike.
  EXPECT_EQ(cut(chain({5, 0, 0, 5}, {64, 16, 32}), 2), Begins({0, 2}));
}

TEST(StageGraph, ALittleImbalanceIsPaidForFewerBytes) {
  StageGraph graph = chain({50, 2, 50}, {8, 800});
  EXPECT_EQ(cut(graph, 2), Begins({0, 1}));
  // But not a lot: 60 : 40 costs a fifth of the step.
  EXPECT_EQ(cut(chain({40, 20, 40, 20}, {8, 800, 8}), 2), Begins({0, 2}));
}

TEST(StageGraph, TiesGoToTheLaterCut) {
  // An activation without cost stays with the layer in front of it.
  StageGraph graph = chain({1, 0, 1}, {8, 8});
  graph.nodes[1].isLayer = false;
  EXPECT_EQ(cut(graph, 2), Begins({0, 2}));
}

TEST(StageGraph, StagesBeginWhereTheyMay) {
  // 1 1 | 1 1 would be best.
  StageGraph graph = chain({1, 1, 1, 1}, {8, 8, 8});
  graph.nodes[2].mayBegin = graph.nodes[2].isLayer = false;
  EXPECT_EQ(cut(graph, 2), Begins({0, 3}));
  EXPECT_EQ(cut(graph, 3), Begins({0, 1, 3}));
  // The first stage begins at the first node, whatever that is.
  graph.nodes[0].mayBegin = graph.nodes[0].isLayer = false;
  EXPECT_EQ(cut(graph, 2), Begins({0, 3}));
}

TEST(StageGraph, ValuesCrossEveryCutUpToTheirLastUse) {
  StageGraph graph = chain({1, 1, 1, 1}, {8, 8, 8});
  graph.values.push_back({0, 3, 100});
  graph.values.push_back({1, 1, 1000}); // never read
  EXPECT_EQ(graph.crossingBytes(), (std::vector<int64_t>{0, 108, 108, 108, 0}));
}

TEST(StageGraph, SharedWeightsArePaidOncePerStage) {
  // Without the sharing 0 and 3 would cost 10 each; the best cut keeps the
  // nodes that share a weight together.
  StageGraph graph = chain({0, 0, 0, 0}, {8, 8, 8});
  graph.weightCosts = {10, 4};
  graph.nodes[0].weights = {0};
  graph.nodes[1].weights = {0};
  graph.nodes[2].weights = {0};
  graph.nodes[3].weights = {1};
  EXPECT_EQ(cut(graph, 2), Begins({0, 3}));
}

TEST(StageGraph, EveryStageHasALayer) {
  StageGraph graph = chain({1, 100, 100, 1}, {8, 8, 8});
  graph.nodes[1].isLayer = graph.nodes[2].isLayer = false;
  EXPECT_EQ(cut(graph, 2), Begins({0, 2}));
  EXPECT_EQ(refusal(graph, 3),
            "expects at most 2 stages, one for each operation or layer of the "
            "model, but got 3");
}

TEST(StageGraph, NoStageIsRefused) {
  EXPECT_EQ(refusal(chain({1}, {}), 0), "expects at least 1 stage, but got 0");
  EXPECT_EQ(refusal(chain({1}, {}), 2),
            "expects at most 1 stage, one for each operation or layer of the "
            "model, but got 2");
}

/// The cheapest worst stage by trying every cut.
double bruteForce(const std::vector<double> &costs, size_t begin,
                  int64_t stages) {
  double sum = 0;
  if (stages == 1) {
    for (size_t i = begin; i < costs.size(); ++i)
      sum += costs[i];
    return sum;
  }
  double best = 1e30;
  for (size_t end = begin + 1; end + stages - 1 <= costs.size(); ++end) {
    sum += costs[end - 1];
    best = std::min(best, std::max(sum, bruteForce(costs, end, stages - 1)));
  }
  return best;
}

TEST(StageGraph, StaysWithinTheSlackOfTheBest) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    size_t size = 4 + random() % 7;
    int64_t stages = 1 + random() % 4;
    std::vector<double> costs;
    std::vector<int64_t> bytes;
    for (size_t i = 0; i < size; ++i) {
      costs.push_back(1 + random() % 50);
      if (i)
        bytes.push_back(1 + random() % 50);
    }
    Begins begins = cut(chain(costs, bytes), stages);
    ASSERT_EQ(begins.size(), size_t(stages));
    ASSERT_EQ(begins[0], 0);
    double worst = 0;
    for (int64_t k = 0; k < stages; ++k) {
      size_t end = k + 1 < stages ? begins[k + 1] : size;
      ASSERT_LT(size_t(begins[k]), end);
      double sum = 0;
      for (size_t i = begins[k]; i < end; ++i)
        sum += costs[i];
      worst = std::max(worst, sum);
    }
    EXPECT_LE(worst, bruteForce(costs, 0, stages) * 1.05 + 1e-6);
  }
}

/// What the stage of nodes [begin, end) needs with so many micro-batches in
/// flight: values that two of its nodes keep are there once.
double memoryOf(const StageGraph &graph, size_t begin, size_t end,
                int64_t inFlight) {
  double bytes = 0;
  std::vector<bool> isKept(graph.keptBytes.size(), false);
  for (size_t i = begin; i < end; ++i) {
    bytes += graph.weightBytes[i];
    for (int32_t value : graph.nodes[i].kept) {
      if (!isKept[value])
        bytes += static_cast<double>(inFlight) * graph.keptBytes[value];
      isKept[value] = true;
    }
  }
  return bytes;
}

/// The least memory of the stage that needs most, by trying every cut.
double leastMemory(const StageGraph &graph, size_t begin, int64_t stages,
                   int64_t microBatches) {
  const int64_t inFlight = std::min(microBatches, stages);
  if (stages == 1)
    return memoryOf(graph, begin, graph.nodes.size(), inFlight);
  double least = 1e30;
  for (size_t end = begin + 1; end + stages - 1 <= graph.nodes.size(); ++end)
    least = std::min(
        least, std::max(memoryOf(graph, begin, end, inFlight),
                        leastMemory(graph, end, stages - 1, microBatches)));
  return least;
}

/// What a range of nodes costs with the weights that it reads.
double costOf(const StageGraph &graph, int32_t begin, int32_t end) {
  double cost = 0;
  std::vector<bool> isRead(graph.weightCosts.size(), false);
  for (int32_t node = begin; node < end; ++node) {
    cost += graph.nodes[node].cost;
    for (int32_t weight : graph.nodes[node].weights)
      isRead[weight] = true;
  }
  for (size_t weight = 0; weight < isRead.size(); ++weight)
    cost += isRead[weight] ? graph.weightCosts[weight] : 0;
  return cost;
}

// Weights that several nodes read, ranks that are not alike, large differences:
// all that decides which stages need not be looked at.
TEST(StageGraph, NoCutWithinTheSlackCrossesFewerBytes) {
  std::mt19937 random(17);
  for (int trial = 0; trial < 300; ++trial) {
    const auto size = static_cast<int32_t>(4 + random() % 9);
    const int64_t stages = 1 + random() % 4;
    std::vector<double> costs;
    std::vector<int64_t> bytes;
    for (int32_t node = 0; node < size; ++node)
      costs.push_back(random() % 5 == 0 ? 200 : random() % 20);
    for (int32_t node = 0; node + 1 < size; ++node)
      bytes.push_back(random() % 50);
    StageGraph graph = chain(costs, bytes);
    graph.weightCosts = {30, 5, 60};
    for (StageGraph::Node &node : graph.nodes)
      if (random() % 2)
        node.weights = {static_cast<int32_t>(random() % 3)};
    StageRanks ranks;
    for (int64_t stage = 0; trial % 2 && stage < stages; ++stage)
      ranks.slowness.push_back(1 + random() % 3);
    // Of a cut: the worst stage, and what crosses it.
    auto valueOf = [&](const Begins &begins) {
      double worst = 0;
      int64_t crossing = 0;
      for (auto [stage, begin] : llvm::enumerate(begins)) {
        const int32_t end =
            stage + 1 < begins.size() ? begins[stage + 1] : size;
        worst = std::max(worst,
                         costOf(graph, begin, end) * ranks.slownessOf(stage));
        crossing += begin == 0 ? 0 : bytes[begin - 1];
      }
      return std::pair(worst, crossing);
    };
    std::vector<std::pair<double, int64_t>> all;
    for (uint32_t set = 0; set < 1u << (size - 1); ++set) {
      Begins begins = {0};
      for (int32_t node = 1; node < size; ++node)
        if (set >> (node - 1) & 1)
          begins.push_back(node);
      if (static_cast<int64_t>(begins.size()) == stages)
        all.push_back(valueOf(begins));
    }
    const double least = std::min_element(all.begin(), all.end())->first;
    constexpr double slack = 0.25;
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (auto [worst, crossing] : all)
      if (worst <= least * (1 + slack) + 1e-9)
        fewest = std::min(fewest, crossing);
    auto found = cutIntoStages(graph, stages, slack, ranks);
    ASSERT_TRUE(bool(found));
    EXPECT_LE(valueOf(*found).first, least * (1 + slack) + 1e-9);
    EXPECT_EQ(valueOf(*found).second, fewest) << "trial " << trial;
  }
}

TEST(StageGraph, MemoryCountsWhatIsInFlight) {
  std::mt19937 random(13);
  for (int trial = 0; trial < 300; ++trial) {
    const size_t size = 4 + random() % 7;
    const int64_t stages = 1 + random() % 4, microBatches = 1 + random() % 6;
    StageGraph graph;
    for (size_t i = 0; i < size; ++i) {
      graph.nodes.push_back({1, true, {static_cast<int32_t>(i)}});
      graph.weightBytes.push_back(static_cast<double>(random() % 50));
      // An op's gradient needs what it reads, and what it makes.
      graph.keptBytes.push_back(static_cast<double>(random() % 30));
      if (i > 0)
        graph.nodes[i].kept.push_back(static_cast<int32_t>(i) - 1);
      graph.nodes[i].kept.push_back(static_cast<int32_t>(i));
    }
    auto begins = cutForMemory(graph, stages, microBatches, /*slack=*/0);
    ASSERT_TRUE(static_cast<bool>(begins));
    double most = 0;
    for (int64_t k = 0; k < stages; ++k)
      most = std::max(most, memoryOf(graph, (*begins)[k],
                                     k + 1 < stages ? (*begins)[k + 1] : size,
                                     std::min(microBatches, stages - k)));
    EXPECT_NEAR(most, leastMemory(graph, 0, stages, microBatches), 1e-6);
  }
}

} // namespace
