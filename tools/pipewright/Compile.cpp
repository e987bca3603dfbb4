//===- Compile.cpp - From a model to a plan or a program ------------------===//
//
// The way of the data, level by level, and where it may stop.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Compile.h"

#include "codegen/host/EmitHost.h"
#include "codegen/host/Identifiers.h"
#include "codegen/package/Package.h"
#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "frontends/Frontends.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/step/StepOrder.h"
#include "passes/step/TaskTimes.h"
#include "support/Message.h"
#include "tools/pipewright/OutputFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>

using namespace mlir;

namespace pipewright::tool {

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// Where something is: the name of a node, or a place in a file that is text.
static std::string placeOf(Location location) {
  if (StringRef name = codegen::nameOfLocation(location); !name.empty())
    return name.str();
  auto place = dyn_cast<FileLineColLoc>(location);
  if (!place)
    return "";
  std::string text = place.getFilename().str();
  return place.getLine() == 0 ? text
                              : text + ":" + std::to_string(place.getLine()) +
                                    ":" + std::to_string(place.getColumn());
}

/// Prints each diagnostic as one line, with the place it is at.
static LogicalResult printDiagnostic(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Note)
    return success();
  const char *kind =
      diagnostic.getSeverity() == DiagnosticSeverity::Error     ? "error"
      : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? "warning"
                                                                : "remark";
  std::string text = diagnostic.str();
  std::string place = placeOf(diagnostic.getLocation());
  if (!place.empty() && !StringRef(text).contains(place))
    text = "at '" + place + "': " + text;
  printMessage(kind, text);
  return success();
}

static int fail(const Twine &message) {
  printMessage("error", message);
  return 1;
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

namespace {

class Compilation {
public:
  explicit Compilation(const CompileOptions &given) : options(given) {
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      return isTrial ? success() : printDiagnostic(diagnostic);
    });
    context.loadDialect<nn::NNDialect, pipe::PipeDialect, func::FuncDialect>();
  }

  /// Runs up to a level; `Program` means the allocated level.
  LogicalResult runTo(Level level);
  /// The plan of what `runTo(Level::Import)` has made, under options that
  /// differ in what comes behind the import level.
  FailureOr<codegen::Plan> planUnder(const CompileOptions &others);
  FailureOr<codegen::Plan> makePlan();

  ModuleOp module() { return *model.module; }
  const nn::WeightStore &weights() const { return model.weights; }
  std::string modelName() const {
    return llvm::sys::path::filename(options.import.modelPath).str();
  }

private:
  LogicalResult import();
  void setAttributes();
  void decideStages();
  LogicalResult runFromImport(Level level);
  template <class Run>
  auto onCopy(Run run);
  template <class Build>
  LogicalResult run(Build build) {
    PassManager pm(&context);
    build(pm);
    return pm.run(module());
  }

  /// As they were given, with the number of stages decided behind the import
  /// level.
  CompileOptions options;
  /// A trial says nothing, not even what is wrong.
  bool isTrial = false;
  MLIRContext context;
  frontend::ImportedModel model;
};

} // namespace

LogicalResult Compilation::import() {
  auto imported = frontend::importModel(options.import, context);
  if (failed(imported))
    return failure();
  model = std::move(*imported);
  for (const std::string &warning : model.warnings)
    printMessage("warning", warning);
  setAttributes();
  return success();
}

/// What the user decided, for all passes to read.
void Compilation::setAttributes() {
  Builder builder(&context);
  auto setNumber = [&](StringRef name, int64_t value) {
    module()->setAttr(name, builder.getI64IntegerAttr(value));
  };
  setNumber(pipe::PipeDialect::kMicroBatches, options.microBatches);
  setNumber(pipe::PipeDialect::kRanks, options.pipelines.scheduled.ranks);
  if (options.replicas > 1)
    setNumber(pipe::PipeDialect::kReplicas, options.replicas);
  module()->setAttr(
      pipe::PipeDialect::kSchedule,
      builder.getStringAttr(options.pipelines.scheduled.policy.getValue()));
  module()->setAttr(
      pipe::PipeDialect::kMachine,
      builder.getStringAttr(options.target->machineName(options.precision)));
  int64_t size = options.import.microBatchSize.value_or(1);
  if (!options.import.microBatchSize)
    if (auto function = module().lookupSymbol<func::FuncOp>("model"))
      if (function.getNumArguments() > 0)
        if (auto type =
                dyn_cast<RankedTensorType>(function.getArgumentTypes()[0]);
            type && type.getRank() > 0 && type.getDimSize(0) > 0)
          size = type.getDimSize(0);
  setNumber(pipe::PipeDialect::kMicroBatchSize, size);

  if (!options.taskTimes.empty())
    pipe::setTaskTimes(module(), options.taskTimes);

  module()->setAttr(pipe::PipeDialect::kOptimizer,
                    nn::OptimizerAttr::get(&context, options.optimizer));
}

LogicalResult Compilation::runTo(Level level) {
  if (failed(import()) || failed(run([&](OpPassManager &pm) {
        buildImportPipeline(pm, options.pipelines.import);
      })))
    return failure();
  if (level == Level::Import)
    return success();
  decideStages();
  return runFromImport(level);
}

/// The step time of a scheduled module by the estimates that schedules are
/// planned with. They are the same on every machine, so what is decided by them
/// is too.
static std::optional<double> estimateStep(ModuleOp module) {
  FailureOr<pipe::Stages> stages = pipe::Stages::read(module);
  if (failed(stages))
    return std::nullopt;
  FailureOr<schedules::Schedule> order =
      pipe::readSchedule(module, *stages, pipe::StepMode::train);
  if (failed(order))
    return std::nullopt;
  pipe::completeSchedule(*order);
  llvm::Expected<schedules::Simulation> simulation =
      schedules::simulate(*order, stages->costs(pipe::StepMode::train),
                          stages->edges(pipe::StepMode::train));
  if (simulation)
    return simulation->globalStepTime;
  llvm::consumeError(simulation.takeError());
  return std::nullopt;
}

/// Calls `run` on a copy of the module, and leaves the module as it is.
template <class Run>
auto Compilation::onCopy(Run run) {
  OwningOpRef<ModuleOp> kept = module().clone();
  std::swap(model.module, kept);
  auto result = run();
  std::swap(model.module, kept);
  return result;
}

/// Takes, of several numbers of stages to choose from, the one with the
/// shortest estimated step. All are tried on what was imported once.
void Compilation::decideStages() {
  auto &stages = options.pipelines.staged.stages;
  double shortest = std::numeric_limits<double>::infinity();
  int64_t best = stages;
  for (int64_t choice : options.stageChoices) {
    stages = choice;
    isTrial = true;
    // A number of stages that is not possible is no candidate.
    std::optional<double> step = onCopy([&] {
      return succeeded(runFromImport(Level::Scheduled)) ? estimateStep(module())
                                                        : std::nullopt;
    });
    isTrial = false;
    if (!step || *step >= shortest)
      continue;
    shortest = *step;
    best = choice;
  }
  options.stageChoices.clear();
  stages = best;
  options.given["stages"] = best;
}

LogicalResult Compilation::runFromImport(Level level) {
  if (int64_t updates = options.policy->updates(options.sizes()); updates > 1)
    module()->setAttr(pipe::PipeDialect::kUpdates,
                      Builder(&context).getI64IntegerAttr(updates));
  PipelineOptions &pipelines = options.pipelines;
  pipelines.staged.formKernels = level != Level::Staged;
  const std::pair<Level, std::function<void(OpPassManager &)>> steps[] = {
      {Level::Staged,
       [&](auto &pm) { buildStagedPipeline(pm, pipelines.staged); }},
      {Level::Unrolled, buildUnrolledPipeline},
      {Level::Scheduled,
       [&](auto &pm) { buildScheduledPipeline(pm, pipelines.scheduled); }},
      {Level::Allocated,
       [&](auto &pm) { buildAllocatedPipeline(pm, pipelines.allocated); }}};
  for (const auto &[made, build] : steps) {
    if (failed(run(build)))
      return failure();
    if (made == level)
      break;
  }
  return success();
}

FailureOr<codegen::Plan> Compilation::makePlan() {
  auto plan = codegen::Plan::of(module(), modelName(), *options.target,
                                options.precision);
  if (succeeded(plan))
    plan->options = options.given;
  return plan;
}

FailureOr<codegen::Plan> Compilation::planUnder(const CompileOptions &others) {
  return onCopy([&]() -> FailureOr<codegen::Plan> {
    options = others;
    setAttributes();
    decideStages();
    if (failed(runFromImport(Level::Program)))
      return failure();
    return makePlan();
  });
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

/// Prints to `-o`, or to the standard output.
static int print(StringRef path,
                 llvm::function_ref<void(llvm::raw_ostream &)> write) {
  if (llvm::Error error = writeOutput(path, write))
    return fail(llvm::toString(std::move(error)));
  return 0;
}

static int emitLevel(Compilation &compilation, const CompileOptions &options) {
  OpPrintingFlags flags;
  flags.enableDebugInfo(false).useLocalScope();
  if (options.level != Level::Cpp)
    return print(options.output, [&](llvm::raw_ostream &os) {
      compilation.module()->print(os, flags);
      os << "\n";
    });
  codegen::HostOptions host;
  host.target = options.target;
  host.modelName = compilation.modelName();
  FailureOr<codegen::HostFiles> files =
      codegen::emitHost(compilation.module(), host);
  if (failed(files))
    return 1;
  return print(options.output,
               [&](llvm::raw_ostream &os) { codegen::printFiles(os, *files); });
}

static int emit(const CompileOptions &options) {
  Compilation compilation(options);
  if (failed(compilation.runTo(options.level)))
    return 1;
  return emitLevel(compilation, options);
}

int compileModel(CompileOptions given, bool isTemporary) {
  if (given.level != Level::Program)
    return emit(given);
  auto begin = std::chrono::steady_clock::now();
  StringRef model = given.import.modelPath;
  if (std::error_code error =
          llvm::sys::fs::access(model, llvm::sys::fs::AccessMode::Exist))
    return fail(model + ": cannot be read: " + error.message());
  if (given.output.empty())
    given.output = llvm::sys::path::stem(model).str();
  // Before the work: what cannot be built or written is said at once.
  if (given.build)
    if (llvm::Error error = given.target->checkBuild())
      return fail(llvm::toString(std::move(error)));
  llvm::Expected<codegen::OutputFolder> folder = codegen::OutputFolder::create(
      given.output,
      given.force ? codegen::InTheWay::Rename : codegen::InTheWay::Refuse);
  if (!folder)
    return fail(llvm::toString(folder.takeError()));
  Compilation compilation(given);
  if (failed(compilation.runTo(Level::Program)))
    return 1;
  auto plan = compilation.makePlan();
  if (failed(plan) ||
      failed(codegen::writePackage(compilation.module(), compilation.weights(),
                                   *plan, *folder, given.build)))
    return 1;
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  llvm::outs() << "compiled " << plan->model << ": "
               << codegen::count(plan->stages.size(), "stage") << " on "
               << codegen::countRanks(*plan) << ", "
               << codegen::count(plan->microBatches, "micro-batch") << " of " << plan->microBatchSize << ", schedule "
               << plan->schedule << "\n  trains ";
  plan->weights.print(llvm::outs());
  llvm::outs() << "\n";
  for (auto [number, rank] : llvm::enumerate(plan->ranks))
    llvm::outs() << "  rank " << number << ": arena "
                 << codegen::formatBytes(rank.arenaBytes) << ", busy "
                 << codegen::formatSeconds(rank.busySeconds)
                 << " of a predicted step of "
                 << codegen::formatSeconds(plan->predictedStepSeconds) << "\n";
  // A command may not begin with a dash.
  std::string output =
      (StringRef(given.output).starts_with("-") ? "./" : "") + given.output;
  if (!isTemporary)
    llvm::outs() << "wrote " << output << " in "
                 << codegen::formatSeconds(time.count())
                 << (given.build ? "; run " + output + "/train --help"
                                 : "; build it with cmake -S " + output +
                                       "/src -B BUILD")
                 << "\n";
  llvm::outs().flush();
  return 0;
}

using enum OptionSpelling::Kind;

static llvm::Error readCompare(const OptionSpelling &row,
                               const OptionValues &given,
                               PlanOptions &options) {
  if (!given.isGiven(row.name))
    return llvm::Error::success();
  llvm::SmallVector<StringRef> names;
  given[row.name].split(names, ',');
  for (StringRef name : names) {
    options.compare.push_back(name.trim().str());
    if (options.compare.back().empty())
      return option::fail("--compare expects names of schedules with a comma "
                          "between two, but got '",
                          given[row.name], "'");
  }
  return llvm::Error::success();
}

const std::vector<OptionRow<PlanOptions>> &planRows() {
  static const std::vector<OptionRow<PlanOptions>> rows =
      under<OptionRow<PlanOptions>>(
          Heading::Output,
          {{{.name = "json", .help = "Print the plan as JSON", .kind = Flag},
            option::flag(&PlanOptions::asJson)},
           {{"compare", "NAME,NAME,...",
             "One table of these schedules instead"},
            readCompare}});
  return rows;
}

int planModel(const CompileOptions &given, bool asJson,
              const DrawOptions &drawings) {
  if (given.level != Level::Program)
    return fail("--emit goes with compile, not with plan");
  Compilation compilation(given);
  if (failed(compilation.runTo(Level::Program)))
    return 1;
  auto plan = compilation.makePlan();
  if (failed(plan))
    return 1;
  schedules::Picture picture = plan->picture();
  if (llvm::Error error = writeDrawings(picture, drawings))
    return fail(llvm::toString(std::move(error)));
  return print(given.output, [&](llvm::raw_ostream &os) {
    if (asJson)
      os << llvm::formatv("{0:2}", plan->toJson()) << "\n";
    else
      plan->print(os);
  });
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// Bytes that cross between ranks in one training step.
static int64_t bytesSent(const codegen::Plan &plan) {
  int64_t bytes = 0;
  for (const auto &[from, to, size, hasGradient] : plan.edges)
    if (plan.order.rankOfStage[from] != plan.order.rankOfStage[to])
      bytes += size * (hasGradient ? 2 : 1) *
               (plan.microBatches / plan.order.copies);
  return bytes;
}

static void printComparison(llvm::raw_ostream &os, StringRef name,
                            const codegen::Plan &plan) {
  double bubble = 0;
  int64_t arena = 0, stashes = 0;
  for (const codegen::RankPlan &rank : plan.ranks) {
    bubble = std::max(bubble, rank.bubbleFraction);
    arena = std::max(arena, rank.arenaBytes);
    stashes = std::max(stashes, rank.peakStashBytes);
  }
  os << llvm::formatv("{0,-18} {1,6} {2,10} {3,10} {4,7:F1} % {5,10} {6,10} "
                      "{7,10}\n",
                      name, plan.stages.size(),
                      codegen::formatSeconds(plan.predictedStepSeconds),
                      codegen::formatSeconds(plan.predictedSpanSeconds),
                      bubble * 100, codegen::formatBytes(stashes),
                      codegen::formatBytes(arena),
                      codegen::formatBytes(bytesSent(plan)));
}

int comparePlans(llvm::MutableArrayRef<PlanCandidate> candidates) {
  std::vector<std::pair<std::string, codegen::Plan>> plans;
  // One import is enough: candidates differ in their schedules alone.
  std::optional<Compilation> compilation;
  for (PlanCandidate &candidate : candidates) {
    if (!candidate.options) {
      printMessage("warning",
                   candidate.schedule + " is left out: " +
                       llvm::toString(candidate.options.takeError()));
      continue;
    }
    if (!compilation &&
        failed(compilation.emplace(*candidate.options).runTo(Level::Import)))
      return 1;
    auto plan = compilation->planUnder(*candidate.options);
    if (succeeded(plan))
      plans.emplace_back(candidate.schedule, std::move(*plan));
    else
      printMessage("warning", candidate.schedule + " is left out");
  }
  if (plans.empty())
    return fail("none of the schedules is possible");
  llvm::sort(plans, [](const auto &a, const auto &b) {
    return std::tie(a.second.predictedStepSeconds, a.first) <
           std::tie(b.second.predictedStepSeconds, b.first);
  });
  const codegen::Plan &first = plans.front().second;
  llvm::outs() << "model " << first.model << ": " << codegen::countRanks(first)
               << ", "
               << codegen::count(first.microBatches, "micro-batch") << " of "
               << first.microBatchSize << "; stash and arena of the fullest "
               << "rank, bubble of the idlest\n\n"
               << "schedule           stages       step       span    bubble  "
                  "    stash      arena       sent\n";
  for (const auto &[name, plan] : plans)
    printComparison(llvm::outs(), name, plan);
  return 0;
}

} // namespace pipewright::tool
