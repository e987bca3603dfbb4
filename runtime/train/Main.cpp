//===- Main.cpp - The main() of every generated program -------------------===//
//
// Decides between threads and processes, starts the ranks, and turns the first
// failure into one line on stderr and exit code 1.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/train/Trainer.h"
#include "runtime/transport/Agreement.h"
#include "runtime/transport/Bootstrap.h"
#include "runtime/transport/ThreadTransport.h"

#include <cstdio>
#include <thread>

using namespace pipewright::runtime;

static int reportError(const std::string &message) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return 1;
}

/// All ranks as threads of this process.
static int runThreads(const Program &program, const Options &options) {
  std::unique_ptr<Platform> platform;
  try {
    checkRun(program, options);
    platform = createThreadPlatform(program, options);
  } catch (const std::exception &error) {
    return reportError(error.what());
  }
  const int64_t ranks = program.ranks.size();
  ThreadWorld world(ranks);
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      ThreadTransport transport(world, r);
      try {
        runRank(options, *platform, false, transport);
      } catch (const Aborted &) {
        // Woken by the rank that failed; its message is the one to show.
      } catch (const std::exception &error) {
        transport.abort(ranked(r, error.what()));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return world.failed() ? reportError(world.failure()) : 0;
}

/// Before any work. Only one process looks at options and files, so that a
/// mistake is told only once; the others wait for its verdict.
static void checkProcess(const Program &program, const Options &options,
                         Transport &transport) {
  const int64_t ranks = program.ranks.size();
  if (transport.size() != ranks && transport.rank() == 0)
    fail("the program has ", ranks, " ranks, but there are ", transport.size(),
         " processes: start ", ranks);
  transport.barrier();
  checkAgreement(transport, std::string(program.name) + "\n" +
                                program.planJson + program.timetable);
  for (const auto &[name, value] : sharedOptions(options))
    checkAgreement(transport, value, name, "give all ranks the same options");
  transport.setDeadline(3600);
  if (transport.rank() == 0)
    checkRun(program, options);
  transport.barrier();
}

/// This process is one rank.
static int runProcess(const Program &program, const Options &options) {
  std::unique_ptr<Transport> transport;
  bool checked = false;
  try {
    transport = createProcessTransport(options.timeout);
    checkProcess(program, options, *transport);
    checked = true;
    const auto platform = createProcessPlatform(program, options, *transport);
    runRank(options, *platform, true, *transport);
    return 0;
  } catch (const Aborted &error) {
    return reportError(error.what());
  } catch (const std::exception &error) {
    if (!transport)
      return reportError(error.what());
    const std::string message =
        checked ? ranked(transport->rank(), error.what()) : error.what();
    // Over MPI this prints the message and ends all processes.
    transport->abort(message);
    return reportError(message);
  }
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
  Options options;
  try {
    options = Options::parse(argc, argv, program);
    if (printed(program, options))
      return 0;
  } catch (const Error &error) {
    // All processes have the same options.
    return environmentRank() == 0 ? reportError(error.what()) : 1;
  }
  try {
    return findLauncher() == Launcher::None ? runThreads(program, options)
                                            : runProcess(program, options);
  } catch (const Error &error) {
    return reportError(error.what());
  }
}
