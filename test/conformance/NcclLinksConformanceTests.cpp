//===- NcclLinksConformanceTests.cpp - NCCL's links keep the contract -----===//
//
// The transport's own code over NCCL, or over a double that has its semantics
// and, in the tests of NcclDouble, ways to fail that one can ask for. Ranks are
// threads; where one has to die, and to see that processes work, the test
// starts itself again, once for each rank.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/DeviceProcess.h"
#include "test/conformance/DeviceScenarios.h"
#include "test/conformance/Limits.h"
#include "test/conformance/Processes.h"

#include "runtime/core/Error.h"
#include "runtime/cuda/NcclLinks.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <thread>

using namespace pipewright::runtime;

static std::vector<std::string> run(int64_t ranks,
                                    const std::function<void(Bench &)> &body) {
  return runDeviceRanks(ranks, 8, createNcclLinks, body);
}

class NcclConformance
    : public ::testing::TestWithParam<std::tuple<int64_t, DeviceScenario>> {};

TEST_P(NcclConformance, Holds) {
  const auto &[ranks, scenario] = GetParam();
  PIPEWRIGHT_NEEDS_GPUS(ranks);
  EXPECT_EQ(run(ranks, scenario.run), std::vector<std::string>(ranks));
}

INSTANTIATE_TEST_SUITE_P(
    All, NcclConformance,
    ::testing::Combine(::testing::Values(2, 4),
                       ::testing::ValuesIn(deviceScenarios())),
    scenarioName);

INSTANTIATE_TEST_SUITE_P(
    Collectives, NcclConformance,
    ::testing::Combine(::testing::Values(4, 8),
                       ::testing::ValuesIn(deviceCollectiveScenarios())),
    scenarioName);

/// Each end of each link has four.
TEST(NcclLinks, HoldMultiprocessors) {
  PIPEWRIGHT_NEEDS_GPUS(4);
  const auto errors =
      run(4, [](Bench &b) { EXPECT_EQ(b.links.multiprocessorsHeld(), 6 * 4); });
  EXPECT_EQ(errors, std::vector<std::string>(4));
}

TEST(NcclLinks, AbortFreesStreamsThatWait) {
  PIPEWRIGHT_NEEDS_GPUS(2);
  const auto errors = run(2, [](Bench &b) {
    if (b.rank() == 1)
      return;
    b.links.compareSizes(false);
    CUevent done = b.receive(1, b.put({1}), 1);
    EXPECT_EQ(cudaDriver().cuEventQuery(done), CUDA_ERROR_NOT_READY);
    std::thread other([&] { b.links.abort(); });
    PIPEWRIGHT_CUDA(cuEventSynchronize(done));
    other.join();
    EXPECT_THROW(b.links.check(), Aborted);
    EXPECT_THROW(b.receive(1, b.put({1}), 1), Aborted);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// A communicator that is aborted waits for the transfers of all others.
TEST(NcclLinks, AbortEndsAllCommunicatorsAtOnce) {
  PIPEWRIGHT_NEEDS_GPUS(4);
  const auto errors = run(4, [](Bench &b) {
    b.links.compareSizes(false);
    if (b.rank() != 0)
      return;
    std::vector<CUevent> events;
    for (int64_t peer : {1, 2, 3})
      events.push_back(b.receive(peer, b.put({1}), 1));
    const auto start = std::chrono::steady_clock::now();
    b.links.abort();
    EXPECT_LT(std::chrono::steady_clock::now() - start, soon);
    for (CUevent done : events)
      PIPEWRIGHT_CUDA(cuEventSynchronize(done));
  });
  EXPECT_EQ(errors, std::vector<std::string>(4));
}

TEST(NcclLinks, APeerThatGoesAwayIsFoundByCheck) {
  PIPEWRIGHT_NEEDS_GPUS(2);
  const auto errors = run(2, [](Bench &b) {
    b.links.compareSizes(false);
    if (b.rank() == 1)
      return b.links.abort();
    const std::string error = errorOf([&] {
      b.receive(1, b.put({1}), 1);
      for (;;)
        b.links.check();
    });
    EXPECT_EQ(error.find("rank 0, link 1 -> 0: NCCL reports remote process "
                         "exited or there was a network error "
                         "(ncclRemoteError)"),
              0u)
        << error;
    b.links.abort();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// NCCL itself cannot tell: nothing moves until somebody gives up.
TEST(NcclLinks, SizesThatNobodyComparesHang) {
  PIPEWRIGHT_NEEDS_GPUS(2);
  const auto errors = run(2, [](Bench &b) {
    b.links.compareSizes(false);
    void *data = b.put(std::vector<int64_t>(4));
    CUevent done = b.rank() == 0 ? b.send(1, data, 4) : b.receive(0, data, 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    b.links.check();
    EXPECT_EQ(cudaDriver().cuEventQuery(done), CUDA_ERROR_NOT_READY);
    b.control.barrier();
    b.links.abort();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(NcclLinks, TwoRanksOnOneGpuAreRefused) {
  const auto errors = runDeviceRanks(2, 1, createNcclLinks, [](Bench &) {});
  EXPECT_NE((errors[0] + errors[1]).find("Duplicate GPU detected"),
            std::string::npos)
      << errors[0] << "\n"
      << errors[1];
}

/// NCCL makes a thread for each call on a communicator that does not block: how
/// many it has made.
static int64_t launchingThreads() {
  const auto threads = reinterpret_cast<int64_t (*)()>(
      dlsym(dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD),
            "pipewrightNcclLaunchingThreads"));
  return threads ? threads() : -1;
}

TEST(NcclDouble, TransfersMakeNoThreads) {
  const int64_t before = launchingThreads();
  const auto errors = run(4, [](Bench &b) {
    for (const DeviceScenario &scenario : deviceScenarios())
      if (scenario.name == std::string("manySteps"))
        scenario.run(b);
  });
  EXPECT_EQ(errors, std::vector<std::string>(4));
  EXPECT_EQ(launchingThreads(), before);
}

TEST(NcclDouble, CollectivesMakeNoThreads) {
  const int64_t before = launchingThreads();
  const auto errors = run(4, [](Bench &b) {
    b.links.connectGroups({{0, 1, 2, 3}, {0, 2}, {1, 3}});
    void *data = b.put(std::vector<int64_t>(2));
    for (int64_t step = 0; step < 3; ++step) {
      b.links.compareSizes(step == 0);
      for (const int64_t group : {int64_t{0}, 1 + b.rank() % 2})
        for (const CollectiveFacts &facts : allCollectives)
          b.links.collect(
              group,
              {facts.kind, ElementType::F32, evenBounds(4, group == 0 ? 4 : 2)},
              data, b.compute(), b.event());
      b.finish();
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(4));
  EXPECT_EQ(launchingThreads(), before);
}

// --- What ends a process -----------------------------------------------------

/// Every rank has said what was expected of it.
static void expectAll(const std::vector<std::string> &outputs,
                      const std::string &expected) {
  for (const std::string &output : outputs)
    EXPECT_NE(output.find(expected), std::string::npos) << output;
}

TEST(NcclProcesses, RunTheScenarios) {
  PIPEWRIGHT_NEEDS_GPUS(4);
  EXPECT_EQ(runProcesses(2, "bothWays"), std::vector<std::string>(2));
  EXPECT_EQ(runProcesses(4, "manySteps", "PIPEWRIGHT_DOUBLE_NCCL_DELAY=300"),
            std::vector<std::string>(4));
}

TEST(NcclDouble, TheUserMayDecideWhetherCallsBlock) {
  for (const char *environment :
       {"NCCL_COMM_BLOCKING=0", "NCCL_COMM_BLOCKING=1"}) {
    EXPECT_EQ(runProcesses(4, "manySteps", environment),
              std::vector<std::string>(4));
    EXPECT_EQ(runProcesses(4, "everyKind", environment),
              std::vector<std::string>(4));
  }
}

TEST(NcclDouble, ARankThatDiesIsAnErrorOnTheOthers) {
  // Its 15th transfer is one of the second step.
  const auto outputs =
      runProcesses(3, "manySteps", "PIPEWRIGHT_DOUBLE_NCCL_EXIT=1:15");
  EXPECT_EQ(outputs[1], "");
  // Who sees it first tells the others, by whichever way it has seen it.
  for (const int rank : {0, 2})
    EXPECT_TRUE(outputs[rank].find("has lost rank 1") != std::string::npos ||
                outputs[rank].find("ncclRemoteError") != std::string::npos)
        << outputs[rank];
}

TEST(NcclDouble, ARankThatDiesInTheFirstExchangeIsAnErrorOnTheOthers) {
  const auto outputs =
      runProcesses(3, "manySteps", "PIPEWRIGHT_DOUBLE_NCCL_EXIT=1:1");
  EXPECT_EQ(outputs[1], "");
  for (const int rank : {0, 2})
    EXPECT_TRUE(outputs[rank].find("has lost rank 1") != std::string::npos ||
                outputs[rank].find("ncclRemoteError") != std::string::npos)
        << outputs[rank];
}

TEST(NcclDouble, AMemberThatDiesIsAnErrorOnTheOthers) {
  // Behind the first exchanges of 6 links and 2 groups.
  const auto outputs =
      runProcesses(4, "everyKind", "PIPEWRIGHT_DOUBLE_NCCL_EXIT=1:20");
  EXPECT_EQ(outputs[1], "");
  for (const int rank : {0, 2, 3})
    EXPECT_TRUE(outputs[rank].find("has lost rank 1") != std::string::npos ||
                outputs[rank].find("ncclRemoteError") != std::string::npos)
        << outputs[rank];
}

TEST(NcclDouble, AnAsynchronousErrorNamesRankAndLink) {
  const auto outputs =
      runProcesses(2, "manySteps", "PIPEWRIGHT_DOUBLE_NCCL_ERROR=1:9");
  expectAll(outputs, "rank 1, link ");
  expectAll(outputs, "NCCL reports unhandled system error (ncclSystemError): "
                     "the environment asked for this error");
}

/// Ranks with these links, where a communicator takes so many seconds to be
/// made and waits have this deadline.
static std::vector<std::string>
startSlowly(int64_t ranks,
            const std::vector<std::pair<int64_t, int64_t>> &links,
            double seconds, double deadline,
            const std::vector<std::vector<int64_t>> &groups = {}) {
  setenv("PIPEWRIGHT_DOUBLE_NCCL_CONNECT",
         std::to_string(std::llround(seconds * 1e6)).c_str(), 1);
  const auto make = [&](Transport &control) {
    control.setDeadline(deadline);
    return createNcclLinks(control);
  };
  const auto start = [&](Bench &b) {
    b.links.connectGroups(groups);
    b.control.setDeadline(hangSeconds);
  };
  const auto errors = runDeviceRanks(ranks, ranks, make, start, links);
  unsetenv("PIPEWRIGHT_DOUBLE_NCCL_CONNECT");
  return errors;
}

/// One after the other along the ranks their communicators would take 6 s, and
/// the last rank would wait for all of that.
TEST(NcclDouble, NeighboursStartInAsManyRoundsHoweverManyTheyAre) {
  constexpr int64_t ranks = 16;
  std::vector<std::pair<int64_t, int64_t>> links;
  std::vector<std::vector<int64_t>> groups;
  for (int64_t r = 0; r < ranks; ++r) {
    if (r > 0)
      links.emplace_back(r, r - 1);
    if (r + 1 < ranks)
      links.emplace_back(r, r + 1);
    if (r < ranks / 2)
      groups.push_back({r, r + ranks / 2});
  }
  EXPECT_EQ(startSlowly(ranks, links, 0.2, 4, groups),
            std::vector<std::string>(ranks));
}

/// All ranks are linked to the first, which makes ten communicators in 5 s; the
/// last rank has two, in the last rounds.
TEST(NcclDouble, AWaitForALaterRoundMayTakeAsLongAsAllBefore) {
  constexpr int64_t ranks = 6;
  std::vector<std::pair<int64_t, int64_t>> links;
  for (int64_t r = 1; r < ranks; ++r) {
    links.emplace_back(0, r);
    links.emplace_back(r, 0);
  }
  EXPECT_EQ(startSlowly(ranks, links, 0.5, 3), std::vector<std::string>(ranks));
}

TEST(NcclDouble, ACommunicatorThatIsNeverReadyIsAnError) {
  const auto outputs =
      runProcesses(2, "impatient", "PIPEWRIGHT_DOUBLE_NCCL_LOST=1");
  expectAll(outputs,
            ": the other end of its communicator on link 0 -> 1 (nothing came "
            "within 0.3 s");
}

TEST(NcclDouble, AnOldNcclIsRefused) {
  expectAll(
      runProcesses(2, "bothWays", "PIPEWRIGHT_DOUBLE_NCCL_VERSION=21805"),
      "NCCL is too old: libnccl.so.2 is version 2.18.5, but NCCL 2.26.0 or "
      "newer is needed");
}

int main(int argc, char **argv) {
  setenv("PIPEWRIGHT_DOUBLE_GPUS", "16", 1);
  setenv("PIPEWRIGHT_DOUBLE_RACES", "1", 1);
  if (argc == 3 && !std::strcmp(argv[1], "--scenario"))
    return runDeviceProcess(argv[2], 16, createNcclLinks);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
