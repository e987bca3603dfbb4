//===- OptionRows.cpp - The options of compile, plan and train ------------===//
//
// A new option is one row, here and nowhere else; if its value takes more than
// a line to read, there is a function above.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/FilePolicy.h"
#include "tools/pipewright/Options.h"

#include "llvm/ADT/STLExtras.h"

namespace pipewright::tool {

using option::fail;

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
  return llvm::Error::success();
}

/// What is computed in, by a target that can.
static llvm::Error readPrecision(Given given, CompileOptions &options) {
  static constexpr Precision all[] = {Precision::F32, Precision::Tf32,
                                      Precision::BF16};
  llvm::StringRef text = given["precision"];
  std::vector<llvm::StringRef> names;
  for (Precision precision : all) {
    names.push_back(nameOf(precision));
    if (text == nameOf(precision))
      options.precision = precision;
  }
  if (llvm::Error error = readChoice("precision", text, names))
    return error;
  auto computes = [&](const codegen::Target &target) {
    return llvm::is_contained(target.precisions(), options.precision);
  };
  if (!computes(*options.target))
    return fail("--precision ", text, " expects --target ",
                codegen::namesOfTargets(computes),
                options.precision == Precision::Tf32 ? ": only GPUs have TF32"
                                                     : "");
  return readTargetOptions(given, options);
}

/// `auto`, `none` or a number.
static llvm::Error readPadding(Given given, CompileOptions &options) {
  constexpr int64_t largest = 4096;
  llvm::StringRef text = given["pad-vocabulary"];
  if (text == "auto") {
    options.vocabularyMultiple = options.decisions.vocabularyMultiple;
  } else if (text != "none") {
    if (text.getAsInteger(10, options.vocabularyMultiple) ||
        options.vocabularyMultiple < 1 || options.vocabularyMultiple > largest)
      return fail("--pad-vocabulary expects auto, none or a number from 1 to ",
                  largest, ", but got '", text, "'");
    options.leastVocabulary = 1;
  }
  return llvm::Error::success();
}

static llvm::Error readStages(Given given, CompileOptions &options) {
  options.stages = options.ranks * options.loops;
  if (!given["stages"].empty())
    return readCount("stages", given["stages"], options.stages);
  // Measured times are of one number of stages.
  if (options.policy->triesLoops() && given["loops"].empty() &&
      given["task-times"].empty() && options.ranks > 1)
    options.stageChoices = {options.ranks, 2 * options.ranks,
                            4 * options.ranks};
  return llvm::Error::success();
}

/// The last of the sizes, and whether the schedule can have them all.
static llvm::Error readMicroBatches(Given given, CompileOptions &options) {
  if (llvm::Error error = readCount("micro-batches", given["micro-batches"],
                                    options.microBatches))
    return error;
  return options.policy
      ->place(options.policy.with(
          {options.ranks, options.stages, options.microBatches}))
      .takeError();
}

static llvm::Error readDims(Given given, CompileOptions &options) {
  int64_t size = 0;
  for (llvm::StringRef dim : given.all("dim")) {
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
static llvm::Error readRoleRules(Given given, CompileOptions &options) {
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

static std::optional<llvm::json::Value>
recordRoleRules(const OptionRow &, Given, const CompileOptions &options) {
  llvm::json::Array rules;
  for (const frontend::RoleRule &rule : options.import.roleRules)
    rules.push_back((rule.option() + " " + rule.pattern).str());
  if (rules.empty())
    return std::nullopt;
  return rules;
}

static llvm::Error readTaskTimes(Given given, CompileOptions &options) {
  llvm::StringRef path = given["task-times"];
  if (path.empty())
    return llvm::Error::success();
  auto trace = schedules::readChromeTrace(path);
  if (!trace)
    return trace.takeError();
  auto times = schedules::medianTimes(*trace, options.stages);
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

static llvm::Error readLevel(Given given, CompileOptions &options) {
  for (const auto &[name, level] : levels)
    if (given["emit"] == name)
      options.level = level;
  return given["emit"].empty()
             ? llvm::Error::success()
             : readChoice("emit", given["emit"], levelNames());
}

//===----------------------------------------------------------------------===//
// The rows
//===----------------------------------------------------------------------===//

/// Reads a row of which one of some words is expected, if it was given.
static auto oneOf(llvm::StringRef option, std::vector<llvm::StringRef> choices,
                  std::function<void(CompileOptions &, llvm::StringRef)> set) {
  return [=](Given given, CompileOptions &options) -> llvm::Error {
    llvm::StringRef text = given[option];
    if (text.empty())
      return llvm::Error::success();
    set(options, text);
    return readChoice(option, text, choices);
  };
}

/// What a row of one of the targets' own options is.
static OptionRow rowOf(const codegen::TargetOption &option) {
  return {.name = option.name.str(),
          .valueName = option.valueName.str(),
          .help = option.help.str(),
          .record = [](const OptionRow &row, Given given,
                       const CompileOptions &options)
              -> std::optional<llvm::json::Value> {
            const codegen::TargetOption *own =
                findOption(*options.target, row.name);
            if (!own)
              return std::nullopt;
            return valueOf(given, *own);
          },
          .read = nullptr};
}

/// What the program runs on, and what is decided for that.
static std::vector<OptionRow> targetRows() {
  std::vector<OptionRow> rows = {
      {"target", "NAME",
       "What the program runs on: " + codegen::namesOfTargets(), recordText(),
       [](Given given, CompileOptions &options) -> llvm::Error {
         auto target = codegen::findTarget(given["target"]);
         if (!target)
           return fail("--target ", llvm::toString(target.takeError()));
         options.target = *target;
         return llvm::Error::success();
       },
       codegen::allTargets().front()->name().str()},
      {"precision", "NAME",
       "What is computed in: f32, tf32 (f32 of which matrix products use 10 "
       "bits; cuda) or bf16 (with f32 weights and sums)",
       recordText(), readPrecision, "f32"},
      {"pad-vocabulary", "N",
       "Rows of zeros for the weight that makes the logits: auto (to a "
       "multiple of 64 from 4096 classes on, for cuda), none, or a multiple of "
       "N",
       [](const OptionRow &, Given,
          const CompileOptions &options) -> std::optional<llvm::json::Value> {
         if (options.vocabularyMultiple == 1)
           return std::nullopt;
         return options.vocabularyMultiple;
       },
       readPadding, "auto"},
      {"layout", "NAME",
       "How images lie in memory where there are convolutions: nchw, nhwc "
       "(channels last) or auto (nhwc for tensor cores: cuda in tf32 or bf16)",
       [](const OptionRow &, Given given,
          const CompileOptions &options) -> std::optional<llvm::json::Value> {
         if (given["layout"] == "auto" && !options.decisions.channelsLast)
           return std::nullopt;
         return options.channelsLast ? "nhwc" : "nchw";
       },
       oneOf("layout", {"auto", "nchw", "nhwc"},
             [](CompileOptions &options, llvm::StringRef text) {
               options.channelsLast =
                   text == "auto"
                       ? options.decisions.channelsLast.value_or(false)
                       : text == "nhwc";
             }),
       "auto"}};
  for (const codegen::Target *target : codegen::allTargets())
    for (const codegen::TargetOption &option : target->options())
      rows.push_back(rowOf(option));
  return rows;
}

/// How many of everything, in which order.
static std::vector<OptionRow> sizeRows() {
  return {
      {"schedule", "NAME[:PARAMETER=N]...|FILE",
       "Order of tasks; see `pipewright schedules`; or one from a file (.csv, "
       ".json)",
       recordText(),
       [](Given given, CompileOptions &options) -> llvm::Error {
         options.schedule = given["schedule"];
         auto policy = schedules::chooseSchedule(options.schedule);
         if (!policy)
           return policy.takeError();
         options.policy = std::move(*policy);
         return llvm::Error::success();
       },
       "1f1b"},
      {"ranks", "P", "Workers of the pipeline",
       recordNumber(&CompileOptions::ranks),
       [](Given given, CompileOptions &options) -> llvm::Error {
         return readCount("ranks", given["ranks"], options.ranks);
       },
       "1"},
      {"loops", "V", "Stages per rank; what the schedule needs unless given",
       [](const OptionRow &, Given given,
          const CompileOptions &options) -> std::optional<llvm::json::Value> {
         if (given["loops"].empty())
           return std::nullopt;
         return options.loops;
       },
       [](Given given, CompileOptions &options) -> llvm::Error {
         options.loops = options.policy->defaultLoops();
         return given["loops"].empty()
                    ? llvm::Error::success()
                    : readCount("loops", given["loops"], options.loops);
       }},
      {"stages", "S", "Stages; ranks x loops unless given",
       recordNumber(&CompileOptions::stages), readStages},
      {"micro-batches", "M", "Micro-batches per step",
       recordNumber(&CompileOptions::microBatches), readMicroBatches, "4"},
      // plan.json has it of every model.
      {"micro-batch-size", "B",
       "Samples per micro-batch; what the model says unless given",
       recordNothing(),
       [](Given given, CompileOptions &options) -> llvm::Error {
         llvm::StringRef text = given["micro-batch-size"];
         int64_t size = 0;
         if (text.empty())
           return llvm::Error::success();
         if (llvm::Error error = readCount("micro-batch-size", text, size))
           return error;
         options.import.microBatchSize = size;
         return llvm::Error::success();
       }},
      {.name = "dim",
       .valueName = "NAME=N",
       .help = "Size of a symbolic dimension",
       .record = recordGiven(),
       .read = readDims,
       .kind = OptionRow::List}};
}

/// What is computed of the model.
static std::vector<OptionRow> modelRows() {
  return {
      {"loss", "NAME",
       "softmax-cross-entropy or mse; the model's own scalar output unless "
       "given",
       recordText(),
       oneOf("loss", {"softmax-cross-entropy", "mse"},
             [](CompileOptions &options, llvm::StringRef text) {
               options.import.loss = text;
             })},
      {"loss-output", "NAME", "The model output that --loss is computed from",
       recordGiven(),
       [](Given given, CompileOptions &options) -> llvm::Error {
         options.import.lossOutput = given["loss-output"];
         if (!given["loss-output"].empty() && given["loss"].empty())
           return fail("--loss-output expects --loss beside it");
         return llvm::Error::success();
       }},
      // Both are read, and repeated, with --train.
      {.name = "freeze",
       .valueName = "REGEX",
       .help = "Do not train weights whose names contain a match of this "
               "regular expression (may be given again; the last --freeze or "
               "--train that matches wins)",
       .record = recordNothing(),
       .read = nullptr,
       .kind = OptionRow::List},
      {.name = "train",
       .valueName = "REGEX",
       .help = "Train weights whose names contain a match, even if the model "
               "has them as constants",
       .record = recordRoleRules,
       .read = readRoleRules,
       .kind = OptionRow::List,
       .key = "roles"},
      {"running-variance", "NAME",
       "Of batch normalization: population, as ONNX defines it, or sample, "
       "divided by one less; of the framework that wrote the file unless given",
       recordGiven(),
       oneOf("running-variance", {"population", "sample"},
             [](CompileOptions &options, llvm::StringRef text) {
               options.import.runningVariance =
                   text == "sample" ? frontend::RunningVariance::Sample
                                    : frontend::RunningVariance::Population;
             })},
      {.name = "no-dropout",
       .help = "Remove all dropout",
       .record = recordFlag(),
       .read = [](Given given, CompileOptions &options) -> llvm::Error {
         options.noDropout = given.isSet("no-dropout");
         return llvm::Error::success();
       },
       .kind = OptionRow::Flag}};
}

/// How it is cut, kept and updated.
static std::vector<OptionRow> trainingRows() {
  return {
      {"balance", "METHOD",
       "What stages share equally: uniform, parameters or flops", recordText(),
       oneOf("balance", {"uniform", "parameters", "flops"},
             [](CompileOptions &options, llvm::StringRef text) {
               options.balance = text;
             }),
       "flops"},
      {"remat", "MODE", "What the backward recomputes: none or full",
       recordText(),
       oneOf("remat", {"none", "full"},
             [](CompileOptions &options, llvm::StringRef text) {
               options.remat = text;
             }),
       "none"},
      {"tied-weights", "HOW",
       "How weights that stages on two ranks share are updated: all-reduce "
       "(gradients are sent both ways at once, both update) or owner (one "
       "updates and sends the new weight; the optimizer's state is there once)",
       recordText(),
       oneOf("tied-weights", {"all-reduce", "owner"},
             [](CompileOptions &options, llvm::StringRef text) {
               options.allReduceTiedWeights = text == "all-reduce";
             }),
       "all-reduce"},
      {"optimizer", "NAME[,KEY=VALUE...]",
       nn::optimizerNames() +
           ", with options as in torch.optim: sgd,lr=0.1,momentum=0.9",
       recordText(),
       [](Given given, CompileOptions &options) -> llvm::Error {
         auto optimizer = nn::parseOptimizer(given["optimizer"]);
         if (!optimizer)
           return optimizer.takeError();
         options.optimizer = std::move(*optimizer);
         return llvm::Error::success();
       },
       "sgd"},
      {"task-times", "TRACE.json",
       "Plan with the times that a program of this model measured (its "
       "--trace)",
       recordGiven(), readTaskTimes}};
}

/// What a command does with its answer.
static std::vector<OptionRow> outputRows() {
  return {
      {"o", "OUT", "Folder (or file, with --emit) to write", recordNothing(),
       [](Given given, CompileOptions &options) -> llvm::Error {
         options.output = given["o"];
         return llvm::Error::success();
       }},
      {"emit", "LEVEL", "Print a level instead: " + listOf(levelNames()),
       recordNothing(), readLevel},
      {.name = "no-build",
       .help = "Write the folder without building its executable",
       .record = recordNothing(),
       .read = [](Given given, CompileOptions &options) -> llvm::Error {
         options.build = !given.isSet("no-build");
         return llvm::Error::success();
       },
       .verbs = Compile,
       .kind = OptionRow::Flag},
      {.name = "force",
       .help =
           "Keep files in OUT that are in the way, as NAME.kept, instead of "
           "refusing; nothing is deleted that pipewright did not write",
       .record = recordNothing(),
       .read = [](Given given, CompileOptions &options) -> llvm::Error {
         options.force = given.isSet("force");
         return llvm::Error::success();
       },
       .verbs = Compile,
       .kind = OptionRow::Flag},
      {.name = "compare",
       .valueName = "NAME,NAME,...",
       .help = "One table of these schedules instead",
       .record = recordNothing(),
       .read = nullptr,
       .verbs = Plan},
      {.name = "json",
       .help = "Print the plan as JSON",
       .record = recordNothing(),
       .read = nullptr,
       .verbs = Plan,
       .kind = OptionRow::Flag},
      {.name = "load-pass-plugin",
       .valueName = "FILE",
       .help = "Shared object with more schedules or targets",
       .record = recordNothing(),
       .read = nullptr,
       .verbs = All,
       .kind = OptionRow::List}};
}

const std::vector<OptionRow> &optionRows() {
  static const std::vector<OptionRow> all = [] {
    std::vector<OptionRow> rows;
    for (auto group :
         {targetRows, sizeRows, modelRows, trainingRows, outputRows})
      llvm::append_range(rows, group());
    for (OptionRow &row : rows)
      if (row.key.empty()) {
        row.key = row.name;
        std::replace(row.key.begin(), row.key.end(), '-', '_');
      }
    return rows;
  }();
  return all;
}

} // namespace pipewright::tool
