//===- Preflight.cpp - A run that measures where others train -------------===//

#include "runtime/train/Preflight.h"
#include "runtime/core/Error.h"
#include "runtime/core/ExitCode.h"
#include "runtime/core/Text.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/net/Agreement.h"
#include "runtime/net/Gather.h"
#include "runtime/rank/Worker.h"
#include "runtime/train/ErrorText.h"
#include "runtime/train/LinkProbes.h"
#include "runtime/train/PreflightReport.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

using namespace pipewright::runtime;

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// For each probe, so that all ranks compute at the same time.
static constexpr double warmUpSeconds = 0.1, probeSeconds = 0.4;
/// What is timed at once, so that threads that share a core have had their
/// turns, and how often.
static constexpr double repetitionSeconds = 0.02;
static constexpr size_t fewestRepetitions = 7;

/// No wait takes longer: pairs of ranks are measured one behind the other, but
/// all meet between them.
static constexpr double deadlineSeconds = 120;

void pipewright::runtime::parsePreflight(Options &options,
                                         const std::string &text) {
  if (text.empty())
    fail("--preflight expects FILE, but got ''");
  options.preflight = text;
}

void pipewright::runtime::parseTolerance(Options &options,
                                         const std::string &text) {
  char *end = nullptr;
  const double share = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !(share > 0) || !(share < 1))
    fail("--preflight-tolerance expects a number above 0 and below 1, but got "
         "'",
         text, "'");
  options.preflightTolerance = share;
}

bool pipewright::runtime::followPreflight(Options &options,
                                          const Program &program) {
  if (options.preflight.empty() && options.preflightTolerance > 0)
    fail("--preflight-tolerance expects --preflight FILE beside it");
  if (options.preflight.empty())
    return false;
  if (program.device)
    fail("--preflight measures ranks that are CPUs, but this program's are "
         "GPUs: tools/check-gpu measures these");
  if (options.preflightTolerance == 0)
    options.preflightTolerance = 0.1;
  return true;
}

void pipewright::runtime::checkPreflight(const Options &options) {
  AtomicFile probe(options.preflight);
}

Program pipewright::runtime::preflightProgram(const Program &program) {
  Program probes;
  probes.name = program.name;
  probes.replicas = program.replicas;
  probes.timetable = program.timetable;
  probes.planJson = program.planJson;
  probes.ranks = std::vector<RankProgram>(
      program.ranks.size(), platformOf(program).probeProgram().rank);
  return probes;
}

static std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

/// Bytes that the host could give to programs.
static double freeMemory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("MemAvailable:"))
      return 1024 * std::atof(line.c_str() + line.find(':') + 1);
  return 0;
}

/// What all ranks do at once.
static Measurement measure(Worker &rank, int64_t number, const Probe &probe) {
  rank.beginStep(number, 0.0f);
  rank.transport().barrier();
  int64_t runs = 0;
  const auto warmUp = Clock::now();
  for (; secondsSince(warmUp) < warmUpSeconds; ++runs)
    rank.runStep();
  runs = std::max<int64_t>(
      1, std::llround(runs * repetitionSeconds / secondsSince(warmUp)));
  std::vector<double> figures;
  const auto begin = Clock::now();
  while (figures.size() < fewestRepetitions ||
         secondsSince(begin) < probeSeconds) {
    const auto start = Clock::now();
    for (int64_t run = 0; run < runs; ++run)
      rank.runStep();
    const double amount = probe.amount * runs, seconds = secondsSince(start);
    figures.push_back(probe.isRate ? amount / seconds : seconds / amount);
  }
  return summarize(figures);
}

/// Those that all ranks have.
static std::vector<Probe> agreeOnProbes(Transport &transport,
                                        const Program &program) {
  std::vector<Probe> probes = platformOf(program).probeProgram().probes;
  size_t fewest = probes.size();
  for (const uint64_t count : gatherToAll(transport, probes.size()))
    fewest = std::min<size_t>(fewest, count);
  probes.resize(fewest);
  return probes;
}

/// Every rank calls it; hosts are for rank 0.
static PreflightResult measureAll(Worker &rank, double memory) {
  Transport &transport = rank.transport();
  PreflightResult result;
  result.mesh = rank.wholeProgram().mesh();
  result.probes = agreeOnProbes(transport, rank.wholeProgram());
  std::vector<double> row = {memory};
  for (size_t number = 0; number < result.probes.size(); ++number) {
    const Measurement measured =
        measure(rank, static_cast<int64_t>(number), result.probes[number]);
    row.push_back(measured.median);
    row.push_back(measured.spread);
  }
  result.links = measureLinks(transport, result.mesh);
  for (const std::vector<double> &numbers : gatherNumbers(transport, row)) {
    MeasuredRank &one = result.ranks.emplace_back();
    one.freeMemory = numbers[0];
    for (size_t i = 1; i < numbers.size(); i += 2)
      one.figures.push_back({numbers[i], numbers[i + 1]});
  }
  const std::vector<std::string> hosts = gatherTexts(transport, hostName());
  for (size_t process = 0; process < hosts.size(); ++process)
    result.ranks[process].host = hosts[process];
  return result;
}

static void say(const std::string &text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

/// Of rank 0. Whether none is behind.
static bool report(const PreflightResult &result, const Options &options) {
  const double tolerance = options.preflightTolerance;
  say("\n" + tableText(result));
  const std::vector<std::string> failures = findFailures(result, tolerance);
  for (const std::string &failure : failures)
    say("fail       " + failure);
  if (failures.empty()) {
    char text[128];
    std::snprintf(text, sizeof text,
                  "pass       no rank and no link is behind the median by more "
                  "than %g %%",
                  100 * tolerance);
    say(text);
  }
  if (const std::string ranks = unsteadyRanks(result); !ranks.empty())
    say("note       figures of rank " + ranks +
        " spread by more than 25 %: ranks share cores, or something else runs "
        "there");
  if (const std::string names = notMeasured(result); !names.empty())
    say("note       there is no such link to measure: " + names +
        " are those of --machine cpu");
  const std::string text = machineText(result, tolerance);
  AtomicFile file(options.preflight);
  file.write(text.data(), text.size());
  file.commit();
  say("wrote      " + printable(options.preflight) +
      ", for pipewright plan --machine");
  return failures.empty();
}

int pipewright::runtime::runPreflight(const Options &options,
                                      RankFactory &factory, bool processes,
                                      Transport &transport) {
  transport.setSilence(options.timeout);
  transport.setDeadline(std::max(options.timeout, deadlineSeconds));
  // Before any rank has taken its own.
  const double memory =
      freeMemory() / static_cast<double>(findRankOnHost(transport).count);
  transport.barrier();
  const std::unique_ptr<Worker> rank = factory.createRank(transport);
  try {
    rank->setUp();
    const Program &program = rank->wholeProgram();
    if (transport.rank() == 0)
      say(std::string("preflight  ") + printable(program.name) + ": " +
          countedRanks(program) + (processes ? " (processes)" : " (threads)") +
          ", " + factory.describe());
    const PreflightResult result = measureAll(*rank, memory);
    double failed = transport.rank() == 0 && !report(result, options);
    transport.sumToAll(&failed, 1);
    return failed > 0 ? 1 : Done;
  } catch (const Aborted &) {
    rank->abort();
    throw;
  } catch (const std::exception &error) {
    const std::string message = ranked(transport.rank(), messageOf(error));
    // The message goes first: it is the cause of whatever others find broken.
    transport.abort(message);
    rank->abort();
    throw Error(message);
  }
}
