//===- Options.cpp - The command line of a generated program --------------===//

#include "runtime/train/Options.h"
#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "runtime/train/OptionRows.h"
#include "runtime/train/OtherWords.h"
#include "runtime/train/Preflight.h"
#include "runtime/train/Record.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace pipewright::runtime;

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

std::string pipewright::runtime::nameOfBest(const Options &options) {
  return options.keepBest == Options::Best::Metric
             ? nameOfMetric(options.bestMetric)
             : "loss";
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
  for (const OptionRow &row : optionRowsOf(platformOf(program))) {
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
                                     const std::vector<OptionRow> &rows) {
  for (const Platform *platform : allPlatforms())
    for (const PlatformOption &option : platform->options())
      if (name == option.name)
        fail(name, " is for programs compiled with --target ",
             platform->name());
  if (const OtherWord *other = findOther(name))
    fail("there is no ", name, ": ", other->advice);
  std::string near;
  for (const OptionRow &row : rows)
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

/// What the words of the command line say.
static void readWords(int argc, char **argv, const Platform &platform,
                      Options &options) {
  const std::vector<OptionRow> rows = optionRowsOf(platform);
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
    const auto row =
        std::find_if(rows.begin(), rows.end(),
                     [&](const OptionRow &r) { return name == r.name; });
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
}

/// Where weights come from, and where files are written that have no other
/// place: beside the executable.
static void choosePlaces(Options &options) {
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
}

/// What of gradients' norms the program was compiled with.
static void checkNorms(const Program &program, Options &options) {
  if (options.clipNorm > 0 && program.optimizer.clipNorm == 0)
    fail("--clip-norm ", options.clipNorm,
         ": the program was not compiled with it; pipewright compile "
         "--clip-norm X puts the norm into its schedule");
  if (options.clipNorm == 0)
    options.clipNorm = program.optimizer.clipNorm;
  if (options.skipsNan && options.clipNorm == 0)
    fail("--on-nan skip: the program does not compute the norm of gradients; "
         "pipewright compile --clip-norm X makes it, and a large X clips none");
}

/// How many steps there are, and whether any; what is done in and beside them.
static void chooseSteps(const Program &program, Options &options) {
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
}

Options Options::parse(int argc, char **argv, const Program &program) {
  Options options;
  options.learningRate = program.optimizer.learningRate;
  const Platform &platform = platformOf(program);
  readWords(argc, argv, platform, options);
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
  choosePlaces(options);
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
  checkNorms(program, options);
  chooseSteps(program, options);
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
  for (const OptionRow &row : optionRowsOf(platformOf(program))) {
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
