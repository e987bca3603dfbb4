//===- StepFormulaTests.cpp - The step of 1F1B by its stages --------------===//
//
// The closed formula and the cuts that it leads to, beside the simulator and
// all cuts.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/StageGraph.h"
#include "test/unit/schedules/ScheduleTesting.h"

#include "gtest/gtest.h"

#include <limits>
#include <random>

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

double simulated(const std::vector<double> &costs, int64_t microBatches,
                 double forwardShare) {
  const auto stages = static_cast<int64_t>(costs.size());
  Schedule schedule = buildSchedule("1f1b", stages, stages, microBatches);
  TaskCosts times = TaskCosts::uniform(stages, 1, 1);
  std::vector<StageEdge> edges;
  for (auto [stage, cost] : llvm::enumerate(costs)) {
    times.stages[stage].forward = forwardShare * cost;
    times.stages[stage].backward = (1 - forwardShare) * cost;
    if (stage > 0)
      edges.push_back(
          {static_cast<int32_t>(stage) - 1, static_cast<int32_t>(stage), 0});
  }
  return valueOf(simulate(schedule, times, edges)).globalStepTime;
}

StageGraph chainOf(const std::vector<double> &costs) {
  StageGraph graph;
  for (double cost : costs)
    graph.nodes.push_back({cost, true, {}});
  for (int32_t i = 0; i + 1 < static_cast<int32_t>(costs.size()); ++i)
    graph.values.push_back({i, i + 1, 1});
  return graph;
}

using Begins = llvm::SmallVector<int32_t>;

constexpr double unlimited = std::numeric_limits<double>::infinity();

std::vector<double> stagesOf(const std::vector<double> &costs,
                             const Begins &begins) {
  std::vector<double> stages(begins.size());
  for (auto [node, cost] : llvm::enumerate(costs)) {
    size_t stage = 0;
    while (stage + 1 < begins.size() &&
           begins[stage + 1] <= static_cast<int32_t>(node))
      ++stage;
    stages[stage] += cost;
  }
  return stages;
}

TEST(StepFormula, IsTheSimulators) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<double> costs(1 + random() % 8);
    for (double &cost : costs)
      cost = 0.1 + (random() % 1000) / 300.0;
    const auto microBatches = static_cast<int64_t>(1 + random() % 40);
    const double share =
        trial % 2 ? 1.0 / 3 : 0.25 + (random() % 1000) / 4000.0;
    EXPECT_NEAR(stepOf1F1B(costs, microBatches, share),
                simulated(costs, microBatches, share), 1e-9)
        << costs.size() << " stages, " << microBatches << " micro-batches";
  }
}

/// When the rank of a stage is done at the earliest: earlier stages have the
/// first micro-batch before it, and while later ones have the first and the
/// last one, it fills what it can with forwards and with backwards of others.
double boundOf(const std::vector<double> &costs, int64_t microBatches,
               double forwardShare) {
  const auto stages = static_cast<int64_t>(costs.size());
  double bound = 0, before = 0, behind = 0;
  for (double cost : costs)
    behind += cost;
  for (auto [stage, cost] : llvm::enumerate(costs)) {
    behind -= cost;
    const int64_t ahead =
        std::min(microBatches, stages - static_cast<int64_t>(stage));
    const auto others = static_cast<double>(ahead - 1);
    const double first = std::max(0.0, behind - others * forwardShare * cost),
                 last =
                     std::max(0.0, behind - others * (1 - forwardShare) * cost);
    // Where no forward follows a backward, it is one wait.
    const double waits =
        ahead == microBatches ? std::max(first, last) : first + last;
    bound = std::max(bound,
                     before + static_cast<double>(microBatches) * cost + waits);
    before += cost;
  }
  return bound;
}

// It is the step itself where backwards take twice as long as forwards and no
// stage takes much longer than another one.
TEST(StepFormula, NoStepIsShorterThanTheClosedFormula) {
  std::mt19937 random(17);
  double least = 1, sum = 0;
  constexpr int trials = 1000;
  for (int trial = 0; trial < trials; ++trial) {
    const bool isUsual = trial % 2 == 0;
    std::vector<double> costs(1 + random() % 8);
    for (double &cost : costs)
      cost = 1 + (isUsual ? 0.3 : 2.0) * (random() % 1000) / 1000.0;
    const auto stages = static_cast<int64_t>(costs.size());
    const auto microBatches = static_cast<int64_t>(stages + random() % 33);
    const double share = isUsual ? 1.0 / 3 : 0.25 + (random() % 1000) / 4000.0;
    const double step = simulated(costs, microBatches, share),
                 bound = boundOf(costs, microBatches, share);
    EXPECT_LE(bound, step + 1e-9);
    if (isUsual)
      EXPECT_NEAR(bound, step, 1e-9)
          << stages << " stages, " << microBatches << " micro-batches";
    least = std::min(least, bound / step);
    sum += bound / step;
  }
  EXPECT_GT(least, 0.9);
  EXPECT_GT(sum / trials, 0.995);
  // Stages of 4, 2 and 1 wait for each other in turns.
  EXPECT_NEAR(simulated({12, 6, 3}, 3, 1.0 / 3), 38, 1e-9);
  EXPECT_NEAR(boundOf({12, 6, 3}, 3, 1.0 / 3), 37, 1e-9);
}

// An excess on a stage counts once for each micro-batch, but for those that
// later stages are still filling the pipeline with.
TEST(StepFormula, AnExcessCountsMoreTheLaterItIs) {
  std::vector<double> even(8, 3);
  const double step = stepOf1F1B(even, 16);
  for (int64_t stage = 0; stage < 8; ++stage) {
    std::vector<double> costs = even;
    costs[stage] += 0.3;
    EXPECT_NEAR(stepOf1F1B(costs, 16) - step, (16 - (8 - 1 - stage)) * 0.3,
                1e-9);
  }
}

// Twelve layers and a head as heavy as two and a half of them.
TEST(StepFormula, PutsLessInFrontOfAHeavyEnd) {
  std::vector<double> costs(12, 1);
  costs.push_back(2.5);
  auto cut = [&](int64_t stages, int64_t microBatches) {
    return stagesOf(costs, valueOf(cutForStep(chainOf(costs), stages,
                                              microBatches, /*ranks=*/{},
                                              /*slack=*/0)));
  };
  EXPECT_NEAR(stepOf1F1B(cut(4, 8), 8), 41.0, 1e-9);
  EXPECT_NEAR(stepOf1F1B(cut(6, 12), 12), 44.0, 1e-9);
  // As many micro-batches as ranks: what is in front is nearly free.
  EXPECT_LE(stepOf1F1B(cut(4, 4), 4), 25.2 + 1e-9);
  EXPECT_NEAR(stepOf1F1B({5, 4, 3, 2.5}, 4), 25 + 1.0 / 6, 1e-9);
  EXPECT_NEAR(stepOf1F1B({4, 4, 3, 3.5}, 8), 41.0, 1e-9);
  EXPECT_NEAR(stepOf1F1B({3, 3, 2, 2, 2, 2.5}, 12), 44.0, 1e-9);
  // The most even cuts.
  EXPECT_NEAR(stepOf1F1B({3, 4, 4, 3.5}, 4), 26.0, 1e-9);
  EXPECT_NEAR(stepOf1F1B({3, 4, 4, 3.5}, 8), 42.0, 1e-9);
  EXPECT_NEAR(stepOf1F1B({1, 2, 3, 3, 3, 2.5}, 12), 47.0, 1e-9);
}

/// Calls `visit` with every cut.
void forEachCut(size_t nodes, size_t stages, Begins &begins,
                llvm::function_ref<void()> visit) {
  if (begins.size() == stages)
    return visit();
  const size_t others = stages - begins.size() - 1;
  for (int32_t next = begins.back() + 1; next + others < nodes; ++next) {
    begins.push_back(next);
    forEachCut(nodes, stages, begins, visit);
    begins.pop_back();
  }
}

TEST(StepFormula, LeavesLittleInFrontOfAHeavyEnd) {
  std::vector<double> costs(12, 1);
  costs.push_back(2.5);
  double shortest = unlimited;
  Begins begins = {0};
  forEachCut(costs.size(), 4, begins, [&] {
    shortest =
        std::min(shortest, simulated(stagesOf(costs, begins), 4, 1.0 / 3));
  });
  EXPECT_NEAR(shortest, 25.0, 1e-9);
}

/// A random chain to cut.
struct CutProblem {
  explicit CutProblem(std::mt19937 &random) : costs(4 + random() % 11) {
    for (double &cost : costs)
      cost = 1 + random() % 20;
    stages = 1 + random() % 4;
    microBatches = static_cast<int64_t>(1 + random() % 16);
  }
  double stepOf(const Begins &begins) const {
    return simulated(stagesOf(costs, begins), microBatches, 1.0 / 3);
  }
  void forEach(llvm::function_ref<void(const Begins &)> visit) const {
    Begins begins = {0};
    forEachCut(costs.size(), stages, begins, [&] { visit(begins); });
  }

  std::vector<double> costs;
  size_t stages = 1;
  int64_t microBatches = 1;
};

TEST(StepFormula, CutsAreNearlyTheShortestAndNeverLongerThanTheMostEven) {
  std::mt19937 random(13);
  double worst = 1, sum = 0, mostGained = 1;
  constexpr int trials = 300;
  for (int trial = 0; trial < trials; ++trial) {
    const CutProblem problem(random);
    const auto &[costs, stages, microBatches] = problem;
    StageGraph graph = chainOf(costs);
    double best = unlimited;
    problem.forEach(
        [&](const Begins &cut) { best = std::min(best, problem.stepOf(cut)); });
    const double found =
        problem.stepOf(valueOf(cutForStep(graph, stages, microBatches)));
    const double even =
        problem.stepOf(valueOf(cutIntoStages(graph, stages, 0)));
    EXPECT_LE(found, even * (1 + 1e-9));
    worst = std::max(worst, found / best);
    sum += found / best;
    mostGained = std::max(mostGained, even / found);
  }
  EXPECT_LE(worst, 1.05);
  EXPECT_LE(sum / trials, 1.003);
  // They do differ.
  EXPECT_GT(mostGained, 1.05);
}

/// What the stage of a cut that needs most needs, where node i reads a weight
/// of its own and keeps what it makes.
double mostBytes(const StageGraph &graph, const Begins &begins,
                 int64_t microBatches) {
  const auto stages = static_cast<int64_t>(begins.size());
  double most = 0;
  for (int64_t stage = 0; stage < stages; ++stage) {
    const size_t end =
        stage + 1 < stages ? begins[stage + 1] : graph.nodes.size();
    const auto inFlight =
        static_cast<double>(std::min(microBatches, stages - stage));
    double bytes = 0;
    for (size_t i = begins[stage]; i < end; ++i)
      bytes += graph.weightBytes[i] + inFlight * graph.keptBytes[i];
    most = std::max(most, bytes);
  }
  return most;
}

TEST(StepFormula, CutsWithinAMemoryLimitAreNearlyTheShortestOfThese) {
  std::mt19937 random(29);
  double worst = 1, sum = 0;
  constexpr int trials = 300;
  for (int trial = 0; trial < trials; ++trial) {
    const CutProblem problem(random);
    const auto &[costs, stages, microBatches] = problem;
    StageGraph graph = chainOf(costs);
    for (size_t i = 0; i < costs.size(); ++i) {
      graph.weightBytes.push_back(static_cast<double>(random() % 40));
      graph.keptBytes.push_back(static_cast<double>(random() % 20));
      graph.nodes[i].weights = {static_cast<int32_t>(i)};
      graph.nodes[i].kept = {static_cast<int32_t>(i)};
    }
    double least = unlimited, largest = 0;
    problem.forEach([&](const Begins &cut) {
      const double bytes = mostBytes(graph, cut, problem.microBatches);
      least = std::min(least, bytes);
      largest = std::max(largest, bytes);
    });
    const double limit = least + (largest - least) * (random() % 5) / 8;
    auto within = [&](double bytes) {
      return StageRanks{{}, std::vector<double>(problem.stages, bytes)};
    };
    double best = unlimited, even = unlimited, leastWorst = unlimited;
    problem.forEach([&](const Begins &cut) {
      if (mostBytes(graph, cut, problem.microBatches) > limit)
        return;
      const std::vector<double> each = stagesOf(problem.costs, cut);
      const double most = *llvm::max_element(each), step = problem.stepOf(cut);
      best = std::min(best, step);
      if (most <= leastWorst) {
        even = most < leastWorst ? step : std::max(even, step);
        leastWorst = most;
      }
    });
    const Begins found =
        valueOf(cutForStep(graph, stages, microBatches, within(limit)));
    EXPECT_LE(mostBytes(graph, found, microBatches), limit);
    EXPECT_LE(problem.stepOf(found), even * (1 + 1e-9));
    worst = std::max(worst, problem.stepOf(found) / best);
    sum += problem.stepOf(found) / best;
    // Where nothing fits, the least is told.
    EXPECT_LE(mostBytes(graph,
                        valueOf(cutForStep(graph, stages, microBatches,
                                           within(least * 0.9 - 1))),
                        microBatches),
              least * 1.01 + 1e-6);
  }
  EXPECT_LE(worst, 1.05);
  EXPECT_LE(sum / trials, 1.003);
}

TEST(StepFormula, CutsForUnequalRanksAreTheMostEvenAndNearlyTheShortest) {
  std::mt19937 random(31);
  double worst = 1, sum = 0, mostGained = 1;
  constexpr int trials = 300;
  for (int trial = 0; trial < trials; ++trial) {
    const CutProblem problem(random);
    const auto &[costs, stages, microBatches] = problem;
    StageGraph graph = chainOf(costs);
    StageRanks ranks;
    for (size_t stage = 0; stage < stages; ++stage) {
      constexpr double kinds[] = {1, 1.5, 2, 3};
      ranks.slowness.push_back(kinds[random() % 4]);
    }
    auto timesOf = [&](const Begins &cut) {
      std::vector<double> times = stagesOf(problem.costs, cut);
      for (auto [time, slowness] : llvm::zip_equal(times, ranks.slowness))
        time *= slowness;
      return times;
    };
    auto stepOf = [&](const Begins &cut) {
      return simulated(timesOf(cut), problem.microBatches, 1.0 / 3);
    };
    double best = unlimited, leastWorst = unlimited;
    problem.forEach([&](const Begins &cut) {
      best = std::min(best, stepOf(cut));
      leastWorst = std::min(leastWorst, *llvm::max_element(timesOf(cut)));
    });
    const Begins even = valueOf(cutIntoStages(graph, stages, 0, ranks));
    EXPECT_LE(*llvm::max_element(timesOf(even)), leastWorst * (1 + 1e-9));
    const double found =
        stepOf(valueOf(cutForStep(graph, stages, microBatches, ranks)));
    EXPECT_LE(found, stepOf(even) * (1 + 1e-9));
    worst = std::max(worst, found / best);
    sum += found / best;
    mostGained = std::max(
        mostGained,
        stepOf(valueOf(cutForStep(graph, stages, microBatches))) / found);
  }
  EXPECT_LE(worst, 1.1);
  EXPECT_LE(sum / trials, 1.005);
  // Who takes all ranks for alike loses much.
  EXPECT_GT(mostGained, 1.5);
}

TEST(StepFormula, StagesTakeEqualSharesOfTheirRanksMemory) {
  StageGraph graph = chainOf(std::vector<double>(12, 1));
  for (size_t i = 0; i < 12; ++i) {
    graph.weightBytes.push_back(10);
    graph.nodes[i].weights = {static_cast<int32_t>(i)};
  }
  EXPECT_EQ(valueOf(cutForMemory(graph, 3, 4)), Begins({0, 4, 8}));
  EXPECT_EQ(valueOf(cutForMemory(graph, 3, 4, 0, {{}, {50, 25, 75}})),
            Begins({0, 4, 6}));
  // A rank with less memory gets what fits, and the rest the others.
  EXPECT_EQ(valueOf(cutForStep(graph, 3, 4, {{}, {100, 20, 100}})),
            Begins({0, 6, 8}));
}

TEST(StepFormula, LayersByHand) {
  StageGraph graph = chainOf({1, 1, 1, 1, 1, 1});
  graph.nodes[0].isLayer = graph.nodes[3].isLayer = false;
  EXPECT_EQ(valueOf(cutByLayers(graph, {1, 3})), Begins({0, 2}));
  EXPECT_EQ(valueOf(cutByLayers(graph, {2, 1, 1})), Begins({0, 4, 5}));
  EXPECT_EQ(messageOf(cutByLayers(graph, {1, 2})),
            "expects the layers of all stages to be the 4 of the model, but "
            "they are 3");
}

} // namespace
