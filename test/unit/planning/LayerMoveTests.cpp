//===- LayerMoveTests.cpp - Cuts that are better by moving layers ---------===//

#include "passes/planning/LayerMoves.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace pipewright;

namespace {

using Layers = std::vector<int64_t>;

/// A chain of layers whose step is what its slowest stage takes.
struct Chain {
  std::vector<double> seconds, bytes;

  CutEstimate operator()(llvm::ArrayRef<int64_t> layers) {
    ++looked;
    CutEstimate all = {0, 0};
    size_t next = 0;
    for (int64_t count : layers) {
      double time = 0, size = 0;
      for (int64_t i = 0; i < count; ++i, ++next) {
        time += seconds[next];
        size += bytes[next];
      }
      all.step = std::max(all.step, time);
      all.bytes = std::max(all.bytes, size);
    }
    EXPECT_EQ(next, seconds.size());
    return all;
  }

  int64_t looked = 0;
};

Chain randomChain(std::mt19937 &random, int64_t layers) {
  std::uniform_real_distribution<double> number(0.1, 1);
  Chain chain;
  for (int64_t i = 0; i < layers; ++i) {
    chain.seconds.push_back(number(random));
    chain.bytes.push_back(number(random));
  }
  return chain;
}

/// All cuts of so many layers into stages with one each at least.
void forEachCut(int64_t layers, int64_t stages, Layers &cut,
                llvm::function_ref<void(const Layers &)> visit) {
  if (stages == 1) {
    cut.push_back(layers);
    visit(cut);
    cut.pop_back();
    return;
  }
  for (int64_t first = 1; first <= layers - stages + 1; ++first) {
    cut.push_back(first);
    forEachCut(layers - first, stages - 1, cut, visit);
    cut.pop_back();
  }
}

TEST(LayerMoves, EvenLayersAreSpreadEvenly) {
  Chain chain = {std::vector<double>(13, 1), std::vector<double>(13, 0)};
  auto found = moveLayers({10, 1, 1, 1}, 1000, chain);
  ASSERT_TRUE(found);
  EXPECT_EQ(*std::max_element(found->begin(), found->end()), 4);
  // From there on no cut is better.
  EXPECT_FALSE(moveLayers(*found, 1000, chain));
}

TEST(LayerMoves, NoMoveLeadsFromWhatIsFoundToABetterOne) {
  std::mt19937 random(7);
  double ratios = 0, worst = 1;
  constexpr int cases = 300;
  for (int i = 0; i < cases; ++i) {
    const int64_t stages = 2 + i % 3, layers = 8 + i % 7;
    Chain chain = randomChain(random, layers);
    Layers begin(stages, layers / stages);
    begin[0] += layers % stages;
    const CutEstimate first = chain(begin);
    const Layers found = moveLayers(begin, 10000, chain).value_or(begin);
    const CutEstimate last = chain(found);
    EXPECT_LE(last.step, first.step);
    EXPECT_LE(last.bytes, first.bytes);
    for (int64_t from = 0; from < stages; ++from)
      for (int64_t to = 0; to < stages; ++to) {
        if (from == to || found[from] == 1)
          continue;
        Layers moved = found;
        --moved[from];
        ++moved[to];
        const CutEstimate other = chain(moved);
        EXPECT_TRUE(other.step >= last.step * 0.9999 ||
                    other.bytes > first.bytes);
      }
    double optimum = first.step;
    Layers cut;
    forEachCut(layers, stages, cut, [&](const Layers &each) {
      if (const CutEstimate other = chain(each); other.bytes <= first.bytes)
        optimum = std::min(optimum, other.step);
    });
    ratios += last.step / optimum;
    worst = std::max(worst, last.step / optimum);
  }
  // A local search: not the best of all, but near.
  EXPECT_LE(ratios / cases, 1.03);
  EXPECT_LE(worst, 1.7);
}

TEST(LayerMoves, LooksAtNoMoreThanItsBudget) {
  std::mt19937 random(3);
  for (int64_t budget = 0; budget < 40; ++budget) {
    Chain chain = randomChain(random, 30);
    (void)moveLayers({24, 2, 2, 2}, budget, chain);
    EXPECT_LE(chain.looked, budget);
  }
}

// Nothing is known of the first cut: what has a plan is better.
TEST(LayerMoves, LeavesCutsWithoutAPlan) {
  auto found = moveLayers({3, 1}, 100, [](llvm::ArrayRef<int64_t> layers) {
    return layers[0] == 3 ? CutEstimate() : CutEstimate{1, 1};
  });
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (Layers{2, 2}));
}

} // namespace
