//===- OptionRows.cpp - The options of compile, plan and train ------------===//
//
// A new option is one row, here and nowhere else; if its value takes more than
// a line to read, there is a function above.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/FilePolicy.h"
#include "tools/pipewright/Options.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

namespace pipewright::tool {

using namespace option;

//===----------------------------------------------------------------------===//
// What takes more than a line to read
//===----------------------------------------------------------------------===//

using Given = const OptionValues &;

static const codegen::TargetOption *findOption(const codegen::Target &target,
                                               llvm::StringRef name) {
  for (const codegen::TargetOption &option : target.options())
    if (option.name == name)
      return &option;
  return nullptr;
}

/// The value of a target's own option.
static llvm::StringRef valueOf(Given given,
                               const codegen::TargetOption &option) {
  llvm::StringRef text = given[option.name];
  return text.empty() ? option.standard : text;
}

static llvm::Error readTarget(const OptionSpelling &row, Given given,
                              CompileOptions &options) {
  auto target = codegen::findTarget(given[row.name]);
  if (!target)
    return fail("--target ", llvm::toString(target.takeError()));
  options.target = *target;
  options.pipelines.allocated.assignStreams = options.target->hasStreams();
  return llvm::Error::success();
}

/// What only some targets understand, and what the target decides by it.
static llvm::Error readTargetOptions(Given given, CompileOptions &options) {
  for (const codegen::Target *target : codegen::allTargets())
    for (const codegen::TargetOption &option : target->options()) {
      // A target that a plugin has brought later has none.
      auto has = [&](const codegen::Target &other) {
        return findOption(other, option.name) != nullptr;
      };
      if (!has(*options.target) && !given[option.name].empty())
        return fail("--", option.name, " expects --target ",
                    codegen::namesOfTargets(has));
      if (target == options.target)
        if (llvm::Error error =
                readChoice(option.name, valueOf(given, option), option.choices))
          return error;
    }
  options.decisions =
      options.target->decide(options.precision, [&](llvm::StringRef name) {
        return valueOf(given, *findOption(*options.target, name));
      });
  StagedPipelineOptions &staged = options.pipelines.staged;
  staged.epilogues = options.decisions.epilogues;
  staged.architecture = options.decisions.architecture;
  options.pipelines.import.packAttention = options.decisions.packAttention;
  return llvm::Error::success();
}

/// What is computed in, by a target that can.
static llvm::Error readPrecision(const OptionSpelling &row, Given given,
                                 CompileOptions &options) {
  static constexpr Precision all[] = {Precision::F32, Precision::Tf32,
                                      Precision::BF16};
  llvm::StringRef text = given[row.name];
  std::vector<llvm::StringRef> names;
  for (Precision precision : all) {
    names.push_back(nameOf(precision));
    if (text == nameOf(precision))
      options.precision = precision;
  }
  if (llvm::Error error = readChoice(row.name, text, names))
    return error;
  auto computes = [&](const codegen::Target &target) {
    return llvm::is_contained(target.precisions(), options.precision);
  };
  if (!computes(*options.target))
    return fail("--precision ", text, " expects --target ",
                codegen::namesOfTargets(computes),
                options.precision == Precision::Tf32 ? ": only GPUs have TF32"
                                                     : "");
  options.pipelines.import.bf16 = options.precision == Precision::BF16;
  return readTargetOptions(given, options);
}

/// `auto`, `none` or a number.
static llvm::Error readPadding(const OptionSpelling &row, Given given,
                               CompileOptions &options) {
  constexpr int64_t largest = 4096;
  llvm::StringRef text = given[row.name];
  ImportPipelineOptions &import = options.pipelines.import;
  if (text == "auto") {
    import.vocabularyMultiple = options.decisions.vocabularyMultiple;
  } else if (text != "none") {
    int64_t multiple = 0;
    if (text.getAsInteger(10, multiple) || multiple < 1 || multiple > largest)
      return fail("--pad-vocabulary expects auto, none or a number from 1 to ",
                  largest, ", but got '", text, "'");
    import.vocabularyMultiple = multiple;
    import.leastVocabulary = 1;
  }
  return llvm::Error::success();
}

static llvm::Error readLayout(const OptionSpelling &row, Given given,
                              CompileOptions &options) {
  llvm::StringRef text = given[row.name];
  options.pipelines.import.channelsLast =
      text == "auto" ? options.decisions.channelsLast.value_or(false)
                     : text == "nhwc";
  return readChoice(row.name, text, {"auto", "nchw", "nhwc"});
}

/// The schedule, and what it wants of the levels.
static llvm::Error readSchedule(const OptionSpelling &row, Given given,
                                CompileOptions &options) {
  auto policy = schedules::chooseSchedule(given[row.name]);
  if (!policy)
    return policy.takeError();
  options.policy = std::move(*policy);
  options.loops = options.policy->defaultLoops();
  options.pipelines.scheduled.policy = given[row.name].str();
  options.pipelines.staged.copies = options.policy->copies();
  options.pipelines.staged.splitBackward = options.policy->splitsBackward();
  return llvm::Error::success();
}

static llvm::Error readStages(const OptionSpelling &row, Given given,
                              CompileOptions &options) {
  int64_t ranks = options.pipelines.scheduled.ranks;
  int64_t stages = ranks * options.loops;
  if (given.isGiven(row.name))
    if (llvm::Error error = readCount(row.name, given[row.name], stages))
      return error;
  options.pipelines.staged.stages = stages;
  // Measured times are of one number of stages.
  if (options.policy->triesLoops() && !given.isGiven(row.name) &&
      !given.isGiven("loops") && given["task-times"].empty() && ranks > 1)
    options.stageChoices = {ranks, 2 * ranks, 4 * ranks};
  return llvm::Error::success();
}

/// The last of the sizes, and whether the schedule can have them all.
static llvm::Error readMicroBatches(const OptionSpelling &row, Given given,
                                    CompileOptions &options) {
  if (llvm::Error error =
          readCount(row.name, given[row.name], options.microBatches))
    return error;
  return options.policy->place(options.sizes()).takeError();
}

static llvm::Error readDims(const OptionSpelling &row, Given given,
                            CompileOptions &options) {
  int64_t size = 0;
  for (llvm::StringRef dim : given.all(row.name)) {
    auto [name, text] = dim.rsplit('=');
    if (name.empty() || text.empty() || !dim.contains('='))
      return fail("--dim expects NAME=N, but got '", dim, "'");
    if (llvm::Error error = readCount(("dim " + name).str(), text, size))
      return error;
    if (!options.import.dims.try_emplace(name, size).second)
      return fail("--dim gives dimension '", name, "' twice");
  }
  return llvm::Error::success();
}

/// --freeze and --train in the order of the command line.
static llvm::Error readRoleRules(const OptionSpelling &, Given given,
                                 CompileOptions &options) {
  using frontend::RoleRule;
  std::vector<std::pair<unsigned, RoleRule>> found;
  auto add = [&](llvm::StringRef option, RoleRule::Kind kind) {
    for (auto [number, pattern] : llvm::enumerate(given.all(option)))
      found.push_back({given.position(option, number), {kind, pattern}});
  };
  add("freeze", RoleRule::Freeze);
  add("train", RoleRule::Train);
  llvm::sort(found, llvm::less_first());
  for (auto &[position, rule] : found) {
    if (llvm::Error error = frontend::checkRoleRule(rule))
      return error;
    options.import.roleRules.push_back(std::move(rule));
  }
  return llvm::Error::success();
}

static llvm::Error readModel(const OptionSpelling &row, Given given,
                             CompileOptions &options) {
  options.import.modelPath = given[row.name].str();
  if (options.import.modelPath.empty())
    return fail("expects a model: pipewright COMMAND MODEL.onnx ...");
  return llvm::Error::success();
}

static llvm::Error readLossOutput(const OptionSpelling &row, Given given,
                                  CompileOptions &options) {
  options.import.lossOutput = given[row.name].str();
  if (!given[row.name].empty() && given["loss"].empty())
    return fail("--loss-output expects --loss beside it");
  return llvm::Error::success();
}

static llvm::Error readRunningVariance(const OptionSpelling &row, Given given,
                                       CompileOptions &options) {
  using frontend::RunningVariance;
  if (!given.isGiven(row.name))
    return llvm::Error::success();
  options.import.runningVariance = given[row.name] == "sample"
                                       ? RunningVariance::Sample
                                       : RunningVariance::Population;
  return readChoice(row.name, given[row.name], {"population", "sample"});
}

static llvm::Error readTiedWeights(const OptionSpelling &row, Given given,
                                   CompileOptions &options) {
  options.pipelines.scheduled.allReduceTiedWeights =
      given[row.name] == "all-reduce";
  return readChoice(row.name, given[row.name], {"all-reduce", "owner"});
}

static llvm::Error readOptimizer(const OptionSpelling &row, Given given,
                                 CompileOptions &options) {
  auto optimizer = nn::parseOptimizer(given[row.name]);
  if (!optimizer)
    return optimizer.takeError();
  options.optimizer = std::move(*optimizer);
  return llvm::Error::success();
}

static llvm::Error readTaskTimes(const OptionSpelling &row, Given given,
                                 CompileOptions &options) {
  llvm::StringRef path = given[row.name];
  if (path.empty())
    return llvm::Error::success();
  auto trace = schedules::readChromeTrace(path);
  if (!trace)
    return trace.takeError();
  auto times = schedules::medianTimes(*trace, options.pipelines.staged.stages);
  if (!times)
    return fail("trace '", path, "' ", llvm::toString(times.takeError()));
  options.taskTimes = std::move(*times);
  return llvm::Error::success();
}

static constexpr std::pair<llvm::StringRef, Level> levels[] = {
    {"import", Level::Import},       {"staged", Level::Staged},
    {"unrolled", Level::Unrolled},   {"scheduled", Level::Scheduled},
    {"allocated", Level::Allocated}, {"cpp", Level::Cpp}};

static std::vector<llvm::StringRef> levelNames() {
  std::vector<llvm::StringRef> names;
  llvm::append_range(names, llvm::make_first_range(levels));
  return names;
}

static llvm::Error readLevel(const OptionSpelling &row, Given given,
                             CompileOptions &options) {
  for (const auto &[name, level] : levels)
    if (given[row.name] == name)
      options.level = level;
  return given[row.name].empty()
             ? llvm::Error::success()
             : readChoice(row.name, given[row.name], levelNames());
}

//===----------------------------------------------------------------------===//
// What plan.json repeats
//===----------------------------------------------------------------------===//

static Recorded recordLoops(const OptionSpelling &row, Given given,
                            const CompileOptions &options) {
  if (!given.isGiven(row.name))
    return std::nullopt;
  return options.loops;
}

static Recorded recordPadding(const OptionSpelling &, Given,
                              const CompileOptions &options) {
  int64_t multiple = options.pipelines.import.vocabularyMultiple;
  if (multiple == 1)
    return std::nullopt;
  return multiple;
}

/// Which layout it is, unless neither the user nor the target minds.
static Recorded recordLayout(const OptionSpelling &row, Given given,
                             const CompileOptions &options) {
  if (given[row.name] == "auto" && !options.decisions.channelsLast)
    return std::nullopt;
  return options.pipelines.import.channelsLast ? "nhwc" : "nchw";
}

static Recorded recordRoleRules(const OptionSpelling &, Given,
                                const CompileOptions &options) {
  llvm::json::Array rules;
  for (const frontend::RoleRule &rule : options.import.roleRules)
    rules.push_back((rule.option() + " " + rule.pattern).str());
  if (rules.empty())
    return std::nullopt;
  return rules;
}

/// The value of an option of the target's own.
static Recorded recordTargetOption(const OptionSpelling &row, Given given,
                                   const CompileOptions &options) {
  const codegen::TargetOption *own = findOption(*options.target, row.name);
  if (!own)
    return std::nullopt;
  return valueOf(given, *own);
}

/// A number that the options have.
template <class Place>
static Record recordNumber(Place place) {
  return [=](const OptionSpelling &, Given,
             const CompileOptions &options) -> Recorded {
    return int64_t(std::invoke(place, options));
  };
}

//===----------------------------------------------------------------------===//
// The rows
//===----------------------------------------------------------------------===//

using enum OptionSpelling::Kind;

/// The place of an option of a level's pipeline.
template <class Level, class Value>
static auto at(Level PipelineOptions::*level, Value Level::*option) {
  return
      [=](auto &options) -> auto & { return options.pipelines.*level.*option; };
}

/// The place of an option of the frontend.
template <class Value>
static auto at(Value frontend::ImportOptions::*option) {
  return [=](auto &options) -> auto & { return options.import.*option; };
}

/// What the program runs on, and what is decided for that.
static std::vector<CompileRow> targetRows() {
  std::vector<CompileRow> rows = {
      {{"target", "NAME",
        "What the program runs on: " + codegen::namesOfTargets(),
        codegen::allTargets().front()->name().str()},
       recordText,
       readTarget},
      {{"precision", "NAME",
        "What is computed in: f32, tf32 (f32 of which matrix products use 10 "
        "bits; cuda) or bf16 (with f32 weights and sums)",
        "f32"},
       recordText,
       readPrecision},
      {{"pad-vocabulary", "N",
        "Rows of zeros for the weight that makes the logits: auto (to a "
        "multiple of 64 from 4096 classes on, for cuda), none, or a multiple "
        "of N",
        "auto"},
       recordPadding,
       readPadding},
      {{"layout", "NAME",
        "How images lie in memory where there are convolutions: nchw, nhwc "
        "(channels last) or auto (nhwc for tensor cores: cuda in tf32 or bf16)",
        "auto"},
       recordLayout,
       readLayout}};
  // Two targets may have an option of the same name.
  std::set<llvm::StringRef> names;
  for (const codegen::Target *target : codegen::allTargets())
    for (const codegen::TargetOption &option : target->options())
      if (names.insert(option.name).second)
        rows.push_back(
            {{option.name.str(), option.valueName.str(), option.help.str()},
             recordTargetOption,
             nullptr});
  return rows;
}

/// How many of everything, in which order.
static std::vector<CompileRow> sizeRows() {
  return {
      {{"schedule", "NAME[:PARAMETER=N]...|FILE",
        "Order of tasks; see `pipewright schedules`; or one from a file (.csv, "
        ".json)",
        "1f1b"},
       recordText,
       readSchedule},
      {{"ranks", "P", "Workers of the pipeline", "1"},
       recordNumber(
           at(&PipelineOptions::scheduled, &ScheduledPipelineOptions::ranks)),
       count(
           at(&PipelineOptions::scheduled, &ScheduledPipelineOptions::ranks))},
      {{"loops", "V", "Stages per rank; what the schedule needs unless given"},
       recordLoops,
       count(&CompileOptions::loops)},
      {{"stages", "S", "Stages; ranks x loops unless given"},
       recordNumber(
           at(&PipelineOptions::staged, &StagedPipelineOptions::stages)),
       readStages},
      {{"micro-batches", "M", "Micro-batches per step", "4"},
       recordNumber(&CompileOptions::microBatches),
       readMicroBatches},
      // plan.json has it of every model.
      {{"micro-batch-size", "B",
        "Samples per micro-batch; what the model says unless given"},
       recordNothing,
       count(at(&frontend::ImportOptions::microBatchSize))},
      {{.name = "dim",
        .valueName = "NAME=N",
        .help = "Size of a symbolic dimension",
        .kind = List},
       recordGiven,
       readDims}};
}

/// What is computed of the model.
static std::vector<CompileRow> modelRows() {
  return {
      {{.name = "MODEL.onnx", .kind = Word}, recordNothing, readModel},
      {{"loss", "NAME",
        "softmax-cross-entropy or mse; the model's own scalar output unless "
        "given"},
       recordText,
       oneOf({"softmax-cross-entropy", "mse"},
             at(&frontend::ImportOptions::loss))},
      {{"loss-output", "NAME", "The model output that --loss is computed from"},
       recordGiven,
       readLossOutput},
      // Both are read, and repeated, with --train.
      {{.name = "freeze",
        .valueName = "REGEX",
        .help = "Do not train weights whose names contain a match of this "
                "regular expression (may be given again; the last --freeze or "
                "--train that matches wins)",
        .kind = List},
       recordNothing,
       nullptr},
      {{.name = "train",
        .valueName = "REGEX",
        .help = "Train weights whose names contain a match, even if the model "
                "has them as constants",
        .kind = List},
       recordRoleRules,
       readRoleRules,
       "roles"},
      {{"running-variance", "NAME",
        "Of batch normalization: population, as ONNX defines it, or sample, "
        "divided by one less; of the framework that wrote the file unless "
        "given"},
       recordGiven,
       readRunningVariance},
      {{.name = "no-dropout", .help = "Remove all dropout", .kind = Flag},
       recordFlag,
       flag(at(&PipelineOptions::import, &ImportPipelineOptions::noDropout))}};
}

/// How it is cut, kept and updated.
static std::vector<CompileRow> trainingRows() {
  return {
      {{"balance", "METHOD",
        "What stages share equally: uniform, parameters or flops", "flops"},
       recordText,
       oneOf({"uniform", "parameters", "flops"},
             at(&PipelineOptions::staged, &StagedPipelineOptions::balance))},
      {{"remat", "MODE", "What the backward recomputes: none or full", "none"},
       recordText,
       oneOf({"none", "full"},
             at(&PipelineOptions::staged, &StagedPipelineOptions::remat))},
      {{"tied-weights", "HOW",
        "How weights that several ranks hold are updated: all-reduce (they sum "
        "the gradients together, and all update) or owner (one updates and "
        "sends the new weight; the optimizer's state is there once)",
        "all-reduce"},
       recordText,
       readTiedWeights},
      {{"optimizer", "NAME[,KEY=VALUE...]",
        nn::optimizerNames() +
            ", with options as in torch.optim: sgd,lr=0.1,momentum=0.9",
        "sgd"},
       recordText,
       readOptimizer},
      {{"task-times", "TRACE.json",
        "Plan with the times that a program of this model measured (its "
        "--trace)"},
       recordGiven,
       readTaskTimes}};
}

/// What a command does with its answer.
static std::vector<CompileRow> outputRows() {
  return {
      {{"o", "OUT", "Folder (or file, with --emit) to write"},
       recordNothing,
       anyText(&CompileOptions::output)},
      {{"emit", "LEVEL", "Print a level instead: " + listOf(levelNames())},
       recordNothing,
       readLevel},
      {{.name = "no-build",
        .help = "Write the folder without building its executable",
        .kind = Flag,
        .verbs = Compile},
       recordNothing,
       flagAgainst(&CompileOptions::build)},
      {{.name = "force",
        .help =
            "Keep files in OUT that are in the way, as NAME.kept, instead of "
            "refusing; nothing is deleted that pipewright did not write",
        .kind = Flag,
        .verbs = Compile},
       recordNothing,
       flag(&CompileOptions::force)},
      // Plugins are loaded before the command line is read.
      {{.name = kPluginOption.str(),
        .valueName = "FILE",
        .help = "Shared object with more schedules or targets",
        .kind = List,
        .verbs = All},
       recordNothing,
       nullptr}};
}

const std::vector<CompileRow> &compileRows() {
  static const std::vector<CompileRow> all = [] {
    std::vector<CompileRow> rows;
    for (auto group :
         {modelRows, targetRows, sizeRows, trainingRows, outputRows})
      llvm::append_range(rows, group());
    for (CompileRow &row : rows)
      if (row.key.empty()) {
        row.key = row.spelling.name;
        std::replace(row.key.begin(), row.key.end(), '-', '_');
      }
    return rows;
  }();
  return all;
}

} // namespace pipewright::tool
