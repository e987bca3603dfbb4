//===- RotorTests.cpp - What is kept, beside the optimum for chains -------===//
//
// The dynamic program of rotor (Beaumont et al., "Optimal checkpointing for
// heterogeneous chains", 2019) as an oracle: the least time of a forward and a
// backward of a chain within some memory, where ops may run again any number
// of times.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/KeptValues.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

using namespace pipewright;

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Op i reads the value i and makes the value i + 1, of `bytes[i + 1]`; its
/// backward needs its operand, `saved[i]` bytes, the result among them, and the
/// result's gradient, which has the result's size. Behind the last op there is
/// a loss that needs no room.
struct Chain {
  std::vector<double> forward, backward;
  std::vector<int64_t> bytes, saved;

  int64_t size() const { return static_cast<int64_t>(forward.size()); }
  double seconds() const {
    return std::accumulate(forward.begin(), forward.end(), 0.0) +
           std::accumulate(backward.begin(), backward.end(), 0.0);
  }
  int64_t largestGradient() const { return std::ranges::max(bytes); }
};

class Rotor {
public:
  explicit Rotor(const Chain &chain) : chain(chain) {}

  double secondsWithin(int64_t memory) {
    return least(memory - chain.bytes[0], 0, chain.size() - 1);
  }

private:
  /// Of ops `first` to `last`, where the operand of the first one is kept
  /// elsewhere.
  double least(int64_t memory, int64_t first, int64_t last) {
    auto [place, isNew] = known.try_emplace({memory, first, last}, never);
    if (!isNew)
      return place->second;
    const double found = find(memory, first, last);
    return known[{memory, first, last}] = found;
  }

  double find(int64_t memory, int64_t first, int64_t last) {
    const std::vector<int64_t> &x = chain.bytes;
    const double own = memory >= x[first + 1] + chain.saved[first]
                           ? chain.forward[first] + chain.backward[first]
                           : never;
    if (first == last)
      return own;
    // While forwards run, the gradient of the last result has its room.
    int64_t running = x[first + 1];
    for (int64_t j = first + 1; j < last; ++j)
      running = std::max(running, x[j] + x[j + 1]);
    if (memory < x[last + 1] + running)
      return never;
    double best = never;
    if (memory >= chain.saved[first])
      best = own + least(memory - chain.saved[first], first + 1, last);
    // Or only the operand of op j is kept, and what is before runs again.
    double again = 0;
    for (int64_t j = first + 1; j <= last; ++j) {
      again += chain.forward[j - 1];
      if (memory >= x[j])
        best = std::min(best, again + least(memory - x[j], j, last) +
                                  least(memory, first, j - 1));
    }
    return best;
  }

  const Chain &chain;
  std::map<std::tuple<int64_t, int64_t, int64_t>, double> known;
};

/// So many ops make a run.
ForwardGraph graphOf(const Chain &chain, int64_t perRun) {
  ForwardGraph graph;
  graph.values.push_back({chain.bytes[0], true});
  int32_t operand = 0;
  for (int64_t i = 0; i < chain.size(); ++i) {
    const auto result = static_cast<int32_t>(graph.values.size());
    graph.values.push_back({chain.bytes[i + 1], true});
    graph.values.push_back({chain.saved[i] - chain.bytes[i + 1], true});
    graph.ops.push_back({chain.forward[i],
                         {operand},
                         {result, result + 1},
                         static_cast<int32_t>(i / perRun)});
    operand = result;
  }
  return graph;
}

struct Ours {
  double seconds = never;
  /// Whether something is kept of an op whose operand is not.
  bool dropsOperands = false;
};

/// Ours counts no gradients: the largest one has its room beside.
Ours oursWithin(const Chain &chain, int64_t perRun, int64_t memory) {
  const int64_t limit = memory - chain.largestGradient();
  const KeptValues chosen =
      KeptChooser().choose(graphOf(chain, perRun), 1, limit);
  Ours ours;
  if (chosen.bytesOf(1) <= limit)
    ours.seconds = chain.seconds() + chosen.seconds;
  auto isKept = [&](int64_t value) {
    return std::ranges::binary_search(chosen.values,
                                      static_cast<int32_t>(value));
  };
  for (int64_t i = 1; i < chain.size(); ++i)
    ours.dropsOperands |=
        !isKept(2 * i - 1) && isKept(2 * i + 1) && isKept(2 * i + 2);
  return ours;
}

Chain randomChain(std::mt19937 &random) {
  auto upTo = [&](int64_t most) {
    return static_cast<int64_t>(random() % (most + 1));
  };
  Chain chain;
  const bool isUneven = random() % 2 == 0;
  chain.bytes = {1 + upTo(3)};
  for (int64_t ops = 2 + upTo(6); ops > 0; --ops) {
    chain.forward.push_back(static_cast<double>(1 + upTo(6)));
    chain.backward.push_back(2 * chain.forward.back());
    chain.bytes.push_back(ops == 1   ? 0
                          : isUneven ? 1 + upTo(3)
                                     : chain.bytes[0]);
    chain.saved.push_back(chain.bytes.back() + upTo(8));
  }
  return chain;
}

TEST(Rotor, FindsWhatIsKnownOfAChain) {
  Chain chain{{1, 1, 1, 1, 1, 1, 1, 1},
              {2, 2, 2, 2, 2, 2, 2, 2},
              {1, 1, 1, 1, 1, 1, 1, 1, 0},
              {6, 6, 6, 6, 6, 6, 6, 6}};
  const std::map<int64_t, double> known = {
      {8, never}, {9, 46},  {10, 36}, {11, 34}, {12, 33}, {14, 31}, {16, 30},
      {24, 29},   {28, 28}, {32, 27}, {40, 26}, {48, 25}, {50, 24}};
  Rotor rotor(chain);
  for (auto [memory, seconds] : known)
    EXPECT_EQ(rotor.secondsWithin(memory), seconds) << memory;
}

// Ours repeats each op once at most, and all that a run repeats has its room
// beside all that is kept, where rotor uses that of what later ops have freed:
// ours is slower wherever something is repeated. Choices that keep what an op
// saves without its operand are left out, as rotor does not know them.
TEST(Rotor, IsNeverSlowerThanWhatIsChosen) {
  std::mt19937 random(5);
  int repeated = 0, alike = 0, unlike = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Chain chain = randomChain(random);
    const int64_t perRun = 1 + random() % chain.size();
    Rotor rotor(chain);
    const int64_t all = std::accumulate(chain.saved.begin(), chain.saved.end(),
                                        chain.bytes[0]) +
                        chain.largestGradient();
    for (int64_t memory = 1; memory <= all; ++memory) {
      const Ours ours = oursWithin(chain, perRun, memory);
      if (ours.dropsOperands) {
        ++unlike;
        continue;
      }
      const double optimum = rotor.secondsWithin(memory);
      if (ours.seconds == never)
        continue;
      EXPECT_LE(optimum, ours.seconds)
          << "trial " << trial << ", " << memory << " bytes";
      if (ours.seconds > chain.seconds()) {
        EXPECT_LT(optimum, ours.seconds);
        ++repeated;
      } else {
        ++alike;
      }
    }
    EXPECT_EQ(oursWithin(chain, perRun, all).seconds, chain.seconds());
  }
  EXPECT_GT(repeated, 1000);
  EXPECT_GT(alike, 300);
  EXPECT_GT(unlike, 50);
}

TEST(Rotor, RepeatsNothingWhereNothingIsRepeated) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    Chain chain = randomChain(random);
    // With results of one size no gradient is larger than that of the last op
    // whose backward is to come.
    for (int64_t i = 0; i < chain.size(); ++i) {
      chain.saved[i] += 2 - chain.bytes[i + 1];
      chain.bytes[i] = chain.bytes[i + 1] = 2;
    }
    const int64_t perRun = 1 + random() % chain.size();
    const int64_t all = std::accumulate(chain.saved.begin(), chain.saved.end(),
                                        chain.bytes[0]) +
                        chain.largestGradient();
    Rotor rotor(chain);
    for (int64_t memory : {all - 1, all, all + 1}) {
      EXPECT_EQ(rotor.secondsWithin(memory) == chain.seconds(), memory >= all);
      EXPECT_EQ(oursWithin(chain, perRun, memory).seconds == chain.seconds(),
                memory >= all);
    }
  }
}

// A large value that is made in no time, of which a small one is made in long:
// rotor keeps both or computes both again.
TEST(Rotor, IsBeatenWhereOperandsAreDropped) {
  Chain chain;
  chain.bytes = {1};
  for (int i = 0; i < 4; ++i) {
    chain.forward.insert(chain.forward.end(), {1, 100});
    chain.backward.insert(chain.backward.end(), {2, 200});
    chain.bytes.insert(chain.bytes.end(), {10, 1});
    chain.saved.insert(chain.saved.end(), {10, 2});
  }
  const int64_t memory = 1 + 4 * 2 + 10 + chain.largestGradient();
  const Ours ours = oursWithin(chain, 2, memory);
  EXPECT_TRUE(ours.dropsOperands);
  EXPECT_EQ(ours.seconds, chain.seconds() + 4);
  EXPECT_GE(Rotor(chain).secondsWithin(memory), chain.seconds() + 100);
}

} // namespace
