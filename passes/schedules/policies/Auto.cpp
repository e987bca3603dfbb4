//===- Auto.cpp - The best of all, by the times at hand ---------*- C++ -*-===//
//
// No paper has it. It simulates, with measured or predicted times and links,
// every schedule of the registry that the sizes and the memory limit allow,
// and several that the list scheduler makes, and takes the one with the
// shortest step; of equal ones, the one that keeps least. So it is never worse
// than the best named schedule with as many stages under the same limit. 2
// ranks, 4 stages, of which the first takes twice as long, 3 micro-batches;
// cells are stage.micro-batch, and the second half stands below the first. 27
// slots, where the best named one takes 28:
//
//   rank 0 | F0.0----- F0.1----- F2.0 F2.1 F0.2----- I2.0 I2.1 I0.0----- ...
//   rank 1 |           F1.0      F1.1 F3.0 I3.0 F3.1 I3.1 I1.0 I1.1 F1.2 ...
//
//   ... I0.1----- F2.2 W2.0 W0.0----- I2.2 W2.1 I0.2----- W0.1----- W2.2 W0.2
//   ... W3.0 W1.0 W3.1 F3.2 I3.2 W1.1 W3.2 I1.2 W1.2
//
// What it looks at: policies with one copy of the model, one update, and
// backwards in ascending order, as the user would get them by name. List
// schedules (PlanSearch.cpp) differ in what goes first, in the stashes they
// may keep, and in whether the backward is split; one of them follows the best
// named schedule, but lets ranks overtake where the next task's data is late.
//
// Every placement of the registry is compared too, by its named schedules and
// one list schedule, with the costs or, without any, with all stages alike, and
// always with all micro-batches: which placement is best depends on them. How
// many stages there are has to be known before anything is cut: without
// --loops, the driver plans the model with 1, 2 and 4. It also knows what no
// policy does: sums of tied weights and of replicas at the end of the step. So
// it compares whole plans, this one's among them, and takes the best
// (tools/pipewright/PlanChoice.cpp).
//
// What it costs: two simulations, some 0.2 us per task, for each of at most a
// dozen policies, and a list schedule, some 0.6 us per task, for each recipe.
// Beyond `fewPairs`, recipes are compared on fewer micro-batches and the best
// two are made in full; beyond `manyPairs` of those, the first one. Policies
// are always compared in full.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/Refusal.h"
#include "passes/schedules/policies/PlanSearch.h"
#include "passes/schedules/policies/Switch.h"

#include <algorithm>
#include <limits>

using namespace pipewright::schedules;

/// Pairs of stage and micro-batch for which every recipe takes a fraction of a
/// second, and a few seconds.
static constexpr int64_t fewPairs = 1 << 15, manyPairs = 1 << 18;

namespace {

class Auto final : public Policy {
public:
  llvm::StringRef name() const override { return "auto"; }
  llvm::StringRef summary() const override {
    return "the fastest of all schedules with as many stages (--loops; 1, 2 "
           "and 4 unless given), planned ones too, by measured or predicted "
           "times and within a memory limit";
  }
  bool isChoice() const override { return true; }
  llvm::StringRef paper() const override {
    return "none; the best of the named schedules and of list schedules";
  }
  llvm::StringRef bubbleFormula() const override {
    return "no more than that of any named schedule within the limit";
  }
  llvm::StringRef memoryFormula() const override {
    return "within 'limit' and 'limit-bytes'; else whatever is fastest";
  }
  ScheduleOptions example() const override { return {4, 8, 6}; }
  bool splitsBackward() const override { return true; }
  llvm::ArrayRef<PolicyParameter> parameters() const override {
    static constexpr PolicyParameter all[] = {
        {"limit", "most stashes of a rank's share of the model at a time"},
        {"limit-bytes", "most bytes of stashes on a rank at a time"},
        {"unsplit", "whole backwards only"}};
    return all;
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    int64_t limit = options.parameter("limit", options.microBatches);
    return std::min(limit, options.microBatches) * options.stages /
           options.ranks;
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override;
  llvm::Error orderRanks(Schedule &schedule,
                         const ScheduleOptions &options) const override;

private:
  llvm::Error checkParameters(const ScheduleOptions &options) const;
  double stepTimeOf(const Placement &placement,
                    const ScheduleOptions &options) const;
  std::vector<Recipe> recipesFor(Schedule frame, const ScheduleOptions &options,
                                 const TaskCosts &costs,
                                 const PlanLimits &limits) const;
};

} // namespace

llvm::Error Auto::checkParameters(const ScheduleOptions &options) const {
  for (llvm::StringRef each : {"limit", "limit-bytes"})
    if (int64_t value = options.parameter(each, 1); value < 1)
      return refuse("parameter '{0}' of schedule 'auto' expects at least 1, "
                    "but got {1}",
                    each, value);
  return checkSwitch(*this, options, "unsplit");
}

static Schedule makeFrame(const Placement &placement,
                          const ScheduleOptions &options) {
  Schedule frame;
  frame.ranks = options.ranks;
  frame.stages = options.stages;
  frame.microBatches = options.microBatches;
  frame.rankOfStage = placement;
  return frame;
}

/// Lets the options have the costs of a placement, which `costs` keeps, where
/// they depend on it.
static void useCostsAt(const Placement &placement, ScheduleOptions &options,
                       TaskCosts &costs) {
  if (!options.costsAt)
    return;
  costs = options.costsAt(placement);
  options.costs = &costs;
}

/// The shortest step that a placement is known to allow, found at a fraction of
/// what `orderRanks` spends; before there are costs, with all stages alike. All
/// that is compared here is compared there too, so that what is chosen is never
/// worse than a named schedule on another placement.
double Auto::stepTimeOf(const Placement &placement,
                        const ScheduleOptions &options) const {
  TaskCosts uniform = TaskCosts::uniform(options.stages, 1, 2);
  ScheduleOptions trial = options;
  TaskCosts own;
  useCostsAt(placement, trial, own);
  PlanLimits limits = PlanLimits::of(options);
  if (!trial.costs) {
    trial.edges = {};
    limits.bytes = -1;
  }
  Schedule frame = makeFrame(placement, trial);
  PlanSearch search(*this, frame, trial, trial.costs ? *trial.costs : uniform,
                    limits);
  search.tryPolicies();
  search.tryRecipe(firstRecipe(limits));
  return search.stepTime();
}

llvm::Expected<Placement>
Auto::placeStages(const ScheduleOptions &options) const {
  if (llvm::Error error = checkLoops(options, 0))
    return error;
  if (llvm::Error error = checkParameters(options))
    return error;
  if (options.costs)
    if (llvm::Error error = checkCosts(
            makeFrame(linearPlacement(options.stages, options.ranks), options),
            *options.costs))
      return error;
  std::vector<Placement> all = placementsFor(options);
  if (all.size() == 1)
    return all[0];
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (auto [i, placement] : llvm::enumerate(all)) {
    double step = stepTimeOf(placement, options);
    if (step < least) {
      least = step;
      best = i;
    }
  }
  return all[best];
}

/// The recipes that are worth their time in full.
std::vector<Recipe> Auto::recipesFor(Schedule frame,
                                     const ScheduleOptions &options,
                                     const TaskCosts &costs,
                                     const PlanLimits &limits) const {
  if (frame.stages * frame.microBatches <= fewPairs)
    return allRecipes().vec();
  // Warm-up and cool-down take up to 2P micro-batches.
  frame.microBatches = std::clamp(fewPairs / frame.stages,
                                  std::min(2 * frame.ranks, frame.microBatches),
                                  frame.microBatches);
  if (frame.stages * frame.microBatches > manyPairs)
    return {firstRecipe(limits)};
  PlanSearch trial(*this, frame, options, costs, limits);
  trial.tryPolicies();
  std::vector<Recipe> best = trial.ranked(allRecipes());
  constexpr size_t inFull = 2;
  best.resize(std::min(best.size(), inFull));
  // The placement was chosen by it.
  if (!llvm::is_contained(best, firstRecipe(limits)))
    best.push_back(firstRecipe(limits));
  return best;
}

llvm::Error Auto::orderRanks(Schedule &schedule,
                             const ScheduleOptions &given) const {
  ScheduleOptions options = given;
  TaskCosts own;
  useCostsAt(schedule.rankOfStage, options, own);
  TaskCosts uniform = TaskCosts::uniform(schedule.stages, 1, 2);
  const TaskCosts &costs = options.costs ? *options.costs : uniform;
  if (llvm::Error error = checkCosts(schedule, costs))
    return error;
  PlanLimits limits = PlanLimits::of(options);
  if (limits.bytes >= 0 && !options.costs)
    return refuse("auto:limit-bytes needs to know how large stashes are; use "
                  "'limit', which counts micro-batches");

  Schedule frame = makeFrame(schedule.rankOfStage, options);
  PlanSearch search(*this, frame, options, costs, limits);
  search.tryPolicies();
  search.tryRecipes(recipesFor(frame, options, costs, limits));
  if (!search.hasFound())
    return search.explain();
  Schedule best = search.take();
  schedule.origin = best.origin;
  schedule.order = std::move(best.order);
  for (std::vector<Task> &tasks : schedule.order)
    llvm::erase_if(
        tasks, [](const Task &task) { return task.kind == TaskKind::Update; });
  return llvm::Error::success();
}

const Policy &pipewright::schedules::autoPolicy() {
  static const Auto policy;
  return policy;
}
