//===- PlanChoice.cpp - The fastest of all plans --------------------------===//
//
// A plan is known once programs of ranks are whole and their memory is planned.
// To take every candidate so far would be slow. But the schedule alone,
// simulated without sums, takes no longer than the whole plan: candidates are
// made whole in the order of that bound, until it says that the rest is slower.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/PlanChoice.h"

#include "passes/schedules/StepBounds.h"
#include "passes/schedules/policies/PlanSearch.h"
#include "passes/step/Prediction.h"
#include "tools/pipewright/MemoryLimits.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::tool;

namespace {

/// What is known of it gets more, and more exact, while it may be the fastest.
struct Candidate {
  std::shared_ptr<const StagedModel> model;
  schedules::PolicyChoice policy;
  bool splits = false;
  /// As the user could have given it, and what it came to.
  std::string schedule, origin;
  /// Whether its order was simulated with the costs of `model`.
  bool isSimulated = false;
  /// No plan of it has a shorter one; nor takes its fullest rank less.
  double step = 0;
  int64_t peak = 0, leastBytes = 0;
  /// Once it is complete.
  Draft draft;
  /// Whether it fits if stages keep what is expected of them.
  bool isExpectedToFit = true;

  bool operator<(const Candidate &other) const {
    return std::tie(step, peak, schedule) <
           std::tie(other.step, other.peak, other.schedule);
  }
};

class PlanChooser {
public:
  PlanChooser(ModuleOp imported, const CompileOptions &options,
              double stepToBeat, StagedModels &known)
      : imported(imported), options(options), models(imported, options, known),
        machine(options.machineModel()),
        limits(schedules::PlanLimits::of(options.sizes())),
        mostBytes(mostBytesOf(options)), stepToBeat(stepToBeat) {}

  /// The one with the shortest step, of those whose tasks alone take no longer
  /// than the step to beat.
  std::optional<Candidate> choose();
  /// See estimateStep.
  StepEstimate estimate(double enough);
  /// See schedulesByBound.
  llvm::SmallVector<ScheduleBound> bounds();
  /// Where nothing was chosen: why, if that is memory or the step to beat.
  Refusal reason() const;

private:
  void addCandidates(const std::shared_ptr<const StagedModel> &model,
                     bool splits);
  void addCandidate(const std::shared_ptr<const StagedModel> &model,
                    bool splits, schedules::PolicyChoice policy,
                    std::string schedule);
  void addNamed(const std::shared_ptr<const StagedModel> &model, bool splits,
                std::string schedule);
  void addAllCandidates();
  std::shared_ptr<const TimedSchedule> timesOf(const Candidate &candidate) {
    return models.timesOf(*candidate.model, candidate.splits, candidate.policy,
                          candidate.schedule, built[candidate.model]);
  }
  std::optional<int64_t> leastOf(const Candidate &candidate) const;
  bool keepsTooMuch(Candidate &candidate) const;
  std::shared_ptr<const TimedSchedule> fastestNamed(const Candidate &choice);
  /// Puts it back with what a simulation says, where it may fit.
  void simulate(Candidate candidate);
  /// Makes the plan; false where it is not possible within the limits.
  bool complete(Candidate &candidate);
  void refuseForMemory(const Candidate &candidate);

  ModuleOp imported;
  const CompileOptions &options;
  ModelStages models;
  const MachineModel &machine;
  const schedules::PlanLimits limits;
  const int64_t mostBytes;
  const double stepToBeat;
  /// The one that may be the fastest comes first.
  std::multiset<Candidate> candidates;
  /// Those of one copy of the model that a choice among schedules looks at.
  std::vector<Candidate> named;
  std::map<std::shared_ptr<const StagedModel>, schedules::BuiltSchedules> built;
  /// Candidates that may be faster and of which all is known, and those of them
  /// that take too much.
  size_t faster = 0, tooLarge = 0;
  /// Whether a plan was made that takes longer than the step to beat.
  bool isAnySlower = false;
  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();
  int64_t leastBytes = unlimited;
  /// Of simulated ones that take too much, the least step.
  double leastRefused = std::numeric_limits<double>::infinity();
};

} // namespace

/// Whether the model was cut for where a policy puts its stages.
static bool isCutFor(const StagedModel &model, const schedules::Policy &policy,
                     const schedules::ScheduleOptions &sizes) {
  if (model.places.empty())
    return true;
  llvm::Expected<schedules::Placement> places = policy.place(sizes);
  if (places)
    return *places == model.places;
  llvm::consumeError(places.takeError());
  return false;
}

/// Whether what bounds the step of synchronous schedules of one copy of the
/// model bounds its own.
static bool isBounded(const schedules::Policy &policy,
                      const schedules::ScheduleOptions &sizes) {
  return policy.copies() == 1 && policy.updates(sizes) == 1 &&
         policy.weightRule() == schedules::WeightRule::Synchronous;
}

void PlanChooser::addCandidate(const std::shared_ptr<const StagedModel> &model,
                               bool splits, schedules::PolicyChoice policy,
                               std::string schedule) {
  const schedules::ScheduleOptions sizes = policy.with(models.sizesOf(*model));
  if (!isCutFor(*model, *policy, sizes))
    return;
  Candidate candidate;
  const bool hasBounds = isBounded(*policy, sizes);
  if (hasBounds) {
    // One that chooses places takes those of another one.
    std::vector<schedules::Placement> all;
    if (policy->isChoice()) {
      all = schedules::placementsFor(sizes);
    } else if (auto places = policy->place(sizes)) {
      all.push_back(std::move(*places));
    } else {
      return llvm::consumeError(places.takeError());
    }
    candidate.step = std::numeric_limits<double>::infinity();
    const auto form = splits ? schedules::BackwardForm::Halves
                             : schedules::BackwardForm::Whole;
    for (const schedules::Placement &places : all) {
      double least = leastStep(places, sizes.ranks, sizes.microBatches,
                               model->costs, model->edges, form);
      if (!policy->stashLimit(sizes) && sizes.offload == 0)
        least = std::max(least, schedules::leastStepWithin(
                                    models.freeBytes(*model, places), places,
                                    sizes.microBatches, model->costs,
                                    model->edges, form));
      candidate.step = std::min(candidate.step, least);
    }
  }
  candidate.step *= model->slack;
  candidate.model = model;
  candidate.policy = std::move(policy);
  candidate.splits = splits;
  candidate.origin = candidate.schedule = std::move(schedule);
  if (hasBounds && !candidate.policy->isChoice())
    named.push_back(candidate);
  candidates.insert(std::move(candidate));
}

void PlanChooser::addNamed(const std::shared_ptr<const StagedModel> &model,
                           bool splits, std::string schedule) {
  llvm::Expected<schedules::PolicyChoice> choice =
      schedules::choosePolicy(schedule);
  if (!choice)
    return llvm::consumeError(choice.takeError());
  addCandidate(model, splits, std::move(*choice), std::move(schedule));
}

void PlanChooser::refuseForMemory(const Candidate &candidate) {
  ++faster;
  ++tooLarge;
  leastBytes = std::min(leastBytes, candidate.leastBytes);
}

/// What the fullest rank takes at least, before a simulation; none where its
/// order depends on times.
std::optional<int64_t> PlanChooser::leastOf(const Candidate &candidate) const {
  const StagedModel &model = *candidate.model;
  auto kept = models.keptBytes(model, candidate.policy, candidate.schedule);
  if (!kept)
    return std::nullopt;
  return models.fullestOf(model, *kept, model.keptSlack);
}

/// Whether it is known not to fit before it is simulated. One that plans with
/// times needs about as much as others.
bool PlanChooser::keepsTooMuch(Candidate &candidate) const {
  if (mostBytes == unlimited)
    return false;
  if (auto least = leastOf(candidate)) {
    candidate.leastBytes = *least;
    return *least > mostBytes;
  }
  if (!candidate.policy->plansWithTimes())
    return false;
  candidate.leastBytes = unlimited;
  for (const Candidate &other : named)
    if (other.model == candidate.model && other.splits == candidate.splits)
      if (auto least = leastOf(other))
        candidate.leastBytes = std::min(candidate.leastBytes, *least);
  return candidate.leastBytes < unlimited && candidate.leastBytes > mostBytes;
}

/// Of schedules that are known by name, where one that chooses would find its
/// own; null if there is none.
std::shared_ptr<const TimedSchedule>
PlanChooser::fastestNamed(const Candidate &choice) {
  std::shared_ptr<const TimedSchedule> best;
  for (const Candidate &other : named) {
    if (other.model != choice.model || other.splits != choice.splits)
      continue;
    auto schedule = timesOf(other);
    if (schedule && (!best || schedule->step < best->step))
      best = schedule;
  }
  return best;
}

void PlanChooser::simulate(Candidate candidate) {
  const StagedModel &model = *candidate.model;
  if (keepsTooMuch(candidate)) {
    leastRefused = std::min(leastRefused, candidate.step);
    refuseForMemory(candidate);
    return;
  }
  // What is faster than all that have names needs about as much as the fastest
  // of them, and planning it takes long.
  if (candidate.policy->isChoice() && mostBytes < unlimited)
    if (auto best = fastestNamed(candidate);
        best &&
        models.fullestOf(model, best->kept, model.keptSlack) > mostBytes) {
      ++faster;
      ++tooLarge;
      leastRefused = std::min(leastRefused, candidate.step);
      return;
    }
  const std::shared_ptr<const TimedSchedule> schedule = timesOf(candidate);
  if (!schedule)
    return;
  candidate.isSimulated = true;
  candidate.origin = schedule->origin;
  candidate.step = model.slack * schedule->step;
  candidate.peak = schedule->peak;
  candidate.leastBytes =
      models.fullestOf(model, schedule->kept, model.keptSlack);
  candidate.isExpectedToFit =
      models.fullestOf(model, schedule->kept, 1) <= mostBytes;
  if (candidate.leastBytes > mostBytes) {
    leastRefused = std::min(leastRefused, candidate.step);
    refuseForMemory(candidate);
  } else {
    candidates.insert(std::move(candidate));
  }
}

void PlanChooser::addCandidates(const std::shared_ptr<const StagedModel> &model,
                                bool splits) {
  std::string own = options.pipelines.scheduled.policy;
  if (options.stageChoices.empty())
    return addCandidate(model, splits, options.policy, std::move(own));
  for (const schedules::Policy *policy : schedules::allPolicies()) {
    if (policy->splitsBackward() != splits ||
        !canBeChosen(*policy, models.sizesOf(*model), limits))
      continue;
    const std::string name = policy->name().str();
    addNamed(model, splits, name);
    bool hasLimit = llvm::any_of(policy->parameters(), [](const auto &known) {
      return known.name == "limit";
    });
    if (hasLimit && limits.shares >= 1)
      addNamed(model, splits, name + ":limit=" + std::to_string(limits.shares));
  }
  // What it plans itself. To list as many tasks of what is only compared takes
  // longer than all others.
  constexpr int64_t manyPairs = 1 << 15;
  if (options.pipelines.scheduled.draft &&
      model->stages * options.microBatches > manyPairs)
    return;
  if (!splits && limits.splits)
    own += ":unsplit";
  addNamed(model, splits, std::move(own));
}

bool PlanChooser::complete(Candidate &candidate) {
  OwningOpRef<ModuleOp> module = models.copyOf(*candidate.model);
  PipelineOptions pipelines = options.pipelines;
  pipelines.scheduled.policy = candidate.schedule;
  pipelines.setDraft(true);
  PassManager pm(imported.getContext());
  pm.enableVerifier(false);
  buildUnrolledPipeline(pm, pipelines.unrolled);
  buildScheduledPipeline(pm, pipelines.scheduled);
  // Bodies get their last copies when memory is planned.
  buildAllocatedPipeline(pm, pipelines.allocated);
  if (failed(pm.run(*module)))
    return false;
  candidate.draft = Draft::ofMemory(*module);
  if (llvm::any_of(module->getOps<pipe::ArenaOp>(), [&](pipe::ArenaOp arena) {
        return isBeyondLimit(arena, options);
      })) {
    candidate.leastBytes = candidate.draft.mostBytes();
    refuseForMemory(candidate);
    return false;
  }
  ++faster;
  FailureOr<pipe::Stages> stages = pipe::Stages::read(*module);
  if (failed(stages))
    return false;
  FailureOr<pipe::Prediction> prediction =
      pipe::predictStep(*module, *stages, machine);
  if (failed(prediction))
    return false;
  candidate.draft.setStep(prediction->simulation);
  candidate.step = candidate.draft.step;
  candidate.peak = peakOf(prediction->simulation, /*hasBytes=*/true);
  return limits.hold(prediction->order, prediction->simulation);
}

void PlanChooser::addAllCandidates() {
  const bool isGiven = options.stageChoices.empty();
  std::vector<int64_t> counts = options.stageChoices;
  if (isGiven)
    counts = {options.pipelines.staged.stages};
  for (int64_t stages : counts) {
    for (bool splits : {false, true}) {
      if (isGiven ? splits != options.pipelines.staged.splitBackward
                  : splits && !limits.splits)
        continue;
      if (auto estimate = models.estimated(stages, splits)) {
        addCandidates(estimate, splits);
        continue;
      }
      for (schedules::Placement &places : models.placementsOf(stages))
        if (auto model = models.made(stages, splits, std::move(places));
            model->module)
          addCandidates(model, splits);
    }
  }
}

StepEstimate PlanChooser::estimate(double enough) {
  StepEstimate result;
  addAllCandidates();
  if (!candidates.empty()) {
    const StagedModel &model = *candidates.begin()->model;
    for (const schedules::StageCosts &stage : model.costs.stages)
      result.pass += model.slack * stage.forward;
  }
  bool isKnown = false;
  while (!candidates.empty() && !result.isSimulated) {
    const Candidate &first = *candidates.begin();
    if (!isKnown) {
      result.least = first.step;
      result.leastOfMore = std::min(first.step, leastRefused);
    }
    if (first.step > enough) {
      result.isSimulated = isKnown;
      return result;
    }
    Candidate candidate =
        std::move(candidates.extract(candidates.begin()).value());
    if (!candidate.isSimulated) {
      simulate(std::move(candidate));
      continue;
    }
    isKnown = true;
    result.expected = candidate.step / candidate.model->slack;
    result.isSimulated = candidate.isExpectedToFit;
  }
  if (isKnown) {
    result.isSimulated = true;
    return result;
  }
  result.least = std::numeric_limits<double>::infinity();
  result.leastOfMore = leastRefused;
  result.why = reason();
  return result;
}

std::optional<Candidate> PlanChooser::choose() {
  addAllCandidates();
  // Tasks that the model has no need of take 0.1 us in a bound.
  constexpr double slack = 1 + 1e-3;
  std::optional<Candidate> best;
  double most = stepToBeat;
  while (!candidates.empty() && candidates.begin()->step <= most * slack) {
    Candidate candidate =
        std::move(candidates.extract(candidates.begin()).value());
    if (!candidate.isSimulated) {
      simulate(std::move(candidate));
      continue;
    }
    if (!candidate.model->estimate.empty()) {
      candidate.model =
          models.made(candidate.model->stages, candidate.splits, {});
      if (candidate.model->module)
        simulate(std::move(candidate));
      continue;
    }
    if (!complete(candidate))
      continue;
    // Others that are not looked at may be faster than that.
    if (!isShorterStep(candidate.step, stepToBeat)) {
      isAnySlower = true;
      --faster;
      continue;
    }
    bool isEqual = best && !isShorterStep(candidate.step, best->step) &&
                   !isShorterStep(best->step, candidate.step);
    if (!best || isShorterStep(candidate.step, best->step) ||
        (isEqual && candidate.peak < best->peak))
      best = candidate;
    most = std::min(most, best->step);
  }
  if (best)
    best->draft.isLimited = tooLarge > 0;
  return best;
}

llvm::SmallVector<ScheduleBound> PlanChooser::bounds() {
  addAllCandidates();
  std::map<std::tuple<std::string, int64_t>, ScheduleBound> all;
  for (const Candidate &one : named) {
    auto [known, isNew] = all.try_emplace(
        {one.schedule, one.model->stages},
        ScheduleBound{one.schedule, one.splits, one.model->stages, one.step});
    known->second.step = std::min(known->second.step, one.step);
  }
  std::multimap<double, ScheduleBound> sorted;
  for (ScheduleBound &one : llvm::make_second_range(all))
    sorted.insert({one.step, std::move(one)});
  return llvm::to_vector_of<ScheduleBound>(llvm::make_second_range(sorted));
}

Refusal PlanChooser::reason() const {
  if ((faster == 0 || (tooLarge > 0 && leastBytes == unlimited)) &&
      (isAnySlower || !candidates.empty()))
    return {kNoneIsFaster.str(), {}};
  return tooLarge > 0 && tooLarge == faster
             ? Refusal::needsMore(leastBytes, options)
             : Refusal();
}

Refusal pipewright::tool::choosePlan(ModuleOp imported, CompileOptions &options,
                                     double stepToBeat, StagedModels &known,
                                     std::optional<Draft> &draft) {
  draft.reset();
  if (options.stageChoices.empty())
    return {};
  // A plan that is not possible is no candidate, and not worth a word.
  ScopedDiagnosticHandler silence(imported.getContext(),
                                  [](Diagnostic &) { return success(); });
  PlanChooser chooser(imported, options, stepToBeat, known);
  std::optional<Candidate> best = chooser.choose();
  options.stageChoices.clear();
  if (!best)
    return chooser.reason();
  auto policy = schedules::choosePolicy(best->schedule);
  if (!policy)
    return {llvm::toString(policy.takeError()), {}};
  draft = std::move(best->draft);
  options.chosen = best->origin;
  options.policy = std::move(*policy);
  options.pipelines.scheduled.policy = best->schedule;
  options.pipelines.staged.splitBackward = best->splits;
  options.pipelines.staged.stages = best->model->stages;
  options.pipelines.staged.rankOfStage = llvm::ArrayRef(std::vector<int64_t>(
      best->model->places.begin(), best->model->places.end()));
  options.given["stages"] = best->model->stages;
  return {};
}

llvm::SmallVector<ScheduleBound> pipewright::tool::schedulesByBound(
    ModuleOp imported, const CompileOptions &options, StagedModels &known) {
  ScopedDiagnosticHandler silence(imported.getContext(),
                                  [](Diagnostic &) { return success(); });
  return PlanChooser(imported, options, std::numeric_limits<double>::infinity(),
                     known)
      .bounds();
}

StepEstimate pipewright::tool::estimateStep(ModuleOp imported,
                                            const CompileOptions &options,
                                            double enough,
                                            StagedModels &known) {
  PlanChooser chooser(imported, options,
                      std::numeric_limits<double>::infinity(), known);
  return chooser.estimate(enough);
}
