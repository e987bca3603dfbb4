//===- ThreadConformanceTests.cpp - Threads keep the contract -------------===//

#include "test/conformance/Checks.h"
#include "test/conformance/Limits.h"
#include "test/conformance/Scenarios.h"

#include "runtime/core/Error.h"
#include "runtime/net/Collectives.h"
#include "runtime/net/ThreadTransport.h"

#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <thread>

using namespace pipewright::runtime;

/// What each rank's body threw; "" when it ended well.
static std::vector<std::string>
runRanks(int64_t ranks, const std::function<void(Transport &)> &body) {
  ThreadWorld world(ranks);
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      ThreadTransport transport(world, r);
      transport.setDeadline(hangSeconds);
      try {
        body(transport);
      } catch (const std::exception &error) {
        errors[r] = error.what();
        transport.abort(error.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

class ThreadConformance
    : public ::testing::TestWithParam<std::tuple<int64_t, Scenario>> {};

TEST_P(ThreadConformance, Holds) {
  const auto &[ranks, scenario] = GetParam();
  EXPECT_EQ(runRanks(ranks, scenario.run), std::vector<std::string>(ranks));
}

INSTANTIATE_TEST_SUITE_P(All, ThreadConformance,
                         ::testing::Combine(::testing::Values(2, 4),
                                            ::testing::ValuesIn(scenarios())),
                         scenarioName);

INSTANTIATE_TEST_SUITE_P(
    Collectives, ThreadConformance,
    ::testing::Combine(::testing::Values(4, 8),
                       ::testing::ValuesIn(collectiveScenarios())),
    scenarioName);

TEST(ThreadTransport, AbortWakesWhoWaitsAndKeepsTheFirstMessage) {
  ThreadWorld world(3);
  std::vector<std::thread> threads;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t r = 0; r < 3; ++r)
    threads.emplace_back([&, r] {
      ThreadTransport transport(world, r);
      char byte = 0;
      if (r == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        transport.abort("the first");
        transport.abort("the second");
        return;
      }
      if (r == 1) {
        transport.postReceive(0, &byte, 1);
        EXPECT_THROW(transport.waitReceive(0), Aborted);
      } else {
        EXPECT_THROW(transport.barrier(), Aborted);
      }
      EXPECT_THROW(transport.poll(), Aborted);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, soon);
  EXPECT_EQ(world.failure(), "the first");
}

TEST(ThreadTransport, BarrierDeadlineNamesWhoIsMissing) {
  const auto errors = runRanks(3, [](Transport &t) {
    t.setDeadline(0.2);
    if (t.rank() != 1)
      t.barrier();
  });
  const std::string both = errors[0] + errors[2];
  EXPECT_NE(both.find("waits for rank 1: end of the step"), std::string::npos)
      << both;
}

TEST(ThreadCollectives, AMemberThatFailsTakesTheOthersDown) {
  // They outlive all ranks, as an arena does.
  std::vector<std::vector<float>> ranges(4, std::vector<float>(400));
  std::vector<std::vector<float>> scratch = ranges;
  const Collective what = {CollectiveKind::AllReduce, ElementType::F32,
                           evenBounds(400, 4)};
  const auto errors = runRanks(4, [&](Transport &t) {
    if (t.rank() == 2)
      fail("it broke");
    Collectives::open(t)->run(what, ranges[t.rank()].data(),
                              scratch[t.rank()].data());
  });
  EXPECT_EQ(errors[2], "it broke");
  for (const int rank : {0, 1, 3})
    EXPECT_EQ(errors[rank], "stopped because another rank failed");
}

/// It goes as soon as the member has left: 16 MB, which the system takes back.
TEST(ThreadCollectives, NobodyUsesTheMemoryOfAMemberThatHasFailed) {
  constexpr int64_t count = 4 << 20;
  const Collective what = {CollectiveKind::AllReduce, ElementType::F32,
                           evenBounds(count, 3)};
  for (int trial = 0; trial < 20; ++trial) {
    const auto errors = runRanks(3, [&](Transport &t) {
      std::vector<float> range(count);
      const auto collectives = Collectives::open(t);
      collectives->begin(what, range.data(), nullptr);
      if (t.rank() == trial % 3)
        fail("it broke");
      collectives->finish();
    });
    for (int rank = 0; rank < 3; ++rank)
      if (rank == trial % 3)
        EXPECT_EQ(errors[rank], "it broke");
      else
        EXPECT_TRUE(errors[rank].empty() ||
                    errors[rank] == "stopped because another rank failed")
            << errors[rank];
  }
}

TEST(ThreadTransport, RanksThatAllWaitHearWhoWaitsForWhom) {
  const auto errors = runRanks(3, [](Transport &t) {
    t.setDeadline(std::numeric_limits<double>::infinity());
    t.setSilence(0.4);
    char byte = 0;
    if (t.rank() == 2)
      return t.barrier();
    t.postReceive(1 - t.rank(), &byte, 1);
    t.waitReceive(1 - t.rank());
  });
  const std::string all = errors[0] + errors[1] + errors[2];
  for (const char *part : {"rank 0 waits for rank 1: receive of 1 bytes",
                           "rank 1 waits for rank 0: receive of 1 bytes",
                           "rank 2 waits for rank 0: end of the step",
                           "none has come further for 0.4 s"})
    EXPECT_NE(all.find(part), std::string::npos) << part << " in " << all;
}
