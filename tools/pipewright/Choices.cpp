//===- Choices.cpp - What a compilation decides by itself -----------------===//
//
// Cut and schedule, where the user left them open: whole plans are made and
// compared. Recomputation is in RematChoice.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "passes/pipe/staged/ModelCut.h"
#include "passes/pipe/staged/StageAssignment.h"
#include "passes/pipelines/StageEstimates.h"
#include "passes/step/Prediction.h"
#include "passes/step/TaskTimes.h"
#include "tools/pipewright/Compilation.h"
#include "tools/pipewright/MemoryLimits.h"
#include "tools/pipewright/ModelStages.h"
#include "tools/pipewright/PlanChoice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

using namespace mlir;

namespace pipewright::tool {

/// Decides what the user left open, by the times of whole plans.
LogicalResult Compilation::choose() {
  const bool recomputes = options.pipelines.staged.remat == "auto";
  const CompileOptions open = options;
  if (recomputes && failed(chooseCutAndRemat()))
    return failure();
  if (failed(chooseSchedule()))
    return failure();
  if (recomputes && !open.stageChoices.empty())
    chooseRematOfRanks(open);
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
    chooseCut();
  return success();
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

/// What a plan under the options as they are comes to.
Draft Compilation::tryPlan() {
  return onCopy([&] {
    ScopedDiagnosticHandler silence(context.get(),
                                    [](Diagnostic &) { return success(); });
    const bool isDraft = options.pipelines.scheduled.draft;
    options.pipelines.setDraft(true);
    const bool isPossible = succeeded(finish(Level::Allocated));
    options.pipelines.setDraft(isDraft);
    Draft draft = Draft::ofMemory(module());
    if (isPossible)
      predict(draft);
    return draft;
  });
}

/// So much of what ranks may have, by stage, of two copies of the model the
/// less.
std::vector<int64_t> Compilation::limitsOfStages(double share) const {
  constexpr int64_t unlimited = int64_t(1) << 60;
  const int64_t stages = options.pipelines.staged.stages;
  llvm::Expected<schedules::Placement> places =
      options.policy->place(options.sizes());
  if (!places) {
    llvm::consumeError(places.takeError());
    return {};
  }
  std::vector<int64_t> limits(stages, unlimited);
  for (auto [number, rank] : llvm::enumerate(*places)) {
    const int64_t bytes = std::llround(
        share * static_cast<double>(options.limitOf(rank).value_or(unlimited)));
    int64_t &limit = limits[static_cast<int64_t>(number) % stages];
    limit = std::max<int64_t>(1, std::min(limit, bytes));
  }
  return llvm::all_equal(limits) ? std::vector<int64_t>{limits.front()}
                                 : limits;
}

/// What each op of the model takes on the machine's best rank: how much slower
/// others are, cuts know. None where `step` has measured times.
std::vector<double> Compilation::secondsOfOps() {
  if (options.pipelines.staged.balance != "step")
    return {};
  ScopedDiagnosticHandler silence(context.get(),
                                  [](Diagnostic &) { return success(); });
  auto ops = StageEstimates::of(module(), options.pipelines.staged,
                                options.machineModel().ofBestRank());
  return ops ? ops->secondsOfOps() : std::vector<double>();
}

/// Those within ever less memory, where there is a limit.
std::vector<Compilation::Cut>
Compilation::cutsWithin(llvm::ArrayRef<double> seconds) const {
  const StagedPipelineOptions &staged = options.pipelines.staged;
  std::vector<Cut> cuts;
  if (options.limitsMemory() &&
      staged.stages == options.pipelines.scheduled.ranks)
    for (double share : {4.0, 2.0, 1.4, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4})
      cuts.push_back({staged.balance, limitsOfStages(share), seconds.vec()});
  return cuts;
}

/// The stages of the model's ops; none where it cannot be cut so.
std::vector<int32_t> Compilation::stagesUnder(const Cut &cut) {
  ScopedDiagnosticHandler silence(context.get(),
                                  [](Diagnostic &) { return success(); });
  StagedPipelineOptions &staged = options.pipelines.staged;
  staged.balance = cut.balance;
  staged.stageMemory = llvm::ArrayRef(cut.stageMemory);
  pipe::setOpSeconds(module(), cut.seconds);
  placeStages();
  auto model =
      pipe::cutModel(module(), {staged.stages, staged.balance,
                                llvm::ArrayRef<int64_t>(cut.stageMemory),
                                llvm::ArrayRef<int64_t>(staged.rankOfStage)});
  return succeeded(model) ? model->stageOfOp : std::vector<int32_t>();
}

bool Compilation::mayCutBetter(const CompileOptions &others, double step) {
  return underOptions(others, [&] {
    if (!options.stageChoices.empty())
      return true;
    const std::vector<double> seconds = secondsOfOps();
    const std::string balance = options.pipelines.staged.balance;
    std::vector<Cut> cuts = cutsWithin(seconds);
    cuts.push_back({balance, {}, seconds});
    cuts.push_back({balance});
    const std::vector<int32_t> stages = stagesUnder({"flops"});
    return stages.empty() || llvm::any_of(cuts, [&](const Cut &cut) {
             return stagesUnder(cut) != stages &&
                    (others.choosesRemat || isShorterStep(leastStep(), step));
           });
  });
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

/// `step` cuts by predicted times, or by those that were measured, for 1F1B,
/// and knows neither to the byte what a stage needs nor what is sent. So the
/// plans of a few cuts are predicted, and the one with the shortest step is
/// taken, or with the smallest arenas if none is within the limit: that of
/// `step` alone; where there is a limit, those within ever less memory,
/// beginning with more, as it counts what is computed again, and ending soon
/// behind the first one that fits; and, unless times were measured, the cuts by
/// operations, of `step` and of `flops`. Where ranks have several stages each,
/// `step` makes these take as long, whatever the limit. None where it is not
/// open.
Compilation::Cut Compilation::chooseCut() {
  StagedPipelineOptions &staged = options.pipelines.staged;
  const std::string balance = staged.balance;
  if (begin != Level::Import || !options.stageChoices.empty() ||
      !pipe::isBalanceWithinMemory(balance) || staged.stages == 1)
    return {};
  drafted.reset();
  // Measured ones are of stages of the cut that predicted ones chose.
  pipe::setTaskTimes(module(), {});
  auto restore = llvm::scope_exit(
      [&] { pipe::setTaskTimes(module(), options.taskTimes); });
  // Plans with measured times are made with these.
  const bool isDraft =
      options.pipelines.scheduled.draft && options.taskTimes.empty();
  Cut best;
  Draft least;
  std::map<std::vector<int32_t>, Draft> tried;
  auto tryCut = [&](const Cut &cut) {
    auto [entry, isNew] = tried.try_emplace(stagesUnder(cut));
    if (isNew && !(least.fits() && leastStep() >= least.step))
      entry->second = tryPlan();
    const Draft &trial = entry->second;
    if (best.balance.empty() || isShorterStep(trial.step, least.step) ||
        (!least.fits() && trial.mostBytes() < least.mostBytes()))
      std::tie(best, least) = std::pair(cut, trial);
  };
  const std::vector<double> seconds = secondsOfOps();
  const std::vector<Cut> within = cutsWithin(seconds);
  auto others = [&](const std::vector<int64_t> &stageMemory) {
    std::vector<Cut> cuts;
    if (balance == "step")
      cuts.push_back({"flops"});
    if (!seconds.empty())
      cuts.push_back({balance, stageMemory});
    return cuts;
  };
  std::vector<Cut> cuts = {{balance, {}, seconds}};
  // What has the least bound first, so that fewer are planned.
  if (within.empty()) {
    llvm::append_range(cuts, others({}));
    std::multimap<double, Cut> sorted;
    for (const Cut &cut : cuts) {
      stagesUnder(cut);
      sorted.insert({leastStep(), cut});
    }
    llvm::copy(llvm::make_second_range(sorted), cuts.begin());
  }
  for (const Cut &cut : cuts)
    tryCut(cut);
  int triedBehindTheFirst = least.fits() ? 2 : 0;
  for (const Cut &cut : within) {
    if (triedBehindTheFirst == 2)
      break;
    tryCut(cut);
    triedBehindTheFirst += least.fits();
  }
  if (!within.empty())
    for (const Cut &cut : others(best.stageMemory))
      tryCut(cut);
  if (isDraft && least.fits())
    drafted = least;
  staged.balance = best.balance;
  staged.stageMemory = llvm::ArrayRef(best.stageMemory);
  pipe::setOpSeconds(module(), best.seconds);
  // Of what nobody asked for nothing is said.
  if (!least.fits() || !options.choosesBalance)
    return best;
  if (best.balance != balance)
    mlir::emitRemark(module().getLoc())
        << "balance '" << balance << "' chose the cut of " << best.balance;
  else if (!best.stageMemory.empty())
    mlir::emitRemark(module().getLoc())
        << "balance '" << balance << "' cut the model for "
        << (!options.memoryLimit ? "the machine's memory"
            : options.machine && options.machine->model.isUneven()
                ? "--memory-limit and the machine's memory"
                : "--memory-limit");
  return best;
}

/// Recomputation makes room within a cut: that of a plan without limits, with
/// nothing or all layers recomputed, that of `flops`, or the one that was asked
/// for, whichever has the shortest step then. Fails where that is longer than
/// the step to beat. With `all` unset only the first of these is looked at.
LogicalResult Compilation::chooseCutAndRemat(bool all) {
  StagedPipelineOptions &staged = options.pipelines.staged;
  // Who chooses a schedule compares all of them under one cut.
  if (!options.stageChoices.empty() && !options.choosesBalance)
    staged.balance = "flops";
  const CompileOptions open = options;
  const std::string balance = staged.balance;
  std::vector<Cut> cuts;
  options.dropMemoryLimits();
  options.choosesBalance = false;
  for (StringRef mode : {"none", "every:1"}) {
    staged.balance = balance;
    staged.remat = mode.str();
    cuts.push_back(chooseCut());
    if (!all)
      break;
  }
  drafted.reset();
  options = open;
  if (cuts.front().balance.empty())
    return chooseRemat();
  if (all && balance == "step")
    cuts.push_back({"flops"});
  if (all && options.choosesBalance)
    cuts.push_back({balance});
  std::set<std::vector<int32_t>> tried;
  llvm::erase_if(cuts, [&](const Cut &cut) {
    return !tried.insert(stagesUnder(cut)).second;
  });
  std::optional<CompileOptions> best;
  Cut bestCut;
  Draft least;
  for (const Cut &cut : cuts) {
    options = open;
    stagesUnder(cut);
    if (failed(chooseRemat()))
      continue;
    const Draft trial = cuts.size() > 1 ? tryPlan() : Draft();
    if (!best || isShorterStep(trial.step, least.step) ||
        (!least.fits() && trial.mostBytes() < least.mostBytes()))
      std::tie(best, bestCut, least) = std::tuple(options, cut, trial);
  }
  if (!best)
    return failure();
  options = std::move(*best);
  pipe::setOpSeconds(module(), bestCut.seconds);
  return success();
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
