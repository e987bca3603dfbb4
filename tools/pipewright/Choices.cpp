//===- Choices.cpp - What a compilation decides by itself -----------------===//
//
// What the user left open, by comparing whole plans: in which order, and the
// schedule. The cut is in CutChoice.cpp, recomputation in RematChoice.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "passes/step/Prediction.h"
#include "tools/pipewright/Compilation.h"
#include "tools/pipewright/MemoryLimits.h"
#include "tools/pipewright/ModelStages.h"
#include "tools/pipewright/PlanChoice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace mlir;

namespace pipewright::tool {

/// Decides what the user left open, by the times of whole plans.
LogicalResult Compilation::choose() {
  chooseProcessMap();
  const bool recomputes = options.pipelines.staged.remat == "auto";
  const CompileOptions open = options;
  const double beat = stepToBeat;
  if (options.comparesSchedules)
    stepToBeat *= kLittleLonger;
  const bool compares =
      !open.stageChoices.empty() &&
      (!options.pipelines.scheduled.draft || options.comparesSchedules) &&
      (open.cutsByMachine() || (recomputes && options.limitsMemory()));
  Cut cut;
  if ((recomputes && failed(chooseCutAndRemat())) || failed(chooseSchedule())) {
    if (!compares)
      return failure();
    // What does not fit under one cut, or is no faster, may be under another.
    options = open;
    options.stageChoices.clear();
  } else if (!recomputes) {
    cut = chooseCutOfModes();
  }
  if (compares) {
    stepToBeat = beat;
    compareSchedules(open, cut);
  }
  if (recomputes)
    mlir::emitRemark(module().getLoc())
        << "remat 'auto' chose: " << options.pipelines.staged.remat.getValue()
        << (options.pipelines.staged.earlyRecompute &&
                    !open.pipelines.staged.earlyRecompute
                ? ", with --early-recompute"
                : "");
  // What a policy has planned itself, its pass tells.
  if (!open.stageChoices.empty() && !options.chosen.empty() &&
      !options.policy->isChoice())
    mlir::emitRemark(module().getLoc())
        << "schedule '" << asked << "' chose: " << options.chosen;
  if (!recomputes)
    tellCut(cut, open.pipelines.staged.balance.getValue());
  return success();
}

/// Where nobody says in which order processes are numbered and that makes a
/// difference: the order with the shortest step, if there is one that fits. The
/// plan says which.
void Compilation::chooseProcessMap() {
  if (options.processMap || begin != Level::Import ||
      options.pipelines.scheduled.draft)
    return;
  const std::vector<runtime::ProcessMap> maps = options.processMaps();
  if (maps.size() == 1)
    return;
  CompileOptions open = options;
  CompileOptions others = options;
  others.comparesSchedules = true;
  double best = std::numeric_limits<double>::infinity();
  open.processMap = maps.front();
  for (const runtime::ProcessMap map : maps) {
    others.processMap = map;
    Refusal refusal;
    if (auto draft = planQuietly(others, refusal, best);
        succeeded(draft) && isShorterStep(draft->step, best)) {
      best = draft->step;
      open.processMap = map;
    }
  }
  takeOver(open);
  pipe::changeProgram(module(), [&](pipe::ProgramFields &program) {
    program.processMap = *options.processMap;
  });
}

/// The stages under the options as they are.
std::shared_ptr<const StagedModel> Compilation::madeStages() {
  ScopedDiagnosticHandler silence(context.get(),
                                  [](Diagnostic &) { return success(); });
  placeStages();
  return ModelStages(module(), options, staged).made();
}

/// What no plan under the options as they are has a shorter step than: its
/// schedule, simulated without sums. 0 where there are no such stages.
double Compilation::leastStep() {
  auto model = madeStages();
  if (!model->module)
    return 0;
  ScopedDiagnosticHandler silence(context.get(),
                                  [](Diagnostic &) { return success(); });
  ModelStages stages(module(), options, staged);
  schedules::BuiltSchedules built;
  auto timed = stages.timesOf(*model, options.pipelines.staged.splitBackward,
                              options.policy, schedule().str(), built);
  return timed ? timed->step : 0;
}

/// Adds the step of the module, at the allocated level, where it has one.
void Compilation::predict(Draft &draft) {
  auto stages = pipe::Stages::read(module());
  if (failed(stages))
    return;
  if (auto prediction =
          pipe::predictStep(module(), *stages, options.machineModel());
      succeeded(prediction))
    draft.setStep(prediction->simulation);
}

/// What a plan depends on, of all that is compared: attributes of the module
/// have the program, and what was measured.
std::string Compilation::keyOfPlan() {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << module()->getAttrDictionary().getAsOpaquePointer() << " "
     << options.offload;
  PipelineOptions &pipelines = options.pipelines;
  pipelines.staged.print(os);
  pipelines.unrolled.print(os);
  pipelines.scheduled.print(os);
  pipelines.allocated.print(os);
  for (int64_t rank = 0; rank < pipelines.scheduled.ranks; ++rank)
    os << " " << options.limitOf(rank).value_or(-1);
  return key;
}

/// What a plan under the options as they are comes to. Where it is beyond a
/// limit, that is what is missing.
Draft Compilation::tryPlan() {
  const bool isDraft = options.pipelines.scheduled.draft;
  options.pipelines.setDraft(true);
  auto restore = llvm::scope_exit([&] { options.pipelines.setDraft(isDraft); });
  auto [known, isNew] = staged.drafts.try_emplace(keyOfPlan());
  if (isNew)
    known->second = onCopy([&] {
      ScopedDiagnosticHandler silence(context.get(),
                                      [](Diagnostic &) { return success(); });
      (void)madeStages();
      const bool isPossible = succeeded(finish(Level::Allocated));
      Draft draft = Draft::ofMemory(module());
      if (isPossible)
        predict(draft);
      return draft;
    });
  const llvm::SmallVector<int64_t> beyond = known->second.beyondLimit(
      [&](int64_t rank) { return options.limitOf(rank); });
  if (const int64_t most = *llvm::max_element(beyond); most > 0)
    missing = most;
  return known->second;
}

bool Compilation::recomputesEarly(const CompileOptions &others) {
  return underOptions(others, [&] {
    if (!options.stageChoices.empty() || others.choosesRemat)
      return true;
    auto model = madeStages();
    return !model->module ||
           llvm::any_of(model->costs.stages,
                        [](const schedules::StageCosts &stage) {
                          return stage.recomputesEarly;
                        });
  });
}

/// Fails where plans are only compared and none is of use. Cuts by times, which
/// chooseCut compares with that of `flops`, are for one schedule; only where
/// nothing fits under that, and memory matters to them, is it chosen for these.
LogicalResult Compilation::chooseSchedule() {
  drafted.reset();
  if (options.stageChoices.empty())
    return success();
  const std::vector<int64_t> stageChoices = options.stageChoices;
  auto &balance = options.pipelines.staged.balance;
  const std::string own = balance;
  if (options.cutsByMachine() && !options.choosesRemat)
    balance = "flops";
  Refusal reason = choosePlan(module(), options, stepToBeat, staged, drafted);
  const bool isOther = balance != own;
  balance = own;
  if (isOther && reason.bytes) {
    options.stageChoices = stageChoices;
    reason = choosePlan(module(), options, stepToBeat, staged, drafted);
  }
  if (!options.passesAfter.empty())
    drafted.reset();
  if (reason.isOne() && options.pipelines.scheduled.draft) {
    missing = reason.bytes;
    return mlir::emitError(module().getLoc()) << reason.why;
  }
  return success();
}

} // namespace pipewright::tool
