//===- Schedules.cpp - The list of schedules, drawn -----------------------===//
//
// See Schedules.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Schedules.h"

#include "passes/schedules/Timetable.h"
#include "passes/schedules/files/FilePolicy.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::tool;

using enum OptionSpelling::Kind;

/// The place of a size.
static auto at(std::optional<int64_t> ScheduleSizes::*size) {
  return [=](ListOptions &options) -> auto & { return options.sizes.*size; };
}

const std::vector<OptionRow<ListOptions>> &tool::listRows() {
  static const std::vector<OptionRow<ListOptions>> rows = {
      {{.name = "[NAME]...", .kind = Words},
       option::allTexts(&ListOptions::names)},
      {{"ranks", "P", "Draw it for so many ranks"},
       option::count(at(&ScheduleSizes::ranks))},
      {{"loops", "V", "Stages per rank"},
       option::count(at(&ScheduleSizes::loops))},
      {{"micro-batches", "M", "Micro-batches per step"},
       option::count(at(&ScheduleSizes::microBatches))},
      {{.name = "json",
        .help = "Print the list as JSON, without drawings",
        .kind = Flag},
       option::flag(&ListOptions::asJson)}};
  return rows;
}

/// What sets a schedule apart from those that are like any other.
static std::string traitsOf(const Policy &policy,
                            const ScheduleOptions &options) {
  std::vector<std::string> traits;
  if (!policy.trains())
    traits.push_back("evaluation only");
  if (policy.splitsBackward())
    traits.push_back("splits the backward into I and W");
  if (policy.copies() > 1)
    traits.push_back("two copies of the weights");
  if (policy.weightRule() != WeightRule::Synchronous)
    traits.push_back("stale weights");
  if (!policy.sumsAscending(options))
    traits.push_back("rounds gradients differently");
  if (policy.defaultLoops() > 1)
    traits.push_back(
        llvm::formatv("{0} stages per rank", policy.defaultLoops()).str());
  return llvm::join(traits, "; ");
}

static void printTexts(const Policy &policy, const ScheduleOptions &options) {
  llvm::raw_ostream &os = llvm::outs();
  os << policy.name() << ": " << policy.summary() << "\n";
  os << "  " << policy.paper() << "\n";
  if (std::string traits = traitsOf(policy, options); !traits.empty())
    os << "  " << traits << "\n";
  os << "  bubble: " << policy.bubbleFormula() << "\n";
  os << "  memory: " << policy.memoryFormula() << "\n";
  for (const PolicyParameter &parameter : policy.parameters())
    os << "  parameter " << parameter.name << ": " << parameter.summary << "\n";
}

static void printDrawing(const Schedule &schedule) {
  // A backward of two forwards is the papers' rule of thumb; drawn are unit
  // tasks, which fit a line.
  llvm::Expected<Simulation> simulation =
      simulate(schedule, TaskCosts::uniform(schedule.stages, 1, 2));
  llvm::SmallVector<llvm::StringRef> lines;
  std::string text = printTimetable(schedule);
  llvm::StringRef(text).rtrim().split(lines, '\n');
  for (llvm::StringRef line : lines)
    llvm::outs() << "    " << line << "\n";
  if (!schedule.origin.empty())
    llvm::outs() << "    chosen: " << schedule.origin << "\n";
  if (!simulation) {
    llvm::consumeError(simulation.takeError());
    return;
  }
  double busy = 0;
  int64_t stashes = 0;
  for (const RankSummary &rank : simulation->ranks) {
    busy = std::max(busy, rank.busySeconds);
    stashes = std::max(stashes, rank.peakInFlight);
  }
  llvm::outs() << llvm::formatv(
      "    with tF = tI = tW = 1 per stage: step {0}, busiest rank {1}, "
      "span {2}, at most {3} stage stashes on a rank\n",
      simulation->globalStepTime, busy, simulation->spanStepTime, stashes);
}

ScheduleOptions tool::sizedOptions(const PolicyChoice &choice,
                                   const ScheduleSizes &sizes) {
  ScheduleOptions options = choice.with(choice->example());
  int64_t loops = sizes.loops.value_or(
      std::max<int64_t>(1, options.stages / options.ranks));
  options.ranks = sizes.ranks.value_or(options.ranks);
  options.stages = options.ranks * loops;
  options.microBatches = sizes.microBatches.value_or(options.microBatches);
  return options;
}

/// The schedules of these names, or all.
static llvm::Expected<std::vector<PolicyChoice>>
choose(llvm::ArrayRef<std::string> names) {
  std::vector<PolicyChoice> choices;
  for (const std::string &name : names) {
    llvm::Expected<PolicyChoice> choice = chooseSchedule(name);
    if (!choice)
      return choice.takeError();
    choices.push_back(*choice);
  }
  if (names.empty())
    for (const Policy *policy : allPolicies())
      choices.push_back({policy, {}, {}});
  return choices;
}

static llvm::json::Object describe(const Policy &policy,
                                   const ScheduleOptions &options) {
  llvm::json::Array parameters;
  for (const PolicyParameter &parameter : policy.parameters())
    parameters.push_back(llvm::json::Object{{"name", parameter.name},
                                            {"summary", parameter.summary}});
  return llvm::json::Object{
      {"name", policy.name()},
      {"summary", policy.summary()},
      {"paper", policy.paper()},
      {"bubble", policy.bubbleFormula()},
      {"memory", policy.memoryFormula()},
      {"trains", policy.trains()},
      {"splits_backward", policy.splitsBackward()},
      {"copies", policy.copies()},
      {"stale_weights", policy.weightRule() != WeightRule::Synchronous},
      {"rounds_differently", !policy.sumsAscending(options)},
      {"stages_per_rank", policy.defaultLoops()},
      {"parameters", std::move(parameters)}};
}

static void printAsJson(llvm::ArrayRef<PolicyChoice> choices,
                        const ScheduleSizes &sizes) {
  llvm::json::Array list;
  for (const PolicyChoice &choice : choices)
    list.push_back(describe(*choice, sizedOptions(choice, sizes)));
  llvm::outs() << llvm::formatv("{0:1}", llvm::json::Value(std::move(list)))
               << "\n";
}

llvm::Error tool::printSchedules(const ListOptions &list) {
  llvm::Expected<std::vector<PolicyChoice>> choices = choose(list.names);
  if (!choices)
    return choices.takeError();
  if (list.asJson) {
    printAsJson(*choices, list.sizes);
    return llvm::Error::success();
  }
  for (const PolicyChoice &choice : *choices) {
    ScheduleOptions options = sizedOptions(choice, list.sizes);
    llvm::Expected<Schedule> schedule = choice->build(options);
    // Asked for by name, a size that cannot be is an error; in the list of all
    // it is worth a line.
    if (!schedule && !list.names.empty())
      return schedule.takeError();
    printTexts(*choice, options);
    if (schedule)
      printDrawing(*schedule);
    else
      llvm::outs() << "    not drawn: " << llvm::toString(schedule.takeError())
                   << "\n";
    llvm::outs() << "\n";
  }
  return llvm::Error::success();
}
