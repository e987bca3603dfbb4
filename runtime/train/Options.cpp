//===- Options.cpp - The command line of a generated program --------------===//

#include "runtime/train/Options.h"
#include "runtime/core/Error.h"

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
  enum class For { All, Gpus, Cpus } ranks = For::All;

  bool concerns(const Program &program) const {
    return ranks == For::All ||
           (ranks == For::Gpus) == (program.device != nullptr);
  }
};

} // namespace

static int64_t parseInteger(const char *option, const std::string &text,
                            int64_t least) {
  char *end = nullptr;
  errno = 0;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end || errno || value < least)
    fail(option, " expects a whole number of at least ", least, ", but got '",
         text, "'");
  return value;
}

static constexpr int64_t mostThreads = 1024;

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

static std::vector<int64_t> parseList(const char *option,
                                      const std::string &text) {
  std::vector<int64_t> numbers;
  std::stringstream items(text + ",");
  for (std::string item; std::getline(items, item, ',');) {
    numbers.push_back(parseInteger(option, item, 0));
    if (std::count(numbers.begin(), numbers.end(), numbers.back()) > 1)
      fail(option, " names ", numbers.back(), " twice");
  }
  return numbers;
}

static LinkKind parseLinks(const std::string &text) {
  if (text != "nccl" && text != "cuda-local")
    fail("--transport expects nccl or cuda-local, but got '", text, "'");
  return text == "nccl" ? LinkKind::Nccl : LinkKind::Local;
}

static AttentionBy parseAttention(const std::string &text) {
  if (text != "auto" && text != "cudnn" && text != "own")
    fail("--attention expects auto, cudnn or own, but got '", text, "'");
  return text == "auto"    ? AttentionBy::Auto
         : text == "cudnn" ? AttentionBy::Cudnn
                           : AttentionBy::Own;
}

static const std::vector<Row> &rows() {
  using O = Options;
  using Text = std::string;
  static const std::vector<Row> table = {
      {"--data", "NAME=FILE", "training data of an input (see below)",
       [](O &o, const Text &t) { o.data.push_back({"", t}); }},
      {"--eval-data", "NAME=FILE", "held-out data, never trained on",
       [](O &o, const Text &t) { o.evalData.push_back({"", t}); }},
      {"--eval-every", "N", "held-out loss every N steps (a fifth of them)",
       [](O &o, const Text &t) {
         o.evalEvery = parseInteger("--eval-every", t, 1);
       }},
      {"--eval-batches", "N", "batches of held-out data at most (16)",
       [](O &o, const Text &t) {
         o.evalBatches = parseInteger("--eval-batches", t, 1);
       }},
      {"--steps", "N", "optimizer steps (100; without --data 0)",
       [](O &o, const Text &t) { o.steps = parseInteger("--steps", t, 0); }},
      {"--lr", "X", "learning rate",
       [](O &o, const Text &t) { o.learningRate = parseNumber("--lr", t); }},
      {"--warmup", "N", "steps until the full learning rate (0)",
       [](O &o, const Text &t) { o.warmup = parseInteger("--warmup", t, 0); }},
      {"--schedule", "NAME", "constant, or cosine (falls to a tenth)",
       [](O &o, const Text &t) {
         if (t != "constant" && t != "cosine")
           fail("--schedule expects constant or cosine, but got '", t, "'");
         o.schedule =
             t == "cosine" ? O::Schedule::Cosine : O::Schedule::Constant;
       }},
      {"--seed", "N", "of sampling and dropout (0)",
       [](O &o, const Text &t) { o.seed = parseInteger("--seed", t, 0); }},
      {"--no-shuffle", "", "take samples in the order of the file",
       [](O &o, const Text &) { o.shuffle = false; }},
      {"--threads-per-rank", "N", "compute threads (cores / ranks)",
       [](O &o, const Text &t) {
         o.threadsPerRank = parseInteger("--threads-per-rank", t, 1);
         // As many cores as a placement can name.
         if (o.threadsPerRank > mostThreads)
           fail("--threads-per-rank expects a whole number from 1 to ",
                mostThreads, ", but got '", t, "'");
       },
       Row::For::Cpus},
      {"--timeout", "S", "seconds of silence until a rank counts as lost (8)",
       [](O &o, const Text &t) { o.timeout = parseSeconds("--timeout", t); },
       Row::For::Cpus},
      {"--timeout", "S", "seconds until a wait for another rank fails (60)",
       [](O &o, const Text &t) { o.timeout = parseSeconds("--timeout", t); },
       Row::For::Gpus},
      {"--rendezvous-timeout", "S", "seconds until all ranks have come (300)",
       [](O &o, const Text &t) {
         o.rendezvousTimeout = parseSeconds("--rendezvous-timeout", t);
       }},
      {"--flight", "DIR", "for what ranks did last, if they fail (.; none)",
       [](O &o, const Text &t) { o.flight = t == "none" ? "" : t; }},
      {"--weights", "FILE", "initial weights (weights.safetensors), or random",
       [](O &o, const Text &t) { o.weights = t; }},
      {"--save", "FILE", "final weights (trained.safetensors; none: nowhere)",
       [](O &o, const Text &t) { o.save = t; }},
      {"--log", "FILE", "one JSON object per step",
       [](O &o, const Text &t) { o.log = t; }},
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
      {"--transport", "NAME", "nccl, or cuda-local: ranks may share a GPU",
       [](O &o, const Text &t) { o.links = parseLinks(t); }, Row::For::Gpus},
      {"--gpus", "LIST", "numbers of the GPUs to use, as 0,2 (all)",
       [](O &o, const Text &t) { o.gpus = parseList("--gpus", t); },
       Row::For::Gpus},
      {"--attention", "BY", "cudnn, own (kernels), or auto: cuDNN if it can",
       [](O &o, const Text &t) { o.attention = parseAttention(t); },
       Row::For::Gpus},
      {"--no-graphs", "", "launch every kernel anew, without CUDA graphs",
       [](O &o, const Text &) { o.graphs = false; }, Row::For::Gpus},
      {"--profile", "N", "table of what calls took in the last N steps",
       [](O &o, const Text &t) {
         o.profileSteps = parseInteger("--profile", t, 1);
       },
       Row::For::Gpus},
      {"--chaos", "SEED", "random delays, to find events that are missing",
       [](O &o, const Text &t) { o.chaos = parseInteger("--chaos", t, 1); },
       Row::For::Gpus},
      {"--dry-run", "", "print what would run where, and end",
       [](O &o, const Text &) { o.dryRun = true; }},
      {"--timetable", "", "print the schedule and end",
       [](O &o, const Text &) { o.timetable = true; }},
      {"--plan", "", "print the compiler's plan (JSON) and end",
       [](O &o, const Text &) { o.plan = true; }},
      {"--help", "", "print this and end",
       [](O &o, const Text &) { o.help = true; }},
  };
  return table;
}

/// The folder that the executable lies in.
static std::string executableFolder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string text(path, std::max<ssize_t>(length, 0));
  const size_t slash = text.rfind('/');
  return slash == std::string::npos ? "." : text.substr(0, slash);
}

/// What may differ from rank to rank: patience, cores, cards, and files that
/// only one rank writes or that hosts keep in other places.
static bool isOwn(const std::string &option) {
  static const char *const own[] = {"--timeout", "--rendezvous-timeout",
                                    "--flight",  "--threads-per-rank",
                                    "--log",     "--weights",
                                    "--gpus",    "--no-graphs",
                                    "--chaos"};
  return std::find(std::begin(own), std::end(own), option) != std::end(own);
}

std::vector<std::pair<std::string, std::string>>
pipewright::runtime::sharedOptions(const Options &options) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const Row &row : rows()) {
    if (isOwn(row.name))
      continue;
    std::string text;
    for (const auto &[name, value] : options.shared)
      if (name == row.name)
        text += value + "\n";
    values.emplace_back(row.name, text);
  }
  return values;
}

Options Options::parse(int argc, char **argv, const Program &program) {
  Options options;
  options.learningRate = program.defaults.learningRate;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    std::string value;
    const size_t equals = name.find('=');
    const bool joined = name.rfind("--", 0) == 0 && equals != std::string::npos;
    if (joined) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    auto row = std::find_if(rows().begin(), rows().end(), [&](const Row &r) {
      return name == r.name && r.concerns(program);
    });
    // Other programs may know the option: the message says which do.
    if (row == rows().end())
      row = std::find_if(rows().begin(), rows().end(),
                         [&](const Row &r) { return name == r.name; });
    if (row == rows().end())
      fail("unknown option '", argv[i], "' (--help lists them)");
    if (row->ranks == Row::For::Gpus && !program.device)
      fail(row->name, " is for programs compiled with --target cuda");
    if (!*row->argument && joined)
      fail(row->name, " takes no value");
    if (*row->argument && !joined) {
      if (i + 1 == argc)
        fail(row->name, " expects ", row->argument, ", but nothing follows");
      value = argv[++i];
    }
    row->apply(options, value);
    if (!isOwn(name))
      options.shared.emplace_back(name, value);
  }
  if (options.timeout == 0)
    options.timeout = program.device ? 60 : 8;
  for (DataSpec &spec : options.data)
    splitPair("--data", spec, program.inputs);
  for (DataSpec &spec : options.evalData)
    splitPair("--eval-data", spec, program.inputs);
  for (DataSpec &spec : options.predict)
    splitPair("--predict", spec, program.inputs);
  for (DataSpec &spec : options.outputs)
    splitPair("--output", spec, program.outputs);
  if (options.weights.empty())
    options.weights = executableFolder() + "/weights.safetensors";
  if (options.save.empty())
    options.save = executableFolder() + "/trained.safetensors";
  if (options.save == "none")
    options.save.clear();
  // Asked for a look at the model only.
  const bool looks = !options.guess.empty() || !options.predict.empty() ||
                     !options.evalData.empty();
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
                     std::to_string(program.ranks.size()) +
                     (program.device ? " GPU ranks" : " ranks") +
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
  for (const Row &row : rows()) {
    if (!row.concerns(program))
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
  return text + R"(
data (--data, --eval-data, --predict) of an input:
  FILE.npy                       an array, dimension 0 = samples
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
