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
#include "passes/step/TaskTimes.h"
#include "support/Message.h"
#include "support/Text.h"
#include "tools/pipewright/OutputFile.h"
#include "tools/pipewright/PlanChoice.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <functional>
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
    context.getDiagEngine().registerHandler(
        [](Diagnostic &diagnostic) { return printDiagnostic(diagnostic); });
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
  Attribute machineAttribute();
  void choose();
  LogicalResult runFromImport(Level level);
  template <class Run>
  auto onCopy(Run run);
  template <class Build>
  LogicalResult run(Build build) {
    PassManager pm(&context);
    build(pm);
    return pm.run(module());
  }

  /// As they were given, with what they left open decided behind the import
  /// level.
  CompileOptions options;
  /// The schedule as it was given.
  std::string asked;
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
  asked = text::printable(options.pipelines.scheduled.policy.getValue());
  if (options.replicas > 1)
    setNumber(pipe::PipeDialect::kReplicas, options.replicas);
  module()->setAttr(
      pipe::PipeDialect::kSchedule,
      builder.getStringAttr(options.pipelines.scheduled.policy.getValue()));
  module()->setAttr(pipe::PipeDialect::kMachine, machineAttribute());
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

/// The machine that is decided for. Where the schedule depends on times it is
/// the one that times are predicted for.
Attribute Compilation::machineAttribute() {
  if (!options.policy->plansWithTimes())
    return StringAttr::get(&context,
                           options.target->machineName(options.precision));
  return pipewright::machineAttribute(
      options.target->machine(options.precision), &context);
}

LogicalResult Compilation::runTo(Level level) {
  if (failed(import()) || failed(run([&](OpPassManager &pm) {
        buildImportPipeline(pm, options.pipelines.import);
      })))
    return failure();
  if (level == Level::Import)
    return success();
  choose();
  return runFromImport(level);
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

/// Decides what the user left open, by the times of whole plans.
void Compilation::choose() {
  if (options.stageChoices.empty())
    return;
  choosePlan(module(), options);
  // What a policy has planned itself, its pass tells.
  if (!options.chosen.empty() && !options.policy->isChoice())
    mlir::emitRemark(module().getLoc())
        << "schedule '" << asked << "' chose: " << options.chosen;
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
  if (succeeded(plan)) {
    plan->options = options.given;
    plan->chosen = text::printable(options.chosen);
    if (!plan->chosen.empty())
      plan->schedule = asked;
  }
  return plan;
}

FailureOr<codegen::Plan> Compilation::planUnder(const CompileOptions &others) {
  return onCopy([&]() -> FailureOr<codegen::Plan> {
    options = others;
    setAttributes();
    choose();
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
                 << codegen::formatSeconds(plan->simulation.globalStepTime)
                 << "\n";
  plan->printOnCoresHere(llvm::outs(), /*indent=*/2);
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

namespace {

struct ComparedPlan {
  std::string name;
  bool isChoice = false;
  codegen::Plan plan;

  double step() const { return plan.simulation.globalStepTime; }
  /// Of the fullest rank.
  int64_t stashes() const {
    int64_t most = 0;
    for (const codegen::RankPlan &rank : plan.ranks)
      most = std::max(most, rank.peakStashBytes);
    return most;
  }
};

} // namespace

/// The fastest first. Of equal ones, what was asked to choose, then what keeps
/// least.
static void sortPlans(std::vector<ComparedPlan> &plans) {
  llvm::sort(plans, [](const ComparedPlan &a, const ComparedPlan &b) {
    return a.step() < b.step();
  });
  for (auto first = plans.begin(); first != plans.end();) {
    auto end = std::find_if(first, plans.end(), [&](const ComparedPlan &plan) {
      return isShorterStep(first->step(), plan.step());
    });
    std::sort(first, end, [](const ComparedPlan &a, const ComparedPlan &b) {
      return std::tuple(!a.isChoice, a.stashes(), a.name) <
             std::tuple(!b.isChoice, b.stashes(), b.name);
    });
    first = end;
  }
}

static void printComparison(llvm::raw_ostream &os,
                            llvm::ArrayRef<ComparedPlan> plans) {
  const codegen::Plan &first = plans.front().plan;
  os << "model " << first.model << ": " << codegen::countRanks(first) << ", "
     << first.microBatches << " micro-batches of " << first.microBatchSize
     << "; ";
  if (StringRef machine = first.target->planWords().machine; !machine.empty())
    os << "predicted with " << machine << "; ";
  os << "stash and arena of the fullest rank, bubble of the idlest";
  std::string here;
  if (first.coresHere > 0) {
    here = "on " + codegen::count(first.coresHere, "core");
    os << "; '" << here << "' is the least step here";
  }
  auto row = [&](const auto &...cells) {
    os << llvm::formatv("{0,-18} {1,6} {2,10} {3,10}", cells...);
  };
  os << "\n\n";
  row("schedule", "stages", "step", "span");
  os << "    bubble      stash      arena       sent";
  os << (here.empty() ? "" : llvm::formatv(" {0,10}", here).str()) << "\n";
  for (const ComparedPlan &each : plans) {
    const codegen::Plan &plan = each.plan;
    double bubble = 0;
    int64_t arena = 0;
    for (const codegen::RankPlan &rank : plan.ranks) {
      bubble = std::max(bubble, rank.bubbleFraction);
      arena = std::max(arena, rank.arenaBytes);
    }
    row(each.name, plan.stages.size(), codegen::formatSeconds(each.step()),
        codegen::formatSeconds(plan.simulation.spanStepTime));
    os << llvm::formatv(" {0,7:F1} % {1,10} {2,10} {3,10}", bubble * 100,
                        codegen::formatBytes(each.stashes()),
                        codegen::formatBytes(arena),
                        codegen::formatBytes(plan.sentBytes));
    if (!here.empty())
      os << llvm::formatv(" {0,10}", codegen::formatSeconds(plan.secondsHere));
    os << "\n";
  }
}

int comparePlans(llvm::MutableArrayRef<PlanCandidate> candidates) {
  std::vector<ComparedPlan> plans;
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
      plans.push_back({candidate.schedule,
                       candidate.options->policy->isChoice(),
                       std::move(*plan)});
    else
      printMessage("warning", candidate.schedule + " is left out");
  }
  if (plans.empty())
    return fail("none of the schedules is possible");
  sortPlans(plans);
  printComparison(llvm::outs(), plans);
  return 0;
}

} // namespace pipewright::tool
