//===- Choices.cpp - What a compilation decides by itself -----------------===//
//
// Cut, schedule and recomputation, where the user left them open: whole plans
// are made and compared. By how much and by which rank a plan is beyond what
// memory allows is said in PlanChoice.h.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "passes/pipe/staged/StageAssignment.h"
#include "passes/pipelines/StageEstimates.h"
#include "tools/pipewright/Compilation.h"
#include "tools/pipewright/MemoryLimits.h"
#include "tools/pipewright/PlanChoice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <map>
#include <tuple>

using namespace mlir;

namespace pipewright::tool {

/// Decides what the user left open, by the times of whole plans.
LogicalResult Compilation::choose() {
  // Recomputation makes room without another cut.
  const bool recomputes = options.pipelines.staged.remat == "auto";
  chooseRemat();
  if (failed(chooseSchedule()))
    return failure();
  if (!recomputes)
    chooseCut();
  return success();
}

/// What a plan under the options as they are comes to.
Compilation::Trial Compilation::tryPlan() {
  return onCopy([&] {
    ScopedDiagnosticHandler silence(context.get(),
                                    [](Diagnostic &) { return success(); });
    Trial trial;
    const bool isDraft = options.pipelines.scheduled.draft;
    options.pipelines.setDraft(true);
    const bool isPossible = succeeded(finish(Level::Allocated));
    options.pipelines.setDraft(isDraft);
    if (const int64_t bytes = fullestArena(module()); bytes > 0)
      trial.bytes = bytes;
    if (!isPossible)
      return trial;
    if (auto plan = makePlan(); succeeded(plan))
      trial.step = plan->simulation.globalStepTime;
    return trial;
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

/// What each op of the model takes on the machine; none where ranks are not
/// alike.
static std::vector<double> predictOps(ModuleOp module,
                                      const StagedPipelineOptions &options,
                                      const MachineModel &machine) {
  ScopedDiagnosticHandler silence(module.getContext(),
                                  [](Diagnostic &) { return success(); });
  std::optional<StageEstimates> ops;
  if (!machine.isUneven())
    ops = StageEstimates::of(module, options, machine);
  return ops ? ops->secondsOfOps() : std::vector<double>();
}

/// `step` cuts by predicted times, or by those that were measured, for 1F1B,
/// and knows neither to the byte what a stage needs nor what is sent. So the
/// plans of a few cuts are predicted, and the one with the shortest step is
/// taken, or with the smallest arenas if none is within the limit: that of
/// `step` alone; where there is a limit, those within ever less memory,
/// beginning with more, as it counts what is computed again, and ending soon
/// behind the first one that fits; and, unless times were measured, the cuts by
/// operations, of `step` and of `flops`.
void Compilation::chooseCut() {
  StagedPipelineOptions &staged = options.pipelines.staged;
  const std::string balance = staged.balance;
  if (begin != Level::Import || !options.stageChoices.empty() ||
      !pipe::isBalanceWithinMemory(balance) || staged.stages == 1 ||
      staged.stages != options.pipelines.scheduled.ranks)
    return;
  drafted = nullptr;
  struct Cut {
    std::string balance;
    std::vector<int64_t> stageMemory = {};
    /// What ops take; empty: they count as operations.
    std::vector<double> seconds = {};
  };
  Cut best;
  Trial least;
  auto tryCut = [&](const Cut &cut) {
    staged.balance = cut.balance;
    staged.stageMemory = llvm::ArrayRef(cut.stageMemory);
    pipe::setOpSeconds(module(), cut.seconds);
    const Trial trial = tryPlan();
    if (best.balance.empty() || isShorterStep(trial.step, least.step) ||
        (!least.fits() && trial.bytes < least.bytes))
      std::tie(best, least) = std::pair(cut, trial);
  };
  std::vector<double> seconds;
  if (balance == "step")
    seconds = predictOps(module(), staged, options.machineModel());
  tryCut({balance, {}, seconds});
  int triedBehindTheFirst = least.fits() ? 2 : 0;
  for (double share : {4.0, 2.0, 1.4, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4}) {
    if (!options.limitsMemory() || triedBehindTheFirst == 2)
      break;
    tryCut({balance, limitsOfStages(share), seconds});
    triedBehindTheFirst += least.fits();
  }
  if (balance == "step")
    tryCut({"flops"});
  if (!seconds.empty())
    tryCut({balance, best.stageMemory});
  staged.balance = best.balance;
  staged.stageMemory = llvm::ArrayRef(best.stageMemory);
  pipe::setOpSeconds(module(), best.seconds);
  if (!least.fits())
    return;
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
}

/// Fails where plans are only compared and none is of use.
LogicalResult Compilation::chooseSchedule() {
  drafted = nullptr;
  if (options.stageChoices.empty())
    return success();
  const std::string reason =
      choosePlan(module(), options, stepToBeat, staged, drafted);
  if (!options.passesAfter.empty())
    drafted = nullptr;
  if (!reason.empty() && options.pipelines.scheduled.draft)
    return mlir::emitError(module().getLoc()) << reason;
  // What a policy has planned itself, its pass tells.
  if (!options.chosen.empty() && !options.policy->isChoice())
    mlir::emitRemark(module().getLoc())
        << "schedule '" << asked << "' chose: " << options.chosen;
  return success();
}

/// `none,none,full` for three stages; one word where all have the same.
static std::string joinModes(llvm::ArrayRef<llvm::StringRef> modes) {
  return llvm::all_equal(modes) ? modes.front().str() : llvm::join(modes, ",");
}

/// `none,none,full` for three stages; one word where all have the same.
static std::string joinModes(llvm::ArrayRef<std::string> modes) {
  return llvm::all_equal(modes) ? modes.front() : llvm::join(modes, ",");
}

namespace {

/// Finds the mode of `--remat` of one stage by how much its rank takes under
/// those that are tried.
class RematTrial {
public:
  /// The mode to try, and in the end the one to take.
  std::string mode() const {
    return percent ? "keep:" + std::to_string(percent)
                   : kRematModesByTime[level].str();
  }
  /// The mode was beyond the limit with so many bytes: goes on to the next one,
  /// and from the last one to the smallest. False if there is nothing to try.
  bool goOn(int64_t bytes);
  /// Begins to look for a percentage between the mode that fits and the one
  /// before it, which does not. False where there is none, or nothing fits.
  bool refine();
  /// Whether the mode that `refine` or the call before has chosen fits. False
  /// if it is as near to the limit as it has to be.
  bool narrow(bool fits);

private:
  /// The N of a mode `keep:N`; 0 of another one.
  static int64_t percentOf(size_t level);

  size_t level = 0, smallest = 0;
  int64_t bytes = std::numeric_limits<int64_t>::max();
  bool isSettled = false;
  /// The N to try; 0: that of the level.
  int64_t percent = 0;
  /// Of N the one that fits, 0 for the level's own mode, and the one that does
  /// not.
  int64_t fits = 0, exceeds = 0;
};

} // namespace

bool RematTrial::goOn(int64_t taken) {
  if (isSettled)
    return false;
  if (taken < bytes)
    std::tie(bytes, smallest) = std::pair(taken, level);
  const size_t before = level;
  isSettled = level + 1 == std::size(kRematModesByTime);
  level = isSettled ? smallest : level + 1;
  return level != before;
}

int64_t RematTrial::percentOf(size_t level) {
  llvm::StringRef word = kRematModesByTime[level];
  int64_t number = 0;
  return word.consume_front("keep:") && !word.getAsInteger(10, number) ? number
                                                                       : 0;
}

bool RematTrial::refine() {
  if (isSettled || level == 0)
    return false;
  fits = percentOf(level);
  // What comes behind keeps less than all of these, and what is before them is
  // as if all were kept.
  for (size_t before = level; before-- > 0 && exceeds == 0;)
    exceeds = percentOf(before);
  if (exceeds == 0 && fits > 0)
    exceeds = 100;
  percent = (fits + exceeds) / 2;
  return exceeds > fits + 1;
}

bool RematTrial::narrow(bool isWithin) {
  constexpr int64_t nearEnough = 3;
  if (exceeds <= fits + 1)
    return false;
  (isWithin ? fits : exceeds) = percent;
  const bool goesOn = exceeds - fits > nearEnough;
  percent = goesOn ? (fits + exceeds) / 2 : fits == percentOf(level) ? 0 : fits;
  if (!goesOn)
    exceeds = fits;
  return goesOn;
}

/// On each rank the mode that recomputes least within the limit, as what one
/// rank keeps is hardly another's matter; the smallest mode on ranks that no
/// mode fits, for the error; or one of whole layers for all ranks where that is
/// faster. Where the schedule is to be chosen, too, all ranks have one of the
/// modes that are listed.
void Compilation::chooseRemat() {
  if (options.pipelines.staged.remat != "auto")
    return;
  const bool forAll = !options.stageChoices.empty();
  // By stage, once it is known where each is.
  llvm::SmallVector<RematTrial> trials(1);
  CompileOptions decided = options;
  auto decide = [&] {
    decided.pipelines.staged.remat = joinModes(llvm::map_to_vector(
        trials, [](const RematTrial &trial) { return trial.mode(); }));
  };
  using Bytes = llvm::SmallVector<int64_t>;
  // The bytes of the rank of each trial's stage where it is beyond the limit;
  // else 0.
  auto beyond = [&] {
    decide();
    CompileOptions tried = decided;
    tried.pipelines.setDraft(true);
    std::swap(options, tried);
    Bytes bytes = onCopy([&] {
      ScopedDiagnosticHandler silence(context.get(),
                                      [](Diagnostic &) { return success(); });
      // Where none fits, by how much is known from one of them.
      (void)chooseSchedule();
      return failed(finish(Level::Allocated)) ? bytesBeyondLimit(forAll)
                                              : Bytes();
    });
    std::swap(options, tried);
    bytes.resize(std::max(bytes.size(), trials.size()));
    trials.resize(bytes.size(), trials.front());
    return bytes;
  };
  decide();
  for (bool isChanged = options.limitsMemory(); isChanged;) {
    isChanged = false;
    const Bytes bytes = beyond();
    for (auto [trial, taken] : llvm::zip_equal(trials, bytes))
      isChanged |= taken > 0 && trial.goOn(taken);
  }
  bool isOpen = false;
  if (!forAll)
    for (RematTrial &trial : trials)
      isOpen |= trial.refine();
  while (isOpen) {
    isOpen = false;
    const Bytes bytes = beyond();
    for (auto [trial, taken] : llvm::zip_equal(trials, bytes))
      isOpen |= trial.narrow(taken == 0);
  }
  decide();
  options = std::move(decided);
  if (options.limitsMemory() && !forAll)
    compareWithLayers();
  options.given["remat"] = options.pipelines.staged.remat.getValue();
  mlir::emitRemark(module().getLoc())
      << "remat 'auto' chose: " << options.pipelines.staged.remat.getValue();
}

/// Takes a mode that computes layers again on all ranks where its plan is
/// faster, or alone fits: how many messages wait on a rank depends on the modes
/// of others, too, and `keep:N` counts what is computed again beside all that
/// is kept, though some of that is not needed any more by then.
void Compilation::compareWithLayers() {
  auto &remat = options.pipelines.staged.remat;
  std::string best = remat;
  if (best == "none")
    return;
  double least = tryPlan().step;
  for (StringRef mode : kRematModesByTime) {
    if (!mode.starts_with("every:") && mode != "full")
      continue;
    remat = mode.str();
    // Plans are looked at where by estimates they may be faster.
    if (tool::estimateStep(module(), options, least, staged).least >= least)
      continue;
    if (const double step = tryPlan().step; isShorterStep(step, least))
      std::tie(best, least) = std::pair(mode.str(), step);
  }
  remat = best;
}

/// By stage of the model, or of all together, the most bytes that a rank with
/// it takes beyond its limit; 0 where it is within.
llvm::SmallVector<int64_t> Compilation::bytesBeyondLimit(bool ofAll) {
  std::map<uint64_t, int64_t> full;
  for (auto arena : module().getOps<pipe::ArenaOp>())
    if (isBeyondLimit(arena, options))
      full[arena.getRank()] = static_cast<int64_t>(arena.getBytes());
  llvm::SmallVector<pipe::StageOp> stages(module().getOps<pipe::StageOp>());
  // Stages of a second copy of the model are as those of the first.
  const size_t ofModel = llvm::count_if(
      stages, [](pipe::StageOp stage) { return !stage.getMirrors(); });
  llvm::SmallVector<int64_t> beyond(ofAll || ofModel == 0 ? 1 : ofModel);
  for (auto [number, stage] : llvm::enumerate(stages))
    if (stage.getRank() && full.count(*stage.getRank())) {
      int64_t &bytes = beyond[ofAll ? 0 : number % ofModel];
      bytes = std::max(bytes, full[*stage.getRank()]);
    }
  return beyond;
}

} // namespace pipewright::tool
