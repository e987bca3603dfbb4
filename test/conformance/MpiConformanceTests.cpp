//===- MpiConformanceTests.cpp - MPI keeps the contract -------------------===//
//
// The test starts itself again under mpirun, once for each scenario and
// number of ranks; there it is one rank.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/Checks.h"
#include "test/conformance/Limits.h"
#include "test/conformance/Processes.h"
#include "test/conformance/Scenarios.h"

#include "runtime/core/Error.h"
#include "runtime/net/Collectives.h"
#include "runtime/net/MpiTransport.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <thread>
#include <unistd.h>

using namespace pipewright::runtime;

/// Exit status and output of `ranks` processes in the named scenario.
static std::pair<int, std::string> runUnderMpi(int64_t ranks,
                                               const char *scenario) {
  const std::string command =
      "timeout " + std::to_string(60 + slowSeconds().value_or(0)) +
      " mpirun --allow-run-as-root --oversubscribe --bind-to none "
      "-n " +
      std::to_string(ranks) + " '" + executable() + "' --scenario " + scenario +
      " 2>&1";
  std::FILE *pipe = popen(command.c_str(), "r");
  const std::string output = readAll(pipe);
  return {pclose(pipe), output};
}

static bool haveMpi() {
  return std::system("command -v mpirun >/dev/null") == 0;
}

class MpiConformance
    : public ::testing::TestWithParam<std::tuple<int64_t, Scenario>> {};

TEST_P(MpiConformance, Holds) {
  if (!haveMpi())
    GTEST_SKIP() << "no mpirun";
  const auto &[ranks, scenario] = GetParam();
  const auto [status, output] = runUnderMpi(ranks, scenario.name);
  EXPECT_EQ(status, 0) << output;
}

INSTANTIATE_TEST_SUITE_P(All, MpiConformance,
                         ::testing::Combine(::testing::Values(2, 4),
                                            ::testing::ValuesIn(scenarios())),
                         scenarioName);

/// All in one run: mpirun takes longer than what it runs.
TEST(MpiConformance, CollectivesHold) {
  if (!haveMpi())
    GTEST_SKIP() << "no mpirun";
  const auto [status, output] = runUnderMpi(8, "collectives");
  EXPECT_EQ(status, 0) << output;
}

TEST(MpiTransport, AMemberThatIsKilledEndsAll) {
  if (!haveMpi())
    GTEST_SKIP() << "no mpirun";
  const auto start = std::chrono::steady_clock::now();
  const auto [status, output] = runUnderMpi(3, "killedMember");
  EXPECT_NE(status, 0) << output;
  EXPECT_LT(std::chrono::steady_clock::now() - start, soon);
}

TEST(MpiTransport, AbortEndsAllWithinSeconds) {
  if (!haveMpi())
    GTEST_SKIP() << "no mpirun";
  const auto start = std::chrono::steady_clock::now();
  const auto [status, output] = runUnderMpi(2, "abort");
  EXPECT_NE(status, 0);
  EXPECT_NE(output.find("error: rank 1: it broke"), std::string::npos)
      << output;
  EXPECT_LT(std::chrono::steady_clock::now() - start, soon);
}

TEST(MpiTransport, RanksThatAllWaitHearWhoWaitsForWhom) {
  if (!haveMpi())
    GTEST_SKIP() << "no mpirun";
  const auto [status, output] = runUnderMpi(2, "stuck");
  EXPECT_NE(status, 0);
  for (const char *part : {"rank 0 waits for rank 1: receive of 1 bytes",
                           "rank 1 waits for rank 0: receive of 1 bytes",
                           "none has come further for 1 s"})
    EXPECT_NE(output.find(part), std::string::npos) << part << " in " << output;
}

/// One rank, started by runUnderMpi.
static int runScenario(const char *name) {
  auto transport = createMpiTransport();
  transport->setDeadline(hangSeconds);
  try {
    if (!std::strcmp(name, "abort")) {
      if (transport->rank() == 1)
        transport->abort("rank 1: it broke");
      char byte;
      transport->postReceive(1, &byte, 1);
      transport->waitReceive(1);
    }
    if (!std::strcmp(name, "stuck")) {
      transport->setDeadline(std::numeric_limits<double>::infinity());
      transport->setSilence(1);
      char byte;
      transport->postReceive(1 - transport->rank(), &byte, 1);
      transport->waitReceive(1 - transport->rank());
    }
    if (!std::strcmp(name, "killedMember")) {
      if (transport->rank() == 1)
        raise(SIGKILL);
      const Collective what = {CollectiveKind::AllReduce, ElementType::F32,
                               evenBounds(1000, 3)};
      static std::vector<float> range(1000), scratch(1000);
      Collectives::open(*transport)->run(what, range.data(), scratch.data());
    }
    if (!std::strcmp(name, "collectives"))
      for (const Scenario &scenario : collectiveScenarios()) {
        scenario.run(*transport);
        transport->barrier();
      }
    for (const Scenario &scenario : scenarios())
      if (!std::strcmp(name, scenario.name))
        scenario.run(*transport);
    transport->barrier();
  } catch (const std::exception &error) {
    transport->abort("rank " + std::to_string(transport->rank()) + ": " +
                     error.what());
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && !std::strcmp(argv[1], "--scenario"))
    return runScenario(argv[2]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
