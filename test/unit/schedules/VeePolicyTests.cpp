//===- VeePolicyTests.cpp - V shapes, two copies, stale weights -*- C++ -*-===//
//
// What sets these policies apart from one copy of a straight pipeline: spans,
// peaks and bubbles as published, versions of weights, and that no task times
// whatever break them. The properties of all policies are in PolicyTests.cpp.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/MessageOrder.h"
#include "passes/schedules/Timetable.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

/// One slot per task, and two per B.
constexpr UnitTimes unitTimes = {1, 1, 1};

} // namespace

static std::string namesOf(const std::vector<Task> &tasks) {
  std::string names;
  for (const Task &task : tasks)
    names += task.name() + (task.overlapsNext ? "&" : " ");
  return names;
}

static std::string refusalOf(llvm::StringRef policy, int64_t ranks,
                             int64_t stages, int64_t microBatches) {
  PolicyChoice choice = valueOf(choosePolicy(policy));
  return messageOf(choice->build(choice.with({ranks, stages, microBatches})));
}

static Simulation simulateUnit(const Schedule &schedule) {
  return valueOf(simulate(schedule, costsOf(schedule, unitTimes)));
}

static std::vector<int64_t> peaksOf(const Schedule &schedule) {
  std::vector<int64_t> peaks;
  for (const RankSummary &rank : simulateUnit(schedule).ranks)
    peaks.push_back(rank.peakInFlight);
  return peaks;
}

static int64_t highestPeak(const Schedule &schedule) {
  std::vector<int64_t> peaks = peaksOf(schedule);
  return *std::max_element(peaks.begin(), peaks.end());
}

/// Calls `visit(policy, options)` for the policies of this file, at sizes that
/// they accept.
template <typename Visit>
static void forEachOfOurs(Visit visit) {
  for (const char *name : {"zb-v", "v-half", "v-min", "dualpipev", "dualpipe",
                           "chimera", "pipedream", "pipedream-2bw"}) {
    const Policy &policy = *valueOf(findPolicy(name));
    int cases = 0;
    for (int64_t ranks : {1, 2, 3, 4, 6})
      for (int64_t microBatches = 1; microBatches <= 4 * ranks;
           ++microBatches) {
        ScheduleOptions options = {ranks, ranks * policy.defaultLoops(),
                                   microBatches};
        if (!messageOf(policy.place(options)).empty())
          continue;
        SCOPED_TRACE(std::string(name) + ", " + std::to_string(ranks) +
                     " ranks, " + std::to_string(microBatches) +
                     " micro-batches");
        visit(policy, options);
        ++cases;
        if (::testing::Test::HasFailure())
          return;
      }
    EXPECT_GT(cases, 5) << name;
  }
}

//===----------------------------------------------------------------------===//
// ZB-V
//===----------------------------------------------------------------------===//

TEST(ZBV, WaitsForNothingBetweenFirstAndLastTask) {
  for (int64_t ranks : {1, 2, 3, 4, 8})
    for (int64_t m : {2 * ranks - 1, 2 * ranks, 4 * ranks}) {
      Schedule schedule = buildSchedule("zb-v", ranks, 2 * ranks, m);
      Simulation simulation = simulateUnit(schedule);
      EXPECT_EQ(6 * m, simulation.spanStepTime);
      EXPECT_EQ(6 * m + ranks - 1, simulation.globalStepTime);
      EXPECT_EQ(std::vector<int64_t>(ranks, 2 * ranks), peaksOf(schedule));
    }
}

TEST(ZBV, LeavesOutMicroBatchesThatDoNotExist) {
  Schedule schedule = buildSchedule("zb-v", 2, 4, 1);
  EXPECT_EQ("F0.0 F3.0 I3.0 W3.0 I0.0 W0.0 U0 U3 ", namesOf(schedule.order[0]));
  EXPECT_EQ("F1.0 F2.0 I2.0 W2.0 I1.0 W1.0 U1 U2 ", namesOf(schedule.order[1]));
}

TEST(ZBV, IsDrawn) {
  EXPECT_EQ(
      R"(2 ranks, 4 stages, 3 micro-batches, 19 slots; cells: F forward, I input gradient, W weight gradient, then stage.micro-batch
rank 0 | F0.0 F0.1 F0.2 F3.0 I3.0 W3.0 F3.1 I3.1 W3.1 I0.0 W0.0 F3.2 I3.2 W3.2 I0.1 W0.1 I0.2 W0.2
rank 1 |      F1.0 F2.0 F1.1 F2.1 I2.0 W2.0 F1.2 I1.0 W1.0 F2.2 I2.1 W2.1 I1.1 I2.2 I1.2 W1.1 W2.2 W1.2
)",
      printTimetable(buildSchedule("zb-v", 2, 4, 3)));
}

//===----------------------------------------------------------------------===//
// V-Half, V-Min
//===----------------------------------------------------------------------===//

TEST(VeePattern, PeaksAreAHalfAndAThird) {
  for (int64_t ranks : {1, 2, 3, 4, 5, 6, 7, 8, 12}) {
    SCOPED_TRACE(ranks);
    EXPECT_EQ(
        2 * ((ranks + 2) / 2),
        highestPeak(buildSchedule("v-half", ranks, 2 * ranks, 4 * ranks)));
    EXPECT_EQ(2 * ((ranks + 4) / 3),
              highestPeak(buildSchedule("v-min", ranks, 2 * ranks, 4 * ranks)));
  }
  // In micro-batches, as published: 4 and 8 ranks.
  EXPECT_EQ(3 * 2, highestPeak(buildSchedule("v-half", 4, 8, 16)));
  EXPECT_EQ(2 * 2, highestPeak(buildSchedule("v-min", 4, 8, 16)));
  EXPECT_EQ(5 * 2, highestPeak(buildSchedule("v-half", 8, 16, 32)));
  EXPECT_EQ(4 * 2, highestPeak(buildSchedule("v-min", 8, 16, 32)));
}

TEST(VeePattern, EachTaskComesOncePerPeriodInTheMiddle) {
  // Away from both ends, the same six tasks in the same order again and again.
  for (const char *policy : {"v-half", "v-min"})
    for (int64_t ranks : {2, 3, 4, 8}) {
      Schedule schedule = buildSchedule(policy, ranks, 2 * ranks, 6 * ranks);
      for (const std::vector<Task> &tasks : schedule.order)
        for (int64_t i = 12 * ranks; i + 6 < 24 * ranks; ++i) {
          EXPECT_EQ(tasks[i].kind, tasks[i + 6].kind);
          EXPECT_EQ(tasks[i].stage, tasks[i + 6].stage);
          EXPECT_EQ(tasks[i].microBatch + 1, tasks[i + 6].microBatch);
        }
    }
}

TEST(VHalf, IsDrawn) {
  EXPECT_EQ(
      R"(2 ranks, 4 stages, 2 micro-batches, 17 slots; cells: F forward, I input gradient, W weight gradient, then stage.micro-batch
rank 0 | F0.0           F3.0 F0.1 I3.0 W3.0 F3.1           I0.0 I3.1 W3.1 W0.0      I0.1 W0.1
rank 1 |      F1.0 F2.0           F1.1 F2.1 I2.0 W2.0 I1.0 W1.0      I2.1 W2.1 I1.1 W1.1
)",
      printTimetable(buildSchedule("v-half", 2, 4, 2)));
}

TEST(VMin, IsDrawn) {
  EXPECT_EQ(
      R"(2 ranks, 4 stages, 2 micro-batches, 15 slots; cells: F forward, I input gradient, W weight gradient, then stage.micro-batch
rank 0 | F0.0           F3.0 I3.0 W3.0 F0.1 I0.0 W0.0 F3.1 I3.1 W3.1      I0.1 W0.1
rank 1 |      F1.0 F2.0           I2.0 I1.0 F1.1 F2.1 W2.0 W1.0 I2.1 I1.1 W2.1 W1.1
)",
      printTimetable(buildSchedule("v-min", 2, 4, 2)));
}

//===----------------------------------------------------------------------===//
// DualPipe, DualPipeV
//===----------------------------------------------------------------------===//

TEST(DualPipe, BubbleIsTheRepositorysWhereTasksTakeTheSame) {
  // (P/2-1)(F&B + B - 3W) over all micro-batches.
  for (int64_t ranks : {2, 4, 6, 8})
    for (int64_t m = 2 * ranks; m <= 4 * ranks; m += 2) {
      Schedule schedule = buildSchedule("dualpipe", ranks, ranks, m);
      EXPECT_EQ(3 * m + (ranks / 2 - 1) * (3 + 2 - 3),
                simulateUnit(schedule).globalStepTime);
      EXPECT_EQ(std::vector<int64_t>(ranks, ranks + 1), peaksOf(schedule));
    }
}

TEST(DualPipeV, BubbleIsTheRepositorysWhereTasksTakeTheSame) {
  for (int64_t ranks : {1, 2, 3, 4, 8})
    for (int64_t m = 2 * ranks; m <= 4 * ranks; ++m) {
      Schedule schedule = buildSchedule("dualpipev", ranks, 2 * ranks, m);
      EXPECT_EQ(6 * m + (ranks - 1) * (3 + 2 - 3),
                simulateUnit(schedule).globalStepTime);
      EXPECT_EQ(std::vector<int64_t>(ranks, 2 * ranks + 1), peaksOf(schedule));
    }
}

TEST(DualPipe, EachHalfOfTheMicroBatchesHasItsCopy) {
  Schedule schedule = buildSchedule("dualpipe", 4, 4, 8);
  EXPECT_EQ(8, schedule.stages);
  EXPECT_EQ(2, schedule.copies);
  // Stage 0 of the first copy and stage 3 of the second.
  EXPECT_EQ("F0.0 F0.1 F0.2 F7.4 I7.4 W7.4 F7.5 F0.3&B7.5 F7.6&B0.0 B7.6 "
            "F7.7&B0.1 B7.7 I0.2 W0.2 I0.3 W0.3 U0 U7 ",
            namesOf(schedule.order[0]));
  // In the middle the first forward and backward are no pair.
  EXPECT_EQ("F1.0 F6.4 F1.1 F6.5 F1.2 B6.4 F6.6&B1.0 F1.3&B6.5 F6.7&B1.1 B6.6 "
            "B1.2 I6.7 I1.3 W6.7 W1.3 U1 U6 ",
            namesOf(schedule.order[1]));
}

TEST(DualPipe, BothEndsMirrorEachOther) {
  Schedule schedule = buildSchedule("dualpipe", 6, 6, 14);
  auto mirrored = [](Task task) {
    task.stage = (task.stage + 6) % 12;
    if (task.kind != TaskKind::Update)
      task.microBatch = (task.microBatch + 7) % 14;
    return task;
  };
  for (int rank = 0; rank < 3; ++rank)
    for (size_t i = 0; i + 2 < schedule.order[rank].size(); ++i) {
      const Task &task = schedule.order[rank][i];
      const Task &opposite = schedule.order[5 - rank][i];
      EXPECT_EQ(mirrored(task), opposite);
      EXPECT_EQ(task.overlapsNext, opposite.overlapsNext);
    }
}

TEST(DualPipeV, IsDrawn) {
  EXPECT_EQ(
      R"(2 ranks, 4 stages, 4 micro-batches, 26 slots; cells: F forward, B backward, I input gradient, W weight gradient, then stage.micro-batch
rank 0 | F0.0 F0.1 F0.2 F3.0 I3.0 W3.0 F3.1 F0.3&B3.1-----      F3.2&B0.0----- B3.2-----      F3.3&B0.1----- B3.3----- I0.2 W0.2 I0.3 W0.3
rank 1 |      F1.0 F2.0 F1.1 F2.1 F1.2 B2.0----- F2.2&B1.0----- F1.3&B2.1----- F2.3&B1.1----- B2.2----- B1.2-----      I2.3 I1.3 W2.3 W1.3
)",
      printTimetable(buildSchedule("dualpipev", 2, 4, 4)));
}

TEST(DualPipeV, BubbleIsTheRepositorysWherePairsAreFaster) {
  // F and B of a pair in 2 slots instead of 3. The last rank has most pairs.
  for (int64_t ranks : {2, 3, 4, 8}) {
    int64_t m = 4 * ranks;
    Schedule schedule = buildSchedule("dualpipev", ranks, 2 * ranks, m);
    TaskCosts costs = costsOf(schedule, unitTimes);
    costs.pairFactor = 2. / 3;
    int64_t pairs = llvm::count_if(schedule.order.back(), [](const Task &task) {
      return task.overlapsNext;
    });
    EXPECT_EQ(2 * (m - ranks) - 1, pairs);
    EXPECT_NEAR(6 * m - pairs + (ranks - 1) * (2 + 2 - 3),
                valueOf(simulate(schedule, costs)).globalStepTime, 1e-9);
  }
}

//===----------------------------------------------------------------------===//
// Chimera
//===----------------------------------------------------------------------===//

TEST(Chimera, BubbleOfOneUnitIsThePapers) {
  for (int64_t ranks : {2, 4, 6, 8}) {
    Schedule schedule = buildSchedule("chimera", ranks, ranks, ranks);
    double n = ranks, d = ranks;
    for (auto [backward, bubble] :
         {std::pair(1., (d - 2) / (2 * n + d - 2)),
          std::pair(2., (d - 2) / (1.5 * n + d - 2))}) {
      TaskCosts costs = TaskCosts::uniform(schedule.stages, 1, backward);
      double time = valueOf(simulate(schedule, costs)).globalStepTime;
      EXPECT_NEAR(bubble, 1 - n * (1 + backward) / time, 1e-12);
    }
  }
}

TEST(Chimera, PeaksRiseTowardsTheMiddle) {
  EXPECT_EQ(std::vector<int64_t>({5, 6, 7, 8, 8, 7, 6, 5}),
            peaksOf(buildSchedule("chimera", 8, 8, 32)));
}

TEST(Chimera, IsDrawn) {
  EXPECT_EQ(
      R"(4 ranks, 8 stages, 4 micro-batches, 10 slots; cells: F forward, B backward, then stage.micro-batch
rank 0 | F0.0 F0.1      F7.2 B7.2 F7.3 B7.3 B0.0      B0.1
rank 1 |      F1.0 F6.2 F1.1 F6.3 B6.2 B1.0 B6.3 B1.1
rank 2 |      F5.2 F2.0 F5.3 F2.1 B2.0 B5.2 B2.1 B5.3
rank 3 | F4.2 F4.3      F3.0 B3.0 F3.1 B3.1 B4.2      B4.3
)",
      printTimetable(buildSchedule("chimera", 4, 4, 4)));
}

//===----------------------------------------------------------------------===//
// PipeDream, PipeDream-2BW
//===----------------------------------------------------------------------===//

TEST(PipeDream, UpdatesAfterEachBackward) {
  Schedule schedule = buildSchedule("pipedream", 2, 2, 3);
  EXPECT_EQ("F0.0 F0.1 B0.0 U0 F0.2 B0.1 U0.1 B0.2 U0.2 ",
            namesOf(schedule.order[0]));
  EXPECT_EQ("F1.0 B1.0 U1 F1.1 B1.1 U1.1 F1.2 B1.2 U1.2 ",
            namesOf(schedule.order[1]));
}

TEST(PipeDream, ForwardsReadAsDefined) {
  for (int64_t ranks : {1, 2, 3, 4, 8})
    for (int64_t microBatches = 1; microBatches <= 3 * ranks; ++microBatches) {
      Schedule schedule =
          buildSchedule("pipedream", ranks, ranks, microBatches);
      for (int64_t stage = 0; stage < ranks; ++stage) {
        std::vector<int32_t> versions = weightVersions(schedule, stage);
        for (int64_t m = 0; m < microBatches; ++m)
          EXPECT_EQ(std::max<int64_t>(0, m - (ranks - 1 - stage)), versions[m]);
        EXPECT_EQ(std::min(ranks - stage, microBatches),
                  keptVersions(schedule, stage));
      }
    }
}

TEST(PipeDream, OneRankTrainsPlainly) {
  Schedule schedule = buildSchedule("pipedream", 1, 2, 2);
  EXPECT_EQ("F0.0 F1.0 B1.0 U1 B0.0 U0 F0.1 F1.1 B1.1 U1.1 B0.1 U0.1 ",
            namesOf(schedule.order[0]));
  for (int32_t stage : {0, 1}) {
    EXPECT_EQ(std::vector<int32_t>({0, 1}), weightVersions(schedule, stage));
    EXPECT_EQ(1, keptVersions(schedule, stage));
  }
}

TEST(PipeDream2BW, UpdatesAfterEachBatch) {
  Schedule schedule = buildSchedule("pipedream-2bw", 2, 2, 6);
  EXPECT_EQ("F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2 U0 F0.4 B0.3 F0.5 B0.4 B0.5 "
            "U0.1 ",
            namesOf(schedule.order[0]));
  EXPECT_EQ("F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 U1 F1.3 B1.3 F1.4 B1.4 F1.5 B1.5 "
            "U1.1 ",
            namesOf(schedule.order[1]));
}

TEST(PipeDream2BW, EachBatchReadsOneUpdateBehindAndTwoVersionsAreKept) {
  for (int64_t ranks : {1, 2, 3, 4, 8})
    for (int64_t batches : {1, 2, 3, 5})
      for (int64_t perBatch : {ranks, ranks + 1, 2 * ranks}) {
        Schedule schedule =
            buildSchedule("pipedream-2bw:batches=" + std::to_string(batches),
                          ranks, ranks, batches * perBatch);
        EXPECT_EQ("", messageOf(checkSchedule(schedule)));
        for (int64_t stage = 0; stage < ranks; ++stage) {
          std::vector<int32_t> versions = weightVersions(schedule, stage);
          for (int64_t m = 0; m < batches * perBatch; ++m)
            EXPECT_EQ(m / perBatch - 1, versions[m]);
          EXPECT_EQ(2, keptVersions(schedule, stage));
        }
      }
}

TEST(PipeDream2BW, AForwardNeedsTheUpdateBeforeTheLast) {
  // With as many micro-batches per batch as ranks, the first rank's first
  // forward of batch 2 comes between the updates of batches 0 and 1.
  Schedule schedule = buildSchedule("pipedream-2bw:batches=3", 2, 2, 6);
  EXPECT_EQ("", messageOf(checkSchedule(schedule)));
  std::vector<Task> &tasks = schedule.order[0];
  auto update = llvm::find(tasks, Task::update(0, 0));
  auto forward = llvm::find(tasks, Task::forward(0, 4));
  ASSERT_LT(update, forward);
  std::rotate(update, update + 1, forward + 1);
  EXPECT_EQ("rank 0 runs F0.4 before U0, which it needs",
            messageOf(checkSchedule(schedule)));
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

TEST(VeePolicies, SayWhatTheyNeed) {
  EXPECT_EQ("zb-v needs exactly 2 stages per rank, but got 3; use --loops 2",
            refusalOf("zb-v", 2, 6, 4));
  EXPECT_EQ("v-min needs exactly 2 stages per rank, but got 1; use --loops 2",
            refusalOf("v-min", 4, 4, 4));
  EXPECT_EQ("v-half needs ranks x loops stages, but got 5 stages on 2 ranks",
            refusalOf("v-half", 2, 5, 4));
  EXPECT_EQ("dualpipev needs exactly 2 stages per rank, but got 4; use "
            "--loops 2",
            refusalOf("dualpipev", 2, 8, 4));
  EXPECT_EQ("dualpipev needs at least 2P micro-batches, which is 8 on 4 ranks, "
            "but got 7",
            refusalOf("dualpipev", 4, 8, 7));
  EXPECT_EQ("dualpipe needs exactly 1 stage per rank, but got 2; use --loops 1",
            refusalOf("dualpipe", 4, 8, 8));
  EXPECT_EQ("dualpipe needs an even number of ranks, but got 3",
            refusalOf("dualpipe", 3, 3, 8));
  EXPECT_EQ("dualpipe needs an even number of micro-batches, at least 2P, "
            "which is 8 on 4 ranks, but got 9",
            refusalOf("dualpipe", 4, 4, 9));
  EXPECT_EQ("dualpipe needs an even number of micro-batches, at least 2P, "
            "which is 8 on 4 ranks, but got 6",
            refusalOf("dualpipe", 4, 4, 6));
  EXPECT_EQ("chimera needs an even number of ranks, but got 1",
            refusalOf("chimera", 1, 1, 4));
  EXPECT_EQ("chimera needs a multiple of P micro-batches, which is 4 ranks, "
            "but got 6",
            refusalOf("chimera", 4, 4, 6));
  EXPECT_EQ("pipedream needs exactly 1 stage per rank, but got 4 stages on 2 "
            "ranks; use interleaved or --loops 1",
            refusalOf("pipedream", 2, 4, 4));
  EXPECT_EQ("pipedream-2bw needs at least 1 batch in a step, but got batches=0",
            refusalOf("pipedream-2bw:batches=0", 2, 2, 4));
  EXPECT_EQ("pipedream-2bw needs as many micro-batches in each of its 2 "
            "batches, at least P, but got 6 micro-batches on 4 ranks; use a "
            "multiple of 2 from 8 on, or pipedream-2bw:batches=N",
            refusalOf("pipedream-2bw", 4, 4, 6));
  EXPECT_EQ("pipedream-2bw needs as many micro-batches in each of its 2 "
            "batches, at least P, but got 5 micro-batches on 2 ranks; use a "
            "multiple of 2 from 4 on, or pipedream-2bw:batches=N",
            refusalOf("pipedream-2bw", 2, 2, 5));
}

TEST(VeePolicies, FormulasHoldForAnyTaskTimes) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.1, 3);
  int stated = 0;
  forEachOfOurs([&](const Policy &policy, const ScheduleOptions &options) {
    Schedule schedule = valueOf(policy.build(options));
    for (int i = 0; i < 4; ++i) {
      UnitTimes times = {seconds(random), seconds(random), seconds(random)};
      if (auto expected = policy.stepTime(options, times)) {
        double time = valueOf(simulate(schedule, costsOf(schedule, times)))
                          .globalStepTime;
        EXPECT_NEAR(*expected, time, 1e-9);
        ++stated;
      }
    }
  });
  EXPECT_GT(stated, 500);
}

/// What one more micro-batch adds to the step.
static double periodOf(const Policy &policy, ScheduleOptions options,
                       const UnitTimes &times) {
  double seconds[2];
  for (double &time : seconds) {
    Schedule schedule = valueOf(policy.build(options));
    time = valueOf(simulate(schedule, costsOf(schedule, times))).globalStepTime;
    options.microBatches += 2;
  }
  return (seconds[1] - seconds[0]) / 2;
}

TEST(VeePolicies, OneMoreMicroBatchCostsItsWorkAlone) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> seconds(0.1, 3);
  for (const char *name : {"zb-v", "v-half", "dualpipev", "dualpipe"}) {
    int cases = 0;
    const Policy &policy = *valueOf(findPolicy(name));
    for (int64_t ranks : {2, 4, 8})
      for (int i = 0; i < 6; ++i) {
        UnitTimes times = {seconds(random), seconds(random), seconds(random)};
        // V-Half's condition, as published.
        bool isHalf = policy.name() == "v-half";
        if (isHalf && times.weightGradient <
                          2 * std::abs(times.forward - times.inputGradient))
          continue;
        int64_t loops = policy.defaultLoops();
        EXPECT_NEAR(loops * (times.forward + times.backward()),
                    periodOf(policy, {ranks, ranks * loops, 4 * ranks}, times),
                    1e-9)
            << name;
        ++cases;
      }
    EXPECT_GT(cases, 3) << name;
  }
}

TEST(VeePolicies, OneMoreMicroBatchCostsMoreWhereThePatternDoesNotFit) {
  const Policy &half = *valueOf(findPolicy("v-half"));
  const Policy &min = *valueOf(findPolicy("v-min"));
  EXPECT_LT(2 * (1 + 2 + 1) + 0.1, periodOf(half, {4, 8, 16}, {1, 2, 1}));
  EXPECT_LT(2 * (1 + 1.5 + 1) + 0.1, periodOf(min, {4, 8, 16}, {1, 1.5, 1}));
}

/// Each stage, task and link takes its own time.
static TaskCosts randomCosts(const Schedule &schedule, std::mt19937 &random) {
  std::uniform_real_distribution<double> seconds(0, 3);
  TaskCosts costs = costsOf(schedule, unitTimes);
  for (StageCosts &stage : costs.stages)
    for (double *time : {&stage.forward, &stage.backward, &stage.inputGradient,
                         &stage.weightGradient, &stage.update})
      *time = seconds(random);
  for (int32_t from = 0; from < schedule.ranks; ++from)
    for (int32_t to = 0; to < schedule.ranks; ++to)
      costs.links[{from, to}] = {seconds(random), 1 + seconds(random)};
  costs.pairFactor = 0.5 + seconds(random) / 6;
  return costs;
}

TEST(VeePolicies, AreSafeForAnyTaskTimes) {
  std::mt19937 random(11);
  forEachOfOurs([&](const Policy &policy, const ScheduleOptions &options) {
    Schedule schedule = valueOf(policy.build(options));
    ASSERT_EQ("", messageOf(checkSchedule(schedule)));
    std::vector<StageEdge> edges =
        linearEdges(schedule.stages, /*bytes=*/1, schedule.copies);
    for (int i = 0; i < 2; ++i) {
      TaskCosts costs = randomCosts(schedule, random);
      for (const auto &[layout, name, description, pytorch] : channelLayouts) {
        InstructionLists lists =
            valueOf(orderMessages(schedule, costs, edges, layout));
        EXPECT_EQ("", messageOf(checkInstructions(lists, {layout, {}})));
        EXPECT_EQ("", messageOf(checkDataFlow(schedule, lists, edges)));
      }
      Simulation simulation = valueOf(simulate(schedule, costs, edges));
      for (int64_t rank = 0; rank < schedule.ranks; ++rank)
        EXPECT_GE(policy.maxInFlight(options, rank),
                  simulation.ranks[rank].peakInFlight);
    }
  });
}
