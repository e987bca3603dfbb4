//===- PlanSearch.cpp - Compares schedules of one size --------------------===//
//
// See PlanSearch.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/PlanSearch.h"

#include "passes/schedules/BuiltSchedules.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/StepBounds.h"

#include <algorithm>

using namespace pipewright::schedules;

/// Shares of a time below which two are the same.
static constexpr double rounding = 1e-12;

llvm::ArrayRef<Recipe> pipewright::schedules::allRecipes() {
  static constexpr Recipe all[] = {
      {Recipe::First::DeepestForward, true, Recipe::Room::Flat, 0},
      {Recipe::First::LikeBest, true, Recipe::Room::Flat, 0.5},
      {Recipe::First::DeepestForward, true, Recipe::Room::Flat, 0.5},
      {Recipe::First::GroupsOfForwards, true, Recipe::Room::Flat, 0},
      {Recipe::First::DeepestForward, true, Recipe::Room::Falling, 0},
      {Recipe::First::DeepestForward, true, Recipe::Room::All, 0},
      {Recipe::First::DeepestForward, false, Recipe::Room::Flat, 0},
      {Recipe::First::LikeBest, false, Recipe::Room::Flat, 0.5},
      {Recipe::First::GroupsOfForwards, false, Recipe::Room::Flat, 0},
  };
  return all;
}

std::vector<Placement>
pipewright::schedules::placementsFor(const ScheduleOptions &options) {
  std::vector<Placement> all = {loopPlacement(options.stages, options.ranks)};
  for (const Policy *policy : allPolicies()) {
    if (policy->isChoice() || policy->copies() != 1)
      continue;
    ScheduleOptions its = options;
    its.parameters.clear();
    its.costs = nullptr;
    its.edges = {};
    llvm::Expected<Placement> placement = policy->place(its);
    if (!placement)
      llvm::consumeError(placement.takeError());
    else if (!llvm::is_contained(all, *placement))
      all.push_back(std::move(*placement));
  }
  return all;
}

std::string Recipe::describe(llvm::StringRef best) const {
  std::string text = "list schedule, ";
  switch (first) {
  case First::DeepestForward:
    text += "deepest forward first";
    break;
  case First::GroupsOfForwards:
    text += "groups of P micro-batches";
    break;
  case First::LikeBest:
    text += ("after " + best).str();
    break;
  }
  if (splits)
    text += ", I and W";
  text += room == Room::Flat      ? ", 2P-1 stashes"
          : room == Room::Falling ? ", fewer stashes on later ranks"
                                  : "";
  if (patience > 0)
    text += ", waits for what it prefers";
  return text;
}

PlanSearch::PlanSearch(const Policy &self, const Schedule &frame,
                       const ScheduleOptions &options, const TaskCosts &costs,
                       const PlanLimits &limits)
    : self(self), frame(frame), options(options), costs(costs), limits(limits),
      stagesOfRank(frame.ranks),
      hasStashBytes(llvm::any_of(
          costs.stages, [](const auto &cost) { return cost.stashBytes > 0; })) {
  for (int32_t rank : frame.rankOfStage)
    ++stagesOfRank[rank];
  auto least = [&](BackwardForm form) {
    return leastStep(frame.rankOfStage, frame.ranks, frame.microBatches, costs,
                     options.edges, form);
  };
  leastOfHalves = least(BackwardForm::Halves);
  leastOfWhole = least(BackwardForm::Whole);
}

PlanLimits PlanLimits::of(const ScheduleOptions &options) {
  return {std::min(options.parameter("limit", -1), options.microBatches),
          options.parameter("limit-bytes", -1),
          options.parameter("unsplit", 0) == 0};
}

bool PlanLimits::hold(const Schedule &schedule,
                      const Simulation &simulation) const {
  for (auto [rank, summary] : llvm::enumerate(simulation.ranks)) {
    auto share = shares * llvm::count(schedule.rankOfStage, rank);
    if ((shares >= 0 && summary.peakInFlight > share) ||
        (bytes >= 0 && summary.peakStashBytes > bytes))
      return false;
  }
  return true;
}

bool pipewright::schedules::canBeChosen(const Policy &policy,
                                        const ScheduleOptions &options,
                                        const PlanLimits &limits) {
  return !policy.isChoice() && policy.copies() == 1 && policy.trains() &&
         policy.weightRule() == WeightRule::Synchronous &&
         policy.updates(options) == 1 &&
         (limits.splits || !policy.splitsBackward());
}

int64_t pipewright::schedules::peakOf(const Simulation &simulation,
                                      bool hasBytes) {
  int64_t peak = 0;
  for (const RankSummary &rank : simulation.ranks)
    peak = std::max(peak, hasBytes ? rank.peakStashBytes : rank.peakInFlight);
  return peak;
}

/// Tries a policy twice: the way the user gets it by name, and with as many
/// stashes as the user allows. More of them do not make every plan better.
void PlanSearch::tryPolicy(const Policy &policy) {
  ScheduleOptions its = options;
  its.parameters.clear();
  its.microBatches = frame.microBatches;
  its.costs = &costs;
  tryPolicy(policy, its);
  bool hasLimit =
      llvm::any_of(policy.parameters(), [](const PolicyParameter &known) {
        return known.name == "limit";
      });
  if (hasLimit && limits.shares >= 1) {
    its.parameters.emplace_back("limit", limits.shares);
    tryPolicy(policy, its);
  }
}

void PlanSearch::tryPolicy(const Policy &policy, const ScheduleOptions &its) {
  // What moves is of one whole order, and orders are changed here.
  if (&policy == &self || policy.stashLimit(its) ||
      !canBeChosen(policy, its, limits))
    return;
  llvm::Expected<Placement> placement = policy.place(its);
  if (!placement) {
    llvm::consumeError(placement.takeError());
    return;
  }
  if (*placement != frame.rankOfStage)
    return;
  BuiltSchedules own;
  auto built = (options.built ? *options.built : own).of(policy, its);
  if (!built) {
    reason = llvm::toString(built.takeError());
    return;
  }
  if (!sumsAscending((*built)->schedule))
    return;
  double before = found.step;
  offer((*built)->schedule, (*built)->simulation, policy.name().str());
  if (found.step < before)
    namedSplits = policy.splitsBackward();
}

void PlanSearch::tryPolicies() {
  for (const Policy *policy : allPolicies())
    tryPolicy(*policy);
  named = found.schedule;
}

/// Keeps a whole schedule if it is the best so far; its step time, if it is
/// allowed.
double PlanSearch::offer(const Schedule &candidate,
                         const Simulation &simulation, std::string origin) {
  if (!limits.hold(frame, simulation))
    return infinity;
  double step = simulation.globalStepTime;
  int64_t peak = peakOf(simulation, hasStashBytes);
  bool isShorter = step < found.step * (1 - rounding);
  bool isEqual = !isShorter && step <= found.step * (1 + rounding);
  if (isShorter || (isEqual && peak < found.peak)) {
    found = {candidate, step, peak};
    found.schedule.origin = std::move(origin);
  }
  return step;
}

std::vector<RankLimit> PlanSearch::limitsOf(Recipe::Room room) const {
  std::vector<RankLimit> all(frame.ranks);
  for (int64_t rank = 0; rank < frame.ranks; ++rank) {
    int64_t stages = stagesOfRank[rank];
    int64_t inFlight = std::numeric_limits<int64_t>::max();
    if (limits.shares >= 0)
      inFlight = limits.shares * stages;
    if (room == Recipe::Room::Flat)
      inFlight = std::min(inFlight, (2 * frame.ranks - 1) * stages);
    if (room == Recipe::Room::Falling)
      inFlight = std::min(inFlight, 2 * (frame.ranks - rank) - 1 +
                                        2 * (stages - 1) * frame.ranks);
    if (inFlight < std::numeric_limits<int64_t>::max())
      all[rank].inFlight = std::max(inFlight, stages);
    all[rank].stashBytes = limits.bytes;
  }
  return all;
}

void PlanSearch::tryRecipe(const Recipe &recipe) {
  const double least = recipe.splits ? leastOfHalves : leastOfWhole;
  if (found.step > least * (1 + rounding))
    stepOf(recipe, found.step * kListRounding);
}

/// Of a recipe that is allowed and takes no longer than `most`; keeps the order
/// if it is the best so far.
double PlanSearch::stepOf(const Recipe &recipe, double most) {
  if (recipe.splits && !limits.splits)
    return infinity;
  ListOptions list;
  list.costs = &costs;
  list.edges = options.edges;
  list.limits = limitsOf(recipe.room);
  list.splitsBackward = recipe.splits;
  list.patience = recipe.patience;
  list.most = most;
  if (recipe.first == Recipe::First::GroupsOfForwards)
    list.priority = preferBackwardInGroups(frame.ranks);
  if (recipe.first == Recipe::First::LikeBest) {
    if (named.order.empty() || namedSplits != recipe.splits)
      return infinity;
    list.priority = preferAsIn(named);
  }
  Schedule schedule = frame;
  if (llvm::Error error = orderByList(schedule, list)) {
    reason = llvm::toString(std::move(error));
    return infinity;
  }
  if (schedule.order.empty())
    return infinity;
  addRecomputes(schedule, costs);
  for (int32_t stage = 0; stage < frame.stages; ++stage)
    schedule.order[frame.rankOfStage[stage]].push_back(Task::update(stage));
  llvm::Expected<Simulation> simulation =
      simulate(schedule, costs, options.edges);
  if (!simulation) {
    reason = llvm::toString(simulation.takeError());
    return infinity;
  }
  return offer(schedule, *simulation, recipe.describe(named.origin));
}

std::vector<Recipe> PlanSearch::ranked(llvm::ArrayRef<Recipe> recipes) {
  std::vector<std::pair<double, size_t>> order;
  for (auto [i, recipe] : llvm::enumerate(recipes))
    if (const double step = stepOf(recipe, infinity); step < infinity)
      order.emplace_back(step, i);
  llvm::sort(order);
  std::vector<Recipe> best;
  for (auto [step, i] : order)
    best.push_back(recipes[i]);
  return best;
}

llvm::Error PlanSearch::explain() const { return refuse("{0}", reason); }
