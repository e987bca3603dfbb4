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
/// plans take long, few are looked at, under one cut.
class Compilation::ScheduleComparison {
public:
  /// `given` is what was open before, `cut` the one that was chosen; it becomes
  /// that of the best.
  ScheduleComparison(Compilation &all, const CompileOptions &given, Cut &cut)
      : all(all), given(given), cut(cut),
        recomputes(given.pipelines.staged.remat == "auto" &&
                   all.options.limitsMemory()),
        isLarge(all.options.pipelines.staged.stages * all.options.microBatches >
                kFewPairs),
        beat(all.stepToBeat), open(given) {
    if (!recomputes && open.pipelines.staged.remat == "auto")
      open.pipelines.staged.remat = "none";
  }

  void run();

private:
  /// By their steps, bounds of steps, or bytes, the least first.
  using Trials = std::multimap<double, CompileOptions>;

  llvm::SmallVector<ScheduleBound> bounds();
  Draft compare(const CompileOptions &tried, bool choosesCut);
  void consider(const CompileOptions &tried);
  void considerChosen();
  void considerAll(llvm::ArrayRef<ScheduleBound> schedules);
  void compareWithCuts(const Trials &some, size_t most, int mostAlike,
                       bool mayBeSlower = false);
  void compareFastestUnderStep();
  Attribute seconds() const {
    return all.module()->getAttr(pipe::PipeDialect::kOpSeconds);
  }
  void takeBest();

  Compilation &all;
  const CompileOptions &given;
  Cut &cut;
  /// Whether each rank recomputes what it has to.
  const bool recomputes;
  const bool isLarge;
  const double beat;
  /// What is open in all that is compared.
  CompileOptions open;
  /// The best, what its plan comes to, and the times of ops that cut it.
  CompileOptions best;
  Draft least;
  Attribute secondsOfBest;
  /// With their own cuts: those with one mode for all, which is the one that
  /// was given, or `none`, by their bounds; those of which a plan fits, by its
  /// step; and those that need little too much, by what they need.
  Trials ofOneMode, fastest, nearly;
  /// Of few micro-batches many schedules come to one order of tasks.
  std::set<std::tuple<int64_t, bool, std::string, double, int64_t>> known;
};

/// All schedules, under the cut of `flops` and keeping all, by what they take
/// at least.
llvm::SmallVector<ScheduleBound> Compilation::ScheduleComparison::bounds() {
  all.options = open;
  all.options.dropMemoryLimits();
  if (recomputes)
    all.options.pipelines.staged.remat = "none";
  if (all.options.cutsByMachine())
    all.options.pipelines.staged.balance = "flops";
  return schedulesByBound(all.module(), all.options, all.staged);
}

/// Plans it, and keeps it if it is the best so far.
Draft Compilation::ScheduleComparison::compare(const CompileOptions &tried,
                                               bool choosesCut) {
  all.options = tried;
  Cut own;
  if (tried.pipelines.staged.remat == "auto") {
    all.stepToBeat = std::min(beat, least.step);
    if (!choosesCut)
      all.stepToBeat *= kLittleLonger;
    if (failed(isLarge ? all.chooseRemat() : all.chooseCutAndRemat(choosesCut)))
      return Draft();
  } else {
    own = all.chooseCutOfModes();
    all.options.given["remat"] = all.options.pipelines.staged.remat.getValue();
  }
  const Draft trial = all.tryPlan();
  if (isShorterStep(trial.step, least.step) ||
      (!least.fits() && trial.mostBytes() < least.mostBytes())) {
    best = all.options;
    least = trial;
    secondsOfBest = seconds();
    cut = own;
  }
  return trial;
}

/// Plans it under one cut, and notes it where another one may be of use.
void Compilation::ScheduleComparison::consider(const CompileOptions &tried) {
  const Draft trial = compare(tried, /*choosesCut=*/false);
  const StagedPipelineOptions &stages = all.options.pipelines.staged;
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
}

/// The schedule that was chosen with one mode for all ranks.
void Compilation::ScheduleComparison::considerChosen() {
  if (!recomputes || best.chosen.empty())
    return;
  CompileOptions tried = best;
  tried.pipelines.staged.balance = given.pipelines.staged.balance.getValue();
  tried.pipelines.staged.remat = "auto";
  consider(tried);
}

/// Those whose bounds say that they may be the best with another cut.
void Compilation::ScheduleComparison::considerAll(
    llvm::ArrayRef<ScheduleBound> schedules) {
  constexpr size_t mostOfLarge = 3;
  size_t looked = 0;
  for (const ScheduleBound &one : schedules) {
    if (one.step > beat * kLittleLonger ||
        (least.fits() &&
         one.step > least.step * (recomputes && isLarge ? 1 : kLittleLonger)))
      return;
    if (isLarge && looked++ == mostOfLarge)
      return;
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
}

/// The first ones with cuts of their own. Of those that cut and split alike, a
/// few: they are equal by little.
void Compilation::ScheduleComparison::compareWithCuts(const Trials &some,
                                                      size_t most,
                                                      int mostAlike,
                                                      bool mayBeSlower) {
  if (isLarge)
    return;
  std::map<std::pair<int64_t, bool>, int> alike;
  for (const auto &[order, tried] : some) {
    const StagedPipelineOptions &stages = tried.pipelines.staged;
    if (!mayBeSlower && least.fits() && order > least.step * kLittleLonger)
      return;
    if (alike[{stages.stages, stages.splitBackward}]++ >= mostAlike)
      continue;
    if (most-- == 0)
      return;
    compare(tried, /*choosesCut=*/true);
  }
}

/// What is the fastest under the cut of `step` alone, which may need less.
void Compilation::ScheduleComparison::compareFastestUnderStep() {
  all.options = open;
  if (!choosePlan(all.module(), all.options,
                  std::numeric_limits<double>::infinity(), all.staged,
                  all.drafted)
           .isOne() &&
      all.options.stageChoices.empty())
    compare(CompileOptions(all.options), /*choosesCut=*/true);
}

void Compilation::ScheduleComparison::takeBest() {
  all.options = std::move(best);
  if (secondsOfBest)
    all.module()->setAttr(pipe::PipeDialect::kOpSeconds, secondsOfBest);
  else
    all.module()->removeAttr(pipe::PipeDialect::kOpSeconds);
  all.drafted.reset();
}

void Compilation::ScheduleComparison::run() {
  // To decide for each rank what it recomputes takes most of the time.
  constexpr size_t mostWithCuts = 12, mostThatRecompute = 4, mostThatMayFit = 6;
  constexpr int mostAlike = 4, mostAlikeThatRecompute = 2;
  if (!recomputes && isLarge)
    return;
  least = all.tryPlan();
  best = all.options;
  secondsOfBest = seconds();
  const llvm::SmallVector<ScheduleBound> schedules = bounds();
  ScopedDiagnosticHandler silence(all.context.get(),
                                  [](Diagnostic &) { return success(); });
  auto restore = llvm::scope_exit([&] { all.stepToBeat = beat; });
  considerChosen();
  considerAll(schedules);
  compareWithCuts(fastest, mostThatRecompute, mostAlikeThatRecompute);
  compareWithCuts(ofOneMode, mostWithCuts, mostAlike);
  if (!recomputes)
    compareFastestUnderStep();
  compareWithCuts(nearly, mostThatMayFit, mostAlikeThatRecompute,
                  /*mayBeSlower=*/true);
  takeBest();
}

void Compilation::compareSchedules(const CompileOptions &given, Cut &cut) {
  ScheduleComparison(*this, given, cut).run();
}

} // namespace pipewright::tool
