//===- RematChoice.cpp - What stages compute again ------------------------===//
//
// `--remat auto`: each stage gets the mode that computes least again with which
// its rank fits. Whole plans say what fits; modes that cannot by estimates of
// stages are not tried.
//
//===----------------------------------------------------------------------===//

#include "codegen/plan/Plan.h"
#include "dialects/pipe/PipeDialect.h"
#include "passes/pipe/staged/StageWords.h"
#include "tools/pipewright/Compilation.h"
#include "tools/pipewright/MemoryLimits.h"
#include "tools/pipewright/ModelStages.h"
#include "tools/pipewright/PlanChoice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <map>
#include <tuple>

using namespace mlir;

namespace pipewright::tool {

/// `none,none,full` for three stages; one word where all have the same.
static std::string joinModes(llvm::ArrayRef<std::string> modes) {
  return llvm::all_equal(modes) ? modes.front() : llvm::join(modes, ",");
}

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
  /// Keeps so many percent more. False where the mode has no percentage.
  bool keepMore(int64_t more);
  /// Whether no mode fits.
  bool isTooSmall() const { return isSettled; }
  /// Goes on to the next mode, as this one cannot fit. False behind the last.
  bool skip();
  /// In kRematModesByTime.
  size_t number() const { return level; }
  /// That of the last mode that did not fit; the first one if that did.
  size_t numberBefore() const { return level == 0 ? 0 : level - 1; }

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

bool RematTrial::skip() {
  if (level + 1 == std::size(kRematModesByTime))
    return false;
  ++level;
  return true;
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

bool RematTrial::keepMore(int64_t more) {
  const int64_t now = percent > 0 ? percent : percentOf(level);
  if (isSettled || now == 0 || now + more >= 100)
    return false;
  percent = now + more;
  return true;
}

/// What stages of several modes are estimated to cost, and to keep at least.
static std::shared_ptr<StagedModel>
mixed(llvm::ArrayRef<std::shared_ptr<const StagedModel>> models,
      llvm::ArrayRef<RematTrial> trials) {
  auto result = std::make_shared<StagedModel>();
  const StagedModel &first = *models.front();
  result->stages = first.stages;
  result->costs = first.costs;
  result->edges = first.edges;
  result->weightBytes = first.weightBytes;
  for (auto [stage, trial] : llvm::enumerate(trials)) {
    const StagedModel &model = *models[trial.number()];
    schedules::StageCosts &costs = result->costs.stages[stage];
    costs = model.costs.stages[stage];
    for (int64_t *bytes :
         {&costs.stashBytes, &costs.weightStashBytes, &costs.keptBytes})
      if (*bytes > 0)
        *bytes =
            static_cast<int64_t>(model.keptSlack * static_cast<double>(*bytes));
  }
  return result;
}

/// What the schedule keeps of such stages; none where it cannot be made.
static std::optional<KeptBytes> keptBytes(const ModelStages &stages,
                                          const StagedModel &model,
                                          const CompileOptions &options) {
  if (auto kept = stages.keptBytes(model, options.policy,
                                   options.pipelines.scheduled.policy))
    return kept;
  schedules::BuiltSchedules built;
  auto schedule =
      built.of(*options.policy, options.policy.with(stages.sizesOf(model)));
  if (!schedule) {
    llvm::consumeError(schedule.takeError());
    return std::nullopt;
  }
  const auto &[order, simulation] = **schedule;
  KeptBytes kept{{}, order.rankOfStage};
  for (const schedules::RankSummary &rank : simulation.ranks)
    kept.most.push_back(rank.peakStashBytes);
  return kept;
}

/// Trials of all stages, each at the first mode that may fit as far as
/// estimates say; one trial where they do not say, and none where nothing may
/// fit.
static llvm::SmallVector<RematTrial> trialsFor(ModuleOp imported,
                                               const CompileOptions &options,
                                               StagedModels &known) {
  const llvm::SmallVector<RematTrial> unknown(1);
  ScopedDiagnosticHandler silence(imported.getContext(),
                                  [](Diagnostic &) { return success(); });
  std::vector<std::shared_ptr<const StagedModel>> models;
  CompileOptions tried = options;
  for (llvm::StringRef mode : kRematModesByTime) {
    tried.pipelines.staged.remat = mode.str();
    models.push_back(ModelStages(imported, tried, known)
                         .estimated(options.pipelines.staged.stages,
                                    options.pipelines.staged.splitBackward));
    if (!models.back())
      return unknown;
  }
  ModelStages stages(imported, options, known);
  llvm::SmallVector<RematTrial> trials(models.front()->costs.stages.size());
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    const std::shared_ptr<StagedModel> model = mixed(models, trials);
    const std::optional<KeptBytes> kept = keptBytes(stages, *model, options);
    if (!kept)
      return unknown;
    const std::vector<double> fixed = stages.fixedBytes(*model, kept->places);
    for (auto [stage, rank] : llvm::enumerate(kept->places)) {
      const std::optional<int64_t> limit = options.limitOf(rank);
      const double bytes = fixed[rank] + static_cast<double>(kept->most[rank]);
      if (!limit || bytes <= static_cast<double>(*limit))
        continue;
      if (!trials[stage % trials.size()].skip())
        return {};
      isChanged = true;
    }
  }
  return trials;
}

/// Whether the step to beat is no longer than one with the modes that, on each
/// rank, were the last not to fit.
bool Compilation::isBeaten(llvm::ArrayRef<RematTrial> trials) {
  if (!std::isfinite(stepToBeat) || options.machineModel().isUneven())
    return false;
  CompileOptions tried = options;
  tried.dropMemoryLimits();
  tried.pipelines.staged.remat =
      joinModes(llvm::map_to_vector(trials, [](const RematTrial &trial) {
        return kRematModesByTime[trial.numberBefore()].str();
      }));
  std::swap(options, tried);
  const double step = tryPlan().step;
  std::swap(options, tried);
  return std::isfinite(step) && !isShorterStep(step, stepToBeat);
}

/// Where nothing fits, what is recomputed in tasks of its own may: these take
/// room for one of them alone. Plans that are only compared do without it, as
/// who compares them tries it, too.
LogicalResult Compilation::chooseRemat() {
  StagedPipelineOptions &staged = options.pipelines.staged;
  FailureOr<bool> fits = decideRemat();
  if (failed(fits))
    return mlir::emitError(module().getLoc()) << kNoneIsFaster;
  if (!*fits && !staged.earlyRecompute && options.offload == 0 &&
      !options.pipelines.scheduled.draft) {
    CompileOptions late = options;
    staged.remat = "auto";
    staged.earlyRecompute = true;
    // Schedules that move stashes have no room for such tasks.
    if (!decideRemat().value_or(false) || !tryPlan().fits())
      options = std::move(late);
    else
      options.given["early_recompute"] = true;
  }
  options.given["remat"] = staged.remat.getValue();
  return success();
}

/// On each rank the mode that recomputes least within the limit, as what one
/// rank keeps is hardly another's matter; the smallest mode on ranks that no
/// mode fits, for the error; or one of whole layers where that is faster, or
/// alone fits. Where the schedule is still to be chosen, all ranks have one
/// of the modes that are listed. False if nothing fits; fails if the step to
/// beat is shorter.
FailureOr<bool> Compilation::decideRemat() {
  const bool forAll = !options.stageChoices.empty();
  // By stage, once it is known where each is.
  llvm::SmallVector<RematTrial> trials(1);
  if (options.limitsMemory() && !forAll)
    trials = trialsFor(module(), options, staged);
  CompileOptions decided = options;
  if (trials.empty()) {
    // Who compares it with a plan that fits has no use for the least that it
    // may need.
    if (std::isfinite(stepToBeat)) {
      options.pipelines.staged.remat = std::end(kRematModesByTime)[-1].str();
      return false;
    }
    trials.resize(1);
  }
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
    const Draft trial = onCopy([&] {
      ScopedDiagnosticHandler silence(context.get(),
                                      [](Diagnostic &) { return success(); });
      // Where none fits, by how much is known from one of them.
      (void)chooseSchedule();
      return tryPlan();
    });
    std::swap(options, tried);
    Bytes bytes =
        trial.beyondLimit([&](int64_t rank) { return options.limitOf(rank); });
    if (forAll)
      bytes = {*llvm::max_element(bytes)};
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
  // A step to beat is one of a plan with layers that are computed again, too.
  if (!forAll && options.limitsMemory() && isBeaten(trials))
    return failure();
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
  // What is computed again has room beside what is kept, so more of that may
  // need less. Of one stage a few trials take little time.
  for (int64_t more : {10, 7, 5, 3}) {
    const RematTrial before = trials.front();
    if (trials.size() > 1 || forAll || !trials.front().keepMore(more))
      continue;
    if (beyond().front() == 0)
      break;
    trials.front() = before;
  }
  decide();
  options = std::move(decided);
  if (forAll || !options.limitsMemory())
    return true;
  return compareWithLayers() ||
         llvm::none_of(trials, [](const RematTrial &trial) {
           return trial.isTooSmall();
         });
}

/// The modes of stages, `mode` in place of those that compute products again.
static std::string withLayers(StringRef modes, StringRef mode) {
  llvm::SmallVector<StringRef> words;
  modes.split(words, ',');
  for (StringRef &word : words)
    if (word != "none" && word != "pointwise")
      word = mode;
  return llvm::join(words, ",");
}

/// Takes a mode that computes layers again where its plan is faster, or alone
/// fits, on all ranks or on those that recompute: how many messages wait on a
/// rank depends on the modes of others, too, and `keep:N` counts what is
/// computed again beside all that is kept, though some of that is not needed
/// any more by then. False if the plan does not fit, or nothing is
/// recomputed.
bool Compilation::compareWithLayers() {
  auto &remat = options.pipelines.staged.remat;
  const std::string chosen = remat;
  if (chosen == "none")
    return false;
  std::string best = chosen;
  double least = tryPlan().step;
  ScopedDiagnosticHandler silence(context.get(),
                                  [](Diagnostic &) { return success(); });
  // Runs of layers may be all of a stage, in some of these modes.
  std::vector<std::shared_ptr<const StagedModel>> known = {madeStages()};
  auto compare = [&](const std::string &modes) {
    remat = modes;
    // Plans are looked at where by estimates they may be faster.
    if (modes == chosen ||
        tool::estimateStep(module(), options, least, staged).least >= least)
      return;
    auto model = madeStages();
    if (llvm::any_of(known, [&](const auto &other) {
          return other->costs.stages == model->costs.stages;
        }))
      return;
    known.push_back(model);
    if (const double step = tryPlan().step; isShorterStep(step, least))
      std::tie(best, least) = std::pair(modes, step);
  };
  for (StringRef mode : {"every:1", "every:2", "every:3", "every:4", "full"}) {
    compare(mode.str());
    if (std::string some = withLayers(chosen, mode); some != mode)
      compare(some);
  }
  remat = best;
  return std::isfinite(least);
}

/// Warns of tasks for recomputation that do not exist, and of windows of
/// stashes, and of stashes on hosts, with which the fullest rank needs no less
/// than with all stashes: what is computed again has room beside those that are
/// kept, and another rank may be the fullest.
void Compilation::compareWithKept() {
  auto &remat = options.pipelines.staged.remat;
  auto &offload = options.pipelines.scheduled.offload;
  const std::string modes = remat, moved = offload;
  const double share = options.offload;
  llvm::SmallVector<StringRef> words;
  StringRef(modes).split(words, ',');
  const bool hasWindows = llvm::any_of(words, pipe::isWindowMode);
  if (begin == Level::Import && options.pipelines.staged.earlyRecompute &&
      !recomputesEarly(options))
    mlir::emitWarning(module().getLoc())
        << "early-recompute makes no task: with remat '" << modes
        << "' no backward recomputes anything before it needs a gradient: "
           "leave it out";
  if (begin != Level::Import || (!hasWindows && share == 0))
    return;
  const Draft trial = tryPlan();
  const int64_t bytes = trial.mostBytes();
  auto warn = [&](const llvm::Twine &what, const std::string &other,
                  StringRef advice) {
    const int64_t whole = tryPlan().mostBytes();
    if (bytes >= whole && bytes < std::numeric_limits<int64_t>::max())
      mlir::emitWarning(module().getLoc())
          << what << ", but its largest arena (" << codegen::formatBytes(bytes)
          << ") is no smaller than with '" << other << "' ("
          << codegen::formatBytes(whole) << "): " << advice;
  };
  if (hasWindows) {
    for (StringRef &word : words)
      if (pipe::isWindowMode(word))
        word = "none";
    const std::string kept = llvm::join(words, ",");
    remat = kept;
    warn("remat '" + modes + "' recomputes", kept,
         "keep all stashes, or those of fewer micro-batches");
    remat = modes;
  }
  if (share > 0 && trial.fits() && !trial.usesHosts()) {
    mlir::emitWarning(module().getLoc())
        << "offload '" << moved
        << "' moves no stash to hosts: none is within that share and back "
           "before its backward: leave it out";
  } else if (share > 0) {
    offload = "none";
    options.offload = 0;
    warn("offload '" + moved + "' moves stashes to hosts", "none",
         "leave it out");
    offload = moved;
    options.offload = share;
  }
}

} // namespace pipewright::tool
