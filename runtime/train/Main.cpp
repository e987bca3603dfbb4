//===- Main.cpp - The main() of every generated program -------------------===//
//
// Decides between threads and MPI, starts the ranks, and turns the first
// failure into one line on stderr and exit code 1.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/train/Trainer.h"
#include "runtime/transport/MpiTransport.h"
#include "runtime/transport/ThreadTransport.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace pipewright::runtime;

static int reportError(const std::string &message) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return 1;
}

static int64_t environmentNumber(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

/// The message with the rank that failed in front, once.
static std::string ranked(int64_t rank, const std::string &message) {
  return message.rfind("rank ", 0) == 0
             ? message
             : "rank " + std::to_string(rank) + ": " + message;
}

/// All ranks as threads of this process.
static int runThreads(const Program &program, const Options &options) {
  try {
    checkRun(program, options);
  } catch (const std::exception &error) {
    return reportError(error.what());
  }
  const int64_t ranks = program.ranks.size();
  const Placement placement(ranks, options.threadsPerRank, false);
  ThreadWorld world(ranks);
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      ThreadTransport transport(world, r);
      try {
        runRank(program, options, placement, false, transport);
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

/// This process is one rank.
static int runProcess(const Program &program, const Options &options) {
  std::unique_ptr<Transport> transport;
  try {
    transport = createMpiTransport();
  } catch (const Error &error) {
    return reportError(error.what());
  }
  const int64_t ranks = program.ranks.size();
  try {
    // Only one process checks, so that a mistake is told only once; the
    // others wait for its verdict.
    transport->setDeadline(3600);
    if (transport->rank() == 0) {
      if (transport->size() != ranks)
        fail("the program has ", ranks, " ranks, but mpirun started ",
             transport->size(), " processes: use mpirun -n ", ranks);
      checkRun(program, options);
    }
    transport->barrier();
  } catch (const std::exception &error) {
    transport->abort(error.what());
  }
  try {
    const int64_t onHost =
        environmentNumber("OMPI_COMM_WORLD_LOCAL_SIZE", transport->size());
    const Placement placement(onHost, options.threadsPerRank, true);
    runRank(program, options, placement, true, *transport);
  } catch (const std::exception &error) {
    transport->abort(ranked(transport->rank(), error.what()));
  }
  return 0;
}

int pipewright::runtime::runProgram(int argc, char **argv,
                                    const Program &program) {
  // mpirun starts many; what concerns all of them is said by the first.
  const bool first = environmentNumber("OMPI_COMM_WORLD_RANK", 0) == 0;
  Options options;
  try {
    options = Options::parse(argc, argv, program);
  } catch (const Error &error) {
    return first ? reportError(error.what()) : 1;
  }
  if (options.help || options.timetable || options.plan) {
    const std::string text = options.help        ? helpText(program)
                             : options.timetable ? program.timetable
                                                 : program.planJson;
    if (first)
      std::fputs(text.c_str(), stdout);
    return 0;
  }
  return startedByMpi() ? runProcess(program, options)
                        : runThreads(program, options);
}
