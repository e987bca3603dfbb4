//===- TcpConformanceTests.cpp - TCP keeps the contract -------------------===//
//
// Ranks are threads that talk over the loopback, except where one of them has
// to die: then the test starts itself again, once for each rank.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/Checks.h"
#include "test/conformance/Limits.h"
#include "test/conformance/Processes.h"
#include "test/conformance/Scenarios.h"
#include "test/conformance/TcpRanks.h"

#include "runtime/core/Error.h"
#include "runtime/net/Agreement.h"
#include "runtime/net/Bootstrap.h"
#include "runtime/net/Collectives.h"
#include "runtime/net/Gather.h"
#include "runtime/net/Socket.h"
#include "runtime/net/TcpTransport.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

using namespace pipewright::runtime;

class TcpConformance
    : public ::testing::TestWithParam<std::tuple<int64_t, Scenario>> {};

TEST_P(TcpConformance, Holds) {
  const auto &[ranks, scenario] = GetParam();
  EXPECT_EQ(runPlaces(placesOf(ranks), hangSeconds, scenario.run),
            std::vector<std::string>(ranks));
}

INSTANTIATE_TEST_SUITE_P(All, TcpConformance,
                         ::testing::Combine(::testing::Values(2, 4),
                                            ::testing::ValuesIn(scenarios())),
                         scenarioName);

INSTANTIATE_TEST_SUITE_P(
    Collectives, TcpConformance,
    ::testing::Combine(::testing::Values(8),
                       ::testing::ValuesIn(collectiveScenarios())),
    scenarioName);

TEST(TcpTransport, OneRankNeedsNoNetwork) {
  EXPECT_EQ(runRank({0, 1, "nowhere.invalid", 1, {}}, 1,
                    [](Transport &t) {
                      double one = 1;
                      t.sumToAll(&one, 1);
                      EXPECT_EQ(one, 1);
                    }),
            "");
}

TEST(TcpTransport, AbortTellsTheOthersAndTheFirstMessageWins) {
  const auto start = std::chrono::steady_clock::now();
  const auto errors = runPlaces(placesOf(3), hangSeconds, [](Transport &t) {
    char byte = 0;
    if (t.rank() == 1) {
      t.abort("rank 1: it broke");
      t.abort("rank 1: and again");
    }
    if (t.rank() == 0)
      t.postReceive(1, &byte, 1);
    EXPECT_THROW(t.rank() == 0 ? t.waitReceive(1) : t.barrier(), Aborted);
    t.barrier();
  });
  EXPECT_EQ(errors, std::vector<std::string>(3, "rank 1: it broke"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, soon);
}

TEST(TcpTransport, AbortFromAnotherThreadWakesAWait) {
  const auto errors = runPlaces(placesOf(2), hangSeconds, [](Transport &t) {
    char byte = 0;
    std::thread other;
    if (t.rank() == 0)
      other = std::thread([&t] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        t.abort("rank 0: woken");
      });
    t.postReceive(1 - t.rank(), &byte, 1);
    EXPECT_THROW(t.waitReceive(1 - t.rank()), Aborted);
    if (other.joinable())
      other.join();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(TcpTransport, AWaitForARankThatHasEndedIsAnError) {
  const auto errors = runPlaces(placesOf(2), hangSeconds, [](Transport &t) {
    char byte = 0;
    if (t.rank() == 1)
      return;
    t.postReceive(1, &byte, 1);
    t.waitReceive(1);
  });
  EXPECT_EQ(errors[0],
            "rank 0 waits for rank 1, which has ended: receive of 1 bytes");
  EXPECT_EQ(errors[1], "");
}

TEST(TcpTransport, BarrierDeadlineNamesWhoIsMissing) {
  const auto errors = runPlaces(placesOf(3), hangSeconds, [](Transport &t) {
    t.setDeadline(0.2);
    if (t.rank() != 1)
      return t.barrier();
    t.setDeadline(hangSeconds);
    EXPECT_THROW(
        {
          for (;;)
            t.poll();
        },
        Aborted);
  });
  const std::string both = errors[0] + errors[2];
  EXPECT_NE(both.find("waits for rank 1: end of the step"), std::string::npos)
      << both;
}

// --- Those who do not come, or are not who they should be --------------------

TEST(TcpRendezvous, EveryoneHearsWhoDidNotCome) {
  auto places = placesOf(4);
  places.erase(places.begin() + 1, places.begin() + 3);
  const auto errors = runPlaces(places, 0.3, [](Transport &) {});
  for (const std::string &error : errors)
    EXPECT_EQ(error.find("ranks 1, 2 of 4 did not come to 127.0.0.1:"), 0u)
        << error;
}

TEST(TcpRendezvous, RankZeroThatDoesNotComeIsNamed) {
  auto places = placesOf(2);
  places.erase(places.begin());
  const auto errors = runPlaces(places, 0.2, [](Transport &) {});
  EXPECT_NE(errors[0].find("rank 1 cannot reach rank 0 at 127.0.0.1:"),
            std::string::npos)
      << errors[0];
  EXPECT_NE(errors[0].find("Connection refused"), std::string::npos);
}

TEST(TcpRendezvous, RanksMustAgreeOnTheirNumber) {
  auto places = placesOf(2);
  places[1].size = 3;
  const auto errors = runPlaces(places, 2, [](Transport &) {});
  EXPECT_EQ(errors, std::vector<std::string>(
                        2, "ranks disagree on how many they are: rank 1 has "
                           "WORLD_SIZE=3, rank 0 has 2"));
}

TEST(TcpRendezvous, TwoProcessesCannotBeTheSameRank) {
  auto places = placesOf(3);
  places[2].rank = 1;
  const auto errors = runPlaces(places, 2, [](Transport &) {});
  EXPECT_EQ(errors, std::vector<std::string>(3, "two processes have RANK=1"));
}

TEST(TcpRendezvous, StrangersAreNotTakenIn) {
  const auto places = placesOf(2);
  std::string reason;
  std::thread stranger([&] {
    const Deadline soon(5);
    Socket silent = connectTo("127.0.0.1", places[0].port, soon, reason);
    Socket rude = connectTo("127.0.0.1", places[0].port, soon, reason);
    const std::string text = "GET / HTTP/1.1\r\nHost: here.example\r\n\r\n";
    rude.sendAll(text.data(), text.size(), soon);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  std::vector<std::string> errors(2);
  std::thread first([&] {
    errors[0] = runRank(places[0], 5, [](Transport &t) { t.barrier(); });
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  errors[1] = runRank(places[1], 5, [](Transport &t) { t.barrier(); });
  first.join();
  stranger.join();
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(TcpRendezvous, APortThatIsTakenIsAnError) {
  const auto places = placesOf(2);
  const Socket taken = listenAt("127.0.0.1", places[0].port);
  EXPECT_EQ(runRank(places[0], 1, [](Transport &) {}),
            "port " + std::to_string(places[0].port) +
                " is taken: set MASTER_PORT to one that is free on 127.0.0.1");
}

// --- The environment ---------------------------------------------------------

struct Variable {
  const char *name;
  const char *value;
};

/// Sets variables, and takes them back when it goes.
class Variables {
public:
  explicit Variables(std::initializer_list<Variable> values)
      : Variables(std::vector<Variable>(values)) {}
  explicit Variables(const std::vector<Variable> &values) {
    for (const char *name :
         {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PMI_SIZE",
          "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE",
          "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "PMI_RANK",
          "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "LOCAL_RANK"})
      unsetenv(name);
    for (const Variable &variable : values) {
      names.push_back(variable.name);
      setenv(variable.name, variable.value, 1);
    }
  }
  ~Variables() {
    for (const char *name : names)
      unsetenv(name);
  }

private:
  std::vector<const char *> names;
};

static std::string launcherError() {
  try {
    findLauncher();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

TEST(Bootstrap, KnowsWhoStartedTheProcess) {
  {
    const Variables none({});
    EXPECT_EQ(findLauncher(), Launcher::None);
  }
  {
    const Variables mpi(
        {{"OMPI_COMM_WORLD_SIZE", "4"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}});
    EXPECT_EQ(findLauncher(), Launcher::Mpi) << "MPI goes first";
  }
  {
    const Variables srun({{"SLURM_STEP_NUM_TASKS", "4"}, {"PMIX_RANK", "1"}});
    EXPECT_EQ(findLauncher(), Launcher::Mpi);
  }
  {
    const Variables torchrun({{"SLURM_STEP_NUM_TASKS", "2"},
                              {"PMIX_RANK", "1"},
                              {"TORCHELASTIC_RUN_ID", "none"},
                              {"RANK", "3"},
                              {"WORLD_SIZE", "8"}});
    EXPECT_EQ(findLauncher(), Launcher::Environment)
        << "torchrun was started by srun, and started this process";
    EXPECT_EQ(environmentRank(), 3);
  }
  {
    const Variables batchScript({{"SLURM_STEP_NUM_TASKS", "1"}});
    EXPECT_EQ(findLauncher(), Launcher::None);
  }
  {
    const Variables one({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
    EXPECT_EQ(findLauncher(), Launcher::None);
  }
}

/// "2 of 4" for rank 6 of 8, which is found to be the first of three.
static std::string placeOnHost() {
  const RankOnHost place = placeByLauncher(6, 8, {0, 3});
  return std::to_string(place.index) + " of " + std::to_string(place.count);
}

TEST(Bootstrap, PlacesOnAHostAreThoseOfTheLauncher) {
  const std::pair<std::vector<Variable>, const char *> cases[] = {
      {{}, "0 of 3"},
      {{{"RANK", "6"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "4"}},
       "2 of 4"},
      {{{"RANK", "6"}, {"LOCAL_RANK", "2"}}, "2 of 3"},
      {{{"RANK", "6"}, {"LOCAL_RANK", "4"}}, "4 of 5"},
      {{{"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
       "1 of 2"},
      {{{"PMI_RANK", "6"}, {"MPI_LOCALRANKID", "3"}, {"MPI_LOCALNRANKS", "4"}},
       "3 of 4"},
      {{{"PMI_LOCAL_RANK", "5"}, {"PMI_LOCAL_SIZE", "8"}}, "5 of 8"},
      {{{"PMIX_RANK", "6"},
        {"SLURM_PROCID", "6"},
        {"SLURM_STEP_NUM_TASKS", "8"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_NODEID", "2"},
        {"SLURM_STEP_TASKS_PER_NODE", "3(x2),2"}},
       "1 of 2"},
      {{{"SLURM_LOCALID", "1"},
        {"SLURM_NODEID", "1"},
        {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}},
       "1 of 4"},
      // A shell of Slurm, from which somebody started more.
      {{{"SLURM_PROCID", "0"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_LOCALID", "0"},
        {"SLURM_STEP_TASKS_PER_NODE", "1"}},
       "0 of 3"},
      // What is no place.
      {{{"LOCAL_RANK", "4"}, {"LOCAL_WORLD_SIZE", "4"}}, "0 of 3"},
      {{{"SLURM_LOCALID", "1"},
        {"SLURM_NODEID", "5"},
        {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}},
       "0 of 3"},
      {{{"SLURM_LOCALID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "many"}},
       "0 of 3"}};
  for (const auto &[given, expected] : cases) {
    const Variables variables(given);
    EXPECT_EQ(placeOnHost(), expected)
        << (given.empty() ? "nothing" : given.back().name);
  }
}

TEST(Bootstrap, HalfAnEnvironmentIsAnError) {
  {
    const Variables half({{"RANK", "1"}});
    EXPECT_NE(launcherError().find("only RANK is set"), std::string::npos);
  }
  {
    const Variables srun({{"SLURM_STEP_NUM_TASKS", "4"}});
    EXPECT_NE(launcherError().find("use srun --mpi=pmix"), std::string::npos);
  }
}

static std::string placeError() {
  try {
    TcpJob::fromEnvironment();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

TEST(Bootstrap, PlacesComeFromTheEnvironment) {
  {
    const Variables good({{"RANK", "3"},
                          {"WORLD_SIZE", "4"},
                          {"MASTER_ADDR", "node-1"},
                          {"MASTER_PORT", "29500"}});
    const TcpJob place = TcpJob::fromEnvironment();
    EXPECT_EQ(place.rank, 3);
    EXPECT_EQ(place.size, 4);
    EXPECT_EQ(place.host, "node-1");
    EXPECT_EQ(place.port, 29500);
  }
  {
    const Variables torchrun({{"RANK", "0"},
                              {"WORLD_SIZE", "4"},
                              {"MASTER_ADDR", "node-1"},
                              {"MASTER_PORT", "29500"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
    EXPECT_EQ(TcpJob::fromEnvironment().port, 29501);
  }
  {
    const Variables beyond({{"RANK", "4"},
                            {"WORLD_SIZE", "4"},
                            {"MASTER_ADDR", "node-1"},
                            {"MASTER_PORT", "29500"}});
    EXPECT_EQ(placeError(), "RANK=4: expected a number from 0 to 3");
  }
  {
    const Variables noPort(
        {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node-1"}});
    EXPECT_NE(placeError().find("MASTER_PORT is not set"), std::string::npos);
  }
  {
    const Variables noHost({{"RANK", "1"}, {"WORLD_SIZE", "4"}});
    EXPECT_NE(placeError().find("MASTER_ADDR is not set"), std::string::npos);
  }
}

// --- Agreement ---------------------------------------------------------------

TEST(Agreement, EveryRankHearsWhoDiffers) {
  const auto errors = runPlaces(placesOf(3), hangSeconds, [](Transport &t) {
    checkAgreement(t, "the same");
    checkAgreement(t, t.rank() == 2 ? "another plan" : "a plan");
  });
  EXPECT_EQ(errors, std::vector<std::string>(
                        3, "rank 2 does not have the same program as rank 0: "
                           "start every rank from a copy of the same folder"));
}

TEST(Agreement, GathersNumbersOfAllBits) {
  const auto errors = runPlaces(placesOf(2), hangSeconds, [](Transport &t) {
    const uint64_t number = 0xfedcba9876543210u - t.rank();
    EXPECT_EQ(
        gatherToAll(t, number),
        (std::vector<uint64_t>{0xfedcba9876543210u, 0xfedcba987654320fu}));
    EXPECT_EQ(findRankOnHost(t).index, t.rank());
    EXPECT_EQ(findRankOnHost(t).count, 2);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

// --- Processes ---------------------------------------------------------------

TEST(TcpProcesses, FindEachOtherByTheEnvironment) {
  EXPECT_EQ(runProcesses(3, "ring"), std::vector<std::string>(3));
}

TEST(TcpProcesses, ARankThatIsKilledIsNamedByTheOthers) {
  const auto start = std::chrono::steady_clock::now();
  const auto outputs = runProcesses(3, "killed");
  for (const int rank : {0, 2})
    EXPECT_NE(outputs[rank].find("has lost rank 1: its connection closed"),
              std::string::npos)
        << outputs[rank];
  EXPECT_LT(std::chrono::steady_clock::now() - start, soon);
}

TEST(TcpProcesses, AMemberThatIsKilledIsNamedByTheOthers) {
  const auto outputs = runProcesses(4, "killedMember");
  for (const int rank : {0, 2, 3})
    EXPECT_NE(outputs[rank].find("has lost rank 1: its connection closed"),
              std::string::npos)
        << outputs[rank];
}

TEST(TcpProcesses, ARankThatIsStoppedIsNamedByTheOthersInTime) {
  const auto start = std::chrono::steady_clock::now();
  const auto outputs = runProcesses(3, "stopped");
  for (const int rank : {0, 2})
    EXPECT_NE(outputs[rank].find("has heard nothing from rank 1 for 2 s"),
              std::string::npos)
        << outputs[rank];
  EXPECT_LT(std::chrono::steady_clock::now() - start, soon);
}

TEST(TcpProcesses, StrangersThatTakeAllDescriptorsKeepNobodyOut) {
  const int port = freePort();
  std::string reason;
  std::vector<Socket> silent;
  // Rank 0 has 40 descriptors: these come while it waits for the others.
  std::thread strangers([&] {
    for (int i = 0; i < 100; ++i)
      silent.push_back(
          connectTo("127.0.0.1", port, Deadline(hangSeconds), reason));
  });
  EXPECT_EQ(runProcesses(3, "crowded", "", port), std::vector<std::string>(3));
  strangers.join();
}

/// Stops this process for good, and ends it a few seconds later.
static void stopSelf() {
  const pid_t self = getpid();
  if (fork() == 0) {
    sleep(6);
    kill(self, SIGKILL);
    _exit(0);
  }
  raise(SIGSTOP);
}

/// One rank, started by runProcesses. Says what went wrong.
static int runScenario(const char *name) {
  std::unique_ptr<Transport> transport;
  try {
    if (!std::strcmp(name, "crowded")) {
      const rlimit few = {40, 40};
      if (environmentRank() == 0)
        setrlimit(RLIMIT_NOFILE, &few);
      else
        // Until the strangers are there.
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    transport = createProcessTransport(hangSeconds);
    if (!std::strcmp(name, "stopped")) {
      transport->setSilence(2);
      transport->barrier();
      if (transport->rank() == 1)
        stopSelf();
      transport->barrier();
    }
    if (!std::strcmp(name, "killed")) {
      transport->barrier();
      if (transport->rank() == 1)
        raise(SIGKILL);
      transport->barrier();
    }
    if (!std::strcmp(name, "killedMember")) {
      if (transport->rank() == 1)
        raise(SIGKILL);
      const Collective what = {CollectiveKind::AllReduce, ElementType::F32,
                               evenBounds(1000, 4)};
      static std::vector<float> range(1000), scratch(1000);
      Collectives::open(*transport)->run(what, range.data(), scratch.data());
    }
    for (const Scenario &scenario : scenarios())
      if (!std::strcmp(name, scenario.name))
        scenario.run(*transport);
    transport->barrier();
  } catch (const std::exception &error) {
    std::printf("%s\n", error.what());
    if (transport)
      transport->abort(error.what());
    return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && !std::strcmp(argv[1], "--scenario"))
    return runScenario(argv[2]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
