//===- OptionRows.cpp - The options of a generated program ----------------===//
//
// See OptionRows.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/OptionRows.h"
#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "runtime/train/Preflight.h"
#include "runtime/train/Record.h"

#include <cctype>
#include <cmath>
#include <cstdlib>

using namespace pipewright::runtime;

/// As many cores as a placement can name.
static constexpr int64_t maxThreads = 1024;

void pipewright::runtime::checkThreadsPerRank(const Options &options) {
  if (options.threadsPerRank > maxThreads)
    fail("--threads-per-rank expects a whole number from 1 to ", maxThreads,
         ", but got '", options.threadsPerRank, "'");
}

static double parseNumber(const char *option, const std::string &text) {
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !(value >= 0) || !std::isfinite(value))
    fail(option, " expects a number of at least 0, but got '", text, "'");
  return value;
}

/// Shorter than any beat of a loaded machine makes no sense.
static double parseSeconds(const char *option, const std::string &text) {
  const double seconds = parseNumber(option, text);
  if (seconds < 0.1)
    fail(option, " expects at least 0.1 seconds, but got '", text, "'");
  return seconds;
}

static void parseSchedule(Options &options, const std::string &text) {
  if (text != "constant" && text != "cosine")
    fail("--lr-schedule expects constant or cosine, but got '", text, "'");
  options.schedule = text == "cosine" ? Options::Schedule::Cosine
                                      : Options::Schedule::Constant;
}

/// Weights are written as safetensors, whatever the name says.
static void parseSave(Options &options, const std::string &text) {
  for (const char *ending :
       {".onnx", ".pt", ".pth", ".bin", ".ckpt", ".npz", ".npy", ".h5"})
    if (text.ends_with(ending))
      fail("--save writes safetensors, but '", text, "' ends in ", ending, ": ",
           text.ends_with(".onnx")
               ? "'pipewright export MODEL.onnx --weights FILE -o " + text +
                     "' makes a model of them"
               : "give it a name that ends in .safetensors");
  options.save = text;
}

/// "100", "30s", "10m"
static void parseEvery(Options &options, const std::string &text) {
  const bool minutes = text.ends_with('m'), seconds = text.ends_with('s');
  options.checkpointEvery = 0;
  options.checkpointSeconds = 0;
  if (!minutes && !seconds) {
    if (text.empty() || !std::isdigit(static_cast<unsigned char>(text.back())))
      fail("--checkpoint-every expects steps (100), seconds (90s) or minutes "
           "(10m), but got '",
           text, "'");
    options.checkpointEvery = parseInteger("--checkpoint-every", text, 1);
    return;
  }
  options.checkpointSeconds =
      (minutes ? 60 : 1) *
      parseSeconds("--checkpoint-every", text.substr(0, text.size() - 1));
}

static void parseResume(Options &options, const std::string &text) {
  options.resumes = true;
  if (!text.empty())
    options.resumeStep = parseInteger("--resume", text, 1);
}

static void parseBest(Options &options, const std::string &text) {
  options.keepBest = Options::Best::Loss;
  if (text.empty() || text == "loss")
    return;
  const auto metrics = parseMetrics("--keep-best", text);
  if (metrics.size() != 1)
    fail("--keep-best expects loss or one metric, but got '", text, "'");
  options.keepBest = Options::Best::Metric;
  options.bestMetric = metrics.front();
}

std::vector<OptionRow>
pipewright::runtime::optionRowsOf(const Platform &platform) {
  using O = Options;
  using Text = std::string;
  std::vector<OptionRow> rows = {
      {"--data", "NAME=FILE", "training data of an input (see below)",
       [](O &o, const Text &t) { o.data.push_back({"", t}); }},
      {"--eval-data", "NAME=FILE", "held-out data, never trained on",
       [](O &o, const Text &t) { o.evalData.push_back({"", t}); }},
      {"--eval-every", "N", "held-out loss every N steps (a fifth of them)",
       [](O &o, const Text &t) {
         o.evalEvery = parseInteger("--eval-every", t, 1);
       }},
      {"--compare-every", "N",
       "compare weights that several ranks hold whole between steps every N "
       "steps (1000); 0: only before the first and after the last",
       [](O &o, const Text &t) {
         o.compareEvery = parseInteger("--compare-every", t, 0);
       }},
      {"--eval-batches", "N", "batches of held-out data at most (16)",
       [](O &o, const Text &t) {
         o.evalBatches = parseInteger("--eval-batches", t, 1);
       }},
      {"--metrics", "LIST",
       "of held-out data and predictions beside the loss: accuracy, top5, "
       "perplexity",
       [](O &o, const Text &t) { o.metrics = parseMetrics("--metrics", t); }},
      {"--keep-best", "[METRIC]",
       "keep the weights with the best held-out loss or metric, too, in "
       "TRAINED.best.safetensors",
       parseBest, false, false, /*isOptional=*/true},
      {"--evaluate", "", "evaluate --eval-data and end",
       [](O &o, const Text &) { o.evaluateOnly = true; }},
      {"--steps", "N", "optimizer steps (100; without --data 0)",
       [](O &o, const Text &t) { o.steps = parseInteger("--steps", t, 0); }},
      {"--epochs", "N", "passes over --data, instead of --steps",
       [](O &o, const Text &t) { o.epochs = parseInteger("--epochs", t, 1); }},
      {"--lr", "X", "learning rate",
       [](O &o, const Text &t) { o.learningRate = parseNumber("--lr", t); }},
      {"--warmup", "N", "steps until the full learning rate (0)",
       [](O &o, const Text &t) { o.warmup = parseInteger("--warmup", t, 0); }},
      {"--clip-norm", "X",
       "the largest norm of all gradients together (as compiled)",
       [](O &o, const Text &t) {
         o.clipNorm = parseNumber("--clip-norm", t);
         if (o.clipNorm == 0)
           fail("--clip-norm expects a number above 0, but got '", t, "'");
       }},
      {"--on-nan", "stop|skip",
       "what gradients that are no finite numbers do: end the run (stop), or "
       "skip the step",
       [](O &o, const Text &t) {
         if (t != "stop" && t != "skip")
           fail("--on-nan expects 'stop' or 'skip', but got '", t, "'");
         o.skipsNan = t == "skip";
       }},
      {"--lr-schedule", "NAME", "constant, or cosine (falls to a tenth)",
       parseSchedule},
      // Its older name.
      {"--schedule", "NAME", "", parseSchedule, false, /*isHidden=*/true},
      {"--seed", "N", "of sampling and dropout (0)",
       [](O &o, const Text &t) { o.seed = parseInteger("--seed", t, 0); }},
      {"--no-shuffle", "", "take samples in the order of the file",
       [](O &o, const Text &) { o.shuffle = false; }},
      {"--threads-per-rank", "N", "compute threads (cores / ranks)",
       [](O &o, const Text &t) {
         o.threadsPerRank = parseInteger("--threads-per-rank", t, 1);
         checkThreadsPerRank(o);
       },
       true, !platform.hasThreads()},
      {"--timeout", "S", platform.timeoutHelp(),
       [](O &o, const Text &t) { o.timeout = parseSeconds("--timeout", t); },
       true},
      {"--rendezvous-timeout", "S", "seconds until all ranks have come (300)",
       [](O &o, const Text &t) {
         o.rendezvousTimeout = parseSeconds("--rendezvous-timeout", t);
       },
       true},
      {"--flight", "DIR",
       "for reports of failures (the program's folder; none)",
       [](O &o, const Text &t) { o.flight = t; }, true},
      {"--weights", "FILE",
       "initial weights (weights.safetensors), the index of several files, the "
       "folder of a checkpoint, or random",
       [](O &o, const Text &t) { o.weights.path = t; }, true},
      {"--weights-rename", "FROM=TO",
       "replace a regular expression in the names of --weights; may be given "
       "again",
       [](O &o, const Text &t) { o.weights.renames.push_back(t); }},
      {"--weights-partial", "",
       "what --weights has not comes from weights.safetensors",
       [](O &o, const Text &) { o.weights.isPartial = true; }},
      {"--save", "FILE", "final weights (trained.safetensors; none: nowhere)",
       parseSave},
      {"--checkpoint", "DIR",
       "keep all that a run needs to go on in this folder",
       [](O &o, const Text &t) { o.checkpoint = t; }},
      {"--checkpoint-every", "N", "steps; or Ns, Nm: seconds, minutes (10m)",
       parseEvery},
      {"--keep", "K", "newest checkpoints that stay (2)",
       [](O &o, const Text &t) { o.keep = parseInteger("--keep", t, 1); }},
      {"--resume", "[STEP]",
       "go on from the newest checkpoint, or that of a step; --steps counts "
       "from the first",
       parseResume, false, false, /*isOptional=*/true},
      {"--replay-every", "N",
       "run each Nth step twice and compare all bits; ends with exit code 70 "
       "where they differ",
       [](O &o, const Text &t) {
         o.replayEvery = parseInteger("--replay-every", t, 1);
       }},
      {"--record", "STEP",
       "keep all that a step takes, and hashes of what it gives, in "
       "record-STEP in --checkpoint's folder, or the program's",
       [](O &o, const Text &t) {
         o.recordStep = parseInteger("--record", t, 1);
       }},
      {"--replay", "DIR",
       "run the step that --record kept and compare all bits; ends with exit "
       "code 70 where they differ",
       [](O &o, const Text &t) { o.replay = t; }, true},
      {"--log", "FILE", "one JSON object per step",
       [](O &o, const Text &t) { o.log = t; }, true},
      {"--trace", "FILE", "Chrome trace of the last step",
       [](O &o, const Text &t) { o.trace = t; }},
      {"--trace-steps", "N", "of the last N steps instead (1)",
       [](O &o, const Text &t) {
         o.traceSteps = parseInteger("--trace-steps", t, 1);
       }},
      {"--dump-gradients", "FILE", "gradients of the first step, safetensors",
       [](O &o, const Text &t) { o.dumpGradients = t; }},
      {"--predict", "NAME=FILE", "evaluate these inputs instead of training",
       [](O &o, const Text &t) { o.predict.push_back({"", t}); }},
      {"--output", "NAME=FILE", "write an output of --predict as .npy",
       [](O &o, const Text &t) { o.outputs.push_back({"", t}); }},
      {"--guess", "TEXT", "show the model's next-byte guesses on a line",
       [](O &o, const Text &t) { o.guess = t; }},
  };
  for (const PlatformOption &option : platform.options())
    rows.push_back({option.name, option.argument, option.help,
                    [option](O &o, const Text &t) {
                      option.check(t);
                      o.own[option.name] = t;
                    },
                    option.isOwn});
  const std::vector<OptionRow> last = {
      {"--memory", "", "print what the memory of each rank holds",
       [](O &o, const Text &) { o.memory = true; }},
      {"--preflight", "FILE",
       "measure ranks and links, say which are behind, write a machine file "
       "for "
       "pipewright plan --machine, and end",
       parsePreflight},
      {"--preflight-tolerance", "X",
       "the share of the median that one may be behind (0.1)", parseTolerance},
      {"--dry-run", "", "print what would run where, and end",
       [](O &o, const Text &) { o.dryRun = true; }},
      {"--timetable", "", "print the schedule and end",
       [](O &o, const Text &) { o.timetable = true; }},
      {"--plan", "", "print the compiler's plan (JSON) and end",
       [](O &o, const Text &) { o.plan = true; }},
      {"--help", "", "print this and end",
       [](O &o, const Text &) { o.help = true; }},
  };
  rows.insert(rows.end(), last.begin(), last.end());
  return rows;
}
