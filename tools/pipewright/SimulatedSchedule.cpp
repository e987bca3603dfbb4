//===- SimulatedSchedule.cpp - A schedule without a model -----------------===//
//
// See SimulatedSchedule.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/SimulatedSchedule.h"

#include "codegen/plan/Plan.h"
#include "passes/planning/MachineLinks.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/WorkOrder.h"
#include "passes/schedules/files/FilePolicy.h"
#include "support/Message.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

#include "llvm/Support/FormatVariadic.h"

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::tool;

//===----------------------------------------------------------------------===//
// Which
//===----------------------------------------------------------------------===//

llvm::Expected<std::vector<NamedSchedule>>
tool::chooseSchedules(llvm::ArrayRef<std::string> names) {
  std::vector<NamedSchedule> all;
  auto add = [&](llvm::StringRef name) -> llvm::Error {
    llvm::Expected<PolicyChoice> choice = chooseSchedule(name);
    if (!choice)
      return choice.takeError();
    llvm::StringRef shown =
        choice->file ? llvm::sys::path::filename(name) : name;
    all.push_back({shown.str(), std::move(*choice)});
    return llvm::Error::success();
  };
  for (llvm::StringRef word : names) {
    llvm::SmallVector<llvm::StringRef> parts;
    // A file may have a comma in its name.
    if (isScheduleFile(word) && llvm::sys::fs::exists(word))
      parts = {word};
    else
      word.split(parts, ',');
    for (llvm::StringRef part : parts)
      if (llvm::Error error = add(part))
        return std::move(error);
  }
  if (names.empty())
    for (const Policy *policy : allPolicies())
      all.push_back({policy->name().str(), PolicyChoice{policy, {}}});
  return all;
}

ScheduleOptions tool::sizedOptions(const PolicyChoice &choice,
                                   const ScheduleSizes &sizes) {
  ScheduleOptions options = choice.with(choice->example());
  int64_t loops = sizes.loops.value_or(
      std::max<int64_t>(1, options.stages / options.ranks));
  // A file need not have as many stages on each rank.
  bool isOther =
      sizes.loops || sizes.ranks.value_or(options.ranks) != options.ranks;
  options.ranks = sizes.ranks.value_or(options.ranks);
  if (isOther)
    options.stages = options.ranks * loops;
  options.microBatches = sizes.microBatches.value_or(options.microBatches);
  options.offload = sizes.offload;
  return options;
}

//===----------------------------------------------------------------------===//
// One
//===----------------------------------------------------------------------===//

/// What stages keep: equal parts of what ranks do of one copy of the model.
static void setStashes(SimulatedSchedule &result, const ScheduleSizes &sizes) {
  if (!sizes.stash)
    return;
  const Schedule &schedule = result.schedule;
  auto part = [&](int64_t bytes) {
    return bytes * schedule.ranks / (schedule.stages / schedule.copies);
  };
  for (StageCosts &stage : result.costs.stages) {
    stage.stashBytes = part(*sizes.stash);
    stage.weightStashBytes = sizes.weightStash ? part(*sizes.weightStash) : -1;
    stage.keptBytes = -1;
  }
  result.times += ", stash " + codegen::formatBytes(*sizes.stash);
  if (sizes.weightStash)
    result.times +=
        ", of which W needs " + codegen::formatBytes(*sizes.weightStash);
}

bool ScheduleTimes::inSeconds(const PolicyChoice &choice) const {
  return tasks ? tasks->inSeconds : choice.file && choice.file->costs;
}

/// Times of tasks and of links are all in seconds, or none are; beside the
/// costs of a file, numbers without a unit are seconds.
static llvm::Error checkUnits(const SimulatedSchedule &result,
                              const ScheduleTimes &times) {
  if (times.machine && !result.inSeconds)
    return refuse("--machine says what messages take in seconds: give tasks "
                  "times with units, too, as in --times F=1.2ms,B=2.4ms");
  const std::pair<llvm::StringLiteral, const std::optional<GivenTime> &> all[] =
      {{"latency", times.latency},
       {"copy-time", times.copy},
       {"exchange-time", times.exchange}};
  for (const auto &[name, time] : all)
    if (time && !time->fits(result.inSeconds) && (times.tasks || time->hasUnit))
      return refuse("--{0} {1} has {2}unit, but what tasks take has {3}: {4}",
                    name, time->describe(), time->hasUnit ? "a " : "no ",
                    result.inSeconds ? "one" : "none", result.times);
  return llvm::Error::success();
}

static void setLinks(SimulatedSchedule &result, const ScheduleTimes &times) {
  if (times.machine) {
    setLinks(result.costs, times.machine->model, result.mesh);
    result.times += ", links of " + times.machine->name;
  }
  if (times.latency) {
    result.costs.linkLatency = times.latency->value;
    result.times += ", latency " + times.latency->describe();
  }
  if (times.copy) {
    result.costs.hostLink = {times.copy->value /
                             stagesPerRank(result.schedule)};
    result.times += ", copy " + times.copy->describe();
  }
}

static void describeOffload(SimulatedSchedule &result,
                            const ScheduleSizes &sizes,
                            const ScheduleTimes &times) {
  if (sizes.offload == 0)
    return;
  result.times +=
      llvm::formatv(", up to {0:F0} % of stashes on hosts", 100 * sizes.offload)
          .str();
  if (!times.copy && !times.machine)
    result.times += " (copies take no time without --copy-time)";
}

/// What the tasks of the placed stages take, and what is between ranks.
static llvm::Error setCosts(SimulatedSchedule &result,
                            const ScheduleTimes &times) {
  result.inSeconds = times.inSeconds(result.choice);
  if (!times.tasks && result.inSeconds) {
    result.costs = *result.choice.file->costs;
    result.times = "the costs in " + result.name;
  } else {
    GivenTimes given = times.tasks.value_or(GivenTimes::units());
    llvm::Expected<TaskCosts> costs = given.costsOf(result.schedule);
    if (!costs)
      return costs.takeError();
    result.costs = std::move(*costs);
    result.times =
        given.describe() + (given.file.empty() ? " of a rank's share" : "");
  }
  if (llvm::Error error = checkUnits(result, times))
    return error;
  setLinks(result, times);
  return llvm::Error::success();
}

std::string tool::replicasText(int64_t replicas) {
  return llvm::formatv("each of {0} replicas runs so, on micro-batches of its "
                       "own",
                       replicas);
}

/// What replicas do together in the step.
static llvm::Expected<std::vector<Work>>
addWorks(SimulatedSchedule &simulated, std::optional<Sharding> sharding,
         const ScheduleTimes &times) {
  if (!sharding)
    return std::vector<Work>();
  if (times.exchange)
    sharding->exchangeSeconds = times.exchange->value;
  if (llvm::Error error =
          setExchangeTime(simulated.costs, simulated.schedule, *sharding))
    return std::move(error);
  simulated.times += llvm::formatv(", {0} replicas with ZeRO {1}",
                                   sharding->replicas, sharding->level)
                         .str();
  if (sharding->exchangeSeconds > 0)
    simulated.times += ", exchange " + times.exchange->describe();
  else if (times.machine)
    simulated.times +=
        ", weights " + codegen::formatBytes(sharding->weightBytes);
  return addReplicaWorks(simulated.schedule, *sharding);
}

/// A file has its own.
static llvm::Error setMessages(SimulatedSchedule &result,
                               const ScheduleSizes &sizes,
                               const ScheduleTimes &times) {
  if (!times.machine)
    return llvm::Error::success();
  if (!result.edges.empty())
    return sizes.message ? refuse("--message: {0} says itself what stages give "
                                  "each other",
                                  result.name)
                         : llvm::Error::success();
  const int64_t bytes = sizes.message.value_or(0);
  result.edges =
      linearEdges(result.schedule.stages, bytes, result.schedule.copies);
  result.times += ", messages of " + codegen::formatBytes(bytes);
  return llvm::Error::success();
}

/// Of stashes alone, as nothing else is known here.
static void warnOfMemory(const SimulatedSchedule &result,
                         const ScheduleTimes &times) {
  if (!times.machine)
    return;
  for (auto [rank, summary] : llvm::enumerate(result.simulation.ranks)) {
    const double memory =
        times.machine->model.ofRank(static_cast<int64_t>(rank), result.mesh)
            .memory;
    if (static_cast<double>(summary.peakStashBytes) <= memory)
      continue;
    printMessage(
        "warning",
        llvm::formatv("{0}: rank {1} keeps {2} of stashes, but has {3} on {4}",
                      result.name, rank,
                      codegen::formatBytes(summary.peakStashBytes),
                      codegen::formatBytes(static_cast<int64_t>(memory)),
                      times.machine->name)
            .str());
    return;
  }
}

/// Of times that are given for fewer stages than there are.
static void tellSpread(const SimulatedSchedule &result,
                       const ScheduleTimes &times) {
  if (!times.tasks)
    return;
  if (int64_t each = times.tasks->stagesPerRow(result.schedule); each > 1)
    printMessage("remark",
                 llvm::formatv("{0}: each row of {1} is spread "
                               "evenly over {2} stages",
                               result.name, times.tasks->describe(), each)
                     .str());
}

/// With processes numbered in that order.
static llvm::Expected<SimulatedSchedule>
simulateOn(runtime::ProcessMap map, const NamedSchedule &named,
           ScheduleOptions options, const ScheduleTimes &times,
           const ScheduleSizes &sizes) {
  SimulatedSchedule result;
  result.offloads = sizes.offload > 0;
  result.name = named.name;
  result.choice = named.choice;
  if (named.choice.file)
    result.edges = named.choice.file->edges;
  // Where stages are says what they take, and some order them by that.
  llvm::Expected<Schedule> shape = named.choice->shape(options);
  if (!shape)
    return shape.takeError();
  result.schedule = std::move(*shape);
  result.mesh = {
      .pipe = result.schedule.ranks, .data = sizes.replicas, .map = map};
  if (llvm::Error error = setCosts(result, times))
    return refuse("{0}: {1}", named.name, llvm::toString(std::move(error)));
  setStashes(result, sizes);
  describeOffload(result, sizes, times);
  if (llvm::Error error = setMessages(result, sizes, times))
    return std::move(error);
  options.costs = &result.costs;
  llvm::Expected<Schedule> schedule = named.choice->build(options);
  if (!schedule)
    return schedule.takeError();
  result.schedule = std::move(*schedule);
  llvm::Expected<std::vector<Work>> works =
      addWorks(result, sizes.sharding, times);
  if (!works)
    return refuse("{0}: {1}", named.name, llvm::toString(works.takeError()));
  llvm::Expected<Simulation> simulation =
      simulateWithMoves(result.schedule, result.costs, result.edges, *works);
  if (!simulation)
    return refuse("{0}: {1}", named.name,
                  llvm::toString(simulation.takeError()));
  result.simulation = std::move(*simulation);
  return result;
}

/// What the user gave, or in the order with the shortest step.
static llvm::Expected<SimulatedSchedule>
simulateWith(const NamedSchedule &named, const ScheduleOptions &options,
             const ScheduleTimes &times, const ScheduleSizes &sizes) {
  std::vector<runtime::ProcessMap> maps = {
      sizes.processMap.value_or(runtime::ProcessMap::Replicas)};
  if (times.machine && !sizes.processMap)
    maps = processMapsOn(times.machine->model, options.ranks, sizes.replicas,
                         named.choice->movesStashes(options));
  auto best = simulateOn(maps.front(), named, options, times, sizes);
  for (const runtime::ProcessMap map : llvm::drop_begin(maps)) {
    if (!best)
      return best.takeError();
    auto other = simulateOn(map, named, options, times, sizes);
    if (!other)
      return other.takeError();
    if (other->simulation.globalStepTime <
        best->simulation.globalStepTime * (1 - 1e-9))
      best = std::move(other);
  }
  if (!best)
    return best.takeError();
  if (best->costs.hosts.processes > 0 && (maps.size() > 1 || sizes.processMap))
    best->times += ", process-map " + std::string(nameOf(best->mesh.map));
  tellSpread(*best, times);
  warnOfMemory(*best, times);
  return best;
}

llvm::Expected<SimulatedSchedule>
tool::simulateNamed(const NamedSchedule &named, const ScheduleSizes &sizes,
                    const ScheduleTimes &times) {
  return simulateWith(named, sizedOptions(named.choice, sizes), times, sizes);
}

//===----------------------------------------------------------------------===//
// Several
//===----------------------------------------------------------------------===//

/// The sizes without the loops, where the schedule cannot have those.
static ScheduleOptions possibleOptions(const NamedSchedule &named,
                                       ScheduleSizes sizes) {
  ScheduleOptions asked = sizedOptions(named.choice, sizes);
  sizes.loops.reset();
  ScheduleOptions own = sizedOptions(named.choice, sizes);
  llvm::Expected<Placement> placed = named.choice->place(asked);
  if (placed)
    return asked;
  llvm::consumeError(placed.takeError());
  return own;
}

/// Ranks and micro-batches for all: those of a file, which has no others, or of
/// the first one's example, unless they are given.
static ScheduleSizes commonSizes(llvm::ArrayRef<NamedSchedule> all,
                                 ScheduleSizes sizes) {
  auto first = llvm::find_if(all, [](const NamedSchedule &named) {
    return named.choice.file != nullptr;
  });
  const NamedSchedule &model = first == all.end() ? all.front() : *first;
  ScheduleOptions example = model.choice->example();
  if (!sizes.ranks)
    sizes.ranks = example.ranks;
  if (!sizes.microBatches)
    sizes.microBatches = example.microBatches;
  return sizes;
}

llvm::Expected<std::vector<SimulatedSchedule>>
tool::simulateSeveral(llvm::ArrayRef<NamedSchedule> all,
                      const ScheduleSizes &given, const ScheduleTimes &times) {
  if (all.size() == 1) {
    llvm::Expected<SimulatedSchedule> only =
        simulateNamed(all.front(), given, times);
    if (!only)
      return only.takeError();
    return std::vector<SimulatedSchedule>{std::move(*only)};
  }
  ScheduleSizes sizes = commonSizes(all, given);
  std::vector<SimulatedSchedule> results;
  for (const NamedSchedule &named : all) {
    llvm::Expected<SimulatedSchedule> result =
        simulateWith(named, possibleOptions(named, sizes), times, sizes);
    if (result)
      results.push_back(std::move(*result));
    else
      printMessage("warning", named.name + " is left out: " +
                                  llvm::toString(result.takeError()));
  }
  if (results.empty())
    return refuse("none of the schedules is possible");
  for (const SimulatedSchedule &result : results)
    if (result.inSeconds != results.front().inSeconds) {
      const SimulatedSchedule &timed =
          result.inSeconds ? result : results.front();
      return refuse("{0} has costs of its own, in seconds, which other "
                    "schedules have not; give --times or --stage-times for all",
                    timed.name);
    }
  return results;
}

//===----------------------------------------------------------------------===//
// For others to show
//===----------------------------------------------------------------------===//

Picture SimulatedSchedule::picture() const {
  Picture picture{name, schedule, simulation, costs, edges};
  picture.unitTimes = !inSeconds;
  picture.times = times;
  picture.replicas = mesh.data;
  return picture;
}

PlanFile SimulatedSchedule::plan() const {
  PlanFile plan;
  plan.schedule = schedule;
  plan.edges = edges;
  plan.costs = costs;
  plan.timedWorks = simulation.works;
  return plan;
}
