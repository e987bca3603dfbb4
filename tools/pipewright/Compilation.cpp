//===- Compilation.cpp - A model on its way through the levels ------------===//
//
// See Compilation.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Compilation.h"

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "frontends/Frontends.h"
#include "passes/pipe/staged/ModelCut.h"
#include "passes/step/TaskTimes.h"
#include "support/Message.h"
#include "support/Text.h"
#include "tools/pipewright/MemoryLimits.h"
#include "tools/pipewright/Messages.h"
#include "tools/pipewright/ModelStages.h"
#include "tools/pipewright/PlanChoice.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

using namespace mlir;
using pipewright::pipe::PipeDialect;

namespace pipewright::tool {

Compilation::Compilation(const CompileOptions &given)
    : options(given), context(given.text ? given.text->context
                                         : std::make_shared<MLIRContext>()),
      handler(context.get(), [](Diagnostic &diagnostic) {
        printDiagnostic(diagnostic);
        return success();
      }) {
  context->loadDialect<nn::NNDialect, PipeDialect, func::FuncDialect>();
  timing.setEnabled(given.printsTimes);
  total = timing.getRootScope();
  // Passes that run beside each other would print into each other's text.
  if (given.printsAfterAll)
    context->disableMultithreading();
}

std::string Compilation::modelName() const {
  return llvm::sys::path::filename(options.import.modelPath).str();
}

LogicalResult
Compilation::run(const Twine &what, ModuleOp module,
                 llvm::function_ref<void(OpPassManager &)> build) {
  // Timers of passes are known by the addresses of these.
  TimingScope scope = total.nest(what.str());
  PassManager pm(context.get());
  // What is only compared is made again before it is used.
  pm.enableVerifier(!options.pipelines.scheduled.draft);
  pm.enableTiming(scope);
  if (options.printsAfterAll)
    pm.enableIRPrinting([](Pass *, Operation *) { return false; },
                        [](Pass *, Operation *) { return true; },
                        /*printModuleScope=*/true);
  build(pm);
  return pm.run(module);
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

/// Swallows what is said while it lives; `why` becomes the first error.
static auto keepQuiet(MLIRContext *context, std::string &why) {
  return std::make_unique<ScopedDiagnosticHandler>(
      context, [&why](Diagnostic &diagnostic) {
        if (why.empty() &&
            diagnostic.getSeverity() == DiagnosticSeverity::Error)
          why = diagnostic.str();
        return success();
      });
}

LogicalResult Compilation::open() { return read(/*tells=*/true); }

LogicalResult Compilation::openQuietly(bool tells, std::string &why) {
  auto quiet = keepQuiet(context.get(), why);
  return read(tells);
}

LogicalResult Compilation::read(bool tells) {
  TimingScope scope = total.nest("read the model");
  if (LevelText *text = options.text.get()) {
    model = std::move(text->model);
    begin = text->level;
  } else {
    auto imported = frontend::importModel(options.import, *context);
    if (failed(imported))
      return failure();
    model = std::move(*imported);
  }
  scope.stop();
  if (tells)
    for (const std::string &warning : model.warnings)
      printMessage("warning", warning);
  if (begin > Level::Import &&
      failed(run("verify the model", module(), [&](OpPassManager &pm) {
        buildVerification(pm, begin, options.target->hasStreams());
      })))
    return failure();
  setAttributes();
  if (begin == Level::Import &&
      failed(run(nameOf(Level::Import), module(), [&](OpPassManager &pm) {
        buildImportPipeline(pm, options.pipelines.import);
      })))
    return failure();
  return runAfter(begin);
}

/// What the user decided, for all passes to read; what text has decided already
/// stays, unless an option may still change it.
void Compilation::setAttributes() {
  Builder builder(context.get());
  const bool anew = begin == Level::Import;
  pipe::changeProgram(module(), [&](pipe::ProgramFields &program) {
    if (anew || !program.microBatches)
      program.microBatches = options.microBatches;
    if (anew || !program.ranks)
      program.ranks = options.pipelines.scheduled.ranks;
    if (anew || (options.replicas > 1 && program.replicas == 1))
      program.replicas = options.replicas;
    if (anew)
      program.processMap = options.mesh().map;
    if (anew || !program.schedule)
      program.schedule =
          builder.getStringAttr(options.pipelines.scheduled.policy.getValue());
    if (anew || !program.machine)
      program.machine = machineAttribute();
    if (anew || !program.microBatchSize)
      program.microBatchSize = samplesPerMicroBatch();
    if (anew || options.zero > 0)
      program.zero = options.zero;
    if (program.replicas > 1 && (anew || options.choosesBucketSize))
      program.bucketSize = options.bucketSize;
    if (options.clipNorm)
      program.clipNorm = builder.getF64FloatAttr(*options.clipNorm);
    if (anew || !program.optimizer || options.choosesOptimizer)
      program.optimizer =
          nn::OptimizerAttr::get(context.get(), options.optimizer);
  });
  asked = text::printable(options.pipelines.scheduled.policy.getValue());
  if (!options.moduleTimes.empty())
    pipe::setLayerTimes(module(), options.moduleTimes);
  if (!options.taskTimes.empty())
    pipe::setTaskTimes(module(), options.taskTimes);
}

/// The machine that is decided for. Where the schedule depends on times, or
/// ranks are not alike, it is the one that times are predicted for.
Attribute Compilation::machineAttribute() {
  if (!options.decidesByMachine())
    return StringAttr::get(context.get(),
                           options.target->machineName(options.precision));
  return pipewright::machineAttribute(options.machineModel(), context.get());
}

/// As it was given, or as the model's first input says.
int64_t Compilation::samplesPerMicroBatch() {
  if (options.import.microBatchSize)
    return *options.import.microBatchSize;
  auto function = module().lookupSymbol<func::FuncOp>("model");
  if (!function || function.getNumArguments() == 0)
    return 1;
  auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[0]);
  return type && type.getRank() > 0 && type.getDimSize(0) > 0
             ? type.getDimSize(0)
             : 1;
}

LogicalResult Compilation::runTo(Level level) {
  if (level > Level::Import && failed(choose()))
    return failure();
  if (level >= Level::Scheduled)
    compareWithKept();
  return finish(level);
}

LogicalResult Compilation::checkMemory() {
  pipe::ArenaOp fullest;
  for (auto arena : module().getOps<pipe::ArenaOp>())
    if (isBeyondLimit(arena, options) &&
        (!fullest || arena.getBytes() > fullest.getBytes()))
      fullest = arena;
  if (!fullest)
    return checkHostMemory();
  missing = static_cast<int64_t>(fullest.getBytes());
  const std::string subject =
      "rank " + std::to_string(fullest.getRank()) + " needs";
  return mlir::emitError(module().getLoc())
         << needsMore(subject, *missing, *options.limitOf(fullest.getRank()),
                      options)
         << "; plan --search finds out";
}

/// Moves are chosen by the sizes of stashes; how these lie beside each other on
/// the host is known when memory is planned.
LogicalResult Compilation::checkHostMemory() {
  const double most = options.machineModel().hostMemory;
  for (auto arena : module().getOps<pipe::ArenaOp>())
    if (static_cast<double>(arena.getHostBytes()) > most)
      return mlir::emitError(module().getLoc())
             << "rank " << arena.getRank() << " moves stashes of "
             << arena.getHostBytes() << " B to its host, but the machine's "
             << "host_memory is " << static_cast<int64_t>(most)
             << " B for a rank: a share of the stashes needs less, such as "
                "--offload 50%";
  return success();
}

/// Runs the passes that the user wants behind a level, and proves the level
/// again.
LogicalResult Compilation::runAfter(Level level) {
  for (const auto &[behind, pipeline] : options.passesAfter) {
    if (behind != level)
      continue;
    // It was read once before, so there is no mistake in it.
    if (failed(run(pipeline + " after " + nameOf(level), module(),
                   [&](OpPassManager &pm) {
                     llvm::cantFail(addPasses(pipeline, pm));
                     buildVerification(pm, level, options.target->hasStreams());
                   })))
      return failure();
  }
  return success();
}

bool Compilation::hasPassesAfter(Level level) const {
  return llvm::is_contained(llvm::make_first_range(options.passesAfter), level);
}

/// Tells who cuts where the schedule puts stages, where that makes a
/// difference.
void Compilation::placeStages() {
  // Who chooses a schedule has chosen that, too.
  if (!options.machineModel().isUneven() || !options.policy.policy ||
      options.policy->isChoice())
    return;
  llvm::Expected<schedules::Placement> places =
      options.policy->place(options.sizes());
  // Who makes the schedule says what is wrong.
  if (!places)
    return llvm::consumeError(places.takeError());
  // A file may have an order for other stages.
  StagedPipelineOptions &staged = options.pipelines.staged;
  if (static_cast<int64_t>(places->size()) ==
      staged.stages * options.policy->copies())
    staged.rankOfStage =
        llvm::ArrayRef(std::vector<int64_t>(places->begin(), places->end()));
}

/// From the level of what was opened.
LogicalResult Compilation::finish(Level level) {
  if (begin == Level::Import)
    if (int64_t updates = options.policy->updates(options.sizes()); updates > 1)
      pipe::changeProgram(module(), [&](pipe::ProgramFields &program) {
        program.updates = updates;
      });
  PipelineOptions &pipelines = options.pipelines;
  if (begin < Level::Staged && level >= Level::Staged &&
      failed(checkRematModes(module(), pipelines.staged)))
    return failure();
  placeStages();
  // Who changes stages, or reads them, wants their ops and not kernels.
  pipelines.staged.formKernels =
      level > Level::Staged && !hasPassesAfter(Level::Staged);
  bool needsKernels = begin == Level::Staged || !pipelines.staged.formKernels;
  Level known = begin;
  if (pipelines.scheduled.draft && begin == Level::Import &&
      pipelines.staged.formKernels)
    if (auto made = ModelStages(module(), options, staged).copyOfMade()) {
      model.module = std::move(made);
      known = Level::Staged;
    }
  const std::pair<Level, std::function<void(OpPassManager &)>> steps[] = {
      {Level::Staged,
       [&](auto &pm) { buildStagedPipeline(pm, pipelines.staged); }},
      {Level::Unrolled,
       [&](auto &pm) {
         if (needsKernels)
           buildKernelsOfStages(pm, pipelines.staged);
         buildUnrolledPipeline(pm, pipelines.unrolled);
       }},
      {Level::Scheduled,
       [&](auto &pm) { buildScheduledPipeline(pm, pipelines.scheduled); }},
      {Level::Allocated,
       [&](auto &pm) { buildAllocatedPipeline(pm, pipelines.allocated); }}};
  for (const auto &[made, build] : steps)
    if (known < made && made <= level &&
        (failed(run(nameOf(made), module(), build)) || failed(runAfter(made))))
      return failure();
  return level == Level::Allocated ? checkMemory() : success();
}

FailureOr<frontend::StageAnnotations> Compilation::annotations() {
  if (begin != Level::Import) {
    mlir::emitError(module().getLoc())
        << "expects text of the import level, whose nodes are not in stages "
           "yet, but got the "
        << nameOf(begin) << " level";
    return failure();
  }
  if (failed(choose()))
    return failure();
  placeStages();
  const StagedPipelineOptions &staged = options.pipelines.staged;
  const std::string balance = staged.balance;
  auto stages = pipe::stagesOfNodes(
      module(),
      {staged.stages, balance, llvm::ArrayRef<int64_t>(staged.stageMemory),
       llvm::ArrayRef<int64_t>(staged.rankOfStage)});
  if (failed(stages))
    return failure();
  return frontend::StageAnnotations{
      "pipewright", options.pipelines.scheduled.ranks, std::move(*stages)};
}

/// Warns of measured times that are those of another program's tasks.
void Compilation::compareWithTraced(const codegen::Plan &plan) {
  if (!options.taskTimesOf)
    return;
  const schedules::TracedProgram &traced = *options.taskTimesOf;
  std::string what;
  auto compare = [&](const Twine &of, const Twine &there, const Twine &here) {
    if (what.empty() && there.str() != here.str())
      what = (of + " there and " + here + " here").str();
  };
  auto number = [](int64_t size) { return std::to_string(size); };
  compare(traced.target, traced.target, plan.target->name());
  compare(traced.precision, traced.precision, nameOf(plan.precision));
  compare("micro-batches of " + Twine(traced.microBatchSize),
          number(traced.microBatchSize), number(plan.microBatchSize));
  compare(Twine(traced.layers.size()) + " stages", Twine(traced.layers.size()),
          Twine(plan.stages.size()));
  for (auto [there, here] : llvm::zip(traced.layers, plan.stages))
    compare("a stage of " + there, there, here.layers);
  if (!what.empty())
    mlir::emitWarning(module().getLoc())
        << "--task-times are those of another program: "
        << text::printable(what);
}

FailureOr<codegen::Plan> Compilation::makePlan() {
  TimingScope scope = total.nest("plan");
  auto plan = codegen::Plan::of(module(), modelName(), *options.target,
                                options.precision, options.machineModel());
  if (succeeded(plan)) {
    if (options.machine)
      plan->predictFor(options.machine->name);
    compareWithTraced(*plan);
    plan->options = options.given;
    plan->chosen = text::printable(options.chosen);
    if (!plan->chosen.empty())
      plan->schedule = asked;
  }
  return plan;
}

StepEstimate Compilation::estimateStep(const CompileOptions &others,
                                       double enough) {
  std::string why;
  auto quiet = keepQuiet(context.get(), why);
  StepEstimate estimate = underOptions(others, [&] {
    options.pipelines.setDraft(true);
    return tool::estimateStep(module(), options, enough, staged);
  });
  if (!estimate.why.isOne())
    estimate.why = {why, {}};
  return estimate;
}

/// Other options for the same model.
void Compilation::takeOver(const CompileOptions &others) {
  if (options.mesh() != others.mesh()) {
    staged.models.clear();
    staged.drafts.clear();
  }
  options = others;
}

FailureOr<codegen::Plan> Compilation::planUnder(const CompileOptions &others) {
  return onCopy([&]() -> FailureOr<codegen::Plan> {
    takeOver(others);
    setAttributes();
    if (failed(choose()))
      return failure();
    if (failed(finish(Level::Allocated)))
      return failure();
    return makePlan();
  });
}

FailureOr<Draft> Compilation::planQuietly(const CompileOptions &others,
                                          Refusal &refusal, double step) {
  auto quiet = keepQuiet(context.get(), refusal.why);
  missing.reset();
  stepToBeat = step;
  auto restore = llvm::scope_exit(
      [&] { stepToBeat = std::numeric_limits<double>::infinity(); });
  auto draft = onCopy([&]() -> FailureOr<Draft> {
    takeOver(others);
    options.pipelines.setDraft(true);
    setAttributes();
    if (failed(choose()))
      return failure();
    if (drafted)
      return *drafted;
    if (failed(finish(Level::Allocated)))
      return failure();
    Draft draft = Draft::ofMemory(module());
    predict(draft);
    if (!draft.fits())
      return failure();
    return draft;
  });
  refusal.bytes = missing;
  return draft;
}

} // namespace pipewright::tool
