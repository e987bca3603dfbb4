//===- VerificationTableTests.cpp - Costs to the last digit -----*- C++ -*-===//
//
// Overheads and peaks of the named schedules beside figures of an independent
// event simulation: 8 ranks, 32 micro-batches, F, I and W of a rank's whole
// share take 1 each, hops between ranks 0, 0.10 and 0.25. Then the formulas for
// what latency and recomputing cost.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include <algorithm>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

/// The overhead is what the step takes beyond the work of one rank. A unit of
/// the peak is what a rank's whole share keeps of one micro-batch.
struct Row {
  const char *policy;
  /// Of the model, so 1 where each rank has a stage of two copies.
  int64_t stagesPerRank;
  double overhead, overheadAt10, overheadAt25;
  double peakUnits;
  /// Of the span, without latency; negative where none is stated.
  double spanOverhead = -1;
};

/// What a failed row is called.
std::ostream &operator<<(std::ostream &stream, const Row &row) {
  return stream << row.policy << ", " << row.stagesPerRank
                << " stages per rank";
}

class VerificationTable : public ::testing::TestWithParam<Row> {};

} // namespace

TEST_P(VerificationTable, IsReproduced) {
  const Row &row = GetParam();
  constexpr int64_t ranks = 8, microBatches = 32;
  double share = 1. / row.stagesPerRank;
  Schedule schedule =
      buildSchedule(row.policy, ranks, ranks * row.stagesPerRank, microBatches);
  TaskCosts costs = costsOf(schedule, {share, share, share});
  for (auto [latency, overhead] :
       {std::pair(0., row.overhead), std::pair(0.10, row.overheadAt10),
        std::pair(0.25, row.overheadAt25)}) {
    SCOPED_TRACE(latency);
    costs.linkLatency = latency;
    Simulation simulation = valueOf(simulate(schedule, costs));
    EXPECT_NEAR(overhead, simulation.globalStepTime - 3 * microBatches, 1e-9);
    int64_t peak = 0;
    for (const RankSummary &rank : simulation.ranks)
      peak = std::max(peak, rank.peakInFlight);
    EXPECT_EQ(row.peakUnits, peak * share);
    if (latency == 0 && row.spanOverhead >= 0) {
      EXPECT_NEAR(row.spanOverhead, simulation.spanStepTime - 3 * microBatches,
                  1e-9);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    EightRanks, VerificationTable,
    ::testing::Values(Row{"gpipe", 1, 21.00, 22.40, 24.50, 32},
                      Row{"1f1b", 1, 21.00, 27.80, 38.00, 8},
                      Row{"eager-1f1b", 1, 21.00, 22.40, 24.50, 15},
                      Row{"interleaved", 2, 10.50, 13.50, 18.00, 11.5},
                      Row{"interleaved:group=16", 2, 10.50, 11.90, 14.00, 15.5},
                      Row{"interleaved", 4, 5.25, 11.45, 20.75, 9.75},
                      Row{"breadth-first", 2, 10.50, 11.90, 14.00, 32},
                      Row{"breadth-first", 4, 5.25, 6.65, 8.75, 32},
                      Row{"zb-h1", 1, 7.00, 9.80, 14.00, 8},
                      Row{"interleaved-zb", 2, 3.50, 7.10, 12.50, 8},
                      Row{"zb-h2", 1, 7.00, 7.70, 8.75, 15, 0},
                      Row{"zb-v", 2, 3.50, 6.80, 11.75, 8, 0},
                      Row{"v-half", 2, 13.00, 16.60, 22.00, 5},
                      Row{"v-min", 2, 13.50, 32.30, 60.50, 4},
                      Row{"dualpipev", 2, 7.00, 14.70, 27.00, 8.5},
                      Row{"dualpipe", 1, 6.00, 9.70, 15.25, 9},
                      Row{"chimera", 1, 30.00, 35.50, 43.75, 8}));

static double stepTime(const Schedule &schedule, const TaskCosts &costs) {
  return valueOf(simulate(schedule, costs)).globalStepTime;
}

TEST(Latency, OneFOneBPaysTwoHopsPerPeriodAndRankButOne) {
  for (int64_t ranks : {4, 8})
    for (double latency : {0.1, 0.25, 0.5}) {
      TaskCosts costs = TaskCosts::uniform(ranks, 1, 2);
      costs.linkLatency = latency;
      double shorter =
          stepTime(buildSchedule("1f1b", ranks, ranks, 4 * ranks), costs);
      double longer =
          stepTime(buildSchedule("1f1b", ranks, ranks, 5 * ranks), costs);
      EXPECT_NEAR(1 + 2 + 2 * latency * (ranks - 1) / ranks,
                  (longer - shorter) / ranks, 1e-9);
    }
}

TEST(Latency, EagerOneFOneBPaysOnceThereAndBack) {
  for (int64_t ranks : {4, 8})
    for (double latency : {0.1, 0.25, 0.5}) {
      TaskCosts costs = TaskCosts::uniform(ranks, 1, 2);
      costs.linkLatency = latency;
      Schedule schedule = buildSchedule("eager-1f1b", ranks, ranks, 4 * ranks);
      EXPECT_NEAR((5 * ranks - 1) * 3 + 2 * (ranks - 1) * latency,
                  stepTime(schedule, costs), 1e-9);
    }
}

namespace {

struct Recomputing {
  int64_t ranks, microBatches;
  /// Within the backward; in a task of its own before it; the same without
  /// the micro-batch whose backward comes right after its forward.
  double late, early, exceptLast;
};

} // namespace

/// An R before each backward that `recomputes`.
static Schedule
withRecompute(Schedule schedule,
              llvm::function_ref<bool(const Task &)> recomputes) {
  for (std::vector<Task> &tasks : schedule.order) {
    std::vector<Task> order;
    for (const Task &task : tasks) {
      if (task.kind == TaskKind::Backward && recomputes(task))
        order.push_back(Task::recompute(task.stage, task.microBatch));
      order.push_back(task);
    }
    tasks = std::move(order);
  }
  return schedule;
}

static bool recomputesAll(const Task &) { return true; }

TEST(Recompute, EarlyHidesItInTheBubble) {
  double forward = 1, backward = 2;
  for (const Recomputing &row :
       {Recomputing{4, 8, 44, 41, 40}, Recomputing{8, 32, 156, 149, 148}}) {
    int64_t ranks = row.ranks, count = row.microBatches;
    Schedule gpipe = buildSchedule("gpipe:descending", ranks, ranks, count);
    TaskCosts early = TaskCosts::uniform(ranks, forward, backward);
    TaskCosts late = TaskCosts::uniform(ranks, forward, forward + backward);
    double earlyFormula = (count + ranks - 1) * forward +
                          count * (forward + backward) + (ranks - 1) * backward;
    EXPECT_EQ(row.late, (count + ranks - 1) * (2 * forward + backward));
    EXPECT_EQ(row.early, earlyFormula);
    EXPECT_EQ(row.late, stepTime(gpipe, late));
    EXPECT_EQ(row.early, stepTime(withRecompute(gpipe, recomputesAll), early));
    // All but the micro-batch that ran forward last.
    auto exceptLast = [&](const Task &task) {
      return task.microBatch + 1 < count;
    };
    EXPECT_EQ(row.exceptLast,
              stepTime(withRecompute(gpipe, exceptLast), early));
  }
}

// The last rank keeps one micro-batch at a time, and has nothing to gain.
TEST(Recompute, IsHiddenInTheBubbleOf1F1BAndNotWorthItOnTheLastRank) {
  struct Row {
    int64_t ranks, microBatches;
    double none, late, lateExceptLast, early, earlyExceptLast;
  };
  for (const Row &row :
       {Row{4, 8, 33, 44, 42, 41, 39}, Row{8, 32, 117, 156, 154, 149, 147}}) {
    const int64_t ranks = row.ranks, count = row.microBatches;
    Schedule plain = buildSchedule("1f1b", ranks, ranks, count);
    TaskCosts early = TaskCosts::uniform(ranks, 1, 2);
    EXPECT_EQ(row.none, stepTime(plain, early));
    TaskCosts late = TaskCosts::uniform(ranks, 1, 3);
    EXPECT_EQ(row.late, stepTime(plain, late));
    late.stages.back().backward = 2;
    EXPECT_EQ(row.lateExceptLast, stepTime(plain, late));
    EXPECT_EQ(row.early, count * 4 + (ranks - 1) * 3);
    EXPECT_EQ(row.early, stepTime(withRecompute(plain, recomputesAll), early));
    auto exceptLastRank = [&](const Task &task) {
      return task.stage + 1 < ranks;
    };
    EXPECT_EQ(row.earlyExceptLast,
              stepTime(withRecompute(plain, exceptLastRank), early));
  }
}
