//===- Main.cpp - The main() of every generated program -------------------===//
//
// Decides between threads and processes, starts the ranks, and turns the first
// failure into one line on stderr and exit code 1.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/core/Platform.h"
#include "runtime/core/ProcessName.h"
#include "runtime/core/Text.h"
#include "runtime/core/ThreadLimit.h"
#include "runtime/net/Agreement.h"
#include "runtime/net/Bootstrap.h"
#include "runtime/net/ThreadTransport.h"
#include "runtime/train/CheckRun.h"
#include "runtime/train/ErrorText.h"
#include "runtime/train/Fingerprints.h"
#include "runtime/train/Preflight.h"
#include "runtime/train/Stop.h"
#include "runtime/train/Trainer.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>

using namespace pipewright::runtime;

static int reportError(const std::string &message) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", printable(message).c_str());
  return 1;
}

/// Destructors, the driver's and NCCL's own among them, wait for the GPU, which
/// after a failure may never come to an end.
[[noreturn]] static void endAtOnce() {
  std::fflush(nullptr);
  std::_Exit(1);
}

namespace {
/// Counts the ranks that have come to their end.
class Arrivals {
public:
  explicit Arrivals(int64_t ranks) : left(ranks) {}

  void arrive() {
    std::lock_guard<std::mutex> lock(mutex);
    --left;
    changed.notify_all();
  }
  /// Waits for all, but no longer than this once one has failed: another may
  /// hang in the driver. Whether all have come.
  bool waitForAll(const ThreadWorld &world, double secondsAfterFailure) {
    std::unique_lock<std::mutex> lock(mutex);
    const std::chrono::milliseconds slice(50);
    double waited = 0;
    while (!changed.wait_for(lock, slice, [&] { return left == 0; })) {
      if (world.failed())
        waited += std::chrono::duration<double>(slice).count();
      if (waited > secondsAfterFailure)
        return false;
    }
    return true;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  int64_t left;
};
} // namespace

/// How long ranks that may hang may take to end after one of them has failed.
static constexpr double endSeconds = 15;

/// One rank, to its end. Returns the exit code.
static int runOneRank(const Options &options, RankFactory &factory,
                      bool processes, Transport &transport) {
  return options.preflight.empty()
             ? runRank(options, factory, processes, transport)
             : runPreflight(options, factory, processes, transport);
}

/// All ranks as threads of this process.
static int runThreads(const Program &program, const Options &options) {
  const Platform &platform = platformOf(program);
  std::unique_ptr<RankFactory> factory;
  try {
    checkRun(program, options);
    factory = platform.createThreads(program, options);
  } catch (const std::exception &error) {
    return reportError(messageOf(error));
  }
  const int64_t ranks = program.mesh().size();
  ThreadWorld world(ranks);
  Arrivals arrivals(ranks);
  std::vector<std::thread> threads;
  std::atomic<int> exitCode = Done;
  const auto runOne = [&](int64_t r) {
    ThreadTransport transport(world, r);
    try {
      exitCode = runOneRank(options, *factory, false, transport);
    } catch (const Aborted &) {
      // Woken by the rank that failed; its message is the one to show.
    } catch (const std::exception &error) {
      transport.abort(ranked(r, messageOf(error)));
    }
    arrivals.arrive();
  };
  for (int64_t r = 0; r < ranks; ++r)
    try {
      threads.emplace_back(runOne, r);
    } catch (const std::system_error &error) {
      // Those that run already hear of it, and end.
      ThreadTransport(world, r).abort(threadTrouble(ranks, error.code()));
      for (; r < ranks; ++r)
        arrivals.arrive();
    }
  if (platform.mayHang() && !arrivals.waitForAll(world, endSeconds)) {
    reportError(world.failure());
    endAtOnce();
  }
  for (std::thread &thread : threads)
    thread.join();
  if (!world.failed())
    return exitCode;
  reportError(world.failure());
  if (platform.mayHang())
    endAtOnce();
  return 1;
}

/// What only copies of the same program have in common.
static std::string identityOf(const Program &program) {
  return std::string(program.name) + "\n" + program.planJson +
         program.timetable;
}

/// Before any work. Only one process looks at options and files, so that a
/// mistake is told only once; the others wait for its verdict.
static void checkProcess(const Program &program, const Options &options,
                         Transport &transport) {
  const int64_t processes = program.mesh().size();
  if (transport.size() != processes && transport.rank() == 0)
    fail("the program has ", countedRanks(program), ", but there are ",
         transport.size(), " processes: start ", processes);
  transport.barrier();
  checkAgreement(transport, identityOf(program));
  for (const auto &[name, value] : sharedOptions(program, options))
    checkAgreement(transport, value, name, "give all ranks the same options");
  if (transport.rank() == 0)
    checkRun(program, options);
  transport.barrier();
  if (options.preflight.empty())
    checkSameFiles(program, options, transport);
}

/// This process is one rank.
static int runProcess(const Program &program, const Options &options) {
  std::unique_ptr<Transport> transport;
  const Platform &platform = platformOf(program);
  std::unique_ptr<RankFactory> factory;
  std::string message;
  bool checked = false;
  try {
    transport =
        createProcessTransport(options.rendezvousTimeout, identityOf(program));
    transport->setSilence(options.timeout);
    checkProcess(program, options, *transport);
    checked = true;
    const RankOnHost place = placeByLauncher(
        transport->rank(), transport->size(), findRankOnHost(*transport));
    factory = platform.createProcess(program, options, place, *transport);
    return runOneRank(options, *factory, true, *transport);
  } catch (const Aborted &error) {
    message = error.what();
  } catch (const std::exception &error) {
    message = checked ? ranked(transport->rank(), messageOf(error))
                      : messageOf(error);
    // Over MPI this prints the message and ends all processes.
    if (transport)
      transport->abort(message);
  }
  reportError(message);
  if (!platform.mayHang())
    return 1;
  transport.reset();
  endAtOnce();
}

static int runRanks(const Program &program, const Options &options) {
  return findLauncher() == Launcher::None ? runThreads(program, options)
                                          : runProcess(program, options);
}

/// What only prints something; false if that is not what was asked for.
static bool printed(const Program &program, const Options &options) {
  const std::string text = options.help        ? helpText(program)
                           : options.timetable ? program.timetable
                           : options.plan      ? program.planJson
                           : options.dryRun    ? dryRunText(program, options)
                                               : "";
  // Launchers start many processes; the first speaks for all.
  if (environmentRank() == 0)
    std::fputs(text.c_str(), stdout);
  return options.help || options.timetable || options.plan || options.dryRun;
}

int pipewright::runtime::runProgram(int argc, char **argv,
                                    const Program &program) {
  // A limit on the size of files is a failed write like any other.
  std::signal(SIGXFSZ, SIG_IGN);
  nameProcessesBy(program.mesh());
  Options options;
  try {
    // First: what comes next may have been compiled for another CPU.
    platformOf(program).check(program);
  } catch (const std::exception &error) {
    return reportError(messageOf(error));
  }
  try {
    options = Options::parse(argc, argv, program);
    if (printed(program, options))
      return 0;
    platformOf(program).prepareEnvironment(program, options);
  } catch (const std::exception &error) {
    // All processes have the same options.
    return environmentRank() == 0 ? reportError(messageOf(error)) : 1;
  }
  try {
    // Nothing of it is worth keeping: a signal ends it at once.
    if (!options.preflight.empty())
      return runRanks(preflightProgram(program), options);
    receiveStopSignals();
    return runRanks(program, options);
  } catch (const std::exception &error) {
    return reportError(messageOf(error));
  }
}
