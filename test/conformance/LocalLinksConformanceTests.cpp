//===- LocalLinksConformanceTests.cpp - cuda-local keeps the contract -----===//
//
// The double of the CUDA driver reports every pair of accesses that no stream
// and no event orders.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/DeviceScenarios.h"
#include "test/conformance/Limits.h"

#include "runtime/core/Error.h"
#include "runtime/cuda/LocalLinks.h"
#include "runtime/net/ThreadTransport.h"

#include <chrono>
#include <cstdlib>
#include <gtest/gtest.h>
#include <thread>

using namespace pipewright::runtime;

/// What each rank threw, over links of one world.
static std::vector<std::string> run(int64_t ranks, int64_t gpus,
                                    const std::function<void(Bench &)> &body) {
  LocalWorld world(ranks);
  return runDeviceRanks(
      ranks, gpus,
      [&](Transport &control) { return createLocalLinks(world, control); },
      body);
}

class LocalConformance : public ::testing::TestWithParam<ShapedScenario> {};

TEST_P(LocalConformance, Holds) {
  const auto &[shape, scenario] = GetParam();
  const auto [ranks, gpus] = shape;
  PIPEWRIGHT_NEEDS_GPUS(gpus);
  EXPECT_EQ(run(ranks, gpus, scenario.run), std::vector<std::string>(ranks));
}

INSTANTIATE_TEST_SUITE_P(
    All, LocalConformance,
    ::testing::Combine(::testing::Values(Shape(2, 1), Shape(2, 2), Shape(4, 1),
                                         Shape(4, 4)),
                       ::testing::ValuesIn(deviceScenarios())),
    caseOf);

INSTANTIATE_TEST_SUITE_P(
    Collectives, LocalConformance,
    ::testing::Combine(::testing::Values(Shape(4, 1), Shape(8, 4)),
                       ::testing::ValuesIn(deviceCollectiveScenarios())),
    caseOf);

TEST(LocalLinks, AbortWakesWhoWaits) {
  const auto start = std::chrono::steady_clock::now();
  const auto errors = run(3, 1, [](Bench &b) {
    if (b.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      b.links.abort();
      return;
    }
    CUevent done = b.receive(0, b.put({1}), 1);
    EXPECT_THROW(b.rank() == 1 ? b.links.settle(done) : b.links.settleAll(),
                 Aborted);
    EXPECT_THROW(b.links.check(), Aborted);
    EXPECT_THROW(b.receive(0, b.put({1}), 1), Aborted);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
  EXPECT_LT(std::chrono::steady_clock::now() - start, soon);
}

TEST(LocalLinks, ARankThatFailsTakesTheOthersDown) {
  const auto errors = run(3, 1, [](Bench &b) {
    if (b.rank() == 1)
      fail("it broke");
    b.receive(1, b.put({1}), 1);
    b.links.settleAll();
  });
  EXPECT_EQ(errors[1], "it broke");
  for (const int rank : {0, 2})
    EXPECT_EQ(errors[rank], "stopped because another rank failed");
}

TEST(LocalLinks, AMemberThatFailsTakesTheOthersDown) {
  const auto errors = run(4, 1, [](Bench &b) {
    b.links.connectGroups({{0, 1, 2, 3}});
    if (b.rank() == 1)
      fail("it broke");
    const Collective what = {CollectiveKind::AllReduce, ElementType::F32,
                             evenBounds(16, 4)};
    b.links.collect(0, what, b.putBytes(std::string(64, '\0')), b.compute(),
                    b.event());
    b.links.settleAll();
  });
  EXPECT_EQ(errors[1], "it broke");
  for (const int rank : {0, 2, 3})
    EXPECT_EQ(errors[rank], "stopped because another rank failed");
}

TEST(LocalLinks, RanksMustAgreeOnTheirLinks) {
  LocalWorld world(2);
  ThreadWorld threads(2);
  std::vector<std::string> errors(2);
  std::vector<std::thread> running;
  for (int64_t r = 0; r < 2; ++r)
    running.emplace_back([&, r] {
      ThreadTransport control(threads, r);
      errors[r] = errorOf([&] {
        const auto device = Device::open(0);
        device->makeCurrent();
        const auto links = createLocalLinks(world, control);
        links->connect(r ? std::vector<std::pair<int64_t, int64_t>>{{0, 1}}
                         : allLinks(2));
      });
    });
  for (std::thread &thread : running)
    thread.join();
  EXPECT_EQ(errors, std::vector<std::string>(
                        2, "rank 1 does not have the same links as rank 0: "
                           "start every rank from a copy of the same folder"));
}

int main(int argc, char **argv) {
  setenv("PIPEWRIGHT_DOUBLE_GPUS", "4", 1);
  setenv("PIPEWRIGHT_DOUBLE_RACES", "1", 1);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
