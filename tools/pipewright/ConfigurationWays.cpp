//===- ConfigurationWays.cpp - Ways to use workers that may be planned ----===//
//
// Which numbers of ranks and replicas, sizes of micro-batches, modes of
// recomputation and levels of ZeRO are looked at, and the options of each.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/FilePolicy.h"
#include "support/Text.h"
#include "tools/pipewright/ConfigurationSearch.h"
#include "tools/pipewright/LevelText.h"
#include "tools/pipewright/OutputFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <optional>

namespace pipewright::tool {

//===----------------------------------------------------------------------===//
// One way
//===----------------------------------------------------------------------===//

/// A word as a shell takes it.
static std::string quoted(llvm::StringRef word) {
  const bool isPlain = llvm::all_of(word, [](char letter) {
    return llvm::isAlnum(letter) ||
           llvm::StringRef("-_+=:,.%/").contains(letter);
  });
  if (isPlain)
    return word.str();
  std::string text = "'";
  for (char letter : word)
    text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

std::string ConfigurationSearch::optionsOf(const Configuration &one) const {
  const OptionValues values = valuesOf(one);
  llvm::SmallVector<std::string> words;
  for (llvm::StringRef name :
       {"ranks", "data-parallel", "process-map", "micro-batches",
        "micro-batch-size", "schedule", "remat", "zero", "balance", "stages",
        "loops", "offload"})
    if (values.isGiven(name) && (name != "zero" || one.zero > 0))
      words.push_back("--" + name.str() + " " + quoted(values[name]));
  if (one.hasEarlyTasks())
    words.push_back("--early-recompute");
  return llvm::join(words, " ");
}

std::string Configuration::memoryWords() const {
  return remat + (hasEarlyTasks() ? ", R" : "") + (offloads ? ", host" : "");
}

OptionValues ConfigurationSearch::valuesOf(const Configuration &one) const {
  OptionValues values =
      one.balance.empty() ? given : given.with("balance", one.balance);
  if (one.recomputesEarly)
    values = values.with("early-recompute", "");
  if (!one.processMap.empty())
    values = values.with("process-map", one.processMap);
  if (one.loops > 0)
    values = values.with("loops", std::to_string(one.loops));
  if (one.offloads)
    values = values.with("offload", "auto");
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
  if (schedules::isScheduleFile(given["schedule"]))
    return option::fail("--search takes schedules by name, but got '",
                        text::shortened(given["schedule"]),
                        "', which is for one number of ranks and of "
                        "micro-batches: leave one of both out");
  if (given.isGiven("task-times"))
    return option::fail("--search makes many plans, and --task-times are of "
                        "one: leave that out");
  return checkOutput(wanted.pareto);
}

//===----------------------------------------------------------------------===//
// Ways that may be planned
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

/// Whether ranks have a limit, by the first way whose options go together.
/// Fails where there are ways and none has such.
llvm::Error
ConfigurationSearch::readLimits(llvm::ArrayRef<Configuration> ways) {
  std::string problem;
  for (const Configuration &one : ways) {
    auto options = readCompileOptions(valuesOf(one), nullptr);
    if (options) {
      hasLimit = options->limitsMemory();
      return llvm::Error::success();
    }
    std::string own = llvm::toString(options.takeError());
    if (problem.empty())
      problem = std::move(own);
  }
  return problem.empty() ? llvm::Error::success() : option::fail(problem);
}

/// Modes of recomputation, and levels of ZeRO. Without a limit those that take
/// longer are of no use. ZeRO-1 sends no more than none, updates less and needs
/// less, so none is for where 1 is not possible.
void ConfigurationSearch::addWays(Configuration one) {
  if (given.isGiven("remat"))
    return addLevels(std::move(one), 0);
  for (auto [number, mode] : llvm::enumerate(kRematModesByTime)) {
    one.remat = mode.str();
    addLevels(one, static_cast<int64_t>(number));
    if (isForSpeed())
      break;
  }
}

/// Of a mode of recomputation, all levels of ZeRO.
void ConfigurationSearch::addLevels(Configuration one, int64_t mode) {
  std::vector<int64_t> levels = {0};
  if (int64_t level = 0;
      given.isGiven("zero") && !given["zero"].getAsInteger(10, level))
    levels = {level};
  else if (one.replicas > 1 && !wanted.pareto.empty())
    levels = {1, 2, 3, 0};
  else if (one.replicas > 1)
    levels =
        isForSpeed() ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2, 3};
  for (int64_t level : levels) {
    one.zero = level;
    Prospect prospect{one, mode};
    // What each rank recomputes is not known before it is planned.
    prospect.isEstimated = one.remat == "auto";
    push(std::move(prospect));
  }
}

/// Whether each rank may recompute its own: under the schedule that was given,
/// or 1f1b, whose first ranks keep most.
bool ConfigurationSearch::decidesByRank(Configuration &one) const {
  if (!given.isGiven("schedule"))
    one.schedule = "1f1b";
  return one.schedule != "auto";
}

/// Where nothing fits: ranks that recompute each what they have to, and what is
/// recomputed in tasks of its own.
void ConfigurationSearch::addSmallerWays(llvm::ArrayRef<Configuration> ways) {
  const bool choosesRemat = !given.isGiven("remat");
  for (Configuration one : ways) {
    if (!choosesRemat && one.remat != "auto")
      continue;
    if (choosesRemat && !one.recomputesEarly && one.ranks > 1) {
      one.recomputesEarly = true;
      for (auto [number, mode] : llvm::enumerate(kRematModesByTime)) {
        one.remat = mode.str();
        if (mode != "none" && mode != "pointwise")
          addLevels(one, static_cast<int64_t>(number));
      }
    }
    if (!decidesByRank(one))
      continue;
    one.remat = "auto";
    one.recomputesEarly = true;
    addLevels(one, kEachRank);
    if (given.isSet("early-recompute"))
      continue;
    one.recomputesEarly = false;
    addLevels(one, kEachRank);
  }
}

/// All numbers of ranks and replicas, and sizes of micro-batches.
llvm::Expected<std::vector<Configuration>> ConfigurationSearch::allWays() {
  llvm::Expected<std::optional<int64_t>> sizes =
      fixed(given, "micro-batch-size");
  if (!sizes)
    return sizes.takeError();
  auto ranks = fixed(given, "ranks");
  if (!ranks)
    return ranks.takeError();
  if (wanted.ranksAreWorkers)
    ranks->reset();
  auto replicas = fixed(given, "data-parallel");
  if (!replicas)
    return replicas.takeError();
  auto isOpen = [](const std::optional<int64_t> &only, int64_t number) {
    return !only || *only == number;
  };
  std::vector<Configuration> ways;
  for (int64_t size = 1; size <= wanted.batch; ++size) {
    if (wanted.batch % size != 0 || !isOpen(*sizes, size))
      continue;
    for (int64_t count = 1; count <= wanted.workers; ++count) {
      Configuration one;
      one.ranks = count;
      one.replicas = wanted.workers / count;
      if (wanted.workers % count != 0 || !isOpen(*ranks, count) ||
          !isOpen(*replicas, one.replicas) ||
          wanted.batch % (one.replicas * size) != 0)
        continue;
      one.microBatchSize = size;
      one.microBatches = wanted.batch / (one.replicas * size);
      one.recomputesEarly = given.isSet("early-recompute");
      one.schedule =
          given.isGiven("schedule") ? given["schedule"].str() : "auto";
      one.remat = given.isGiven("remat") ? given["remat"].str() : "none";
      one.balance = given.isGiven("balance") ? "" : "flops";
      ways.push_back(std::move(one));
    }
  }
  return ways;
}

} // namespace pipewright::tool
