//===- StepTimesTests.cpp - What steps took lately ------------------------===//

#include "runtime/train/StepTimes.h"

#include <gtest/gtest.h>

using namespace pipewright::runtime;

TEST(StepTimes, TheFirstStepCountsAlone) {
  StepTimes times;
  EXPECT_TRUE(times.isEmpty());
  times.add(9);
  EXPECT_EQ(times.median(), 9);
  times.add(1);
  EXPECT_EQ(times.median(), 1);
  times.add(3);
  times.add(2);
  EXPECT_EQ(times.median(), 2);
}

TEST(StepTimes, OnlyTheLastStepsAreKept) {
  StepTimes times;
  for (size_t i = 0; i < StepTimes::capacity; ++i)
    times.add(9);
  for (size_t i = 0; i < StepTimes::capacity; ++i)
    times.add(static_cast<double>(i));
  EXPECT_EQ(times.median(), StepTimes::capacity / 2);
}
