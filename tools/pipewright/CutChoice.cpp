//===- CutChoice.cpp - Where the model is cut -----------------------------===//
//
// For --balance step: cuts of several methods are compared, and what a local
// search makes of them, by whole plans of those that may be the fastest.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "passes/pipe/staged/ModelCut.h"
#include "passes/pipe/staged/StageAssignment.h"
#include "passes/pipelines/StageEstimates.h"
#include "passes/schedules/BuiltSchedules.h"
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

/// Those of other methods; none where times were measured, and few where each
/// takes long to compare.
std::vector<Compilation::Cut>
Compilation::cutsWithoutTimes(StringRef balance,
                              const std::vector<int64_t> &stageMemory) const {
  constexpr int64_t manyPairs = 1 << 12;
  if (balance != "step")
    return {};
  std::vector<Cut> cuts = {{"flops"}, {"step", stageMemory}};
  if (options.pipelines.staged.stages * options.microBatches <= manyPairs)
    for (StringRef name : pipe::balancesByName())
      cuts.push_back({name.str()});
  return cuts;
}

/// How the model is cut, under options that ask for it; none where it cannot be
/// cut so.
std::optional<pipe::CutModel> Compilation::modelUnder(const Cut &cut) {
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
  return succeeded(model) ? std::optional(std::move(*model)) : std::nullopt;
}

/// The stages of the model's ops; none where it cannot be cut so.
std::vector<int32_t> Compilation::stagesUnder(const Cut &cut) {
  auto model = modelUnder(cut);
  return model ? std::move(model->stageOfOp) : std::vector<int32_t>();
}

/// As --balance takes it.
static std::string balanceOf(llvm::ArrayRef<int64_t> layers) {
  return "manual:" + llvm::join(llvm::map_range(layers,
                                                [](int64_t count) {
                                                  return std::to_string(count);
                                                }),
                                ",");
}

/// What the schedule of the options takes with so many layers in each stage, by
/// estimates of what ops take.
CutEstimate Compilation::estimate(ModelStages &stages,
                                  llvm::ArrayRef<int64_t> layers) const {
  auto model = stages.ofOps(balanceOf(layers));
  if (!model)
    return {};
  schedules::BuiltSchedules built;
  auto timed =
      stages.simulated(*model, options.policy,
                       options.pipelines.scheduled.policy.getValue(), built);
  if (!timed)
    return {};
  return {timed->step,
          static_cast<double>(stages.fullestOf(*model, timed->kept, 1))};
}

/// What a local search makes of a cut; none where that is no faster.
std::optional<Compilation::Cut> Compilation::improved(const Cut &cut) {
  // Simulations of so many pairs of a stage and a micro-batch take a second.
  constexpr int64_t mostPairs = 1 << 18, mostCuts = 400, cutsOfChoice = 20;
  auto model = modelUnder(cut);
  if (!model)
    return std::nullopt;
  const int64_t pairs = options.pipelines.staged.stages * options.microBatches;
  ScopedDiagnosticHandler silence(context.get(),
                                  [](Diagnostic &) { return success(); });
  ModelStages stages(module(), options, staged);
  auto layers = moveLayers(
      std::move(model->layers),
      std::min(mostPairs / pairs,
               options.policy->isChoice() ? cutsOfChoice : mostCuts),
      [&](llvm::ArrayRef<int64_t> each) { return estimate(stages, each); });
  if (!layers)
    return std::nullopt;
  return Cut{balanceOf(*layers)};
}

bool Compilation::mayCutBetter(const CompileOptions &others, double step) {
  return underOptions(others, [&] {
    if (!options.stageChoices.empty())
      return true;
    const std::vector<double> seconds = secondsOfOps();
    const std::string balance = options.pipelines.staged.balance;
    std::vector<Cut> cuts = cutsWithin(seconds);
    cuts.push_back({balance, {}, seconds});
    llvm::append_range(cuts, cutsWithoutTimes(balance, {}));
    if (auto found = improved({"flops"}))
      cuts.push_back(*found);
    const std::vector<int32_t> stages = stagesUnder({"flops"});
    return stages.empty() || llvm::any_of(cuts, [&](const Cut &cut) {
             return stagesUnder(cut) != stages &&
                    (others.choosesRemat || isShorterStep(leastStep(), step));
           });
  });
}

/// Those that are possible, each once, beginning with what has the least bound.
/// All, if none is.
std::vector<Compilation::Cut> Compilation::byBound(llvm::ArrayRef<Cut> cuts) {
  std::multimap<double, Cut> sorted;
  std::set<std::vector<int32_t>> known;
  for (const Cut &cut : cuts)
    if (auto stages = stagesUnder(cut);
        !stages.empty() && known.insert(std::move(stages)).second)
      sorted.insert({leastStep(), cut});
  if (sorted.empty())
    return cuts.vec();
  auto all = llvm::make_second_range(sorted);
  return {all.begin(), all.end()};
}

/// `step` cuts by predicted times, or by those that were measured, for 1F1B,
/// and knows neither to the byte what a stage needs nor what is sent. So the
/// plans of a few cuts are predicted, and the one with the shortest step is
/// taken, or with the smallest arenas if none is within the limit: that of
/// `step` alone; where there is a limit, those within ever less memory,
/// beginning with more, as it counts what is computed again, and ending soon
/// behind the first one that fits; and, unless times were measured, those of
/// all methods that need no times, and what a local search makes of the
/// fastest, which knows the schedule. Where ranks have several stages each,
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
  std::vector<Cut> cuts = {{balance, {}, seconds}};
  constexpr size_t mostImproved = 5;
  // What has the least bound first, so that fewer are planned.
  if (within.empty()) {
    llvm::append_range(cuts, cutsWithoutTimes(balance, {}));
    cuts = byBound(cuts);
    const std::vector<Cut> known = cuts;
    if (balance == "step")
      for (const Cut &cut : llvm::ArrayRef(known).take_front(mostImproved))
        if (auto found = improved(cut))
          cuts.push_back(*found);
    cuts = byBound(cuts);
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
    for (const Cut &cut : cutsWithoutTimes(balance, best.stageMemory))
      tryCut(cut);
  if (!within.empty() && balance == "step")
    if (auto found = improved(best))
      tryCut(*found);
  if (isDraft && least.fits())
    drafted = least;
  staged.balance = best.balance;
  staged.stageMemory = llvm::ArrayRef(best.stageMemory);
  pipe::setOpSeconds(module(), best.seconds);
  best.fits = least.fits();
  return best;
}

/// Whether there are so few tasks that several cuts are chosen in little time.
bool Compilation::mayChooseManyCuts() const {
  constexpr int64_t fewPairs = 1 << 8;
  return options.pipelines.staged.stages * options.microBatches <= fewPairs;
}

/// The cut of `chooseCut`; where there are few tasks, also those that it
/// chooses with and without recomputation, as their local searches end in
/// different ones: the one with the shortest step under the mode of the
/// options.
Compilation::Cut Compilation::chooseCutOfModes() {
  const CompileOptions open = options;
  Cut best = chooseCut();
  if (best.balance.empty() || !mayChooseManyCuts())
    return best;
  Draft least = tryPlan();
  CompileOptions chosen = options;
  for (StringRef mode : {"none", "every:1"}) {
    options = open;
    std::string &remat = options.pipelines.staged.remat;
    if (std::exchange(remat, mode.str()) == mode)
      continue;
    Cut cut = chooseCut();
    remat = open.pipelines.staged.remat;
    const Draft trial = tryPlan();
    if (isShorterStep(trial.step, least.step)) {
      cut.fits = true;
      std::tie(best, least, chosen) = std::tuple(cut, trial, options);
    }
  }
  options = std::move(chosen);
  pipe::setOpSeconds(module(), best.seconds);
  // It is of the cut that was chosen last.
  if (drafted && least.fits())
    drafted = least;
  else
    drafted.reset();
  return best;
}

/// What became of the cut that was asked for; of what nobody asked for nothing.
void Compilation::tellCut(const Cut &cut, StringRef balance) {
  if (!cut.fits || !options.choosesBalance)
    return;
  if (cut.balance != balance)
    mlir::emitRemark(module().getLoc())
        << "balance '" << balance << "' chose the cut of " << cut.balance;
  else if (!cut.stageMemory.empty())
    mlir::emitRemark(module().getLoc())
        << "balance '" << balance << "' cut the model for "
        << (!options.memoryLimit ? "the machine's memory"
            : options.machine && options.machine->model.isUneven()
                ? "--memory-limit and the machine's memory"
                : "--memory-limit");
}

/// Recomputation makes room within a cut: that of a plan with nothing
/// recomputed, within the limits or without, or with all layers recomputed,
/// that of `step` alone, that of `flops`, or the one that was asked for,
/// whichever has the shortest step then. Fails where that is longer than the
/// step to beat. With `all` unset only the cut without limits and recomputation
/// is looked at.
LogicalResult Compilation::chooseCutAndRemat(bool all) {
  StagedPipelineOptions &staged = options.pipelines.staged;
  // Who chooses a schedule compares all of them under one cut.
  if (!options.stageChoices.empty() && !options.choosesBalance)
    staged.balance = "flops";
  const CompileOptions open = options;
  const std::string balance = staged.balance;
  std::vector<Cut> cuts;
  auto addCut = [&](StringRef mode) {
    staged.balance = balance;
    staged.remat = mode.str();
    cuts.push_back(chooseCut());
  };
  options.choosesBalance = false;
  if (all && open.limitsMemory() && mayChooseManyCuts())
    addCut("none");
  options.dropMemoryLimits();
  addCut("none");
  if (all)
    addCut("every:1");
  drafted.reset();
  staged.balance = balance;
  staged.remat = "none";
  const std::vector<double> seconds = secondsOfOps();
  options = open;
  if (cuts.front().balance.empty())
    return chooseRemat();
  if (all && balance == "step")
    llvm::append_range(cuts,
                       std::vector<Cut>{{balance, {}, seconds}, {"flops"}});
  if (all && options.choosesBalance)
    cuts.push_back({balance});
  std::set<std::vector<int32_t>> tried;
  llvm::erase_if(cuts, [&](const Cut &cut) {
    return !tried.insert(stagesUnder(cut)).second;
  });
  std::optional<CompileOptions> best;
  Cut bestCut;
  Draft least;
  auto compare = [&](const Cut &cut) {
    options.given["remat"] = staged.remat.getValue();
    const Draft trial = tryPlan();
    if (!best || isShorterStep(trial.step, least.step) ||
        (!least.fits() && trial.mostBytes() < least.mostBytes()))
      std::tie(best, bestCut, least) = std::tuple(options, cut, trial);
  };
  auto tryCut = [&](const Cut &cut) {
    options = open;
    stagesUnder(cut);
    if (succeeded(chooseRemat()))
      compare(cut);
  };
  for (const Cut &cut : cuts)
    tryCut(cut);
  // Where none fits, or takes less than the step to beat: one that is made for
  // little memory, with a mode for all.
  for (StringRef mode : {"every:1", "full"}) {
    if (!all || (best && least.fits()) || !open.limitsMemory())
      break;
    options = open;
    options.choosesBalance = false;
    staged.balance = balance;
    staged.remat = mode.str();
    const Cut cut = chooseCut();
    options.choosesBalance = open.choosesBalance;
    compare(cut);
    tryCut(cut);
  }
  if (!best)
    return failure();
  options = std::move(*best);
  pipe::setOpSeconds(module(), bestCut.seconds);
  return success();
}

} // namespace pipewright::tool
