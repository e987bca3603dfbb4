//===- Schedules.cpp - The list of schedules, drawn -----------------------===//
//
// See Schedules.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Schedules.h"

#include "codegen/plan/Plan.h"
#include "passes/schedules/HostMoves.h"
#include "passes/schedules/Timetable.h"
#include "support/Text.h"
#include "tools/pipewright/FigureTable.h"
#include "tools/pipewright/ProcessMapRow.h"
#include "tools/pipewright/ScheduleOutput.h"
#include "tools/pipewright/ShardingRows.h"

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

static llvm::Error readTimes(llvm::StringRef name, llvm::StringRef text,
                             ListOptions &options) {
  llvm::Expected<GivenTimes> times = parseTimes(text);
  if (!times)
    return option::fail("--", name, " ", llvm::toString(times.takeError()));
  options.times.tasks = std::move(*times);
  return llvm::Error::success();
}

static llvm::Error readTimesOfStages(llvm::StringRef name, llvm::StringRef text,
                                     ListOptions &options) {
  if (options.times.tasks)
    return option::fail("--times and --stage-times both say what tasks take; "
                        "give one of them");
  llvm::Expected<GivenTimes> times = readStageTimes(text);
  if (!times)
    return option::fail("--", name, " ", llvm::toString(times.takeError()));
  options.times.tasks = std::move(*times);
  return llvm::Error::success();
}

static llvm::Error readMachine(llvm::StringRef, llvm::StringRef text,
                               ListOptions &options) {
  return readLinks(text, options.times.machine);
}

static llvm::Error readTime(llvm::StringRef name, llvm::StringRef text,
                            const ListOptions &options,
                            std::optional<GivenTime> &time) {
  if (options.times.machine)
    return option::fail("--machine and --", name,
                        " both say what links take; "
                        "give one of them");
  time = parseTime(text);
  return time ? llvm::Error::success()
              : option::fail("--", name,
                             " expects a number, 0 or more, or a time such as "
                             "20us, but got '",
                             text::shortened(text, 48), "'");
}

static llvm::Error readLatency(llvm::StringRef name, llvm::StringRef text,
                               ListOptions &options) {
  return readTime(name, text, options, options.times.latency);
}

static llvm::Error readOffload(llvm::StringRef name, llvm::StringRef text,
                               ListOptions &options) {
  llvm::Expected<double> share = parseOffload(text);
  if (!share)
    return option::fail("--", name, " ", llvm::toString(share.takeError()));
  options.sizes.offload = *share;
  if (*share > 0 && options.times.machine && !options.sizes.stash)
    return option::fail("--", name,
                        " with --machine needs --stash, which says "
                        "how much is copied");
  return llvm::Error::success();
}

static llvm::Error readCopyTime(llvm::StringRef name, llvm::StringRef text,
                                ListOptions &options) {
  if (llvm::Error error = readTime(name, text, options, options.times.copy))
    return error;
  return options.sizes.offload > 0
             ? llvm::Error::success()
             : option::fail("--", name, " goes with --offload");
}

static llvm::Error readStashBytes(llvm::StringRef name, llvm::StringRef text,
                                  std::optional<int64_t> &bytes) {
  if (llvm::Error error = option::readBytes(name, text, 0, bytes.emplace()))
    return error;
  // A sum over micro-batches can be counted.
  constexpr int64_t most = int64_t(1) << 40;
  return *bytes <= most
             ? llvm::Error::success()
             : option::fail("--", name, " expects 1TiB at most, but got '",
                            text::shortened(text), "'");
}

static llvm::Error readStash(llvm::StringRef name, llvm::StringRef text,
                             ListOptions &options) {
  return readStashBytes(name, text, options.sizes.stash);
}

static llvm::Error readWeightStash(llvm::StringRef name, llvm::StringRef text,
                                   ListOptions &options) {
  if (!options.sizes.stash)
    return option::fail("--", name, " goes with --stash");
  return readStashBytes(name, text, options.sizes.weightStash);
}

static llvm::Error readExchangeTime(llvm::StringRef name, llvm::StringRef text,
                                    ListOptions &options) {
  if (llvm::Error error = readTime(name, text, options, options.times.exchange))
    return error;
  return options.sizes.sharding ? llvm::Error::success()
                                : option::fail("--", name, " goes with --zero");
}

static llvm::Error readMessage(llvm::StringRef name, llvm::StringRef text,
                               ListOptions &options) {
  if (!options.times.machine)
    return option::fail("--", name,
                        " goes with --machine, which says how fast links are");
  return readStashBytes(name, text, options.sizes.message);
}

static llvm::Error readZero(const OptionSpelling &, const OptionValues &given,
                            ListOptions &options) {
  if (llvm::Error error =
          readSharding(given, options.sizes.replicas, options.sizes.sharding))
    return error;
  return options.times.machine || !given.isGiven("weights")
             ? llvm::Error::success()
             : option::fail("--weights goes with --machine, which says how "
                            "fast links are");
}

const std::vector<OptionRow<ListOptions>> &tool::listRows() {
  static const std::vector<OptionRow<ListOptions>> rows = under<
      OptionRow<ListOptions>>(
      Heading::Pipeline,
      {{{.name = "[NAME[,NAME...]]...", .kind = Words},
        option::allTexts(&ListOptions::names)},
       {{"ranks", "P", "Draw it for so many ranks"},
        option::count(at(&ScheduleSizes::ranks))},
       {{"loops", "V",
         "Stages per rank; of several schedules, those that can have so many"},
        option::count(at(&ScheduleSizes::loops))},
       {{"micro-batches", "M", "Micro-batches per step"},
        option::count(at(&ScheduleSizes::microBatches))},
       {{"machine", "NAME|FILE.json",
         "Whose links messages, copies to hosts and what replicas do take, as "
         "of plan; times of tasks have units then: --times F=1.2ms,B=2.4ms"},
        option::ifGiven(readMachine)},
       {{"message", "BYTES",
         "With --machine: what a stage gives the next one of a micro-batch, "
         "and gets back"},
        option::ifGiven(readMessage)},
       {{"data-parallel", "D",
         "Replicas of all ranks, each with as many micro-batches"},
        option::count([](ListOptions &options) -> int64_t & {
          return options.sizes.replicas;
        })},
       {processMapSpelling(kShortestProcessMap),
        [](const OptionSpelling &row, const OptionValues &given,
           ListOptions &options) {
          return readProcessMapOfMachine(row, given, options.sizes.processMap);
        }},
       {zeroSpelling(), readZero},
       {zeroBuffersSpelling(), nullptr},
       {weightsSpelling(), nullptr},
       {{"exchange-time", "N",
         "With --zero: what replicas take to send each other a part each of a "
         "rank's share of the model, as to sum gradients of which each keeps "
         "a part, or to gather weights; sums that all keep take twice as long"},
        option::ifGiven(readExchangeTime)},
       {{"stash", "BYTES",
         "What a rank keeps of a micro-batch from F to B or I: 800MB, 1.5GiB"},
        option::ifGiven(readStash)},
       {{"weight-stash", "BYTES",
         "With --stash: what W still needs behind I (default: all)"},
        option::ifGiven(readWeightStash)},
       {{"offload", "SHARE",
         "Stashes that live in the host's memory from their forward to their "
         "backward: none, auto (as many as copies bring back in time), or at "
         "most 1% to 100% of each rank's",
         "none"},
        option::ifGiven(readOffload)},
       {{"copy-time", "N",
         "With --offload: what a copy of a rank's stash of one micro-batch "
         "takes, to the host or back"},
        option::ifGiven(readCopyTime)},
       {{"times", "F=N,B=N...",
         "What tasks take of one micro-batch: F, and B or I and W; R and U "
         "where there are any, all with a unit (ms, us, s) or all without. "
         "They are of a rank's share of the model, so each of V stages takes "
         "1/V"},
        option::ifGiven(readTimes)},
       {{"stage-times", "FILE",
         "The same with a row for each stage: a .csv with a header (F,I,W), or "
         "a .json with a list of objects. A schedule with fewer stages takes "
         "several rows for each; one with more spreads each row evenly"},
        option::ifGiven(readTimesOfStages)},
       {{"latency", "N", "What a message takes from rank to rank"},
        option::ifGiven(readLatency)},
       {under(
            Heading::Output,
            {"table", "FORMAT",
             "Print the figures of schedules as one table, without drawings: " +
                 text::listOf(tableFormats())}),
        option::oneOf(tableFormats(), &ListOptions::table)},
       {under(Heading::Output,
              {"write", "FILE",
               "Write the order to a .csv (PyTorch's) or a .json"}),
        option::file(&ListOptions::write)},
       {under(Heading::Output,
              {.name = "json",
               .help = "Print the list as JSON, without drawings",
               .kind = Flag}),
        option::flag(&ListOptions::asJson)}});
  return rows;
}

//===----------------------------------------------------------------------===//
// One after the other
//===----------------------------------------------------------------------===//

/// The schedule at these sizes, or of the policy's own example: what it is does
/// not depend on sizes.
static bool sumsAscending(const PolicyChoice &choice,
                          const ScheduleSizes &sizes) {
  for (const ScheduleSizes &tried : {sizes, ScheduleSizes()}) {
    llvm::Expected<Schedule> schedule =
        choice->build(sizedOptions(choice, tried));
    if (schedule)
      return schedules::sumsAscending(*schedule);
    llvm::consumeError(schedule.takeError());
  }
  return true;
}

/// What sets a schedule apart from those that are like any other.
static std::string traitsOf(const PolicyChoice &choice,
                            const ScheduleSizes &sizes) {
  const Policy &policy = *choice;
  std::vector<std::string> traits;
  if (!policy.trains())
    traits.push_back("evaluation only");
  if (policy.splitsBackward())
    traits.push_back("splits the backward into I and W");
  if (policy.copies() > 1)
    traits.push_back("two copies of the weights");
  if (policy.weightRule() != WeightRule::Synchronous)
    traits.push_back("stale weights");
  if (!sumsAscending(choice, sizes))
    traits.push_back("rounds gradients differently");
  if (policy.defaultLoops() > 1)
    traits.push_back(
        llvm::formatv("{0} stages per rank", policy.defaultLoops()).str());
  return llvm::join(traits, "; ");
}

static void printTexts(const PolicyChoice &choice, const ScheduleSizes &sizes) {
  const Policy &policy = *choice;
  llvm::raw_ostream &os = llvm::outs();
  os << policy.name() << ": " << policy.summary() << "\n";
  os << "  " << policy.paper() << "\n";
  if (std::string traits = traitsOf(choice, sizes); !traits.empty())
    os << "  " << traits << "\n";
  os << "  bubble: " << policy.bubbleFormula() << "\n";
  os << "  memory: " << policy.memoryFormula() << "\n";
  for (const PolicyParameter &parameter : policy.parameters())
    os << "  parameter " << parameter.name << ": " << parameter.summary << "\n";
}

/// Drawn are unit tasks, which fit a line; the figures are those of the costs.
static void printDrawing(const SimulatedSchedule &simulated) {
  llvm::SmallVector<llvm::StringRef> lines;
  std::string text = printTimetable(simulated.schedule);
  llvm::StringRef(text).rtrim().split(lines, '\n');
  for (llvm::StringRef line : lines)
    llvm::outs() << "    " << line << "\n";
  if (!simulated.schedule.origin.empty())
    llvm::outs() << "    chosen: " << simulated.schedule.origin << "\n";
  Figures figures = simulated.figures();
  Picture picture = simulated.picture();
  auto time = [&](double value) { return timeText(picture, value); };
  if (simulated.mesh.data > 1)
    llvm::outs() << "    " << replicasText(simulated.mesh.data) << "\n";
  if (const size_t moves = simulated.schedule.moves.size(); simulated.offloads)
    llvm::outs() << llvm::formatv("    {0} of {1} stashes move\n", moves,
                                  simulated.schedule.stages *
                                      simulated.schedule.microBatches);
  if (figures.sums > 0)
    llvm::outs() << llvm::formatv("    on a rank at most, sums of gradients: "
                                  "{0}, gathers of weights: {1}; "
                                  "exposed {2}\n",
                                  figures.sums, figures.gathers,
                                  time(figures.exposed));
  llvm::outs() << llvm::formatv(
      "    with {0}: step {1}, busiest rank {2}, span {3}, bubble {4:F1} %, at "
      "most {5} stage stashes{6} on a rank, {7} messages\n",
      simulated.times, time(figures.step), time(figures.busiest),
      time(figures.span), 100 * figures.bubble, figures.stashes,
      figures.stashBytes > 0
          ? " and " + codegen::formatBytes(figures.stashBytes)
          : "",
      figures.messages);
}

static llvm::json::Object describe(const PolicyChoice &choice,
                                   const ScheduleSizes &sizes) {
  const Policy &policy = *choice;
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
      {"rounds_differently", !sumsAscending(choice, sizes)},
      {"stages_per_rank", policy.defaultLoops()},
      {"parameters", std::move(parameters)}};
}

static void printAsJson(llvm::ArrayRef<NamedSchedule> all,
                        const ScheduleSizes &sizes) {
  llvm::json::Array list;
  for (const NamedSchedule &named : all)
    list.push_back(describe(named.choice, sizes));
  llvm::outs() << llvm::formatv("{0:1}", llvm::json::Value(std::move(list)))
               << "\n";
}

/// All there are. A size that one cannot have is worth a line.
static void printAll(llvm::ArrayRef<NamedSchedule> all,
                     const ListOptions &list) {
  for (const NamedSchedule &named : all) {
    printTexts(named.choice, list.sizes);
    llvm::Expected<SimulatedSchedule> simulated =
        simulateNamed(named, list.sizes, list.times);
    if (simulated)
      printDrawing(*simulated);
    else
      llvm::outs() << "    not drawn: " << llvm::toString(simulated.takeError())
                   << "\n";
    llvm::outs() << "\n";
  }
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

static llvm::Error writeOnly(llvm::ArrayRef<SimulatedSchedule> all,
                             const ListOptions &list) {
  if (all.size() != 1)
    return option::fail("--write writes one schedule, but got ", all.size());
  PlanFile plan = all.front().plan();
  // A file without costs takes those of whoever reads it.
  if (!list.times.tasks && !list.times.latency && !all.front().inSeconds)
    plan.costs.reset();
  return writeSchedule(std::move(plan), list.write, /*withMessages=*/false,
                       /*withSendWaits=*/false);
}

llvm::Error tool::runSchedules(const ListOptions &list,
                               const DrawOptions &drawings) {
  llvm::Expected<std::vector<NamedSchedule>> chosen =
      chooseSchedules(list.names);
  if (!chosen)
    return chosen.takeError();
  if (list.names.empty() && (drawings.any() || !list.write.empty()))
    return option::fail("--svg, --pdf, --html and --write take the schedules "
                        "that are named, but got no name; see 'pipewright "
                        "schedules' for all of them");
  if (list.times.machine && !list.times.tasks && list.names.empty())
    return option::fail("--machine says what messages take in seconds: give "
                        "tasks times with units, too, as in --times "
                        "F=1.2ms,B=2.4ms");
  if (list.asJson) {
    printAsJson(*chosen, list.sizes);
    return llvm::Error::success();
  }
  if (list.names.empty() && list.table.empty()) {
    printAll(*chosen, list);
    return llvm::Error::success();
  }
  llvm::Expected<std::vector<SimulatedSchedule>> all =
      simulateSeveral(*chosen, list.sizes, list.times);
  if (!all)
    return all.takeError();
  if (llvm::Error error = drawSchedules(*all, drawings))
    return error;
  if (!list.write.empty())
    if (llvm::Error error = writeOnly(*all, list))
      return error;
  if (list.table.empty())
    for (const SimulatedSchedule &simulated : *all) {
      printTexts(simulated.choice, list.sizes);
      printDrawing(simulated);
      llvm::outs() << "\n";
    }
  if (!list.table.empty() || all->size() > 1)
    printTable(llvm::outs(), list.table.empty() ? "text" : list.table, *all);
  return llvm::Error::success();
}
