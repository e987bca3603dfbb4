//===- StreamPlannerTests.cpp - Waits between streams ---------------------===//
//
// Small programs with the waits that they need and no more.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/StreamPlanner.h"

#include <gtest/gtest.h>

using namespace pipewright;

namespace {

using Waits = std::vector<std::vector<size_t>>;

StreamWork reading(size_t stream, int64_t begin, int64_t bytes = 64) {
  return {stream, {{begin, bytes}}, {}};
}
StreamWork writing(size_t stream, int64_t begin, int64_t bytes = 64) {
  return {stream, {}, {{begin, bytes}}};
}

TEST(StreamPlanner, OneStreamNeverWaits) {
  EXPECT_EQ(planWaits({writing(0, 0), reading(0, 0), writing(0, 0)}),
            Waits({{}, {}, {}}));
}

TEST(StreamPlanner, ReadsWaitForWhatIsRead) {
  EXPECT_EQ(planWaits({writing(0, 0), reading(1, 0)}), Waits({{}, {0}}));
}

TEST(StreamPlanner, WritesWaitForReadsAndWrites) {
  EXPECT_EQ(planWaits({reading(0, 0), writing(1, 0), writing(2, 0)}),
            Waits({{}, {0}, {1}}));
}

TEST(StreamPlanner, ReadsNeedNotWaitForReads) {
  EXPECT_EQ(planWaits({reading(0, 0), reading(1, 0)}), Waits({{}, {}}));
}

TEST(StreamPlanner, BytesThatTouchAreNotShared) {
  EXPECT_EQ(
      planWaits({writing(0, 0, 64), writing(1, 64, 64), reading(2, 63, 2)}),
      Waits({{}, {}, {0, 1}}));
}

TEST(StreamPlanner, RangesWithoutBytesAreNotShared) {
  EXPECT_EQ(planWaits({writing(0, 0, 64), reading(1, 32, 0)}), Waits({{}, {}}));
}

// The stream has waited for later work of the other one.
TEST(StreamPlanner, WaitsAreNotRepeated) {
  EXPECT_EQ(planWaits({writing(0, 0), writing(0, 64), reading(1, 64),
                       reading(1, 0), reading(1, 64)}),
            Waits({{}, {}, {1}, {}, {}}));
}

// 0 -> 1 -> 2: who waits for 1 has waited for 0, too.
TEST(StreamPlanner, WaitsAreNotImplied) {
  StreamWork both = reading(2, 0);
  both.reads.push_back({64, 64});
  StreamWork relay = reading(1, 0);
  relay.writes.push_back({64, 64});
  EXPECT_EQ(planWaits({writing(0, 0), relay, both}), Waits({{}, {0}, {1}}));
}

// What a stream learnt before its work is known to who waits for the work.
TEST(StreamPlanner, WhatIsKnownIsPassedOn) {
  EXPECT_EQ(planWaits({writing(0, 0), reading(1, 0), writing(1, 64),
                       reading(2, 64), reading(2, 0)}),
            Waits({{}, {0}, {}, {2}, {}}));
}

// A wait is for the work that is needed, though others wait for a later one.
TEST(StreamPlanner, WaitsAreNotForLaterWork) {
  EXPECT_EQ(
      planWaits({writing(0, 0), writing(0, 64), reading(1, 64), reading(2, 0)}),
      Waits({{}, {}, {1}, {0}}));
}

} // namespace
