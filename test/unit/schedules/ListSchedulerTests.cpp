//===- ListSchedulerTests.cpp - Orders out of times and limits --*- C++ -*-===//
//
// Properties over random placements, edges, times and limits; the priorities;
// what is refused.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/ListScheduler.h"
#include "passes/schedules/MessageOrder.h"

#include <algorithm>
#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

/// Breadth first: forwards before backwards, and each stage by stage.
static ListPriority preferForward() {
  return [](const Task &task) -> int64_t {
    bool isForward = task.kind == TaskKind::Forward;
    int64_t kind = isForward ? 0 : task.producesGradient() ? 1 : 2;
    int64_t stage = isForward ? task.stage : 1000 - task.stage;
    return (kind * 1000 + stage) * 1000 + task.microBatch;
  };
}

static Schedule frameOf(int64_t ranks, Placement placement,
                        int64_t microBatches) {
  Schedule frame;
  frame.ranks = ranks;
  frame.stages = static_cast<int64_t>(placement.size());
  frame.microBatches = microBatches;
  frame.rankOfStage = std::move(placement);
  return frame;
}

static void appendUpdates(Schedule &schedule) {
  for (int32_t stage = 0; stage < schedule.stages; ++stage)
    schedule.order[schedule.rankOfStage[stage]].push_back(Task::update(stage));
}

static Schedule listed(Schedule frame, const ListOptions &options) {
  EXPECT_EQ("", messageOf(orderByList(frame, options)));
  appendUpdates(frame);
  return frame;
}

static std::string orderOf(const Schedule &schedule, int32_t rank) {
  std::string names;
  for (const Task &task : schedule.order[rank])
    names += (names.empty() ? "" : " ") + task.name();
  return names;
}

static std::string refusal(Schedule frame, const ListOptions &options) {
  return messageOf(orderByList(frame, options));
}

namespace {

/// A random problem; `options` points into it.
struct Problem {
  explicit Problem(unsigned seed);

  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  /// The least that one micro-batch needs on a rank, counted out.
  RankLimit leastLimit(int32_t rank) const;

  std::mt19937 random;
  Schedule frame;
  std::vector<StageEdge> edges;
  TaskCosts costs;
  ListOptions options;
};

} // namespace

Problem::Problem(unsigned seed) : random(seed) {
  int64_t ranks = number(1, 5), stages = number(ranks, 4 * ranks);
  Placement placement(stages);
  for (int32_t &rank : placement)
    rank = static_cast<int32_t>(number(0, ranks - 1));
  frame = frameOf(ranks, placement, number(1, 10));

  edges = linearEdges(stages, number(0, 3));
  for (int64_t more = number(0, 3); more > 0 && stages > 1; --more) {
    auto from = static_cast<int32_t>(number(0, stages - 2));
    auto to = static_cast<int32_t>(number(from + 1, stages - 1));
    edges.push_back({from, to, number(0, 5), number(0, 1) == 1});
  }
  costs.stages.resize(stages);
  for (StageCosts &stage : costs.stages) {
    stage.forward = static_cast<double>(number(0, 4));
    stage.inputGradient = static_cast<double>(number(0, 4));
    stage.weightGradient = static_cast<double>(number(0, 3));
    stage.backward = stage.inputGradient + stage.weightGradient;
    stage.stashBytes = number(0, 9);
    stage.weightStashBytes = number(-1, 12);
  }
  costs.linkLatency = 0.3 * static_cast<double>(number(0, 2));
  costs.linkBandwidth = static_cast<double>(number(2, 10));

  options.costs = &costs;
  options.edges = edges;
  options.splitsBackward = number(0, 1) == 1;
  options.patience = 0.5 * static_cast<double>(number(0, 2));
  int64_t salt = number(1, 1 << 20);
  ListPriority arbitrary = [=](const Task &task) -> int64_t {
    return (task.stage * 7919 + task.microBatch * 104729 +
            static_cast<int64_t>(task.kind) * 31) *
           salt % 65537;
  };
  const ListPriority priorities[] = {preferBackward(), preferForward(),
                                     preferBackwardInGroups(ranks), arbitrary};
  options.priority = priorities[number(0, 3)];
  options.limits.resize(ranks);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    RankLimit least = leastLimit(rank);
    RankLimit &limit = options.limits[rank];
    if (number(0, 2) > 0)
      limit.inFlight = least.inFlight + number(0, 2);
    if (number(0, 2) > 0)
      limit.stashBytes = least.stashBytes + number(0, 10);
  }
}

RankLimit Problem::leastLimit(int32_t rank) const {
  RankLimit least{0, 0};
  int64_t below = 0;
  for (int32_t stage = 0; stage < frame.stages; ++stage) {
    if (frame.rankOfStage[stage] != rank)
      continue;
    const StageCosts &cost = costs.stages[stage];
    int64_t peak = cost.stashBytes;
    if (options.splitsBackward)
      peak = std::max(peak, cost.weightStashBytes);
    ++least.inFlight;
    least.stashBytes = std::max(least.stashBytes, below + peak);
    below += cost.stashBytes;
  }
  return least;
}

TEST(ListScheduler, AnyLimitThatOneMicroBatchFitsInIsKept) {
  for (unsigned seed = 0; seed < 1500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem problem(seed);
    Schedule schedule = listed(problem.frame, problem.options);
    EXPECT_EQ("", messageOf(checkSchedule(schedule, problem.edges)));
    Simulation simulation =
        valueOf(simulate(schedule, problem.costs, problem.edges));
    for (auto [limit, rank] :
         llvm::zip(problem.options.limits, simulation.ranks)) {
      if (limit.inFlight >= 0) {
        EXPECT_LE(rank.peakInFlight, limit.inFlight);
      }
      if (limit.stashBytes >= 0) {
        EXPECT_LE(rank.peakStashBytes, limit.stashBytes);
      }
    }
  }
}

TEST(ListScheduler, ItsMessagesAreSafe) {
  for (unsigned seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem problem(seed);
    Schedule schedule = listed(problem.frame, problem.options);
    InstructionLists lists =
        valueOf(orderMessages(schedule, problem.costs, problem.edges));
    EXPECT_EQ("", messageOf(checkInstructions(lists)));
    EXPECT_EQ("", messageOf(checkDataFlow(schedule, lists, problem.edges)));
  }
}

TEST(ListScheduler, EachKindAscendsOnEachStage) {
  for (unsigned seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem problem(seed);
    Schedule schedule = listed(problem.frame, problem.options);
    std::vector<int32_t> next(schedule.stages * numTaskKinds);
    for (const std::vector<Task> &tasks : schedule.order)
      for (const Task &task : tasks)
        EXPECT_EQ(next[task.stage * numTaskKinds +
                       static_cast<unsigned>(task.kind)]++,
                  task.microBatch);
  }
}

TEST(ListScheduler, SameInputSameOrder) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Problem problem(seed), again(seed);
    EXPECT_TRUE(listed(problem.frame, problem.options).order ==
                listed(again.frame, again.options).order);
  }
}

namespace {

/// Any candidate, fit or not, or none.
class RandomRule final : public ListRule {
public:
  explicit RandomRule(unsigned seed) : random(seed) {}

  int choose(int32_t rank, double now,
             llvm::ArrayRef<ListCandidate> candidates) override {
    return std::uniform_int_distribution<int>(
        -1, static_cast<int>(candidates.size()) - 1)(random);
  }

private:
  std::mt19937 random;
};

} // namespace

TEST(ListScheduler, NoRuleGetsItStuck) {
  for (unsigned seed = 0; seed < 500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem problem(seed);
    RandomRule rule(seed);
    Schedule schedule = problem.frame;
    EXPECT_EQ("", messageOf(orderByRule(schedule, problem.options, rule)));
    appendUpdates(schedule);
    EXPECT_EQ("", messageOf(checkSchedule(schedule, problem.edges)));
  }
}

TEST(ListScheduler, OnlyWhatTakesLongerIsGivenUp) {
  for (unsigned seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem problem(seed);
    const Schedule whole = listed(problem.frame, problem.options);
    const double step =
        valueOf(simulate(whole, problem.costs, problem.edges)).globalStepTime;
    ListOptions options = problem.options;
    options.most = step * kListRounding;
    const Schedule same = listed(problem.frame, options);
    for (int32_t rank = 0; rank < whole.ranks; ++rank)
      EXPECT_EQ(orderOf(whole, rank), orderOf(same, rank));
    options.most = step * 0.999;
    Schedule none = problem.frame;
    EXPECT_EQ("", messageOf(orderByList(none, options)));
    EXPECT_TRUE(none.order.empty());
  }
}

TEST(ListScheduler, ItsTimesAreTheSimulators) {
  /// Never idle without need, unlike the one above.
  class FirstFit final : public ListRule {
  public:
    int choose(int32_t rank, double now,
               llvm::ArrayRef<ListCandidate> candidates) override {
      for (auto [i, candidate] : llvm::enumerate(candidates))
        if (candidate.fits)
          return static_cast<int>(i);
      return -1;
    }
    void started(int32_t rank, const Task &task, double start,
                 double end) override {
      last = std::max(last, end);
    }
    double last = 0;
  };
  for (unsigned seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem problem(seed);
    FirstFit rule;
    Schedule schedule = problem.frame;
    EXPECT_EQ("", messageOf(orderByRule(schedule, problem.options, rule)));
    appendUpdates(schedule);
    EXPECT_NEAR(rule.last,
                valueOf(simulate(schedule, problem.costs, problem.edges))
                    .globalStepTime,
                1e-9);
  }
}

TEST(ListScheduler, BackwardFirstWithinFallingLimitsIsOneFOneB) {
  Schedule expected = buildSchedule("1f1b", 4, 4, 7);
  ListOptions options;
  for (int64_t rank = 0; rank < 4; ++rank)
    options.limits.push_back({4 - rank});
  Schedule schedule = listed(frameOf(4, linearPlacement(4, 4), 7), options);
  for (int32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(orderOf(expected, rank), orderOf(schedule, rank));
}

TEST(ListScheduler, ForwardFirstIsBreadthFirst) {
  Schedule expected = buildSchedule("breadth-first", 3, 6, 5);
  ListOptions options;
  options.priority = preferForward();
  Schedule schedule = listed(frameOf(3, loopPlacement(6, 3), 5), options);
  for (int32_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(orderOf(expected, rank), orderOf(schedule, rank));
}

TEST(ListScheduler, GroupsComeStageByStage) {
  ListOptions options;
  options.priority = preferBackwardInGroups(2);
  EXPECT_EQ("F0.0 F0.1 F2.0 F2.1 F0.2 F0.3 B2.0 B2.1 B0.0 B0.1 F2.2 F2.3 "
            "B2.2 B2.3 B0.2 B0.3 U0 U2",
            orderOf(listed(frameOf(2, loopPlacement(4, 2), 4), options), 0));
}

/// What is on its way is known when its producer starts, which is early enough
/// here.
TEST(ListScheduler, FollowsAnotherScheduleAsLongAsPatienceLasts) {
  for (llvm::StringRef name : {"gpipe", "breadth-first"}) {
    Schedule other = buildSchedule(name, 3, 3, 5);
    ListOptions options;
    options.priority = preferAsIn(other);
    options.patience = 1000;
    Schedule schedule = listed(frameOf(3, other.rankOfStage, 5), options);
    for (int32_t rank = 0; rank < 3; ++rank)
      EXPECT_EQ(orderOf(other, rank), orderOf(schedule, rank));
  }
}

/// Rank 0 could start W0.0 just before the gradient that rank 1 is about to
/// send; with patience it runs I0.1 first.
TEST(ListScheduler, PatienceWaitsForWhatItPrefers) {
  TaskCosts costs = TaskCosts::uniform(2, 1, 2);
  costs.stages[0].weightGradient = 4;
  costs.linkLatency = 0.5;
  ListOptions options;
  options.costs = &costs;
  options.splitsBackward = true;
  Schedule frame = frameOf(2, linearPlacement(2, 2), 2);
  EXPECT_EQ("F0.0 F0.1 I0.0 W0.0 I0.1 W0.1 U0",
            orderOf(listed(frame, options), 0));
  options.patience = 0.5;
  EXPECT_EQ("F0.0 F0.1 I0.0 I0.1 W0.0 W0.1 U0",
            orderOf(listed(frame, options), 0));
}

TEST(ListScheduler, OrdersEvaluation) {
  Schedule frame = frameOf(2, loopPlacement(4, 2), 3);
  frame.forwardOnly = true;
  EXPECT_EQ("", messageOf(orderByList(frame, {})));
  EXPECT_EQ("F0.0 F0.1 F2.0 F2.1 F0.2 F2.2", orderOf(frame, 0));
}

TEST(ListScheduler, RefusesLimitsThatOneMicroBatchDoesNotFitIn) {
  Schedule frame = frameOf(2, loopPlacement(4, 2), 3);
  TaskCosts costs = TaskCosts::uniform(4);
  for (StageCosts &stage : costs.stages)
    stage.stashBytes = 100;
  ListOptions options;
  options.costs = &costs;
  options.limits = {{2}, {1}};
  EXPECT_EQ("rank 1 may keep 1 stashes in flight, but needs at least 2, one "
            "of each of its stages",
            refusal(frame, options));
  options.limits = {{-1, 199}, {}};
  EXPECT_EQ("rank 0 may keep 199 bytes of stashes, but needs at least 200, "
            "those of one micro-batch",
            refusal(frame, options));
  options.limits = {{-1, 200}, {}};
  EXPECT_EQ("", refusal(frame, options));
}

TEST(ListScheduler, RefusesWhatIsNotWellFormed) {
  Schedule frame = frameOf(2, loopPlacement(4, 2), 3);
  TaskCosts costs = TaskCosts::uniform(3);
  ListOptions options;
  options.costs = &costs;
  EXPECT_EQ("expects the costs of 4 stages, but got 3",
            refusal(frame, options));
  options = {};
  options.limits = {{4}};
  EXPECT_EQ("expects limits of 2 ranks, but got 1", refusal(frame, options));
  options = {};
  StageEdge backwards{2, 1, 0};
  options.edges = backwards;
  EXPECT_EQ("edge 0 goes from stage 2 to stage 1 with 0 bytes, but expects a "
            "later one of 4 stages and no negative size",
            refusal(frame, options));
  EXPECT_EQ("stage 1 is on rank 1, but there are 1 ranks",
            refusal(frameOf(1, loopPlacement(4, 2), 3), {}));
  Schedule twoCopies = frame;
  twoCopies.copies = 2;
  twoCopies.microBatches = 4;
  EXPECT_EQ("the list scheduler expects one copy of the model and one update "
            "per step, but got 2 and 1",
            refusal(twoCopies, {}));
}
