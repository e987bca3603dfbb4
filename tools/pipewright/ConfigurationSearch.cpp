//===- ConfigurationSearch.cpp - The fastest way to use workers -----------===//
//
// No plan is shorter than its tasks, shared evenly by all workers, and cuts do
// not make these shorter: one rank that has all of the model bounds all others
// of a micro-batch's size. More sharing and recomputing only cost time, but
// within a limit they may leave room for a faster schedule; for a picture of
// what memory buys, all of them are tried.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/ConfigurationSearch.h"

#include "codegen/plan/Plan.h"
#include "support/Message.h"
#include "support/Text.h"
#include "tools/pipewright/Compilation.h"
#include "tools/pipewright/LevelText.h"
#include "tools/pipewright/PlanChoice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

using namespace mlir;

namespace pipewright::tool {

using enum OptionSpelling::Kind;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static ReadOption<SearchOptions> number(int64_t SearchOptions::*place,
                                        int64_t most, const char *what) {
  return [=](const OptionSpelling &row, const OptionValues &given,
             SearchOptions &options) -> llvm::Error {
    if (!given.isGiven(row.name))
      return llvm::Error::success();
    if (llvm::Error error =
            option::readCount(row.name, given[row.name], options.*place))
      return error;
    if (options.*place > most)
      return option::fail("--", row.name, " tries at most ", most, " ", what,
                          ", but got ", options.*place);
    return llvm::Error::success();
  };
}

static llvm::Error readSearch(const OptionSpelling &row,
                              const OptionValues &given,
                              SearchOptions &options) {
  options.isWanted = given.isSet(row.name);
  if (options.isWanted && (options.workers == 0 || options.batch == 0))
    return option::fail("--", row.name,
                        " expects --workers N and --batch B, the samples of a "
                        "step");
  if (!options.isWanted && options.batch > 0)
    return option::fail("--batch goes with --", row.name,
                        "; else give --micro-batches and --micro-batch-size");
  if (!options.isWanted && !options.pareto.empty())
    return option::fail("--pareto goes with --", row.name);
  if (!options.isWanted && options.tune > 0)
    return option::fail("--tune goes with --", row.name);
  return llvm::Error::success();
}

const std::vector<OptionRow<SearchOptions>> &searchRows() {
  static const std::vector<OptionRow<SearchOptions>> rows =
      under<OptionRow<SearchOptions>>(
          Heading::Pipeline,
          {{{"workers", "N",
             "plan: one table of all ways to make N workers ranks and "
             "replicas, with and without --zero; --micro-batches are those of "
             "the whole step then"},
            number(&SearchOptions::workers, 1024, "workers")},
           {{"batch", "B", "The samples of a step of all replicas (--search)"},
            number(&SearchOptions::batch, 1 << 20, "samples")},
           {{"tune", "N",
             "compile, train: run programs of the best N for some steps on "
             "this machine and take the fastest (--search)"},
            number(&SearchOptions::tune, 64, "programs")},
           {{"pareto", "OUT.svg",
             "Draw the memory and the step of all ways, in place of leaving "
             "out what cannot be the fastest (--search)"},
            option::anyText(&SearchOptions::pareto)},
           {{.name = "search",
             .help = "Choose --ranks, --data-parallel, --zero, "
                     "--micro-batch-size, --micro-batches, --schedule, "
                     "--loops and --remat for --workers and --batch: the "
                     "fastest of all that fit --memory-limit. What is given "
                     "stays as it is",
             .kind = Flag},
            readSearch}});
  return rows;
}

std::string Configuration::options() const {
  std::string text = llvm::formatv(
      "--ranks {0} --data-parallel {1} --micro-batches {2} "
      "--micro-batch-size {3} --schedule {4} --remat {5}",
      ranks, replicas, microBatches, microBatchSize, schedule, remat);
  if (zero > 0)
    text += " --zero " + std::to_string(zero);
  if (!balance.empty())
    text += " --balance " + balance;
  if (recomputesEarly)
    text += " --early-recompute";
  return text;
}

OptionValues ConfigurationSearch::valuesOf(const Configuration &one) const {
  OptionValues values =
      one.balance.empty() ? given : given.with("balance", one.balance);
  if (one.recomputesEarly)
    values = values.with("early-recompute", "");
  return values.with("ranks", std::to_string(one.ranks))
      .with("data-parallel", std::to_string(one.replicas))
      .with("zero", std::to_string(one.zero))
      .with("micro-batches", std::to_string(one.microBatches))
      .with("micro-batch-size", std::to_string(one.microBatchSize))
      .with("schedule", one.schedule)
      .with("remat", one.remat);
}

llvm::Error ConfigurationSearch::checkOptions() const {
  auto text = readLevelText(given["model"]);
  if (!text)
    return text.takeError();
  if (*text)
    return option::fail("--search: ", text::printable((*text)->path),
                        " has decisions already; give the model itself");
  if (given.isGiven("micro-batches"))
    return option::fail("--search chooses --micro-batches by --batch: leave "
                        "that out");
  if (given.isGiven("task-times"))
    return option::fail("--search makes many plans, and --task-times are of "
                        "one: leave that out");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

/// The numbers to try: that which an option fixes, or all.
static llvm::Expected<std::optional<int64_t>> fixed(const OptionValues &given,
                                                    llvm::StringRef option) {
  if (!given.isGiven(option))
    return std::nullopt;
  int64_t number = 0;
  if (llvm::Error error = option::readCount(option, given[option], number))
    return std::move(error);
  return number;
}

std::vector<std::string> ConfigurationSearch::remats() const {
  if (given.isGiven("remat"))
    return {given["remat"].str()};
  return {std::begin(kRematModesByTime), std::end(kRematModesByTime)};
}

static Configuration summaryOf(Configuration one, const codegen::Plan &plan) {
  one.stages = plan.stages.size();
  one.step = plan.simulation.globalStepTime;
  one.exposed = plan.simulation.exposedSeconds;
  for (const codegen::RankPlan &rank : plan.ranks) {
    one.work = std::max(one.work, rank.busySeconds);
    one.arenaBytes = std::max(one.arenaBytes, rank.arenaBytes);
  }
  one.waiting = std::max(0.0, one.step - one.work - one.exposed);
  return one;
}

/// Imports the model for micro-batches of a size, once for all that is planned
/// with it. Fails where there is no such model: it may have a batch of its own.
LogicalResult
ConfigurationSearch::import(const CompileOptions &options,
                            std::optional<Compilation> &compilation) {
  if (compilation)
    return success();
  if (options.import.microBatchSize == unreadable)
    return failure();
  if (failed(compilation.emplace(options).openQuietly(model.empty(), reason))) {
    compilation.reset();
    unreadable = options.import.microBatchSize;
    return failure();
  }
  model = compilation->modelName();
  return success();
}

/// All of the model on a rank of its own.
Configuration ConfigurationSearch::onOneRank(int64_t microBatchSize) const {
  Configuration one;
  one.microBatchSize = microBatchSize;
  one.remat = given.isGiven("remat") ? given["remat"].str() : "none";
  one.schedule = "gpipe";
  return one;
}

/// How long a step takes at least; 0 where nobody knows. Sets `longestPass`.
double ConfigurationSearch::leastStep(int64_t microBatchSize,
                                      std::optional<Compilation> &compilation) {
  auto options =
      readCompileOptions(valuesOf(onOneRank(microBatchSize)), nullptr);
  // Some options go with several ranks or replicas alone.
  if (!options) {
    llvm::consumeError(options.takeError());
    return 0;
  }
  // However much it needs, on one rank as fast as the fastest.
  options->memoryLimit.reset();
  if (options->machine) {
    options->machine->model = options->machine->model.ofBestRank();
    options->machine->model.memory = MachineModel::unknownMemory;
  }
  if (failed(import(*options, compilation)))
    return 0;
  std::string why;
  auto plan = compilation->planQuietly(*options, why);
  if (failed(plan))
    return 0;
  // Updates are left out: replicas may share them.
  double work = 0;
  for (const schedules::StageCosts &stage : plan->costs.stages) {
    work += stage.forward + stage.backward;
    // How much of a backward others have to wait for is not known here: a first
    // layer has gradients of weights alone.
    longestPass = std::max(longestPass, stage.forward);
  }
  const int64_t microBatches = wanted.batch / microBatchSize;
  return work * static_cast<double>(microBatches) /
         static_cast<double>(wanted.workers);
}

/// Whether a plan with such a step cannot be the best.
bool ConfigurationSearch::isSlower(double step) const {
  // Tasks may be a little shorter in some cuts than in others.
  constexpr double slack = 0.98;
  return wanted.pareto.empty() && !planned.empty() &&
         step * slack > planned.front().step;
}

llvm::Error ConfigurationSearch::trySize(int64_t microBatchSize) {
  std::optional<Compilation> compilation;
  // A larger micro-batch takes no less.
  double least = longestPass;
  if (!isSlower(least))
    least = std::max(leastStep(microBatchSize, compilation), longestPass);
  auto fixedRanks = fixed(given, "ranks");
  if (!fixedRanks)
    return fixedRanks.takeError();
  auto fixedReplicas = fixed(given, "data-parallel");
  if (!fixedReplicas)
    return fixedReplicas.takeError();
  for (int64_t ranks = 1; ranks <= wanted.workers; ++ranks) {
    const int64_t replicas = wanted.workers / ranks;
    if (wanted.workers % ranks != 0 ||
        wanted.batch % (replicas * microBatchSize) != 0 ||
        (*fixedRanks && **fixedRanks != ranks) ||
        (*fixedReplicas && **fixedReplicas != replicas))
      continue;
    Configuration one;
    one.ranks = ranks;
    one.replicas = replicas;
    one.microBatchSize = microBatchSize;
    one.microBatches = wanted.batch / (replicas * microBatchSize);
    one.recomputesEarly = given.isSet("early-recompute");
    one.schedule = given.isGiven("schedule") ? given["schedule"].str() : "auto";
    trySharing(one, least, compilation);
  }
  return llvm::Error::success();
}

/// All levels of ZeRO. ZeRO-1 sends no more than none, updates less and needs
/// less: where all of it is possible, none is left out. Above, more is sent.
void ConfigurationSearch::trySharing(Configuration one, double least,
                                     std::optional<Compilation> &compilation) {
  if (int64_t level = 0;
      given.isGiven("zero") && !given["zero"].getAsInteger(10, level)) {
    one.zero = level;
    tryModes(one, least, compilation);
    return;
  }
  // The highest level that makes a difference is known when options have been
  // read.
  int64_t highest = one.replicas == 1 ? 0 : 3;
  bool isNoneOpen = true;
  for (int64_t level = 1; level <= highest; ++level) {
    one.zero = level;
    const int64_t impossibleBefore = impossible;
    const bool fits = tryModes(one, least, compilation);
    isNoneOpen &= impossible > impossibleBefore;
    highest = std::min(highest, highestZero);
    if (fits && isForSpeed())
      break;
  }
  one.zero = 0;
  if (isNoneOpen || !wanted.pareto.empty())
    tryModes(one, least, compilation);
}

/// All modes of recomputation; whether any fits.
bool ConfigurationSearch::tryModes(Configuration one, double least,
                                   std::optional<Compilation> &compilation) {
  bool fits = false;
  // The same for all modes.
  std::optional<std::string> whyNoneFits;
  const std::vector<std::string> modes = remats();
  for (auto mode = modes.begin(); mode != modes.end(); ++mode) {
    one.remat = *mode;
    if (isSlower(least)) {
      ++slower;
      continue;
    }
    auto options = readCompileOptions(valuesOf(one), nullptr);
    if (!options) {
      reason = llvm::toString(options.takeError());
      ++impossible;
      continue;
    }
    memoryLimit = options->memoryLimit;
    hasLimit = options->limitsMemory();
    highestZero = options->highestZero();
    if (failed(import(*options, compilation))) {
      ++impossible;
      continue;
    }
    tell(one);
    if (!whyNoneFits)
      whyNoneFits = whyNothingFits(compilation->module(), *options);
    std::string why = *whyNoneFits;
    FailureOr<codegen::Plan> plan = failure();
    if (why.empty())
      plan = compilation->planQuietly(*options, why, stepToBeat());
    if (failed(plan)) {
      // Nor is one that recomputes more. What `keep:N` recomputes may be more
      // or less than what comes behind it.
      if (why == kNoneIsFaster) {
        const bool isLeast = *mode == "none" || *mode == "pointwise";
        slower += isLeast ? modes.end() - mode : 1;
        if (isLeast)
          break;
        continue;
      }
      reason = why;
      if (StringRef(why).contains(kNeedLess))
        ++tooLarge;
      else
        ++impossible;
      continue;
    }
    add(summaryOf(one, *plan));
    if (hasLimit && !fits && *mode != "none")
      tryEachRank(one, least, *compilation);
    fits = true;
    // More recomputation only takes longer.
    if (isForSpeed())
      break;
  }
  return fits;
}

/// One that fits by recomputing in all stages, with each rank recomputing the
/// least with which it fits: of a schedule that was given, or 1f1b, whose first
/// ranks keep most.
void ConfigurationSearch::tryEachRank(Configuration one, double least,
                                      Compilation &compilation) {
  if (one.ranks == 1 || given.isGiven("remat"))
    return;
  if (!given.isGiven("schedule")) {
    one.schedule = "1f1b";
    // Its first and last micro-batch pass all ranks alone; a cut that is not
    // even takes a little off that.
    const double passes = static_cast<double>(one.ranks - 1) /
                          static_cast<double>(one.microBatches);
    if (isSlower(least * (1 + 0.9 * passes)))
      return;
  }
  if (one.schedule == "auto")
    return;
  one.remat = "auto";
  auto options = readCompileOptions(valuesOf(one), nullptr);
  if (!options) {
    llvm::consumeError(options.takeError());
    return;
  }
  std::string why;
  if (auto plan = compilation.planQuietly(*options, why); succeeded(plan))
    add(summaryOf(one, *plan));
}

/// The fastest, each with what `change` makes of it; left out where that says
/// no.
void ConfigurationSearch::tryVariants(
    llvm::function_ref<bool(Configuration &)> change) {
  constexpr size_t most = 3;
  for (Configuration one : std::vector<Configuration>(
           planned.begin(), planned.begin() + std::min(most, planned.size()))) {
    if (one.ranks == 1 || !change(one))
      continue;
    auto options = readCompileOptions(valuesOf(one), nullptr);
    if (!options) {
      llvm::consumeError(options.takeError());
      continue;
    }
    std::optional<Compilation> compilation;
    if (failed(import(*options, compilation)))
      continue;
    tell(one);
    std::string why;
    if (auto plan = compilation->planQuietly(*options, why); succeeded(plan))
      add(summaryOf(one, *plan));
  }
}

/// Modes of recomputation may come to one program: a stage of one layer is a
/// run of layers.
static bool areAlike(const Configuration &a, const Configuration &b) {
  return std::tie(a.ranks, a.replicas, a.zero, a.microBatchSize, a.stages,
                  a.step, a.arenaBytes) == std::tie(b.ranks, b.replicas, b.zero,
                                                    b.microBatchSize, b.stages,
                                                    b.step, b.arenaBytes);
}

/// Behind all that are faster, or as fast with no more memory.
void ConfigurationSearch::add(Configuration one) {
  if (llvm::any_of(planned, [&](const Configuration &other) {
        return areAlike(one, other);
      })) {
    ++alike;
    return;
  }
  auto place = llvm::find_if(planned, [&](const Configuration &other) {
    return isShorterStep(one.step, other.step) ||
           (!isShorterStep(other.step, one.step) &&
            one.arenaBytes < other.arenaBytes);
  });
  planned.insert(place, std::move(one));
}

/// For who waits.
void ConfigurationSearch::tell(const Configuration &next) const {
  showProgress(
      llvm::formatv("{0} planned{1}; planning {2} x {3}, micro-batches of {4}, "
                    "recomputed {5}",
                    planned.size(),
                    planned.empty()
                        ? ""
                        : ", the fastest " +
                              codegen::formatSeconds(planned.front().step),
                    next.ranks, next.replicas, next.microBatchSize, next.remat)
          .str());
}

llvm::Error ConfigurationSearch::run() {
  if (llvm::Error error = checkOptions())
    return error;
  auto eraseProgress = llvm::scope_exit([] { showProgress(""); });
  auto size = fixed(given, "micro-batch-size");
  if (!size)
    return size.takeError();
  std::vector<int64_t> sizes;
  for (int64_t each = 1; each <= wanted.batch; ++each)
    if (wanted.batch % each == 0 && (!*size || **size == each))
      sizes.push_back(each);
  // Large ones first where they may be the fastest; small ones where memory has
  // its say.
  auto options = readCompileOptions(valuesOf(onOneRank(1)), nullptr);
  const bool limitsMemory = options && options->limitsMemory();
  if (!options)
    llvm::consumeError(options.takeError());
  if (!limitsMemory)
    std::reverse(sizes.begin(), sizes.end());
  for (int64_t each : sizes) {
    if (llvm::Error error = trySize(each))
      return error;
    if (!limitsMemory)
      longestPass = 0;
  }
  // Stages on a rank each, cut for a short step.
  if (!given.isGiven("balance"))
    tryVariants([](Configuration &one) {
      one.balance = "step";
      return one.stages == one.ranks;
    });
  if (!given.isGiven("early-recompute"))
    tryVariants([](Configuration &one) {
      one.recomputesEarly = true;
      return one.remat != "none" && one.remat != "pointwise";
    });
  if (planned.empty())
    return option::fail("--search found no plan for ", wanted.workers,
                        " workers and a batch of ", wanted.batch,
                        reason.empty() ? std::string() : ": " + reason);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (Configuration &one : planned) {
    one.isOnFront = one.arenaBytes < least;
    least = std::min(least, one.arenaBytes);
  }
  return llvm::Error::success();
}

} // namespace pipewright::tool
