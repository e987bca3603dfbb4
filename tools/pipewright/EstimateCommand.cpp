//===- EstimateCommand.cpp - How large micro-batches should be ------------===//
//
// See EstimateCommand.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/EstimateCommand.h"

#include "codegen/plan/Plan.h"
#include "passes/schedules/files/GivenTimes.h"
#include "support/Text.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace pipewright::tool {

using enum OptionSpelling::Kind;

static llvm::Error readStageTimes(const OptionSpelling &row,
                                  const OptionValues &given,
                                  EstimateOptions &options) {
  llvm::SmallVector<llvm::StringRef> all;
  given[row.name].split(all, ',');
  for (llvm::StringRef each : all) {
    auto [size, time] = each.split('=');
    int64_t samples = 0;
    std::optional<schedules::GivenTime> seconds =
        schedules::parseTime(time.trim());
    if (size.trim().getAsInteger(10, samples) || samples < 1 || !seconds ||
        !seconds->hasUnit || seconds->value == 0)
      return option::fail("--", row.name,
                          " expects sizes of micro-batches and times in s, ms "
                          "or us, such as 1=12ms,2=20ms, but got '",
                          given[row.name], "'");
    if (options.batch % samples != 0)
      return option::fail("--", row.name, ": micro-batches of ", samples,
                          " do not share a batch of ", options.batch,
                          " evenly");
    if (!options.stageSeconds.try_emplace(samples, seconds->value).second)
      return option::fail("--", row.name, " names ", samples, " twice");
  }
  return llvm::Error::success();
}

static llvm::Error readOverhead(llvm::StringRef name, llvm::StringRef text,
                                EstimateOptions &options) {
  double overhead = 0;
  if (text.getAsDouble(overhead) || !(overhead >= 0) || overhead > 1e6)
    return option::fail(
        "--", name, " expects a number of at least 0, but got '", text, "'");
  options.overhead = overhead;
  return llvm::Error::success();
}

static llvm::Error readTransformer(llvm::StringRef name, llvm::StringRef text,
                                   EstimateOptions &options) {
  TransformerShape shape;
  std::map<llvm::StringRef, int64_t *> places = {{"l", &shape.layers},
                                                 {"h", &shape.width},
                                                 {"s", &shape.tokens},
                                                 {"V", &shape.vocabulary}};
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ',');
  // Their products can be counted.
  constexpr int64_t most = int64_t(1) << 24;
  for (llvm::StringRef word : words) {
    auto [key, number] = word.split('=');
    auto place = places.find(key);
    if (place == places.end() || number.getAsInteger(10, *place->second) ||
        *place->second < 1 || *place->second > most)
      break;
    places.erase(place);
  }
  if (!places.empty() || words.size() != 4)
    return option::fail("--", name,
                        " expects layers, width, tokens of a "
                        "sequence and vocabulary, each from 1 to ",
                        most, ", such as l=80,h=8192,s=2048,V=32000, but got '",
                        text::shortened(text), "'");
  options.model = shape;
  return llvm::Error::success();
}

static llvm::Error readPeak(llvm::StringRef name, llvm::StringRef text,
                            EstimateOptions &options) {
  double peak = 0;
  if (text.getAsDouble(peak) || !(peak > 0) || peak > 1e24)
    return option::fail("--", name,
                        " expects operations per second, such as "
                        "312e12, but got '",
                        text::shortened(text), "'");
  options.peak = peak;
  return llvm::Error::success();
}

/// One without the other says nothing.
static llvm::Error checkPeak(const OptionSpelling &row,
                             const OptionValues &given,
                             EstimateOptions &options) {
  if (given.isGiven(row.name))
    if (llvm::Error error = readPeak(row.name, given[row.name], options))
      return error;
  return options.model.has_value() == options.peak.has_value()
             ? llvm::Error::success()
             : option::fail("--transformer and --peak go together");
}

const std::vector<OptionRow<EstimateOptions>> &estimateRows() {
  static const std::vector<OptionRow<EstimateOptions>> rows = under<
      OptionRow<EstimateOptions>>(
      Heading::Pipeline,
      {{{"ranks", "P", "Ranks of the pipeline, with a stage each", "1"},
        option::count(&EstimateOptions::ranks)},
       {{"batch", "B", "Samples of a step of one replica", "1"},
        option::count(&EstimateOptions::batch)},
       {{"stage-times", "b=TIME,...",
         "How long a stage takes for a forward and a backward of a "
         "micro-batch of b samples, for several b: 1=12ms,2=20ms"},
        readStageTimes},
       {{"overhead", "UNITS",
         "By how many micro-batches a step is longer than a stage's tasks: "
         "P - 1 for 1f1b and gpipe, (P - 1) / v with v loops, less with "
         "split backwards (pipewright schedules NAME)"},
        option::ifGiven(readOverhead)},
       {{"transformer", "l=L,h=H,s=S,V=V",
         "Say how much of --peak a step uses (MFU) of a transformer with L "
         "layers of width H, on sequences of S tokens of a vocabulary of V"},
        option::ifGiven(readTransformer)},
       {{"peak", "FLOPS",
         "Operations per second of all that runs a stage, as its data "
         "sheet says: 312e12, or 1248e12 of four GPUs"},
        checkPeak}});
  return rows;
}

/// Without the logits.
static double flopsOfLayers(const TransformerShape &shape, double samples) {
  const auto l = static_cast<double>(shape.layers),
             h = static_cast<double>(shape.width),
             s = static_cast<double>(shape.tokens);
  return 72 * samples * s * l * h * h * (1 + s / (6 * h));
}

/// 72 B s h V, of which the formulas count different shares.
static double flopsOfLogits(const TransformerShape &shape, double samples) {
  return 72 * samples * static_cast<double>(shape.tokens) *
         static_cast<double>(shape.width) *
         static_cast<double>(shape.vocabulary);
}

double TransformerShape::flops(double samples) const {
  return flopsOfLayers(*this, samples) + flopsOfLogits(*this, samples) / 12;
}

double TransformerShape::publishedFlops(double samples) const {
  return flopsOfLayers(*this, samples) + flopsOfLogits(*this, samples) / 16;
}

static double overheadOf(const EstimateOptions &options) {
  return options.overhead.value_or(static_cast<double>(options.ranks - 1));
}

double estimatedStep(const EstimateOptions &options, int64_t size) {
  const auto microBatches = static_cast<double>(options.batch / size);
  return (microBatches + overheadOf(options)) * options.stageSeconds.at(size);
}

/// The share of the peak that the model's operations use, of a stage by itself
/// and of a step.
static void printUtilization(const EstimateOptions &options,
                             llvm::raw_ostream &os) {
  if (!options.model)
    return;
  // Of operations that all ranks share.
  auto percent = [&](double flops, double seconds) {
    return 100 * flops / static_cast<double>(options.ranks) /
           (seconds * *options.peak);
  };
  const TransformerShape &model = *options.model;
  const auto batch = static_cast<double>(options.batch);
  os << "\n"
     << llvm::formatv("{0,11} {1,16} {2,10}   {3}\n", "micro-batch",
                      "MFU of a stage", "of a step", "with V / 16lh");
  for (const auto &[size, seconds] : options.stageSeconds) {
    const double step = estimatedStep(options, size);
    const auto samples = static_cast<double>(size);
    os << llvm::formatv("{0,11} {1,14:F1} % {2,8:F1} %   {3:F1} %, {4:F1} %\n",
                        size, percent(model.flops(samples), seconds),
                        percent(model.flops(batch), step),
                        percent(model.publishedFlops(samples), seconds),
                        percent(model.publishedFlops(batch), step));
  }
}

void printEstimate(const EstimateOptions &options, llvm::raw_ostream &os) {
  os << codegen::count(options.ranks, "rank") << ", " << options.batch
     << " samples in a step, which is "
     << llvm::formatv("{0:F1}", overheadOf(options))
     << " micro-batches longer than a stage's tasks\n\n"
     << llvm::formatv("{0,11} {1,10} {2,10} {3,10} {4,8} {5,8}   {6}\n",
                      "micro-batch", "stage", "step", "samples/s", "idle",
                      "faster", "worth it below");
  int64_t before = 0, best = options.stageSeconds.begin()->first;
  for (const auto &[size, seconds] : options.stageSeconds) {
    const double step = estimatedStep(options, size);
    const auto microBatches = static_cast<double>(options.batch / size);
    const double idle =
        overheadOf(options) / (microBatches + overheadOf(options));
    os << llvm::formatv("{0,11} {1,10} {2,10} {3,10:F1} {4,6:F1} %", size,
                        codegen::formatSeconds(seconds),
                        codegen::formatSeconds(step),
                        static_cast<double>(options.batch) / step, 100 * idle);
    if (before != 0)
      // As long as this a stage may take for the step to be that of the size
      // before.
      os << llvm::formatv(
          " {0,8:F3}   {1}", estimatedStep(options, before) / step,
          codegen::formatSeconds(estimatedStep(options, before) /
                                 (microBatches + overheadOf(options))));
    os << "\n";
    if (step < estimatedStep(options, best))
      best = size;
    before = size;
  }
  printUtilization(options, os);
  os << "\nthe fastest: micro-batches of " << best << "\n";
}

} // namespace pipewright::tool
