//===- ArrivalsTests.cpp - What a stream knows to have come ---------------===//

#include "runtime/cuda/Arrivals.h"

#include <gtest/gtest.h>

using namespace pipewright::runtime;

static Arrivals::Item message(int64_t peer, int64_t number) {
  return {StepDigest::Kind::Receive, peer, number, {64 * number, 64}};
}

/// The peers and numbers.
static std::vector<std::pair<int64_t, int64_t>>
namesOf(const std::vector<Arrivals::Item> &items) {
  std::vector<std::pair<int64_t, int64_t>> names;
  for (const Arrivals::Item &item : items)
    names.emplace_back(item.place, item.number);
  return names;
}

using Names = std::vector<std::pair<int64_t, int64_t>>;

TEST(ArrivalsTest, WaitingForALaterOneHasTheEarlier) {
  Arrivals arrivals;
  arrivals.post(receiveFrom(1), 0, message(1, 0));
  arrivals.post(receiveFrom(1), 1, message(1, 1));
  arrivals.post(receiveFrom(1), 2, message(1, 2));
  EXPECT_EQ(namesOf(arrivals.wait(compute, 1)), (Names{{1, 0}, {1, 1}}));
  EXPECT_EQ(namesOf(arrivals.wait(compute, 0)), Names());
  EXPECT_EQ(namesOf(arrivals.wait(compute, 2)), (Names{{1, 2}}));
}

TEST(ArrivalsTest, StreamsTellWhatTheyWaitedFor) {
  Arrivals arrivals;
  arrivals.post(receiveFrom(2), 0, message(2, 0));
  // Before it waits a stream has nothing to tell.
  arrivals.record(sendTo(1), 1);
  EXPECT_EQ(namesOf(arrivals.wait(sendTo(1), 0)), (Names{{2, 0}}));
  arrivals.record(sendTo(1), 2);
  EXPECT_EQ(namesOf(arrivals.wait(compute, 1)), Names());
  EXPECT_EQ(namesOf(arrivals.wait(compute, 2)), (Names{{2, 0}}));
  // What comes behind a message on its stream tells of both.
  arrivals.record(compute, 3);
  EXPECT_EQ(namesOf(arrivals.wait(receiveFrom(3), 3)), (Names{{2, 0}}));
  arrivals.post(receiveFrom(3), 4, message(3, 0));
  EXPECT_EQ(namesOf(arrivals.wait(collective, 4)), (Names{{2, 0}, {3, 0}}));
}

TEST(ArrivalsTest, AStepBeginsWithNothing) {
  Arrivals arrivals;
  arrivals.post(receiveFrom(1), 0, message(1, 0));
  arrivals.clear();
  EXPECT_EQ(namesOf(arrivals.wait(compute, 0)), Names());
  arrivals.post(receiveFrom(1), 0, message(1, 0));
  EXPECT_EQ(namesOf(arrivals.wait(compute, 0)), (Names{{1, 0}}));
}
