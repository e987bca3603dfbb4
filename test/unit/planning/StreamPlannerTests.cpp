//===- StreamPlannerTests.cpp - Waits between streams ---------------------===//
//
// Small programs with the waits that they need and no more; and random ones,
// whose orders are counted out.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/StreamPlanner.h"

#include <gtest/gtest.h>
#include <random>

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

//===----------------------------------------------------------------------===//
// Random programs
//===----------------------------------------------------------------------===//

std::vector<StreamWork> randomProgram(std::mt19937 &random) {
  auto below = [&](size_t limit) { return random() % limit; };
  std::vector<StreamWork> program(3 + below(12));
  for (StreamWork &work : program) {
    work.stream = below(4);
    for (std::vector<ByteRange> *ranges : {&work.reads, &work.writes})
      for (size_t count = below(3); count > 0; --count)
        ranges->push_back({int64_t(below(8)), int64_t(1 + below(3))});
  }
  return program;
}

bool overlap(const std::vector<ByteRange> &some,
             const std::vector<ByteRange> &others) {
  for (const ByteRange &a : some)
    for (const ByteRange &b : others)
      if (a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes)
        return true;
  return false;
}

/// Whether two pieces of work do the same in either order.
bool commute(const StreamWork &a, const StreamWork &b) {
  return !overlap(a.writes, b.writes) && !overlap(a.writes, b.reads) &&
         !overlap(a.reads, b.writes);
}

/// Whether streams and waits order all that needs an order.
bool isOrdered(const std::vector<StreamWork> &program, const Waits &waits) {
  // By work: all that is over before it begins.
  std::vector<std::vector<bool>> before;
  std::vector<std::vector<bool>> ofStream(4, std::vector<bool>(program.size()));
  for (size_t work = 0; work < program.size(); ++work) {
    std::vector<bool> &mine = ofStream[program[work].stream];
    for (size_t wait : waits[work])
      for (size_t other = 0; other <= wait; ++other)
        mine[other] = mine[other] || other == wait || before[wait][other];
    before.push_back(mine);
    mine[work] = true;
    for (size_t other = 0; other < work; ++other)
      if (!before[work][other] && !commute(program[work], program[other]))
        return false;
  }
  return true;
}

TEST(StreamPlanner, OrdersRandomProgramsWithoutSuperfluousWaits) {
  std::mt19937 random(20);
  size_t total = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<StreamWork> program = randomProgram(random);
    Waits waits = planWaits(program);
    ASSERT_TRUE(isOrdered(program, waits)) << "round " << round;
    for (std::vector<size_t> &of : waits)
      for (size_t i = 0; i < of.size(); ++i, ++total) {
        size_t wait = of[i];
        of.erase(of.begin() + i);
        EXPECT_FALSE(isOrdered(program, waits)) << "round " << round;
        of.insert(of.begin() + i, wait);
      }
  }
  EXPECT_GT(total, 1000u);
}

} // namespace
