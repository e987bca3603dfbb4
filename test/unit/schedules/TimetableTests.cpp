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
