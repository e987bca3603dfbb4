//===- DryRun.cpp - What a program would do -------------------------------===//
//
// All of it is in the program: no GPU, driver or library is looked for.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Text.h"
#include "runtime/io/Source.h"
#include "runtime/train/Options.h"
#include "runtime/train/Report.h"

#include <algorithm>
#include <functional>

using namespace pipewright::runtime;

namespace {

/// Lines with a heading at the left, which is said once.
class Report {
public:
  void line(const std::string &heading, const std::string &text) {
    all += heading + std::string(column - heading.size(), ' ') + text + "\n";
  }
  void line(const std::string &text) { line("", text); }
  std::string take() { return std::move(all); }

private:
  static constexpr size_t column = 11;
  std::string all;
};

} // namespace

static void reportRank(Report &report, const Program &program, int64_t number) {
  const RankProgram &rank = program.ranks[number];
  report.line("rank " + std::to_string(number),
              "arena of " + groupedText(rank.arenaBytes) + " bytes (" +
                  bytesText(static_cast<double>(rank.arenaBytes)) + ")");
  for (const MemoryLine &memory : rank.memory) {
    std::string what = std::string("  ") + memory.what;
    what.resize(std::max<size_t>(what.size(), 32), ' ');
    report.line(what + " " + bytesText(static_cast<double>(memory.bytes)));
  }
  if (rank.hostBytes > 0)
    report.line("pinned memory of the host for stashes " +
                groupedText(rank.hostBytes) + " bytes (" +
                bytesText(static_cast<double>(rank.hostBytes)) + ")");
  std::string inputs;
  for (int64_t input : rank.inputs)
    if (program.inputs[input].isData())
      inputs += (inputs.empty() ? "loads " : ", ") +
                std::string(program.inputs[input].name) + " " +
                shapeText(program.inputs[input].shape);
  if (!inputs.empty())
    report.line(inputs);
  const std::string more = platformOf(program).describeRank(program, number);
  if (!more.empty())
    report.line(more);
}

/// Whether a replica has a part alone of any tensor that is such.
static bool sharesAny(const Program &program,
                      const std::function<bool(const TensorInfo &)> &isSuch) {
  return std::any_of(
      program.ranks.begin(), program.ranks.end(), [&](const RankProgram &rank) {
        return std::any_of(rank.tensors.begin(), rank.tensors.end(),
                           [&](const TensorInfo &tensor) {
                             return tensor.shard.isAlone && isSuch(tensor);
                           });
      });
}

/// `, and keeps its part of the optimizer's states (ZeRO)`
static std::string sharedText(const Program &program) {
  if (!sharesAny(program, [](const TensorInfo &tensor) {
        return tensor.role == Role::OptimizerState;
      }))
    return "";
  const bool withWeights = sharesAny(
      program, [](const TensorInfo &tensor) { return tensor.isWeight(); });
  return std::string(", and keeps its part of ") +
         (withWeights ? "weights and " : "") + "the optimizer's states (ZeRO)";
}

std::string pipewright::runtime::dryRunText(const Program &program,
                                            const Options &options) {
  Report report;
  const Platform &platform = platformOf(program);
  const int64_t ranks = program.ranks.size();
  const int64_t perStep = program.batchMicroBatches() / program.updates;
  std::string step = countedRanks(program, platform.rankWord()) +
                     "; a step is " + groupedText(perStep) +
                     (perStep == 1 ? " micro-batch" : " micro-batches") +
                     " of " + groupedText(program.microBatchSize) + "; " +
                     program.optimizer.name;
  report.line("program", std::string(program.name) + ": " + step);
  if (program.replicas > 1)
    report.line("replicas", "each runs these ranks, on " +
                                groupedText(program.microBatches) +
                                " of the micro-batches" + sharedText(program));
  if (const double seconds = predictedSeconds(program))
    report.line("predicted",
                secondsText(seconds / program.updates) + " per step");
  for (const auto &[heading, text] : platform.needs(program, options))
    report.line(heading, text);
  for (int64_t number = 0; number < ranks; ++number)
    reportRank(report, program, number);
  for (const auto &[heading, text] : platform.besideArenas())
    report.line(heading, text);
  return report.take();
}
