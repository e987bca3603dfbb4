//===- StageRows.cpp - Options that make stages ---------------------------===//
//
// Where a model is cut, and what its backwards recompute.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/staged/StageAssignment.h"
#include "passes/pipe/staged/StageWords.h"
#include "passes/schedules/HostMoves.h"
#include "support/Text.h"
#include "tools/pipewright/Options.h"
#include "tools/pipewright/Profile.h"

#include "llvm/ADT/StringExtras.h"

using namespace pipewright;
using namespace pipewright::tool;
using namespace pipewright::tool::option;

static llvm::Error readBalance(const OptionSpelling &row,
                               const OptionValues &given,
                               CompileOptions &options) {
  llvm::StringRef balance = given[row.name];
  if (balance.empty() && !given.isGiven(row.name))
    return llvm::Error::success();
  if (std::string problem = pipe::problemOfBalance(balance); !problem.empty())
    return option::fail("--", row.name, " expects ", problem);
  if (llvm::StringRef pattern = pipe::patternOfBalance(balance);
      !pattern.empty())
    if (llvm::Error error = frontend::checkPattern("--balance type:", pattern))
      return error;
  if (llvm::StringRef file = pipe::timesFileOfBalance(balance); !file.empty()) {
    auto times = readModuleTimes(file);
    if (!times)
      return option::fail("--", row.name, ": ",
                          llvm::toString(times.takeError()));
    options.moduleTimes = std::move(*times);
  }
  options.pipelines.staged.balance = balance.str();
  options.choosesBalance = true;
  return llvm::Error::success();
}

static Recorded recordBalance(const OptionSpelling &, const OptionValues &,
                              const CompileOptions &options) {
  return text::printable(options.pipelines.staged.balance.getValue());
}

static llvm::Error readRemat(const OptionSpelling &row,
                             const OptionValues &given,
                             CompileOptions &options) {
  llvm::StringRef all = given[row.name];
  llvm::SmallVector<llvm::StringRef> words;
  all.split(words, ',');
  for (llvm::StringRef word : words)
    if (word != "pointwise" && !pipe::isStageWord(word, pipe::kRematModes) &&
        all != "auto")
      return option::fail("--", row.name, " expects pointwise, ",
                          llvm::join(llvm::ArrayRef(pipe::kRematModes), ", "),
                          ", one of these for each stage, or auto, but got '",
                          text::shortened(all), "'");
  for (llvm::StringRef word : words)
    if (int64_t percent = 0; word.consume_front("keep:") &&
                             !word.getAsInteger(10, percent) && percent > 100)
      return option::fail("--", row.name,
                          " expects a percentage from 1 to 100 behind keep:, "
                          "but got '",
                          text::shortened(word), "'");
  options.pipelines.staged.remat = all.str();
  options.choosesRemat = all == "auto";
  return llvm::Error::success();
}

static llvm::Error readOffload(const OptionSpelling &row,
                               const OptionValues &given,
                               CompileOptions &options) {
  const llvm::StringRef text = given[row.name];
  llvm::Expected<double> share = schedules::parseOffload(text);
  if (!share)
    return option::fail("--", row.name, " ", llvm::toString(share.takeError()));
  if (*share > 0 && !options.target->hasStreams())
    return option::fail("--", row.name, " ", text, " is for --target cuda: on ",
                        options.target->noun(),
                        " stashes are in the host's memory already");
  if (*share > 0 && options.pipelines.staged.earlyRecompute)
    return option::fail("--", row.name, " ", text,
                        " moves stashes that --early-recompute needs before "
                        "they are back; leave one of both out");
  options.pipelines.scheduled.offload = text.str();
  options.pipelines.staged.wholeStash = *share > 0;
  options.offload = *share;
  return llvm::Error::success();
}

std::vector<CompileRow> pipewright::tool::stageRows() {
  return {
      decidedAt(Level::Staged,
                {refusedBy(Profile,
                           {"balance", "METHOD",
                            "What stages share equally: uniform (layers), "
                            "parameters, flops, step (predicted times, or "
                            "measured ones: step:FILE.json, so that a step of "
                            "1f1b is the shortest of those within "
                            "--memory-limit; the cut of flops if its plan is "
                            "faster), scopes (flops, and modules stay whole), "
                            "memory (under 1f1b), time:FILE.json (of modules, "
                            "as profile measures it), type:REGEX (nodes whose "
                            "names or ops match); or manual:N,N,..., the "
                            "layers of each; or annotated[:NAME], the stages "
                            "that the model's nodes have; or as others cut "
                            "modules: deepspeed-uniform, deepspeed-parameters, "
                            "torchgpipe-size, torchgpipe-time:FILE.json "
                            "(default: step for cuda and with --machine, flops "
                            "for the CPU that is here, whose times differ from "
                            "machine to machine, and with --remat auto)"}),
                 recordBalance, readBalance}),
      decidedAt(
          Level::Staged,
          {refusedBy(
               Profile,
               {"remat", "MODE",
                "What the backward recomputes: none, pointwise (activations "
                "and other element ops of what is kept), selective (what "
                "attention makes of q, k and v), keep:N (these of pointwise, "
                "and "
                "what takes least time to compute again, so that at most N "
                "percent of the rest are kept), every:N (all but "
                "what N layers give to the next), full (all but the "
                "stage's inputs), window:N (as full, but of N of the "
                "micro-batches that a stage has in flight nothing), "
                "except-last (of the last micro-batch nothing), one of these "
                "for each stage, as in full,pointwise,none; or auto (on each "
                "rank the least that --memory-limit allows; with "
                "--early-recompute where only that fits)",
                "none"}),
           recordText, readRemat}),
      decidedAt(
          Level::Staged,
          {refusedBy(Profile,
                     {.name = "early-recompute",
                      .help =
                          "What backwards recompute (--remat) before they need "
                          "a gradient is done in tasks of its own (R), while a "
                          "rank waits for that gradient",
                      .kind = OptionSpelling::Flag}),
           recordFlag, option::flag([](CompileOptions &options) -> auto & {
             return options.pipelines.staged.earlyRecompute;
           })}),
      decidedAt(
          Level::Scheduled,
          {refusedBy(
               Profile,
               {"offload", "SHARE",
                "On GPUs: stashes that live in the host's memory from their "
                "forward to their backward: none, auto (as many as copies "
                "bring back in time), or at most 1% to 100% of each rank's",
                "none"}),
           recordGiven, readOffload})};
}
