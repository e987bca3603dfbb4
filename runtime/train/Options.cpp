//===- Options.cpp - The command line of a generated program --------------===//

#include "runtime/train/Options.h"
#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "runtime/train/OtherWords.h"
#include "runtime/train/Preflight.h"
#include "runtime/train/Record.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>
#include <unistd.h>

using namespace pipewright::runtime;

namespace {

/// One option: `name` begins with "--"; `argument` is empty for a flag.
struct Row {
  const char *name;
  const char *argument;
  const char *help;
  std::function<void(Options &, const std::string &)> apply;
  /// Whether it may differ from rank to rank: patience, cores, cards, and files
  /// that only one rank writes or that hosts keep in other places.
  bool isOwn = false;
  /// Taken, but without a meaning here.
  bool isHidden = false;
  /// The argument may be left out.
  bool isOptional = false;
};

} // namespace

/// As many cores as a placement can name.
static constexpr int64_t maxThreads = 1024;

static void checkThreadsPerRank(const Options &options) {
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

/// A name may hold an equals sign itself: the longest one of `named` that the
/// text begins with is meant.
template <typename Named>
static void splitPair(const char *option, DataSpec &spec,
                      const std::vector<Named> &named) {
  const std::string text = spec.second;
  size_t equals = text.find('=');
  for (const Named &each : named) {
    const size_t length = std::strlen(each.name);
    if (text.compare(0, length, each.name) == 0 && text[length] == '=' &&
        (equals == std::string::npos || length > equals))
      equals = length;
  }
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    fail(option, " expects NAME=FILE, but got '", text, "'");
  spec = {text.substr(0, equals), text.substr(equals + 1)};
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

std::string pipewright::runtime::nameOfBest(const Options &options) {
  return options.keepBest == Options::Best::Metric
             ? nameOfMetric(options.bestMetric)
             : "loss";
}

static std::vector<Row> rowsOf(const Platform &platform) {
  using O = Options;
  using Text = std::string;
  std::vector<Row> rows = {
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
  const std::vector<Row> last = {
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

/// The folder that the executable lies in.
static std::string executableFolder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string text(path, std::max<ssize_t>(length, 0));
  const size_t slash = text.rfind('/');
  return slash == std::string::npos ? "." : text.substr(0, slash);
}

std::vector<std::pair<std::string, std::string>>
pipewright::runtime::sharedOptions(const Program &program,
                                   const Options &options) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const Row &row : rowsOf(platformOf(program))) {
    if (row.isOwn)
      continue;
    std::string text;
    for (const auto &[name, value] : options.shared)
      if (name == row.name)
        text += value + "\n";
    values.emplace_back(row.name, text);
  }
  return values;
}

/// The error of an option that this program has not: another's, or nobody's.
[[noreturn]] static void failUnknown(const std::string &name,
                                     const std::vector<Row> &rows) {
  for (const Platform *platform : allPlatforms())
    for (const PlatformOption &option : platform->options())
      if (name == option.name)
        fail(name, " is for programs compiled with --target ",
             platform->name());
  if (const OtherWord *other = findOther(name))
    fail("there is no ", name, ": ", other->advice);
  std::string near;
  for (const Row &row : rows)
    if (!row.isHidden && near.empty() && isNear(name, row.name))
      near = row.name;
  fail("unknown option '", name.substr(0, 64), "'",
       near.empty() ? " (--help lists them)"
                    : "; did you mean '" + near + "'?");
}

static int64_t stepsOfEpochs(const Program &program, const Options &options) {
  if (options.steps >= 0)
    fail("--epochs and --steps say the same: give one of them");
  const Dataset data(program, options.data, "--data");
  const int64_t samples = data.disjointSamples();
  if (samples == Source::endless)
    fail("--epochs expects --data with an end: give --steps");
  const int64_t batch = program.batchMicroBatches() * program.microBatchSize;
  const int64_t size = batch / program.updates;
  int64_t all;
  if (__builtin_mul_overflow(samples, options.epochs, &all))
    fail("--epochs ", options.epochs, " are too many");
  return (all + size - 1) / size;
}

/// What --keep-best needs; its metric is counted and shown as those of
/// --metrics.
static void checkBest(Options &options) {
  if (options.keepBest == Options::Best::None)
    return;
  if (options.evalData.empty())
    fail("--keep-best expects --eval-data NAME=FILE beside it");
  if (options.save.empty() || options.evaluateOnly)
    fail("--keep-best goes with training, and --save");
  auto &metrics = options.metrics;
  if (options.keepBest == Options::Best::Metric &&
      std::find(metrics.begin(), metrics.end(), options.bestMetric) ==
          metrics.end())
    metrics.push_back(options.bestMetric);
}

/// What is run again is what the record says.
static void checkReplay(const Options &options) {
  // `pipewright train` gives --save, which has nothing to do here.
  for (const auto &[name, value] : options.shared)
    if (name != "--replay" && name != "--save" && !options.own.contains(name))
      fail(name, " does not go with --replay, which runs the one step of its "
                 "folder");
  const std::pair<const char *, bool> own[] = {
      {"--log", !options.log.empty()},
      {"--weights", options.weights.path != options.weights.rest}};
  for (const auto &[name, isGiven] : own)
    if (isGiven)
      fail(name, " does not go with --replay, which runs the one step of its "
                 "folder");
}

Options Options::parse(int argc, char **argv, const Program &program) {
  Options options;
  options.learningRate = program.optimizer.learningRate;
  const Platform &platform = platformOf(program);
  const std::vector<Row> rows = rowsOf(platform);
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    std::string value;
    const size_t equals = name.find('=');
    const bool joined = name.rfind("--", 0) == 0 && equals != std::string::npos;
    if (joined) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    if (name.rfind("--", 0) != 0)
      fail("expects options, but got '", name.substr(0, 64),
           "' (--help lists them)");
    name = spelled(name);
    if (const OtherWord *other = findOther(name); other && *other->ours)
      name = other->ours;
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const Row &r) { return name == r.name; });
    if (row == rows.end())
      failUnknown(name, rows);
    if (!*row->argument && joined)
      fail(row->name, " takes no value");
    const bool isLeftOut =
        row->isOptional && !joined &&
        (i + 1 == argc || std::string(argv[i + 1]).starts_with("--"));
    if (*row->argument && !joined && !isLeftOut) {
      if (i + 1 == argc)
        fail(row->name, " expects ", row->argument, ", but nothing follows");
      value = argv[++i];
    }
    row->apply(options, value);
    if (!row->isOwn)
      options.shared.emplace_back(name, value);
  }
  if (options.timeout == 0)
    options.timeout = platform.timeout();
  for (DataSpec &spec : options.data)
    splitPair("--data", spec, program.inputs);
  for (DataSpec &spec : options.evalData)
    splitPair("--eval-data", spec, program.inputs);
  for (DataSpec &spec : options.predict)
    splitPair("--predict", spec, program.inputs);
  for (DataSpec &spec : options.outputs)
    splitPair("--output", spec, program.outputs);
  options.weights.rest = executableFolder() + "/weights.safetensors";
  if (options.weights.path.empty())
    options.weights.path = options.weights.rest;
  if (options.weights.isRandom() &&
      (options.weights.isPartial || !options.weights.renames.empty()))
    fail(options.weights.isPartial ? "--weights-partial" : "--weights-rename",
         " expects --weights FILE beside it, but got random ones");
  if (options.save.empty())
    options.save = executableFolder() + "/trained.safetensors";
  if (options.checkpoint.empty() &&
      (options.resumes || options.checkpointEvery || options.checkpointSeconds))
    fail(options.resumes ? "--resume" : "--checkpoint-every",
         " expects --checkpoint DIR beside it");
  if (!options.checkpointEvery && !options.checkpointSeconds)
    options.checkpointSeconds = 600;
  options.recordFolder =
      options.checkpoint.empty() ? executableFolder() : options.checkpoint;
  if (options.flight.empty())
    options.flight = executableFolder();
  if (options.flight == "none")
    options.flight.clear();
  if (options.save == "none")
    options.save.clear();
  if (followPreflight(options, program))
    return options;
  if (!options.replay.empty()) {
    checkReplay(options);
    followRecord(options, program);
    checkThreadsPerRank(options);
    options.trains = true;
    return options;
  }
  checkBest(options);
  if (options.clipNorm > 0 && program.optimizer.clipNorm == 0)
    fail("--clip-norm ", options.clipNorm,
         ": the program was not compiled with it; pipewright compile "
         "--clip-norm X puts the norm into its schedule");
  if (options.clipNorm == 0)
    options.clipNorm = program.optimizer.clipNorm;
  if (options.skipsNan && options.clipNorm == 0)
    fail("--on-nan skip: the program does not compute the norm of gradients; "
         "pipewright compile --clip-norm X makes it, and a large X clips none");
  // Asked for a look at the model only.
  const bool looks = !options.guess.empty() || !options.predict.empty() ||
                     !options.evalData.empty();
  if (options.evaluateOnly) {
    if (options.evalData.empty())
      fail("--evaluate expects --eval-data NAME=FILE beside it");
    options.steps = 0;
  }
  if (options.epochs > 0 && !options.evaluateOnly)
    options.steps = stepsOfEpochs(program, options);
  if (options.steps < 0)
    options.steps = options.data.empty() && looks ? 0 : 100;
  // The schedule runs several steps together or none of them.
  const int64_t together = program.updates;
  options.stepsGiven = options.steps;
  options.steps = (options.steps + together - 1) / together * together;
  if (!options.evalEvery)
    options.evalEvery = std::max<int64_t>(1, (options.steps + 4) / 5);
  if (!options.predict.empty())
    options.steps = 0;
  options.trains = options.steps > 0;
  if (options.recordStep > options.steps)
    fail("--record ", options.recordStep, ": the run has ", options.steps,
         " steps");
  if (!options.checkpoint.empty() && !options.trains)
    fail("--checkpoint goes with training: --weights DIR/step-N takes the "
         "weights of a checkpoint");
  options.evaluates = !options.evalData.empty() || !options.predict.empty() ||
                      !options.guess.empty();
  if (const auto profile = options.own.find("--profile");
      profile != options.own.end())
    options.profileSteps = parseInteger("--profile", profile->second, 1);
  if (!options.outputs.empty() && options.predict.empty())
    fail("--output expects --predict NAME=FILE beside it");
  return options;
}

float Options::learningRateAt(int64_t step) const {
  if (step < warmup)
    return static_cast<float>(learningRate * (step + 1) / warmup);
  if (schedule == Schedule::Constant)
    return static_cast<float>(learningRate);
  const double done =
      static_cast<double>(step - warmup) / std::max<int64_t>(1, steps - warmup);
  return static_cast<float>(learningRate *
                            (0.1 + 0.45 * (1 + std::cos(M_PI * done))));
}

std::string pipewright::runtime::helpText(const Program &program) {
  std::string text = "trains '" + std::string(program.name) + "' on " +
                     countedRanks(program, platformOf(program).rankWord()) +
                     ": threads of one process, or a process for each\n";
  if (program.updates > 1) {
    const std::string updates = std::to_string(program.updates);
    text += "\na step is one update of the weights, from " +
            std::to_string(program.microBatches / program.updates) +
            " of the micro-batches; the schedule runs\n" + updates +
            " steps together, so --steps is rounded up to a multiple of " +
            updates + "\n";
  }
  text += "\noptions:\n";
  for (const Row &row : rowsOf(platformOf(program))) {
    if (row.isHidden)
      continue;
    char line[200];
    const std::string left =
        std::string(row.name) + (*row.argument ? " " : "") + row.argument;
    std::snprintf(line, sizeof line, "  %-28s %s\n", left.c_str(), row.help);
    text += line;
  }
  text += "\ninputs of the model (shape of one micro-batch of " +
          std::to_string(program.microBatchSize) + "):\n";
  for (const InputInfo &input : program.inputs)
    if (input.isData())
      text += "  " + std::string(input.name) + "  " + typeText(input.type) +
              " " + shapeText(input.shape) + "\n";
  text += "\noutputs (--output):\n";
  for (const OutputInfo &output : program.outputs)
    text += "  " + std::string(output.name) + "  " + typeText(output.type) +
            " " + shapeText(output.shape) + "\n";
  return text + R"(
data (--data, --eval-data, --predict) of an input:
  FILE.npy                       an array, dimension 0 = samples
  scaled:X:FILE.npy              the same, times X: scaled:1/255: for bytes
  bytes:FILE[,FILE...]           text, a byte is a token; also u16:, i32: (raw
                                 tokens), tokens: (shards as llm.c writes them)
  cifar10:FILE[,FILE...]         images of the binary version; also cifar100:
  random[:N], zeros, ones, range
  from:NAME                      what lies beside the data of input NAME: the
                                 next tokens, the labels; taken by itself for
                                 the one input that fits and has no data
  same:NAME                      the same values as input NAME

a process for each rank, over one or several hosts:
  mpirun -n RANKS ...            or srun, or what else starts programs of MPI
  torchrun --no-python ...       or whatever sets RANK and WORLD_SIZE, and on
                                 several hosts MASTER_ADDR, MASTER_PORT and
                                 LOCAL_RANK: over TCP, needs no MPI
)";
}
