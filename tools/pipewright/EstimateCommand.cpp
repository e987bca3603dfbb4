//===- EstimateCommand.cpp - How large micro-batches should be ------------===//
//
// See EstimateCommand.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/EstimateCommand.h"

#include "codegen/plan/Plan.h"
#include "passes/schedules/files/GivenTimes.h"

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

const std::vector<OptionRow<EstimateOptions>> &estimateRows() {
  static const std::vector<OptionRow<EstimateOptions>> rows =
      under<OptionRow<EstimateOptions>>(
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
            option::ifGiven(readOverhead)}});
  return rows;
}

static double overheadOf(const EstimateOptions &options) {
  return options.overhead.value_or(static_cast<double>(options.ranks - 1));
}

double estimatedStep(const EstimateOptions &options, int64_t size) {
  const auto microBatches = static_cast<double>(options.batch / size);
  return (microBatches + overheadOf(options)) * options.stageSeconds.at(size);
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
  os << "\nthe fastest: micro-batches of " << best << "\n";
}

} // namespace pipewright::tool
