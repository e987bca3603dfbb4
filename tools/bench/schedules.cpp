//===- schedules.cpp - Schedules of millions of tasks ---------------------===//
//
// Two sizes: 64 ranks with every task written out, through all that a compile
// does with a schedule; and 1,024 ranks streamed. Each policy runs with as many
// loops as it takes and 2^21 or 2^25 pairs of stage and micro-batch. Counters
// are seconds of processor time for each step, and the peak of resident memory.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/ChannelSimulator.h"
#include "passes/schedules/Checker.h"
#include "passes/schedules/MessageOrder.h"
#include "passes/schedules/StreamSimulator.h"

#include <benchmark/benchmark.h>

#include <ctime>
#include <fstream>
#include <string>

using namespace pipewright::schedules;

/// Starts a new peak of resident memory (Linux).
static void resetPeakMemory() { std::ofstream("/proc/self/clear_refs") << "5"; }

static double peakMegabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:"))
      return std::stod(line.substr(6)) / 1024;
  return 0;
}

static double now() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

namespace {

struct Size {
  const char *policy;
  int64_t loops;
};

} // namespace

/// Runs one step and counts its seconds.
template <typename Step>
static auto timed(benchmark::State &state, const char *name, Step step) {
  double start = now();
  auto result = step();
  state.counters[name] += now() - start;
  return result;
}

/// Ends the benchmark with the message of an error.
static bool fails(benchmark::State &state, llvm::Error error) {
  if (!error)
    return false;
  state.SkipWithError(llvm::toString(std::move(error)).c_str());
  return true;
}

static TaskCosts costsOf(int64_t stages) {
  TaskCosts costs = TaskCosts::uniform(stages, 1, 2);
  costs.linkLatency = 0.1;
  for (StageCosts &stage : costs.stages)
    stage.stashBytes = 1;
  return costs;
}

static ScheduleOptions optionsOf(int64_t ranks, const Size &size) {
  // As many pairs for all: 8 loops of 4096 micro-batches on each rank.
  return {ranks, ranks * size.loops, 8 * 4096 / size.loops};
}

static void writtenOut(benchmark::State &state, Size size) {
  ScheduleOptions options = optionsOf(64, size);
  const Policy &policy = *llvm::cantFail(findPolicy(size.policy));
  for (auto _ : state) {
    resetPeakMemory();
    auto schedule =
        timed(state, "build", [&] { return policy.build(options); });
    if (!schedule)
      return (void)fails(state, schedule.takeError());
    TaskCosts costs = costsOf(schedule->stages);
    if (fails(state,
              timed(state, "check", [&] { return checkSchedule(*schedule); })))
      return;
    auto simulation =
        timed(state, "simulate", [&] { return simulate(*schedule, costs); });
    if (!simulation)
      return (void)fails(state, simulation.takeError());
    auto lists =
        timed(state, "order", [&] { return orderMessages(*schedule, costs); });
    if (!lists)
      return (void)fails(state, lists.takeError());
    if (fails(state,
              timed(state, "pair", [&] { return checkInstructions(*lists); })))
      return;
    if (fails(state, timed(state, "flow",
                           [&] { return checkDataFlow(*schedule, *lists); })))
      return;
    auto queues = timed(state, "queues",
                        [&] { return simulateInstructions(*lists, costs); });
    if (!queues)
      return (void)fails(state, queues.takeError());
    int64_t tasks = 0;
    for (const std::vector<Task> &order : schedule->order)
      tasks += static_cast<int64_t>(order.size());
    state.counters["Mtasks"] = tasks / 1e6;
    state.counters["MB"] = peakMegabytes();
    state.counters["bubble%"] = 100 * simulation->ranks[0].bubbleFraction;
  }
}

static void streamed(benchmark::State &state, Size size) {
  ScheduleOptions options = optionsOf(1024, size);
  const Policy &policy = *llvm::cantFail(findPolicy(size.policy));
  TaskCosts costs = costsOf(options.stages);
  for (auto _ : state) {
    resetPeakMemory();
    auto simulation = timed(
        state, "all", [&] { return simulateStream(policy, options, costs); });
    if (!simulation)
      return (void)fails(state, simulation.takeError());
    state.counters["Mtasks"] = simulation->tasks / 1e6;
    state.counters["Kmessages"] = simulation->peakMessages / 1e3;
    state.counters["MB"] = peakMegabytes();
    state.counters["bubble%"] = 100 * simulation->ranks[0].bubbleFraction;
  }
}

int main(int argc, char **argv) {
  for (Size size : {Size{"gpipe", 1}, Size{"1f1b", 1}, Size{"interleaved", 8},
                    Size{"breadth-first", 8}, Size{"zb-h1", 1},
                    Size{"interleaved-zb", 8}, Size{"zb-v", 2}})
    for (bool isStreamed : {false, true}) {
      std::string name = isStreamed ? "streamed/" : "written-out/";
      benchmark::RegisterBenchmark((name + size.policy).c_str(),
                                   isStreamed ? streamed : writtenOut, size)
          ->Iterations(1)
          ->Unit(benchmark::kSecond);
    }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
