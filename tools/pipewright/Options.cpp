//===- Options.cpp - What the user asked for ------------------------------===//
//
// Every value is checked here, before the model is even opened, and a bad one
// is named together with what would be right.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Options.h"

#include "passes/schedules/files/FilePolicy.h"
#include "support/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace cl = llvm::cl;

namespace pipewright::tool {

llvm::cl::OptionCategory &compileCategory() {
  static cl::OptionCategory category("Compilation");
  return category;
}

//===----------------------------------------------------------------------===//
// The options
//===----------------------------------------------------------------------===//

/// Registers an option for several subcommands.
struct InCommands {
  llvm::ArrayRef<cl::SubCommand *> commands;
  template <class Option>
  void apply(Option &option) const {
    for (cl::SubCommand *command : commands)
      option.addSubCommand(*command);
  }
};

struct OptionSet::Storage {
  explicit Storage(const InCommands &in)
      : model(cl::Positional, cl::desc("MODEL.onnx"), in,
              cl::cat(compileCategory())),
        output("o", cl::desc("Folder (or file, with --emit) to write"),
               cl::value_desc("OUT"), in, cl::cat(compileCategory())),
        target("target", cl::desc("What the program runs on: cpu or cuda"),
               cl::value_desc("NAME"), cl::init("cpu"), in,
               cl::cat(compileCategory())),
        precision(
            "precision",
            cl::desc("What is computed in: f32, tf32 (f32 of which matrix "
                     "products use 10 bits; cuda) or bf16 (with f32 "
                     "weights and sums)"),
            cl::value_desc("NAME"), cl::init("f32"), in,
            cl::cat(compileCategory())),
        gpu("gpu",
            cl::desc("Architecture that decisions are made for: sm_80 or "
                     "sm_90, unless given (cuda; programs run on both)"),
            cl::value_desc("NAME"), in, cl::cat(compileCategory())),
        epilogues("epilogues",
                  cl::desc("What cuBLASLt does to products before it stores "
                           "them: auto (bias; in bf16 for sm_90 all), none, "
                           "bias or all (GELU and its gradient too) (cuda)"),
                  cl::value_desc("NAME"), in, cl::cat(compileCategory())),
        packAttention(
            "pack-attention",
            cl::desc("Whether attention reads q, k and v where products leave "
                     "them: auto (yes) or none (they are split and transposed "
                     "first) (cuda)"),
            cl::value_desc("NAME"), in, cl::cat(compileCategory())),
        padVocabulary(
            "pad-vocabulary",
            cl::desc("Rows of zeros for the weight that makes the logits: "
                     "auto (to a multiple of 64 from 4096 classes on, for "
                     "cuda), none, or a multiple of N"),
            cl::value_desc("N"), cl::init("auto"), in,
            cl::cat(compileCategory())),
        layout("layout",
               cl::desc("How images lie in memory where there are "
                        "convolutions: nchw, nhwc (channels last) or auto "
                        "(nhwc for tensor cores: cuda in tf32 or bf16)"),
               cl::value_desc("NAME"), cl::init("auto"), in,
               cl::cat(compileCategory())),
        ranks("ranks", cl::desc("Workers of the pipeline"), cl::value_desc("P"),
              cl::init("1"), in, cl::cat(compileCategory())),
        loops("loops",
              cl::desc("Stages per rank; what the schedule needs unless given"),
              cl::value_desc("V"), in, cl::cat(compileCategory())),
        stages("stages", cl::desc("Stages; ranks x loops unless given"),
               cl::value_desc("S"), in, cl::cat(compileCategory())),
        microBatches("micro-batches", cl::desc("Micro-batches per step"),
                     cl::value_desc("M"), cl::init("4"), in,
                     cl::cat(compileCategory())),
        microBatchSize("micro-batch-size",
                       cl::desc("Samples per micro-batch; what the model says "
                                "unless given"),
                       cl::value_desc("B"), in, cl::cat(compileCategory())),
        dims("dim", cl::desc("Size of a symbolic dimension"),
             cl::value_desc("NAME=N"), in, cl::cat(compileCategory())),
        schedule(
            "schedule",
            cl::desc("Order of tasks; see `pipewright schedules`; or one from "
                     "a file (.csv, .json)"),
            cl::value_desc("NAME[:PARAMETER=N]...|FILE"), cl::init("1f1b"), in,
            cl::cat(compileCategory())),
        balance("balance",
                cl::desc("What stages share equally: uniform, parameters or "
                         "flops"),
                cl::value_desc("METHOD"), cl::init("flops"), in,
                cl::cat(compileCategory())),
        remat("remat", cl::desc("What the backward recomputes: none or full"),
              cl::value_desc("MODE"), cl::init("none"), in,
              cl::cat(compileCategory())),
        tiedWeights(
            "tied-weights",
            cl::desc("How weights that stages on two ranks share are updated: "
                     "all-reduce (gradients are sent both ways at once, both "
                     "update) or owner (one updates and sends the new weight; "
                     "the optimizer's state is there once)"),
            cl::value_desc("HOW"), cl::init("all-reduce"), in,
            cl::cat(compileCategory())),
        freeze("freeze",
               cl::desc("Do not train weights whose names contain a match of "
                        "this regular expression (may be given again; the "
                        "last --freeze or --train that matches wins)"),
               cl::value_desc("REGEX"), in, cl::cat(compileCategory())),
        train("train",
              cl::desc("Train weights whose names contain a match, even if the "
                       "model has them as constants"),
              cl::value_desc("REGEX"), in, cl::cat(compileCategory())),
        loss("loss",
             cl::desc("softmax-cross-entropy or mse; the model's own scalar "
                      "output unless given"),
             cl::value_desc("NAME"), in, cl::cat(compileCategory())),
        lossOutput("loss-output",
                   cl::desc("The model output that --loss is computed from"),
                   cl::value_desc("NAME"), in, cl::cat(compileCategory())),
        runningVariance(
            "running-variance",
            cl::desc("Of batch normalization: population, as ONNX defines it, "
                     "or sample, divided by one less; of the framework that "
                     "wrote the file unless given"),
            cl::value_desc("NAME"), in, cl::cat(compileCategory())),
        optimizer("optimizer",
                  cl::desc("sgd, adam, adamw or rmsprop, with options as in "
                           "torch.optim: sgd,lr=0.1,momentum=0.9"),
                  cl::value_desc("NAME[,KEY=VALUE...]"), cl::init("sgd"), in,
                  cl::cat(compileCategory())),
        taskTimes("task-times",
                  cl::desc("Plan with the times that a program of this model "
                           "measured (its --trace)"),
                  cl::value_desc("TRACE.json"), in, cl::cat(compileCategory())),
        noDropout("no-dropout", cl::desc("Remove all dropout"), in,
                  cl::cat(compileCategory())),
        emit("emit",
             cl::desc("Print a level instead: import, staged, unrolled, "
                      "scheduled, allocated, emitc or cpp"),
             cl::value_desc("LEVEL"), in, cl::cat(compileCategory())) {}

  cl::opt<std::string> model, output, target, precision, gpu, epilogues,
      packAttention, padVocabulary, layout, ranks, loops, stages, microBatches,
      microBatchSize;
  cl::list<std::string> dims;
  cl::opt<std::string> schedule, balance, remat, tiedWeights;
  cl::list<std::string> freeze, train;
  cl::opt<std::string> loss, lossOutput, runningVariance, optimizer, taskTimes;
  cl::opt<bool> noDropout;
  cl::opt<std::string> emit;
};

OptionSet::OptionSet(llvm::ArrayRef<cl::SubCommand *> commands)
    : storage(std::make_unique<Storage>(InCommands{commands})) {}
OptionSet::~OptionSet() = default;

bool isCompileOption(llvm::StringRef word, bool &takesNext) {
  static constexpr llvm::StringRef withValue[] = {"o",
                                                  "target",
                                                  "precision",
                                                  "gpu",
                                                  "epilogues",
                                                  "pack-attention",
                                                  "pad-vocabulary",
                                                  "layout",
                                                  "ranks",
                                                  "loops",
                                                  "stages",
                                                  "micro-batches",
                                                  "dim",
                                                  "balance",
                                                  "remat",
                                                  "tied-weights",
                                                  "freeze",
                                                  "train",
                                                  "loss",
                                                  "loss-output",
                                                  "running-variance",
                                                  "schedule",
                                                  "optimizer",
                                                  "micro-batch-size",
                                                  "emit",
                                                  "load-pass-plugin",
                                                  "task-times"};
  takesNext = false;
  if (!word.consume_front("-"))
    return false;
  word.consume_front("-");
  auto [name, value] = word.split('=');
  if (name == "no-dropout")
    return true;
  if (!llvm::is_contained(withValue, name))
    return false;
  takesNext = !word.contains('=');
  return true;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

template <class... Parts>
static llvm::Error fail(const Parts &...parts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  (os << ... << parts);
  return llvm::createStringError(text);
}

llvm::Error readCount(llvm::StringRef option, llvm::StringRef text,
                      int64_t &count) {
  constexpr int64_t most = 1 << 20;
  if (text.getAsInteger(10, count) || count < 1 || count > most)
    return fail("--", option, " expects a whole number from 1 to ", most,
                ", but got '", text, "'");
  return llvm::Error::success();
}

static llvm::Error readChoice(llvm::StringRef option, llvm::StringRef text,
                              llvm::ArrayRef<llvm::StringRef> choices) {
  if (llvm::is_contained(choices, text))
    return llvm::Error::success();
  std::string list;
  for (auto [index, choice] : llvm::enumerate(choices)) {
    if (index > 0)
      list += index + 1 == choices.size() ? " or " : ", ";
    list += choice;
  }
  return fail("--", option, " expects ", list, ", but got '", text, "'");
}

namespace {
struct OptimizerDefaults {
  llvm::StringRef name;
  std::vector<std::pair<std::string, double>> numbers;
};
} // namespace

/// Names and defaults of torch.optim; SGD has no default learning rate there.
static const std::vector<OptimizerDefaults> &optimizers() {
  static const std::vector<OptimizerDefaults> list = {
      {"sgd", {{"lr", 0.01}, {"momentum", 0}, {"weight_decay", 0}}},
      {"adam",
       {{"lr", 1e-3},
        {"beta1", 0.9},
        {"beta2", 0.999},
        {"eps", 1e-8},
        {"weight_decay", 0}}},
      {"adamw",
       {{"lr", 1e-3},
        {"beta1", 0.9},
        {"beta2", 0.999},
        {"eps", 1e-8},
        {"weight_decay", 0.01}}},
      {"rmsprop",
       {{"lr", 0.01},
        {"alpha", 0.99},
        {"eps", 1e-8},
        {"momentum", 0},
        {"weight_decay", 0}}}};
  return list;
}

/// Whether a hyper-parameter may have a value.
static bool isInRange(llvm::StringRef key, double value) {
  if (key == "beta1" || key == "beta2" || key == "alpha")
    return value >= 0 && value < 1;
  return value >= 0 && value < 1e30;
}

llvm::Expected<OptimizerChoice> parseOptimizer(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  OptimizerChoice choice;
  choice.name = parts.front().trim().str();
  auto found = llvm::find_if(optimizers(), [&](const OptimizerDefaults &known) {
    return known.name == choice.name;
  });
  if (found == optimizers().end())
    return fail("--optimizer expects sgd, adam, adamw or rmsprop, but got '",
                choice.name, "'");
  choice.numbers = found->numbers;
  for (llvm::StringRef part : llvm::drop_begin(parts)) {
    auto [key, value] = part.trim().split('=');
    if (key == "nesterov" && choice.name == "sgd") {
      if (!value.empty() && value != "true" && value != "false")
        return fail("--optimizer expects nesterov to be true or false, but "
                    "got '",
                    value, "'");
      choice.nesterov = value != "false";
      continue;
    }
    auto number = llvm::find_if(
        choice.numbers, [&](const auto &known) { return known.first == key; });
    if (number == choice.numbers.end()) {
      std::string known;
      for (const auto &[name, standard] : choice.numbers)
        known += (known.empty() ? "" : ", ") + name;
      if (choice.name == "sgd")
        known += ", nesterov";
      return fail("optimizer ", choice.name, " has no '", key, "'; it has ",
                  known);
    }
    if (value.getAsDouble(number->second) || !isInRange(key, number->second))
      return fail("--optimizer expects ", key, " to be a number ",
                  isInRange(key, 1.0) ? "of at least 0" : "from 0 to below 1",
                  ", but got '", value, "'");
  }
  auto numberOf = [&](llvm::StringRef key) {
    for (const auto &[name, value] : choice.numbers)
      if (name == key)
        return value;
    return 0.0;
  };
  if (choice.nesterov && numberOf("momentum") == 0)
    return fail("--optimizer expects momentum above 0 with nesterov");
  return choice;
}

static llvm::Expected<Level> parseLevel(llvm::StringRef text) {
  if (text.empty())
    return Level::Program;
  static constexpr llvm::StringRef names[] = {
      "import", "staged", "unrolled", "scheduled", "allocated", "emitc", "cpp"};
  if (llvm::Error error = readChoice("emit", text, names))
    return error;
  return llvm::StringSwitch<Level>(text)
      .Case("import", Level::Import)
      .Case("staged", Level::Staged)
      .Case("unrolled", Level::Unrolled)
      .Case("scheduled", Level::Scheduled)
      .Case("allocated", Level::Allocated)
      .Case("emitc", Level::EmitC)
      .Default(Level::Cpp);
}

static llvm::Expected<std::vector<schedules::MeasuredTimes>>
readTaskTimes(llvm::StringRef path, int64_t stages) {
  auto trace = schedules::readChromeTrace(path);
  if (!trace)
    return trace.takeError();
  auto times = schedules::medianTimes(*trace, stages);
  if (!times)
    return fail("trace '", path, "' ", llvm::toString(times.takeError()));
  return times;
}

/// Ranks, stages and micro-batches, and whether the schedule can have them.
static llvm::Error checkSizes(const OptionSet::Storage &s,
                              CompileOptions &options) {
  llvm::Expected<schedules::PolicyChoice> policy =
      schedules::chooseSchedule(options.schedule);
  if (!policy)
    return policy.takeError();
  int64_t loops = (*policy)->defaultLoops();
  if (llvm::Error error = readCount("ranks", s.ranks, options.ranks))
    return error;
  if (!s.loops.empty())
    if (llvm::Error error = readCount("loops", s.loops, loops))
      return error;
  options.stages = options.ranks * loops;
  if (!s.stages.empty())
    if (llvm::Error error = readCount("stages", s.stages, options.stages))
      return error;
  // Measured times are of one number of stages.
  if ((*policy)->triesLoops() && s.loops.empty() && s.stages.empty() &&
      s.taskTimes.empty() && options.ranks > 1)
    options.stageChoices = {options.ranks, 2 * options.ranks,
                            4 * options.ranks};
  if (llvm::Error error =
          readCount("micro-batches", s.microBatches, options.microBatches))
    return error;
  return (*policy)
      ->place(
          policy->with({options.ranks, options.stages, options.microBatches}))
      .takeError();
}

/// --freeze and --train in the order of the command line.
static llvm::Error checkRoleRules(const OptionSet::Storage &s,
                                  std::vector<frontend::RoleRule> &rules) {
  using frontend::RoleRule;
  std::vector<std::pair<unsigned, RoleRule>> found;
  auto add = [&](const cl::list<std::string> &patterns, RoleRule::Kind kind) {
    for (auto [number, pattern] : llvm::enumerate(patterns))
      found.push_back({patterns.getPosition(number), {kind, pattern}});
  };
  add(s.freeze, RoleRule::Freeze);
  add(s.train, RoleRule::Train);
  llvm::sort(found, llvm::less_first());
  for (auto &[position, rule] : found) {
    if (llvm::Error error = frontend::checkRoleRule(rule))
      return error;
    rules.push_back(std::move(rule));
  }
  return llvm::Error::success();
}

/// What the importer needs to know.
static llvm::Error checkImport(const OptionSet::Storage &s,
                               frontend::ImportOptions &import) {
  int64_t size = 0;
  if (!s.microBatchSize.empty()) {
    if (llvm::Error error =
            readCount("micro-batch-size", s.microBatchSize, size))
      return error;
    import.microBatchSize = size;
  }
  for (const std::string &dim : s.dims) {
    auto [name, text] = llvm::StringRef(dim).rsplit('=');
    if (name.empty() || text.empty() || !llvm::StringRef(dim).contains('='))
      return fail("--dim expects NAME=N, but got '", dim, "'");
    if (llvm::Error error = readCount(("dim " + name).str(), text, size))
      return error;
    if (!import.dims.try_emplace(name, size).second)
      return fail("--dim gives dimension '", name, "' twice");
  }
  if (!s.loss.empty())
    if (llvm::Error error =
            readChoice("loss", s.loss, {"softmax-cross-entropy", "mse"}))
      return error;
  if (!s.lossOutput.empty() && s.loss.empty())
    return fail("--loss-output expects --loss beside it");
  if (llvm::Error error = checkRoleRules(s, import.roleRules))
    return error;
  if (!s.runningVariance.empty()) {
    if (llvm::Error error = readChoice("running-variance", s.runningVariance,
                                       {"population", "sample"}))
      return error;
    import.runningVariance = s.runningVariance == "sample"
                                 ? frontend::RunningVariance::Sample
                                 : frontend::RunningVariance::Population;
  }
  import.modelPath = s.model;
  import.loss = s.loss;
  import.lossOutput = s.lossOutput;
  return llvm::Error::success();
}

/// The target, and whether it can compute in that precision.
static llvm::Error checkTarget(const OptionSet::Storage &s,
                               CompileOptions &options) {
  if (llvm::Error error = readChoice("target", s.target, {"cpu", "cuda"}))
    return error;
  if (llvm::Error error =
          readChoice("precision", s.precision, {"f32", "tf32", "bf16"}))
    return error;
  bool isCuda = s.target == "cuda";
  if (s.precision == "tf32" && !isCuda)
    return fail("--precision tf32 expects --target cuda: only GPUs have TF32");
  options.target = isCuda ? codegen::Target::Cuda : codegen::Target::Cpu;
  options.precision = s.precision == "f32"    ? Precision::F32
                      : s.precision == "tf32" ? Precision::Tf32
                                              : Precision::BF16;
  return llvm::Error::success();
}

/// What is decided for GPUs alone.
static llvm::Error checkGpu(const OptionSet::Storage &s,
                            CompileOptions &options) {
  if (options.target != codegen::Target::Cuda) {
    for (const cl::opt<std::string> *option :
         {&s.gpu, &s.epilogues, &s.packAttention})
      if (!option->empty())
        return fail("--", option->ArgStr, " expects --target cuda");
    return llvm::Error::success();
  }
  const std::string gpu = s.gpu.empty() ? "sm_90" : s.gpu.getValue();
  if (llvm::Error error = readChoice("gpu", gpu, {"sm_80", "sm_90"}))
    return error;
  options.architecture = gpu == "sm_80" ? 80 : 90;
  const std::string packAttention =
      s.packAttention.empty() ? "auto" : s.packAttention.getValue();
  if (llvm::Error error =
          readChoice("pack-attention", packAttention, {"auto", "none"}))
    return error;
  options.packAttention = packAttention == "auto";
  options.epilogues = s.epilogues.empty() ? "auto" : s.epilogues.getValue();
  return readChoice("epilogues", options.epilogues,
                    {"auto", "none", "bias", "all"});
}

/// `auto`, `none` or a number.
static llvm::Error checkPadding(llvm::StringRef text, CompileOptions &options) {
  constexpr int64_t largest = 4096;
  if (text == "auto") {
    options.vocabularyMultiple =
        options.target == codegen::Target::Cuda ? 64 : 1;
  } else if (text != "none") {
    if (text.getAsInteger(10, options.vocabularyMultiple) ||
        options.vocabularyMultiple < 1 || options.vocabularyMultiple > largest)
      return fail("--pad-vocabulary expects auto, none or a number from 1 to ",
                  largest, ", but got '", text, "'");
    options.leastVocabulary = 1;
  }
  return llvm::Error::success();
}

/// cuDNN's engines for tensor cores want the channels last; those for full f32
/// want them second, and would reorder images each time.
static llvm::Error checkLayout(const OptionSet::Storage &s,
                               CompileOptions &options) {
  options.channelsLast = s.layout == "auto"
                             ? options.target == codegen::Target::Cuda &&
                                   options.precision != Precision::F32
                             : s.layout == "nhwc";
  return readChoice("layout", s.layout, {"auto", "nchw", "nhwc"});
}

llvm::Expected<CompileOptions>
OptionSet::check(llvm::StringRef schedule) const {
  const Storage &s = *storage;
  CompileOptions options;
  if (s.model.empty())
    return fail("expects a model: pipewright COMMAND MODEL.onnx ...");
  options.output = s.output;
  options.schedule = schedule.empty() ? s.schedule.getValue() : schedule.str();
  options.balance = s.balance;
  options.remat = s.remat;
  options.allReduceTiedWeights = s.tiedWeights == "all-reduce";
  options.noDropout = s.noDropout;
  if (llvm::Error error = checkTarget(s, options))
    return std::move(error);
  if (llvm::Error error = checkGpu(s, options))
    return std::move(error);
  if (llvm::Error error = checkPadding(s.padVocabulary.getValue(), options))
    return std::move(error);
  if (llvm::Error error = checkLayout(s, options))
    return std::move(error);
  if (llvm::Error error = checkSizes(s, options))
    return std::move(error);
  if (llvm::Error error = checkImport(s, options.import))
    return std::move(error);
  if (llvm::Error error =
          readChoice("balance", s.balance, {"uniform", "parameters", "flops"}))
    return std::move(error);
  if (llvm::Error error = readChoice("remat", s.remat, {"none", "full"}))
    return std::move(error);
  if (llvm::Error error =
          readChoice("tied-weights", s.tiedWeights, {"all-reduce", "owner"}))
    return std::move(error);
  auto optimizer = parseOptimizer(s.optimizer);
  if (!optimizer)
    return optimizer.takeError();
  options.optimizer = *optimizer;
  auto level = parseLevel(s.emit);
  if (!level)
    return level.takeError();
  options.level = *level;

  if (!s.taskTimes.empty()) {
    auto times = readTaskTimes(s.taskTimes, options.stages);
    if (!times)
      return times.takeError();
    options.taskTimes = std::move(*times);
  }

  options.given =
      llvm::json::Object{{"target", s.target.getValue()},
                         {"precision", s.precision.getValue()},
                         {"ranks", options.ranks},
                         {"stages", options.stages},
                         {"micro_batches", options.microBatches},
                         {"schedule", text::printable(options.schedule)},
                         {"balance", options.balance},
                         {"remat", options.remat},
                         {"tied_weights", s.tiedWeights.getValue()},
                         {"loss", text::printable(s.loss)},
                         {"optimizer", text::printable(s.optimizer)},
                         {"no_dropout", options.noDropout}};
  llvm::json::Array rules;
  for (const frontend::RoleRule &rule : options.import.roleRules)
    rules.push_back((rule.option() + " " + rule.pattern).str());
  if (!rules.empty())
    options.given["roles"] = std::move(rules);
  if (options.vocabularyMultiple > 1)
    options.given["pad_vocabulary"] = options.vocabularyMultiple;
  if (options.target == codegen::Target::Cuda) {
    options.given["gpu"] = "sm_" + std::to_string(options.architecture);
    options.given["epilogues"] = options.epilogues;
    options.given["pack_attention"] = options.packAttention ? "auto" : "none";
  }
  if (options.target == codegen::Target::Cuda || options.channelsLast)
    options.given["layout"] = options.channelsLast ? "nhwc" : "nchw";
  return options;
}

} // namespace pipewright::tool
