//===- OptionRows.cpp - The options of compile, plan and train ------------===//
//
// A new option is one row, here and nowhere else (TargetRows.cpp has those that
// the target decides, OutputRows.cpp those of what a command makes); if its
// value takes more than a line to read, there is a function above.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/files/FilePolicy.h"
#include "support/Text.h"
#include "tools/common/Registration.h"
#include "tools/pipewright/Options.h"
#include "tools/pipewright/ProcessMapRow.h"

#include "llvm/ADT/STLExtras.h"

namespace pipewright::tool {

using namespace option;
using frontend::BatchNorm;
using frontend::RunningVariance;

//===----------------------------------------------------------------------===//
// What takes more than a line to read
//===----------------------------------------------------------------------===//

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
  if (!options.policy->isChoice())
    return llvm::Error::success();
  // Measured times are of one number of stages. Where nothing is sent several
  // are of no use.
  bool isOpen = !given.isGiven(row.name) && !given.isGiven("loops") &&
                given["task-times"].empty() &&
                (ranks > 1 || options.replicas > 1);
  options.stageChoices = isOpen
                             ? std::vector<int64_t>{ranks, 2 * ranks, 4 * ranks}
                             : std::vector<int64_t>{stages};
  return llvm::Error::success();
}

/// The last of the sizes, and whether the schedule can have them all.
static llvm::Error readMicroBatches(const OptionSpelling &row, Given given,
                                    CompileOptions &options) {
  if (llvm::Error error =
          readCount(row.name, given[row.name], options.microBatches))
    return error;
  // Some 7 s and 320 MB of planning (tools/bench/planning.py): where many
  // results wait for the next rank, their memory is planned in more than
  // linear time.
  constexpr int64_t maxPairs = 1 << 16;
  int64_t stages = options.pipelines.staged.stages;
  if (stages > maxPairs)
    return fail("--ranks ", options.pipelines.scheduled.ranks, " makes ",
                stages, " stages, but a program has at most ", maxPairs);
  if (options.microBatches * stages > maxPairs)
    return fail("--", row.name, " ", options.microBatches, " expects at most ",
                maxPairs / stages, " with ", stages,
                stages == 1 ? " stage" : " stages");
  return options.policy->place(options.sizes()).takeError();
}

static llvm::Error readReplicas(const OptionSpelling &row, Given given,
                                CompileOptions &options) {
  if (llvm::Error error =
          readCount(row.name, given[row.name], options.replicas))
    return error;
  int64_t ranks = options.pipelines.scheduled.ranks;
  if (options.replicas > 1 && options.replicas > pipe::kMaxProcesses / ranks)
    return fail("--", row.name, " ", options.replicas, " with --ranks ", ranks,
                " makes ", options.replicas * ranks,
                " processes, but a program has at most ", pipe::kMaxProcesses,
                ": give less of either");
  return llvm::Error::success();
}

static llvm::Error readDims(const OptionSpelling &row, Given given,
                            CompileOptions &options) {
  return option::readSizes(row, given, options.import.dims);
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

static llvm::Error readOptimizer(const OptionSpelling &row, Given given,
                                 CompileOptions &options) {
  auto optimizer = nn::parseOptimizer(given[row.name]);
  if (!optimizer)
    return optimizer.takeError();
  options.optimizer = std::move(*optimizer);
  options.choosesOptimizer = given.isGiven(row.name);
  options.pipelines.import.markMatrices = options.optimizer.takesMatrices();
  return llvm::Error::success();
}

static llvm::Error readMatrices(llvm::StringRef name, llvm::StringRef text,
                                CompileOptions &options) {
  if (!options.optimizer.takesMatrices())
    return fail("--", name,
                " expects an optimizer that takes matrices as a whole: "
                "--optimizer muon");
  options.pipelines.import.matrices = text.str();
  return frontend::checkPattern(("--" + name).str(), text);
}

static llvm::Error readZero(const OptionSpelling &row, Given given,
                            CompileOptions &options) {
  llvm::StringRef text = given[row.name];
  if (text.size() != 1 || text[0] < '0' || text[0] > '3')
    return fail("--", row.name, " expects 0, 1, 2 or 3, but got '", text, "'");
  options.zero = text[0] - '0';
  if (options.zero > 0 && options.replicas == 1)
    return fail("--", row.name, " ", text,
                " expects replicas that share the states of the optimizer: "
                "--data-parallel D of at least 2");
  return llvm::Error::success();
}

static llvm::Error readZeroBuffers(const OptionSpelling &row, Given given,
                                   CompileOptions &options) {
  int64_t number = 0;
  if (llvm::Error error = readCount(row.name, given[row.name], number))
    return error;
  if (given.isGiven(row.name) && options.zero < 2)
    return fail("--", row.name, " ", number,
                " expects stages that share memory: --zero 2 or 3");
  options.pipelines.scheduled.zeroBuffers = number;
  return llvm::Error::success();
}

static llvm::Error readBucketSize(const OptionSpelling &row, Given given,
                                  CompileOptions &options) {
  llvm::StringRef text = given[row.name];
  options.choosesBucketSize = given.isGiven(row.name);
  if (options.choosesBucketSize && options.replicas == 1)
    return fail("--", row.name, " ", text::shortened(text),
                " expects replicas that sum gradients: --data-parallel D of at "
                "least 2");
  if (text == "none")
    return llvm::Error::success();
  return readBytes(row.name, text, 1, options.bucketSize.emplace(), "none");
}

static Recorded recordTextIfGiven(const OptionSpelling &row, Given given,
                                  const CompileOptions &options) {
  if (!given.isGiven(row.name))
    return std::nullopt;
  return given[row.name].str();
}

static llvm::Error readSumGroups(llvm::StringRef name, llvm::StringRef text,
                                 CompileOptions &options) {
  int64_t groups = 0;
  if (llvm::Error error = readCount(name, text, groups))
    return error;
  const int64_t microBatches = options.microBatches * options.replicas;
  if (!llvm::isPowerOf2_64(groups) || groups % options.replicas != 0 ||
      microBatches % groups != 0)
    return fail("--", name, " ", groups,
                " expects a power of two that the replicas (", options.replicas,
                ") divide, and that divides the micro-batches of all (",
                microBatches, ")");
  if (options.target->hasStreams() && options.replicas > 2)
    return fail("--", name, " ", groups, " with ", options.replicas,
                " replicas: on GPUs NCCL adds what more than two have, in an "
                "order of its own");
  options.pipelines.scheduled.sumGroups = groups;
  return llvm::Error::success();
}

static llvm::Error readMemoryLimit(llvm::StringRef name, llvm::StringRef text,
                                   CompileOptions &options) {
  return readBytes(name, text, 1, options.memoryLimit.emplace());
}

static llvm::Error readClipNorm(const OptionSpelling &row, Given given,
                                CompileOptions &options) {
  if (given[row.name].empty())
    return llvm::Error::success();
  double norm = 0;
  if (given[row.name].getAsDouble(norm) || !(norm > 0) || !std::isfinite(norm))
    return fail("--", row.name, " expects a number above 0, but got '",
                given[row.name], "'");
  options.clipNorm = norm;
  if (options.zero >= 2)
    return fail("--", row.name,
                " keeps all gradients until their norm is known, but --zero ",
                options.zero, " does not: use --zero 1");
  if (int64_t updates = options.policy->updates(options.sizes()); updates > 1)
    return fail("--", row.name,
                " expects a schedule with one update in a "
                "step, but '",
                options.pipelines.scheduled.policy.getValue(), "' has ",
                updates);
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
  options.taskTimesOf = std::move(trace->program);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// What plan.json repeats
//===----------------------------------------------------------------------===//

static Recorded recordZero(const OptionSpelling &, Given,
                           const CompileOptions &options) {
  if (options.zero == 0)
    return std::nullopt;
  return options.zero;
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

/// A number that the options have.
template <class Place>
static Record recordNumber(Place place) {
  return [=](const OptionSpelling &, Given,
             const CompileOptions &options) -> Recorded {
    return int64_t(std::invoke(place, options));
  };
}

/// The same, where it was given.
template <class Place>
static Record recordNumberIfGiven(Place place) {
  return [=](const OptionSpelling &row, Given given,
             const CompileOptions &options) -> Recorded {
    return given.isGiven(row.name) ? recordNumber(place)(row, given, options)
                                   : std::nullopt;
  };
}

//===----------------------------------------------------------------------===//
// The rows
//===----------------------------------------------------------------------===//

using enum OptionSpelling::Kind;
using enum Heading;

/// The options of the frontend, or of a level.
template <class Part>
static auto &partOf(auto &options) {
  if constexpr (std::is_same_v<Part, frontend::ImportOptions>)
    return options.import;
  else if constexpr (std::is_same_v<Part, ImportPipelineOptions>)
    return options.pipelines.import;
  else if constexpr (std::is_same_v<Part, StagedPipelineOptions>)
    return options.pipelines.staged;
  else if constexpr (std::is_same_v<Part, ScheduledPipelineOptions>)
    return options.pipelines.scheduled;
}

/// The place of one of them.
template <class Part, class Value>
static auto at(Value Part::*option) {
  return [=](auto &options) -> auto & { return partOf<Part>(options).*option; };
}

/// How many of everything, in which order.
static std::vector<CompileRow> sizeRows() {
  return decidedAt(
      Level::Staged,
      {decidedAt(Level::Scheduled,
                 {refusedBy(Profile, {"schedule", "NAME[:PARAMETER=N]...|FILE",
                                      "Order of tasks; see `pipewright "
                                      "schedules`; or one from a file (.csv, "
                                      ".json)",
                                      "1f1b"}),
                  recordText, readSchedule}),
       decidedAt(
           Level::Scheduled,
           {refusedBy(Profile, {"ranks", "P", "Workers of the pipeline", "1"}),
            recordNumber(at(&ScheduledPipelineOptions::ranks)),
            count(at(&ScheduledPipelineOptions::ranks))}),
       {refusedBy(Profile,
                  {"data-parallel", "D",
                   "Replicas of all ranks; a step trains on the micro-batches "
                   "of all, D x M, and they sum their gradients before they "
                   "update",
                   "1"}),
        recordNumber(&CompileOptions::replicas), readReplicas},
       {refusedBy(Profile, under(Heading::Expert,
                                 processMapSpelling(kShortestProcessMap))),
        recordTextIfGiven,
        [](const OptionSpelling &row, Given given, CompileOptions &options) {
          return readProcessMap(row, given, options.processMap);
        }},
       {refusedBy(Profile,
                  {"loops", "V",
                   "Stages per rank; what the schedule needs unless given"}),
        recordNumberIfGiven(&CompileOptions::loops),
        count(&CompileOptions::loops)},
       {refusedBy(Profile,
                  {"stages", "S", "Stages; ranks x loops unless given"}),
        recordNumber(at(&StagedPipelineOptions::stages)), readStages},
       {{"micro-batches", "M", "Micro-batches per step", "4"},
        recordNumber(&CompileOptions::microBatches),
        readMicroBatches},
       decidedAt(
           Level::Scheduled,
           {refusedBy(
                Profile,
                {"zero", "LEVEL",
                 "What replicas keep a part each of (ZeRO): nothing (0), or "
                 "the states of the optimizer (1): each updates its part of "
                 "the weights, and they gather them; with 2, a rank keeps "
                 "the gradients of no more stages than it must, two with "
                 "breadth-first; with 3, also the weights: those of two "
                 "stages are gathered where tasks read them",
                 "0"}),
            recordZero, readZero}),
       decidedAt(
           Level::Scheduled,
           {under(Heading::Expert,
                  {"zero-buffers", "K",
                   "Of how many stages a rank has room for gradients at a time "
                   "(--zero 2 and 3), and for whole weights (3): 4 let "
                   "interleaved schedules gather weights beside tasks",
                   "2"}),
            recordNumberIfGiven(at(&ScheduledPipelineOptions::zeroBuffers)),
            readZeroBuffers}),
       decidedAt(Level::Scheduled,
                 {under(Heading::Expert,
                        {"bucket-size", "BYTES",
                         "Replicas sum gradients in buckets of about so many "
                         "bytes: the sum of one begins when its gradients are "
                         "whole, and the backward goes on beside it; none: all "
                         "of a stage at once, behind its last backward",
                         "25MiB"}),
                  recordTextIfGiven, readBucketSize}),
       decidedAt(Level::Scheduled,
                 {under(Heading::Expert,
                        {"sum-groups", "V",
                         "Sums of gradients, and so all weights, have the same "
                         "bits for 1, 2, 4 ... V replicas: those of V groups "
                         "of micro-batches are added as a binary tree; takes "
                         "memory for log2(V / D) sums"}),
                  recordNumberIfGiven(at(&ScheduledPipelineOptions::sumGroups)),
                  ifGiven(readSumGroups)}),
       // plan.json has it of every model.
       decidedAt(Level::Import,
                 {{"micro-batch-size", "B",
                   "Samples per micro-batch; what the model says unless given"},
                  recordNothing,
                  count(at(&frontend::ImportOptions::microBatchSize))}),
       decidedAt(Level::Import, {{.name = "dim",
                                  .valueName = "NAME=N",
                                  .help = "Size of a symbolic dimension",
                                  .kind = List},
                                 recordGiven,
                                 readDims})});
}

/// What is computed of the model.
static std::vector<CompileRow> modelRows() {
  return decidedAt(
      Level::Import,
      {{{"loss", "NAME",
         "softmax-cross-entropy or mse; the model's own scalar output unless "
         "given"},
        recordText,
        oneOf({"softmax-cross-entropy", "mse"},
              at(&frontend::ImportOptions::loss))},
       {under(Heading::Expert,
              {"loss-output", "NAME",
               "The model output that --loss is computed from"}),
        recordGiven, readLossOutput},
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
       {under(
            Heading::Expert,
            {"running-variance", "NAME",
             "Of batch normalization: population, as ONNX defines it, or "
             "sample, "
             "divided by one less; of the framework that wrote the file unless "
             "given"}),
        recordGiven,
        oneOf<RunningVariance>({{"population", RunningVariance::Population},
                                {"sample", RunningVariance::Sample}},
                               at(&frontend::ImportOptions::runningVariance))},
       {{"batch-norm", "HOW",
         "Normalize batches by the statistics of each micro-batch (batch), or "
         "by the running ones as they are (frozen); as exported unless given"},
        recordGiven,
        oneOf<BatchNorm>(
            {{"batch", BatchNorm::Batch}, {"frozen", BatchNorm::Frozen}},
            at(&frontend::ImportOptions::batchNorm))},
       {{.name = "train-dropout",
         .help = "Let dropout that the model has in inference form drop with "
                 "its ratio",
         .kind = Flag},
        recordFlag,
        flag(at(&frontend::ImportOptions::trainDropout))},
       decidedAt(
           Level::Staged,
           {{.name = "no-dropout", .help = "Remove all dropout", .kind = Flag},
            recordFlag,
            flag(at(&ImportPipelineOptions::noDropout))})});
}

/// How it is kept and updated.
static std::vector<CompileRow> trainingRows() {
  return {
      decidedAt(Level::Allocated,
                {{"memory-limit", "BYTES",
                  "The most that a rank's arena may have, such as 16GB or "
                  "80GiB; --schedule auto and --remat auto choose what fits"},
                 recordGiven,
                 ifGiven(readMemoryLimit)}),
      decidedAt(
          Level::Scheduled,
          {under(Heading::Expert,
                 {"tied-weights", "HOW",
                  "How weights that several ranks hold are updated: all-reduce "
                  "(they "
                  "sum "
                  "the gradients together, and all update) or owner (one "
                  "updates and "
                  "sends the new weight; the optimizer's state is there once)",
                  "all-reduce"}),
           recordText,
           oneOf({"all-reduce", "owner"},
                 at(&ScheduledPipelineOptions::tiedWeights))}),
      decidedAt(
          Level::Allocated,
          {{"optimizer", "NAME[,KEY=VALUE...]",
            nn::optimizerNames() +
                ", with options as in torch.optim: sgd,lr=0.1,momentum=0.9",
            "sgd"},
           recordText,
           readOptimizer}),
      decidedAt(
          Level::Staged,
          {{"matrices", "REGEX",
            "Weights that --optimizer muon takes as matrices: those whose "
            "names match; others are updated as by adamw (default: "
            "weights of products, but for the last layer)"},
           recordGiven,
           ifGiven(readMatrices)}),
      decidedAt(Level::Scheduled,
                {{"clip-norm", "X",
                  "Scale gradients down so that the norm of all together is at "
                  "most X, as torch.nn.utils.clip_grad_norm_ does"},
                 recordGiven,
                 readClipNorm}),
      {under(Heading::Expert,
             refusedBy(Profile, {"task-times", "TRACE.json",
                                 "Plan with the times that a program of this "
                                 "model measured (its --trace)"})),
       recordGiven, readTaskTimes}};
}

const std::vector<CompileRow> &compileRows() {
  static const std::vector<CompileRow> all = [] {
    std::vector<CompileRow> rows;
    rows.push_back({under(Model, OptionSpelling{.name = "model", .kind = Word}),
                    recordNothing, readModel});
    for (auto &&group :
         {under(Model, modelRows()), under(Heading::Target, targetRows()),
          under(Pipeline, sizeRows()), under(Training, stageRows()),
          under(Training, trainingRows()), under(Output, outputRows())})
      llvm::append_range(rows, group);
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
