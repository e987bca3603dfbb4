//===- ScheduleComparison.cpp - Schedules, each with its own cut ----------===//
//
// `--schedule auto` compares all schedules under one cut, with one mode of
// recomputation for all ranks (PlanChoice.h). What is best then may be slower
// than another one with a cut, and modes, of its own.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "tools/pipewright/Compilation.h"
#include "tools/pipewright/MemoryLimits.h"
#include "tools/pipewright/PlanChoice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

using namespace mlir;

namespace pipewright::tool {

/// Under another schedule of those to choose from.
static void setSchedule(CompileOptions &options, const ScheduleBound &one) {
  options.stageChoices.clear();
  options.policy = llvm::cantFail(schedules::choosePolicy(one.schedule));
  options.chosen = one.schedule;
  options.pipelines.scheduled.policy = one.schedule;
  options.pipelines.staged.splitBackward = one.splitsBackward;
  options.pipelines.staged.stages = one.stages;
  options.given["stages"] = one.stages;
}

/// Behind a schedule that was chosen under one cut, with one mode of
/// recomputation for all ranks, and was given a cut: takes the fastest plan of
/// several schedules, or the smallest if none fits. Bounds of schedules are
/// those of one cut and of all that is kept; another cut may gain so much that
/// those a quarter longer are looked at, too. Where each rank may recompute its
/// own, all of these are compared under one cut first, and a few that are the
/// fastest, or need little too much, under others; and several as where nothing
/// is recomputed, which takes little time. Of programs with many tasks, whose
/// plans take long, few are looked at, under one cut. `given` is what was open
/// before, `cut` the one that was chosen; it becomes that of the best.
void Compilation::compareSchedules(const CompileOptions &given, Cut &cut) {
  const bool recomputes =
      given.pipelines.staged.remat == "auto" && options.limitsMemory();
  constexpr size_t mostOfLarge = 3, mostThatMayFit = 6;
  // To decide for each rank what it recomputes takes most of the time.
  constexpr size_t mostWithCuts = 12, mostThatRecompute = 4;
  constexpr int mostAlike = 4, mostAlikeThatRecompute = 2;
  const bool isLarge =
      options.pipelines.staged.stages * options.microBatches > kFewPairs;
  if (!recomputes && isLarge)
    return;
  Draft least = tryPlan();
  CompileOptions best = options;
  Attribute seconds = module()->getAttr(pipe::PipeDialect::kOpSeconds);
  CompileOptions open = given;
  if (!recomputes && open.pipelines.staged.remat == "auto")
    open.pipelines.staged.remat = "none";
  options = open;
  options.dropMemoryLimits();
  if (recomputes)
    options.pipelines.staged.remat = "none";
  if (options.cutsByMachine())
    options.pipelines.staged.balance = "flops";
  llvm::SmallVector<ScheduleBound> schedules =
      schedulesByBound(module(), options, staged);

  ScopedDiagnosticHandler silence(context.get(),
                                  [](Diagnostic &) { return success(); });
  const double beat = stepToBeat;
  auto restore = llvm::scope_exit([&] { stepToBeat = beat; });
  auto compare = [&](const CompileOptions &tried, bool choosesCut) {
    options = tried;
    Cut own;
    if (tried.pipelines.staged.remat == "auto") {
      stepToBeat = std::min(beat, least.step);
      if (!choosesCut)
        stepToBeat *= kLittleLonger;
      if (failed(isLarge ? chooseRemat() : chooseCutAndRemat(choosesCut)))
        return Draft();
    } else {
      own = chooseCutOfModes();
      options.given["remat"] = options.pipelines.staged.remat.getValue();
    }
    const Draft trial = tryPlan();
    if (isShorterStep(trial.step, least.step) ||
        (!least.fits() && trial.mostBytes() < least.mostBytes()))
      std::tie(best, least, seconds, cut) =
          std::tuple(options, trial,
                     module()->getAttr(pipe::PipeDialect::kOpSeconds), own);
    return trial;
  };
  // With their own cuts: those with one mode for all, which is the one that was
  // given, or `none`, by their bounds; those of which a plan fits, by its step;
  // and those that need little too much, by what they need.
  std::multimap<double, CompileOptions> ofOneMode, fastest, nearly;
  // Of few micro-batches many schedules come to one order of tasks.
  std::set<std::tuple<int64_t, bool, std::string, double, int64_t>> known;
  size_t looked = 0;
  auto consider = [&](const CompileOptions &tried) {
    const Draft trial = compare(tried, /*choosesCut=*/false);
    const StagedPipelineOptions &stages = options.pipelines.staged;
    if (!known
             .insert({stages.stages, stages.splitBackward,
                      stages.remat.getValue(), trial.step, trial.mostBytes()})
             .second)
      return;
    if (trial.fits())
      fastest.insert({trial.step, tried});
    else if (static_cast<double>(trial.mostBytes()) <=
             kLittleLonger * static_cast<double>(mostBytesOf(given)))
      nearly.insert({static_cast<double>(trial.mostBytes()), tried});
  };
  if (recomputes && !best.chosen.empty()) {
    CompileOptions tried = best;
    tried.pipelines.staged.balance = given.pipelines.staged.balance.getValue();
    tried.pipelines.staged.remat = "auto";
    consider(tried);
  }
  for (const ScheduleBound &one : schedules) {
    if (one.step > beat * kLittleLonger ||
        (least.fits() &&
         one.step > least.step * (recomputes && isLarge ? 1 : kLittleLonger)))
      break;
    if (isLarge && looked++ == mostOfLarge)
      break;
    CompileOptions tried = open;
    setSchedule(tried, one);
    if (recomputes)
      consider(tried);
    if (recomputes ||
        one.schedule != best.pipelines.scheduled.policy.getValue() ||
        one.stages != best.pipelines.staged.stages) {
      if (recomputes)
        tried.pipelines.staged.remat = "none";
      ofOneMode.insert({one.step, std::move(tried)});
    }
  }
  // Of those that cut and split alike, a few: they are equal by little.
  auto compareWithCuts = [&](const std::multimap<double, CompileOptions> &some,
                             size_t most, int alikeOnes) {
    std::map<std::pair<int64_t, bool>, int> alike;
    for (const auto &[order, tried] : some) {
      const StagedPipelineOptions &stages = tried.pipelines.staged;
      if (isLarge || (&some != &nearly && least.fits() &&
                      order > least.step * kLittleLonger))
        return;
      if (alike[{stages.stages, stages.splitBackward}]++ >= alikeOnes)
        continue;
      if (most-- == 0)
        return;
      compare(tried, /*choosesCut=*/true);
    }
  };
  compareWithCuts(fastest, mostThatRecompute, mostAlikeThatRecompute);
  compareWithCuts(ofOneMode, mostWithCuts, mostAlike);
  // What is the fastest under the cut of `step` alone, which may need less.
  if (!recomputes) {
    options = open;
    if (!choosePlan(module(), options, std::numeric_limits<double>::infinity(),
                    staged, drafted)
             .isOne() &&
        options.stageChoices.empty())
      compare(CompileOptions(options), /*choosesCut=*/true);
  }
  compareWithCuts(nearly, mostThatMayFit, mostAlikeThatRecompute);
  options = std::move(best);
  if (seconds)
    module()->setAttr(pipe::PipeDialect::kOpSeconds, seconds);
  else
    module()->removeAttr(pipe::PipeDialect::kOpSeconds);
  drafted.reset();
}

} // namespace pipewright::tool
