//===- TimetableTests.cpp - Drawn timetables, compared whole ----*- C++ -*-===//
//
// These are also the pictures to look at when a policy changes.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Timetable.h"

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

TEST(Timetable, OneFOneB) {
  EXPECT_EQ(
      R"(4 ranks, 4 micro-batches, 14 slots; cells: F forward, B backward, then the micro-batch
rank 0 | F0 F1 F2 F3          B0    B1    B2    B3
rank 1 |    F0 F1 F2       B0 F3 B1    B2    B3
rank 2 |       F0 F1    B0 F2 B1 F3 B2    B3
rank 3 |          F0 B0 F1 B1 F2 B2 F3 B3
)",
      printTimetable(buildSchedule("1f1b", 4, 4, 4)));
}

TEST(Timetable, GPipe) {
  EXPECT_EQ(
      R"(4 ranks, 4 micro-batches, 14 slots; cells: F forward, B backward, then the micro-batch
rank 0 | F0 F1 F2 F3                   B0 B1 B2 B3
rank 1 |    F0 F1 F2 F3             B0 B1 B2 B3
rank 2 |       F0 F1 F2 F3       B0 B1 B2 B3
rank 3 |          F0 F1 F2 F3 B0 B1 B2 B3
)",
      printTimetable(buildSchedule("gpipe", 4, 4, 4)));
}

TEST(Timetable, EagerOneFOneB) {
  EXPECT_EQ(
      R"(3 ranks, 5 micro-batches, 14 slots; cells: F forward, B backward, then the micro-batch
rank 0 | F0 F1 F2 F3 F4 B0    B1    B2    B3    B4
rank 1 |    F0 F1 F2 B0 F3 B1 F4 B2    B3    B4
rank 2 |       F0 B0 F1 B1 F2 B2 F3 B3 F4 B4
)",
      printTimetable(buildSchedule("eager-1f1b", 3, 3, 5)));
}

TEST(Timetable, Interleaved) {
  EXPECT_EQ(
      R"(2 ranks, 4 stages, 4 micro-batches, 18 slots; cells: F forward, B backward, then stage.micro-batch
rank 0 | F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1      B2.2      B2.3 B0.2 B0.3
rank 1 |      F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F1.3 B1.1 F3.2 B3.2 F3.3 B3.3 B1.2 B1.3
)",
      printTimetable(buildSchedule("interleaved", 2, 4, 4)));
}

TEST(Timetable, ZBH1) {
  EXPECT_EQ(
      R"(4 ranks, 6 micro-batches, 21 slots; cells: F forward, I input gradient, W weight gradient, then the micro-batch
rank 0 | F0 F1 F2 F3          I0 W0 F4 I1 W1 F5 I2 W2 I3 W3 I4 W4 I5 W5
rank 1 |    F0 F1 F2       I0 F3 I1 W0 F4 I2 W1 F5 I3 W2 I4 W3 I5 W4 W5
rank 2 |       F0 F1    I0 F2 I1 F3 I2 W0 F4 I3 W1 F5 I4 W2 I5 W3 W4 W5
rank 3 |          F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 F5 I5 W2 W3 W4 W5
)",
      printTimetable(buildSchedule("zb-h1", 4, 4, 6)));
}

TEST(Timetable, ZBH2) {
  EXPECT_EQ(
      R"(3 ranks, 6 micro-batches, 20 slots; cells: F forward, I input gradient, W weight gradient, then the micro-batch
rank 0 | F0 F1 F2 F3 F4 I0 W0 F5 I1 W1 I2 W2 I3 W3 I4 W4 I5 W5
rank 1 |    F0 F1 F2 I0 F3 I1 F4 I2 W0 F5 I3 W1 I4 W2 I5 W3 W4 W5
rank 2 |       F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 F5 I5 W1 W2 W3 W4 W5
)",
      printTimetable(buildSchedule("zb-h2", 3, 3, 6)));
}

TEST(Timetable, InterleavedZB) {
  EXPECT_EQ(
      R"(2 ranks, 4 stages, 4 micro-batches, 25 slots; cells: F forward, I input gradient, W weight gradient, then stage.micro-batch
rank 0 | F0.0 F0.1 F2.0 F2.1      I2.0 W2.0 F0.2 I2.1 W2.1 F0.3 I0.0 W0.0 F2.2 I0.1 W0.1 F2.3 I2.2 W2.2 I2.3 W2.3 I0.2 W0.2 I0.3 W0.3
rank 1 |      F1.0 F1.1 F3.0 I3.0 F3.1 I3.1 W3.0 F1.2 I1.0 W3.1 F1.3 I1.1 W1.0 F3.2 I3.2 W1.1 F3.3 I3.3 W3.2 I1.2 W3.3 I1.3 W1.2 W1.3
)",
      printTimetable(buildSchedule("interleaved-zb", 2, 4, 4)));
}

TEST(Timetable, ForwardOnly) {
  EXPECT_EQ(
      R"(2 ranks, 4 stages, 4 micro-batches, 9 slots; cells: F forward, then stage.micro-batch
rank 0 | F0.0 F0.1 F2.0 F2.1 F0.2 F0.3 F2.2 F2.3
rank 1 |      F1.0 F1.1 F3.0 F3.1 F1.2 F1.3 F3.2 F3.3
)",
      printTimetable(buildSchedule("forward-only", 2, 4, 4)));
}

TEST(Timetable, BreadthFirstNamesStages) {
  EXPECT_EQ(
      R"(2 ranks, 4 stages, 3 micro-batches, 14 slots; cells: F forward, B backward, then stage.micro-batch
rank 0 | F0.0 F0.1 F0.2 F2.0 F2.1 F2.2           B2.0 B2.1 B2.2 B0.0 B0.1 B0.2
rank 1 |      F1.0 F1.1 F1.2 F3.0 F3.1 F3.2 B3.0 B3.1 B3.2 B1.0 B1.1 B1.2
)",
      printTimetable(buildSchedule("breadth-first", 2, 4, 3)));
}

TEST(Timetable, LongTasksAreContinued) {
  Schedule schedule = buildSchedule("1f1b", 2, 2, 2);
  Simulation simulation =
      valueOf(simulate(schedule, TaskCosts::uniform(2, 0.002, 0.004)));
  EXPECT_EQ(
      R"(2 ranks, 2 micro-batches, 9 slots; cells: F forward, B backward, then the micro-batch; one slot is 2.00 ms
rank 0 | F0 F1       B0---    B1---
rank 1 |    F0 B0--- F1 B1---
)",
      printTimetable(schedule, &simulation));
}

TEST(Timetable, OneOfEach) {
  EXPECT_EQ(
      R"(1 rank, 1 micro-batch, 2 slots; cells: F forward, B backward, then the micro-batch
rank 0 | F0 B0
)",
      printTimetable(buildSchedule("gpipe", 1, 1, 1)));
}

TEST(Timetable, RankNumbersAreAligned) {
  std::string text = printTimetable(buildSchedule("gpipe", 12, 12, 1));
  EXPECT_NE(std::string::npos, text.find("\nrank  0 | F0 "));
  EXPECT_NE(std::string::npos, text.find("\nrank 11 | "));
}

TEST(Timetable, AnOrderThatCannotRunIsDrawnWithoutTimes) {
  Schedule schedule = buildSchedule("gpipe", 2, 2, 1);
  std::swap(schedule.order[0][0], schedule.order[0][1]);
  EXPECT_EQ(
      R"(2 ranks, 1 micro-batch, 2 slots; cells: F forward, B backward, then the micro-batch
rank 0 | B0 F0
rank 1 | F0 B0
no times, as it cannot run: rank 0 runs B0.0 before F0.0, which it needs
)",
      printTimetable(schedule));
}
