//===- AutoPolicyTests.cpp - Policies that plan with times ------*- C++ -*-===//
//
// `auto` against all named schedules on random stages, the published figures
// of planned zero bubble and of waves, and what is refused.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/BuiltSchedules.h"
#include "passes/schedules/Checker.h"
#include "passes/schedules/MessageOrder.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <limits>
#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

static int64_t peakInFlight(const Simulation &simulation) {
  int64_t peak = 0;
  for (const RankSummary &rank : simulation.ranks)
    peak = std::max(peak, rank.peakInFlight);
  return peak;
}

static int64_t peakStashBytes(const Simulation &simulation) {
  int64_t peak = 0;
  for (const RankSummary &rank : simulation.ranks)
    peak = std::max(peak, rank.peakStashBytes);
  return peak;
}

static std::string refusal(llvm::StringRef policy, int64_t ranks,
                           int64_t stages, int64_t microBatches) {
  llvm::Expected<PolicyChoice> choice = choosePolicy(policy);
  if (!choice)
    return messageOf(choice.takeError());
  return messageOf(
      (*choice)->build(choice->with({ranks, stages, microBatches})));
}

static bool splits(const Schedule &schedule) {
  return llvm::any_of(schedule.order, [](const auto &tasks) {
    return llvm::any_of(tasks, [](const Task &task) {
      return task.kind == TaskKind::WeightGradient;
    });
  });
}

//===----------------------------------------------------------------------===//
// auto
//===----------------------------------------------------------------------===//

namespace {

/// Random sizes, times and limits.
struct Problem {
  explicit Problem(unsigned seed);

  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  }
  ScheduleOptions sizes() const { return {ranks, stages, microBatches}; }
  ScheduleOptions autoOptions() const;
  bool isWithinLimits(const Simulation &simulation) const;

  std::mt19937 random;
  int64_t ranks, stages, microBatches;
  TaskCosts costs;
  std::vector<StageEdge> edges;
  /// Of shares and bytes, -1 for none.
  int64_t limit = -1, limitBytes = -1;
};

} // namespace

Problem::Problem(unsigned seed) : random(seed) {
  ranks = number(1, 6);
  stages = ranks * number(1, 4);
  microBatches = number(1, 4 * ranks);
  costs.stages.resize(stages);
  int64_t all = 0;
  for (StageCosts &stage : costs.stages) {
    stage.forward = between(0.5, 2);
    stage.inputGradient = stage.forward * between(0.8, 1.2);
    stage.weightGradient = stage.forward * between(0.5, 1.1);
    stage.backward =
        (stage.inputGradient + stage.weightGradient) * between(0.8, 1);
    stage.update = between(0, 0.2);
    stage.recomputesEarly = seed % 3 == 0;
    stage.recompute = stage.forward * 0.8;
    stage.stashBytes = number(10, 20);
    stage.weightStashBytes = number(5, 20);
    all += 20;
  }
  costs.linkLatency = between(0, 0.3);
  costs.linkBandwidth = 1000;
  edges = linearEdges(stages, number(0, 100));
  if (stages > 2)
    edges.push_back({0, static_cast<int32_t>(stages - 1), 50});
  switch (number(0, 3)) {
  case 0:
    limit = number(1, 2 * ranks);
    break;
  case 1:
    limitBytes = all * number(1, 3);
    break;
  default:
    break;
  }
}

ScheduleOptions Problem::autoOptions() const {
  ScheduleOptions options = sizes();
  if (limit >= 0)
    options.parameters.emplace_back("limit", limit);
  if (limitBytes >= 0)
    options.parameters.emplace_back("limit-bytes", limitBytes);
  options.costs = &costs;
  options.edges = edges;
  return options;
}

bool Problem::isWithinLimits(const Simulation &simulation) const {
  return (limit < 0 || peakInFlight(simulation) <= limit * (stages / ranks)) &&
         (limitBytes < 0 || peakStashBytes(simulation) <= limitBytes);
}

/// The best schedule that the user could get by name, wherever it puts stages.
static double bestNamedTime(const Problem &problem) {
  double best = std::numeric_limits<double>::infinity();
  for (const Policy *policy : allPolicies()) {
    ScheduleOptions options = problem.sizes();
    options.costs = &problem.costs;
    options.edges = problem.edges;
    if (policy == &autoPolicy() || policy->copies() != 1 ||
        policy->weightRule() != WeightRule::Synchronous || !policy->trains())
      continue;
    llvm::Expected<Schedule> schedule = policy->build(options);
    if (!schedule) {
      llvm::consumeError(schedule.takeError());
      continue;
    }
    if (!sumsAscending(*schedule))
      continue;
    Simulation simulation =
        valueOf(simulate(*schedule, problem.costs, problem.edges));
    if (problem.isWithinLimits(simulation))
      best = std::min(best, simulation.globalStepTime);
  }
  return best;
}

TEST(Auto, IsTheSameWithWhatOthersBuilt) {
  for (unsigned seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem problem(seed);
    ScheduleOptions options = problem.autoOptions();
    const Schedule alone = valueOf(autoPolicy().build(options));
    BuiltSchedules built;
    options.built = &built;
    const Schedule first = valueOf(autoPolicy().build(options)),
                   again = valueOf(autoPolicy().build(options));
    EXPECT_EQ(alone.order, first.order);
    EXPECT_EQ(alone.order, again.order);
    EXPECT_EQ(alone.origin, again.origin);
  }
}

TEST(BuiltSchedules, OneIsBuiltOnceWhateverItsName) {
  for (unsigned seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem problem(seed);
    ScheduleOptions options = problem.sizes();
    options.costs = &problem.costs;
    options.edges = problem.edges;
    BuiltSchedules built;
    for (const Policy *policy : allPolicies()) {
      // The costs are those of one copy; several updates need other sizes.
      if (policy->copies() != 1 || policy->updates(options) != 1)
        continue;
      llvm::Expected<Schedule> own = policy->build(options);
      if (!own) {
        llvm::consumeError(own.takeError());
        continue;
      }
      auto kept = valueOf(built.of(*policy, options));
      EXPECT_EQ(own->order, kept->schedule.order) << policy->name().str();
      EXPECT_EQ(kept, valueOf(built.of(policy->maker(options), options)))
          << policy->name().str();
      // Others are not mistaken for it.
      ScheduleOptions more = options;
      ++more.microBatches;
      EXPECT_NE(kept, valueOf(built.of(*policy, more)));
    }
  }
}

TEST(Auto, IsNeverWorseThanTheBestNamedWithinTheSameLimit) {
  int shorter = 0;
  for (unsigned seed = 0; seed < 250 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem problem(seed);
    Schedule schedule = valueOf(autoPolicy().build(problem.autoOptions()));
    EXPECT_EQ("", messageOf(checkSchedule(schedule, problem.edges)));
    EXPECT_NE("", schedule.origin);
    Simulation simulation =
        valueOf(simulate(schedule, problem.costs, problem.edges));
    EXPECT_TRUE(problem.isWithinLimits(simulation));
    double named = bestNamedTime(problem);
    EXPECT_LE(simulation.globalStepTime, named * (1 + 1e-9));
    shorter += simulation.globalStepTime < named * 0.999;
    InstructionLists lists =
        valueOf(orderMessages(schedule, problem.costs, problem.edges));
    EXPECT_EQ("", messageOf(checkInstructions(lists)));
    EXPECT_EQ("", messageOf(checkDataFlow(schedule, lists, problem.edges)));
  }
  // List schedules are worth their trouble.
  EXPECT_GT(shorter, 100);
}

TEST(Auto, IsNeverWorseThanTheBestNamedWithoutCosts) {
  // Sizes at which the placement matters, with and without a limit.
  for (int64_t ranks = 1; ranks <= 4; ++ranks)
    for (int64_t loops : {1, 2, 3})
      for (int64_t m = 1; m <= 3 * ranks + 1; ++m)
        for (int64_t limit : {int64_t(-1), ranks - 1, ranks, 2 * ranks + 1}) {
          if (limit == 0)
            continue;
          SCOPED_TRACE(llvm::formatv("{0} ranks, {1} loops, {2} micro-batches, "
                                     "limit {3}",
                                     ranks, loops, m, limit)
                           .str());
          Problem problem(0);
          problem.ranks = ranks;
          problem.stages = ranks * loops;
          problem.microBatches = m;
          problem.limit = limit;
          problem.limitBytes = -1;
          problem.costs = TaskCosts::uniform(problem.stages, 1, 2);
          problem.edges = linearEdges(problem.stages);
          ScheduleOptions options = problem.autoOptions();
          options.costs = nullptr;
          options.edges = {};
          Schedule schedule = valueOf(autoPolicy().build(options));
          Simulation simulation = valueOf(simulate(schedule, problem.costs));
          EXPECT_TRUE(problem.isWithinLimits(simulation));
          EXPECT_LE(simulation.globalStepTime, bestNamedTime(problem) + 1e-9);
        }
}

TEST(Auto, ComparesPlacementsWithAllMicroBatches) {
  // With 6 micro-batches a list schedule on a loop is as good as ZB-V.
  Schedule schedule = buildSchedule("auto:limit=3", 3, 6, 7);
  Simulation simulation =
      valueOf(simulate(schedule, TaskCosts::uniform(6, 1, 2)));
  EXPECT_LE(simulation.globalStepTime, 44);
}

TEST(Auto, PlacesWithCostsAsItBuildsWithThem) {
  for (unsigned seed = 0; seed < 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem problem(seed);
    ScheduleOptions options = problem.autoOptions();
    Schedule schedule = valueOf(autoPolicy().build(options));
    EXPECT_EQ(valueOf(autoPolicy().place(options)), schedule.rankOfStage);
  }
}

TEST(Auto, TakesWhatKeepsLeastOfEquallyFast) {
  EXPECT_EQ("1f1b", buildSchedule("auto:unsplit", 1, 3, 4).origin);
  EXPECT_EQ("1f1b", buildSchedule("auto:unsplit", 4, 4, 8).origin);
}

/// The drawing of Auto.cpp.
TEST(Auto, PlansAroundASlowStage) {
  TaskCosts costs = TaskCosts::uniform(4, 1, 2);
  costs.stages[0] = {2, 4, 2, 2};
  ScheduleOptions options{2, 4, 3};
  options.costs = &costs;
  Schedule schedule = valueOf(autoPolicy().build(options));
  EXPECT_EQ("list schedule, deepest forward first, I and W, 2P-1 stashes",
            schedule.origin);
  EXPECT_EQ(27, valueOf(simulate(schedule, costs)).globalStepTime);
}

TEST(Auto, SplitsNothingIfNotAllowed) {
  for (int64_t loops : {1, 2, 3}) {
    EXPECT_FALSE(splits(buildSchedule("auto:unsplit", 4, 4 * loops, 8)));
    EXPECT_TRUE(splits(buildSchedule("auto", 4, 4 * loops, 8)));
  }
}

TEST(Auto, ComparesInFullAtLargeSizes) {
  Problem problem(1);
  problem.ranks = problem.stages = 3;
  problem.microBatches = 12000;
  problem.costs.stages.resize(3);
  problem.costs.stages[1].forward = 1.5;
  problem.edges = linearEdges(3);
  problem.limit = 3;
  problem.limitBytes = -1;
  Schedule schedule = valueOf(autoPolicy().build(problem.autoOptions()));
  Simulation simulation =
      valueOf(simulate(schedule, problem.costs, problem.edges));
  EXPECT_TRUE(problem.isWithinLimits(simulation));
  EXPECT_LE(simulation.globalStepTime, bestNamedTime(problem) * (1 + 1e-9));
}

TEST(Auto, TakesAnyLimit) {
  for (const char *limit : {"1", "2", "9223372036854775807"})
    EXPECT_EQ("", refusal("auto:limit=" + std::string(limit), 3, 6, 5));
}

TEST(Auto, RefusesWhatCannotBe) {
  EXPECT_EQ("auto needs ranks x loops stages, but got 6 stages on 4 ranks",
            refusal("auto", 4, 6, 4));
  EXPECT_EQ("parameter 'limit' of schedule 'auto' expects at least 1, but got "
            "0",
            refusal("auto:limit=0", 4, 4, 4));
  EXPECT_EQ("parameter 'unsplit' of schedule 'auto' expects 0 or 1, but got 2",
            refusal("auto:unsplit=2", 4, 4, 4));
  EXPECT_EQ("auto:limit-bytes needs to know how large stashes are; use "
            "'limit', which counts micro-batches",
            refusal("auto:limit-bytes=100", 4, 4, 4));

  TaskCosts costs = TaskCosts::uniform(4, 1, 2);
  costs.stages[2].stashBytes = 1000;
  ScheduleOptions options{4, 4, 4, {{"limit-bytes", 999}}, &costs};
  EXPECT_EQ("rank 2 may keep 999 bytes of stashes, but needs at least 1000, "
            "those of one micro-batch",
            messageOf(autoPolicy().build(options)));
  options.parameters[0].second = 1000;
  EXPECT_EQ("", messageOf(autoPolicy().build(options)));
  StageEdge backwards{3, 1, 0};
  options.edges = backwards;
  EXPECT_EQ("edge 0 goes from stage 3 to stage 1 with 0 bytes, but expects a "
            "later one of 4 stages and no negative size",
            messageOf(autoPolicy().build(options)));
  options.edges = {};
  costs.stages.pop_back();
  EXPECT_EQ("expects the costs of 4 stages, but got 3",
            messageOf(autoPolicy().build(options)));
}

//===----------------------------------------------------------------------===//
// zb-auto, zb-1p, zb-2p
//===----------------------------------------------------------------------===//

namespace {
struct Overhead {
  double global, span;
  int64_t peak;
};
} // namespace

/// Beyond the work of a rank, with F, I and W alike.
static Overhead overheadOf(llvm::StringRef policy, int64_t ranks,
                           int64_t microBatches, double latency = 0) {
  TaskCosts costs = TaskCosts::uniform(ranks, 1, 2);
  costs.linkLatency = latency;
  PolicyChoice choice = valueOf(choosePolicy(policy));
  ScheduleOptions options = choice.with({ranks, ranks, microBatches});
  options.costs = &costs;
  Simulation simulation =
      valueOf(simulate(valueOf(choice->build(options)), costs));
  double work = 3 * static_cast<double>(microBatches);
  return {simulation.globalStepTime - work, simulation.spanStepTime - work,
          peakInFlight(simulation)};
}

/// As ZB-H1 with the same memory, and as ZB-H2 with one more stash.
TEST(ZeroBubbleAuto, ReachesTheHandMadeSchedules) {
  for (int64_t ranks : {2, 3, 4, 8, 16})
    for (int64_t microBatches : {2 * ranks - 1, 4 * ranks}) {
      SCOPED_TRACE(ranks);
      Overhead small = overheadOf("zb-1p", ranks, microBatches);
      EXPECT_DOUBLE_EQ(ranks - 1, small.global);
      EXPECT_GE(ranks, small.peak);
      Overhead large = overheadOf("zb-2p", ranks, microBatches);
      EXPECT_DOUBLE_EQ(ranks - 1, large.global);
      EXPECT_DOUBLE_EQ(0, large.span);
      EXPECT_GE(2 * ranks, large.peak);
    }
}

/// Measured times of the paper's models (1.5B, 6.2B, 14.6B, 28.3B),
/// milliseconds, their stashes by its formulas, 34 s h + 5 s^2 a bytes of a
/// sample and layer, of which W needs 32 s h, and its bubble rates.
TEST(ZeroBubbleAuto, HasThePublishedBubbleRates) {
  struct Run {
    int64_t ranks, microBatches;
    double forward, input, weight, latency;
    int64_t width, heads;
    double rate1p, rate2p;
  };
  for (const Run &run :
       {Run{8, 24, 18.522, 18.086, 9.337, 0.601, 2304, 24, 0.1585, 0.0433},
        Run{8, 32, 18.513, 18.086, 9.331, 0.626, 2304, 24, 0.1242, 0.0039},
        Run{8, 64, 18.546, 18.097, 9.321, 0.762, 2304, 24, 0.0674, 0.0026},
        Run{8, 24, 29.718, 29.444, 19.927, 0.527, 4096, 32, 0, 0.0029},
        Run{16, 48, 11.347, 11.248, 8.132, 0.377, 5120, 40, 0.1397, 0.0066},
        Run{32, 96, 10.419, 10.207, 7.715, 0.408, 6144, 48, 0.1421, 0.0038}}) {
    SCOPED_TRACE(run.width);
    TaskCosts costs =
        TaskCosts::uniform(run.ranks, run.forward, run.input + run.weight);
    for (StageCosts &stage : costs.stages) {
      stage.inputGradient = run.input;
      stage.weightGradient = run.weight;
      stage.stashBytes = 34 * 1024 * run.width + 5 * 1024 * 1024 * run.heads;
      stage.weightStashBytes = 32 * 1024 * run.width;
    }
    costs.linkLatency = run.latency;
    auto simulated = [&](const char *policy) {
      PolicyChoice choice = valueOf(choosePolicy(policy));
      ScheduleOptions options =
          choice.with({run.ranks, run.ranks, run.microBatches});
      options.costs = &costs;
      return valueOf(simulate(valueOf(choice->build(options)), costs));
    };
    const double work = static_cast<double>(run.microBatches) *
                        (run.forward + run.input + run.weight);
    const Simulation less = simulated("zb-1p"), more = simulated("zb-2p:span");
    EXPECT_LE(less.spanStepTime, simulated("zb-h1").spanStepTime);
    if (run.rate1p > 0)
      EXPECT_NEAR(run.rate1p, 1 - work / less.spanStepTime, 0.0001);
    EXPECT_NEAR(run.rate2p, 1 - work / more.spanStepTime, 0.0002);
    for (const RankSummary &rank : more.ranks)
      EXPECT_LE(rank.peakStashBytes,
                2 * run.ranks * costs.stages[0].stashBytes);
  }
}

TEST(ZeroBubbleAuto, SpendsMemoryOnLatency) {
  double before = std::numeric_limits<double>::infinity();
  for (const char *limit :
       {"zb-auto:limit=4", "zb-auto:limit=8", "zb-auto:limit=16"}) {
    double now = overheadOf(limit, 8, 32, 0.25).global;
    EXPECT_LT(now, before);
    before = now;
  }
  // The facts' figure for ZB-H2.
  EXPECT_DOUBLE_EQ(8.75, before);
}

TEST(ZeroBubbleAuto, KeepsAnyLimit) {
  for (int64_t limit : {1, 2, 3, 5, 100}) {
    std::string text = "zb-auto:limit=" + std::to_string(limit);
    EXPECT_GE(std::min<int64_t>(limit, 12), overheadOf(text, 4, 12).peak);
  }
  EXPECT_EQ("zb-auto needs a limit of at least 1 stash, but got 0",
            refusal("zb-auto:limit=0", 4, 4, 4));
  EXPECT_EQ("zb-2p needs exactly 1 stage per rank, but got 8 stages on 4 "
            "ranks; use interleaved or --loops 1",
            refusal("zb-2p", 4, 8, 4));
}

TEST(ZeroBubbleAuto, PlansAnyTimes) {
  for (unsigned seed = 0; seed < 150 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem problem(seed);
    problem.stages = problem.ranks;
    problem.costs.stages.resize(problem.stages);
    problem.edges = linearEdges(problem.stages, 40);
    ScheduleOptions options = problem.sizes();
    options.costs = &problem.costs;
    options.edges = problem.edges;
    Schedule schedule = valueOf(zeroBubble1pPolicy().build(options));
    EXPECT_EQ("", messageOf(checkSchedule(schedule, problem.edges)));
    const Simulation simulation =
        valueOf(simulate(schedule, problem.costs, problem.edges));
    for (auto [rank, stage] :
         llvm::zip_equal(simulation.ranks, problem.costs.stages)) {
      if (stage.weightStashBytes >= 0 &&
          stage.weightStashBytes < stage.stashBytes)
        EXPECT_GE(problem.ranks * stage.stashBytes, rank.peakStashBytes);
      else
        EXPECT_GE(problem.ranks, rank.peakInFlight);
    }
  }
}

//===----------------------------------------------------------------------===//
// hanayo
//===----------------------------------------------------------------------===//

/// The greedy figures of the facts, M = P, tB = 2tF.
TEST(Hanayo, HasThePublishedBubbles) {
  struct Figure {
    int64_t ranks, waves;
    double bubble;
  };
  for (auto [ranks, waves, bubble] :
       {Figure{4, 1, 0.333}, Figure{4, 2, 0.213}, Figure{4, 4, 0.119},
        Figure{8, 1, 0.368}, Figure{8, 2, 0.238}, Figure{8, 4, 0.135}}) {
    Schedule schedule =
        buildSchedule("hanayo", ranks, 2 * waves * ranks, ranks);
    Simulation simulation =
        valueOf(simulate(schedule, TaskCosts::uniform(schedule.stages, 1, 2)));
    double work = 3.0 * 2 * waves * ranks;
    EXPECT_NEAR(bubble, 1 - work / simulation.globalStepTime, 0.0005);
  }
}

TEST(Hanayo, RunsInWaves) {
  EXPECT_EQ(Placement({0, 1, 1, 0, 0, 1, 1, 0}),
            buildSchedule("hanayo", 2, 8, 2).rankOfStage);
  EXPECT_EQ("hanayo needs an even number of stages per rank, but got 3; use "
            "--loops 4",
            refusal("hanayo", 2, 6, 2));
  EXPECT_EQ("hanayo needs ranks x loops stages, but got 5 stages on 2 ranks",
            refusal("hanayo", 2, 5, 2));
}
