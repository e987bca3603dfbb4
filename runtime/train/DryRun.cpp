//===- DryRun.cpp - What a program would do -------------------------------===//
//
// All of it is in the program: no GPU, driver or library is looked for.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/DeviceKernel.h"
#include "runtime/io/Source.h"
#include "runtime/train/Platform.h"
#include "runtime/train/Progress.h"

#include <algorithm>
#include <set>

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

static std::string counted(int64_t number, const char *what) {
  return groupedText(number) + " " + what + (number == 1 ? "" : "s");
}

static void reportGpus(Report &report, const Program &program,
                       const Options &options) {
  const int64_t ranks = program.ranks.size();
  std::set<int64_t> architectures;
  for (const DeviceImage &image : program.device->images)
    architectures.insert(image.architecture);
  std::string list;
  for (int64_t architecture : architectures)
    list += (list.empty() ? "sm_" : ", sm_") + std::to_string(architecture);
  report.line("kernels",
              counted(program.device->kernels.size(), "compiled kernel") +
                  ", PTX for " + (list.empty() ? "no GPU" : list) +
                  (architectures.empty() ? "" : " and newer"));
  const bool isNccl = options.links == LinkKind::Nccl;
  const bool isLocal = options.links == LinkKind::Local;
  std::string needs = "a GPU";
  if (ranks > 1 && isNccl)
    needs = counted(ranks, "GPU") + ", one for each rank";
  else if (ranks > 1 && isLocal)
    needs = "a GPU or several, shared by " + counted(ranks, "rank");
  else if (ranks > 1)
    needs = counted(ranks, "GPU") +
            " (--transport nccl), or fewer that ranks share (cuda-local)";
  report.line("needs", needs);
  std::string opened = "libcuda.so.1";
  if (ranks > 1 && !isLocal)
    opened +=
        isNccl ? ", libnccl.so.2" : ", libnccl.so.2 (if --transport nccl)";
  report.line("opens", opened + "; libcublasLt.so.13 for matrix products, "
                                "libcudnn.so.9 for convolutions, "
                                "attention in bf16");
}

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
  std::string inputs;
  for (int64_t input : rank.inputs)
    if (program.inputs[input].isData())
      inputs += (inputs.empty() ? "loads " : ", ") +
                std::string(program.inputs[input].name) + " " +
                shapeText(program.inputs[input].shape);
  if (!inputs.empty())
    report.line(inputs);
  if (!program.device)
    return;
  std::string streams = "streams: compute";
  for (int64_t peer : rank.sendsTo)
    streams += ", to rank " + std::to_string(peer);
  for (size_t from = 0; from < program.ranks.size(); ++from)
    for (int64_t to : program.ranks[from].sendsTo)
      if (to == number)
        streams += ", from rank " + std::to_string(from);
  report.line(streams + "; " + counted(rank.events, "event") + " in a step, " +
              groupedText(rank.evaluateEvents) + " in an evaluation");
}

std::string pipewright::runtime::dryRunText(const Program &program,
                                            const Options &options) {
  Report report;
  const int64_t ranks = program.ranks.size();
  const int64_t perStep = program.microBatches / program.updates;
  std::string step = counted(ranks, program.device ? "GPU rank" : "rank") +
                     "; a step is " + groupedText(perStep) +
                     (perStep == 1 ? " micro-batch" : " micro-batches") +
                     " of " + groupedText(program.microBatchSize) + "; " +
                     program.optimizer;
  report.line("program", std::string(program.name) + ": " + step);
  double seconds = 0;
  for (const RankProgram &rank : program.ranks)
    seconds = std::max(seconds, rank.predictedStepSeconds);
  if (seconds > 0)
    report.line("predicted",
                secondsText(seconds / program.updates) + " per step");
  if (program.device)
    reportGpus(report, program, options);
  for (int64_t number = 0; number < ranks; ++number)
    reportRank(report, program, number);
  if (program.device)
    report.line("beside", "each arena, known once the program has started: "
                          "workspace of libraries, pinned memory for inputs, "
                          "whose kernels compute attention");
  return report.take();
}
