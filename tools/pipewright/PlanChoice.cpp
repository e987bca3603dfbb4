//===- PlanChoice.cpp - The fastest of all plans --------------------------===//
//
// A plan is known once programs of ranks are whole and their memory is planned.
// To take every candidate so far would be slow. But the schedule alone,
// simulated without sums, takes no longer than the whole plan: candidates are
// made whole in the order of that bound, until it says that the rest is slower.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/PlanChoice.h"

#include "passes/schedules/WorkOrder.h"
#include "passes/schedules/policies/PlanSearch.h"
#include "passes/step/Prediction.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <limits>
#include <optional>
#include <tuple>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::tool;

/// What weights, gradients and states take at least, on all ranks of a replica.
static int64_t leastFixedBytes(ModuleOp imported, const CompileOptions &given) {
  llvm::SmallPtrSet<Attribute, 16> read;
  imported.walk(
      [&](nn::ParameterOp op) { read.insert(op.getWeightAttr().getAttr()); });
  int64_t parameters = 0;
  for (auto weight : imported.getOps<nn::WeightOp>())
    if (weight.getRole() == nn::WeightRole::Parameter &&
        read.contains(weight.getSymNameAttr()))
      parameters += pipe::byteSize(weight.getTensorType());
  const int64_t states = given.optimizer.keptStates().size();
  const auto parts = static_cast<double>(given.replicas);
  // Where bf16 copies are read, a replica needs of f32 only its part.
  double copies = given.zero >= 3 ? 1 / parts
                  : given.zero >= 1 && given.precision == Precision::BF16
                      ? 0.5 + 1 / parts
                      : 1;
  copies += given.zero >= 2 ? 1 / parts : 1;
  // Matrices lack a state that others have.
  copies += (given.optimizer.takesMatrices() ? 1 : states) /
            (given.zero >= 1 ? parts : 1);
  return static_cast<int64_t>(copies * static_cast<double>(parameters));
}

/// Of the rank that may have most.
static int64_t mostBytesOf(const CompileOptions &options) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < options.pipelines.scheduled.ranks; ++rank)
    most = std::max(most, options.limitOf(rank).value_or(
                              std::numeric_limits<int64_t>::max()));
  return most;
}

namespace {

/// The staged level for a number of stages, backwards split or whole.
struct StagedModel {
  OwningOpRef<ModuleOp> module;
  int64_t stages = 0;
  bool splits = false;
  /// Where it was cut for; empty where ranks are alike.
  schedules::Placement places;
  schedules::TaskCosts costs;
  std::vector<schedules::StageEdge> edges;
};

struct Candidate {
  const StagedModel *model = nullptr;
  /// As the user could have given it, and what it came to.
  std::string schedule, origin;
  double step = 0;
  int64_t peak = 0;
  /// No plan of it takes less on its fullest rank.
  int64_t leastBytes = 0;
};

class PlanChooser {
public:
  PlanChooser(ModuleOp imported, const CompileOptions &options)
      : imported(imported), options(options), machine(options.machineModel()),
        limits(schedules::PlanLimits::of(options.sizes())),
        mostBytes(mostBytesOf(options)),
        fixedBytes(leastFixedBytes(imported, options)) {}

  std::optional<Candidate> choose();

private:
  void addModel(int64_t stages, bool splits, schedules::Placement places);
  std::vector<schedules::Placement> placementsOf(int64_t stages) const;
  void addCandidates(const StagedModel &model);
  void addCandidate(const StagedModel &model, const schedules::Policy &policy,
                    std::string schedule);
  /// Makes the plan; false where it is not possible within the limits.
  bool complete(Candidate &candidate);
  schedules::ScheduleOptions sizesOf(const StagedModel &model) const;

  ModuleOp imported;
  const CompileOptions &options;
  const MachineModel &machine;
  const schedules::PlanLimits limits;
  const int64_t mostBytes, fixedBytes;
  std::vector<std::unique_ptr<StagedModel>> models;
  /// With bounds in place of steps.
  std::vector<Candidate> candidates;
};

} // namespace

/// One empty placement where it makes no difference.
std::vector<schedules::Placement>
PlanChooser::placementsOf(int64_t stages) const {
  if (!machine.isUneven())
    return {{}};
  schedules::ScheduleOptions sizes = options.sizes();
  sizes.stages = stages;
  return schedules::placementsFor(sizes);
}

void PlanChooser::addModel(int64_t stages, bool splits,
                           schedules::Placement places) {
  auto model = std::make_unique<StagedModel>();
  model->module = imported.clone();
  model->stages = stages;
  model->splits = splits;
  StagedPipelineOptions staged;
  staged.copyOptionValuesFrom(options.pipelines.staged);
  staged.stages = stages;
  staged.splitBackward = splits;
  staged.formKernels = true;
  staged.rankOfStage =
      llvm::ArrayRef(std::vector<int64_t>(places.begin(), places.end()));
  PassManager pm(imported.getContext());
  buildStagedPipeline(pm, staged);
  if (failed(pm.run(*model->module)))
    return;
  FailureOr<pipe::Stages> read = pipe::Stages::read(*model->module);
  if (failed(read))
    return;
  model->costs = read->costs(pipe::StepMode::train, machine, places);
  model->places = std::move(places);
  model->edges = read->edges(pipe::StepMode::train);
  models.push_back(std::move(model));
}

schedules::ScheduleOptions
PlanChooser::sizesOf(const StagedModel &model) const {
  schedules::ScheduleOptions sizes = options.sizes();
  sizes.stages = model.stages;
  sizes.costs = &model.costs;
  sizes.edges = model.edges;
  if (machine.isUneven())
    sizes.costsAt = [&](ArrayRef<int32_t> places) {
      FailureOr<pipe::Stages> stages = pipe::Stages::read(*model.module);
      return failed(stages)
                 ? model.costs
                 : stages->costs(pipe::StepMode::train, machine, places);
    };
  return sizes;
}

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

void PlanChooser::addCandidate(const StagedModel &model,
                               const schedules::Policy &policy,
                               std::string schedule) {
  llvm::Expected<schedules::PolicyChoice> choice =
      schedules::choosePolicy(schedule);
  if (!choice)
    return llvm::consumeError(choice.takeError());
  const schedules::ScheduleOptions sizes = choice->with(sizesOf(model));
  if (!isCutFor(model, policy, sizes))
    return;
  llvm::Expected<schedules::Schedule> order = policy.build(sizes);
  if (!order)
    return llvm::consumeError(order.takeError());
  if (!schedules::sumsAscending(*order))
    return;
  llvm::Expected<schedules::Simulation> simulation =
      schedules::simulateWithMoves(*order, model.costs, model.edges);
  if (!simulation)
    return llvm::consumeError(simulation.takeError());
  std::string origin = order->origin.empty() ? schedule : order->origin;
  const int64_t peak = peakOf(*simulation, /*hasBytes=*/true);
  // The fullest rank has at least what ranks have on average.
  int64_t kept = 0;
  for (const schedules::RankSummary &rank : simulation->ranks)
    kept += rank.peakStashBytes;
  candidates.push_back(
      {&model, std::move(schedule), std::move(origin),
       simulation->globalStepTime, peak,
       std::max(peak,
                (fixedBytes + kept) / std::max<int64_t>(1, order->ranks))});
}

void PlanChooser::addCandidates(const StagedModel &model) {
  for (const schedules::Policy *policy : schedules::allPolicies()) {
    if (policy->splitsBackward() != model.splits ||
        !canBeChosen(*policy, sizesOf(model), limits))
      continue;
    addCandidate(model, *policy, policy->name().str());
    bool hasLimit = llvm::any_of(policy->parameters(), [](const auto &known) {
      return known.name == "limit";
    });
    if (hasLimit && limits.shares >= 1)
      addCandidate(model, *policy,
                   (policy->name() + ":limit=" + Twine(limits.shares)).str());
  }
  // What it plans itself.
  std::string own = options.pipelines.scheduled.policy;
  if (!model.splits && limits.splits)
    own += ":unsplit";
  addCandidate(model, *options.policy, own);
}

bool PlanChooser::complete(Candidate &candidate) {
  OwningOpRef<ModuleOp> module = candidate.model->module.get().clone();
  ScheduledPipelineOptions scheduled;
  scheduled.copyOptionValuesFrom(options.pipelines.scheduled);
  scheduled.policy = candidate.schedule;
  PassManager pm(imported.getContext());
  buildUnrolledPipeline(pm);
  buildScheduledPipeline(pm, scheduled);
  // Bodies get their last copies when memory is planned.
  buildAllocatedPipeline(pm, options.pipelines.allocated);
  if (failed(pm.run(*module)) ||
      llvm::any_of(module->getOps<pipe::ArenaOp>(), [&](pipe::ArenaOp arena) {
        return isBeyondLimit(arena, options);
      }))
    return false;
  FailureOr<pipe::Stages> stages = pipe::Stages::read(*module);
  if (failed(stages))
    return false;
  FailureOr<pipe::Prediction> prediction =
      pipe::predictStep(*module, *stages, machine);
  if (failed(prediction))
    return false;
  candidate.step = prediction->simulation.globalStepTime;
  candidate.peak = peakOf(prediction->simulation, /*hasBytes=*/true);
  return limits.hold(prediction->order, prediction->simulation);
}

std::optional<Candidate> PlanChooser::choose() {
  for (int64_t stages : options.stageChoices)
    for (bool splits : {false, true})
      if (!splits || limits.splits)
        for (schedules::Placement &places : placementsOf(stages))
          addModel(stages, splits, std::move(places));
  for (const auto &model : models)
    addCandidates(*model);
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
    return std::tie(a.step, a.peak, a.schedule) <
           std::tie(b.step, b.peak, b.schedule);
  });
  // Tasks that the model has no need of take 0.1 us in a bound.
  constexpr double slack = 1 + 1e-3;
  std::optional<Candidate> best;
  for (Candidate &candidate : candidates) {
    if (best && candidate.step > best->step * slack)
      break;
    if (candidate.leastBytes > mostBytes || !complete(candidate))
      continue;
    bool isEqual = best && !isShorterStep(candidate.step, best->step) &&
                   !isShorterStep(best->step, candidate.step);
    if (!best || isShorterStep(candidate.step, best->step) ||
        (isEqual && candidate.peak < best->peak))
      best = candidate;
  }
  return best;
}

bool pipewright::tool::isBeyondLimit(pipe::ArenaOp arena,
                                     const CompileOptions &options) {
  std::optional<int64_t> limit =
      options.limitOf(static_cast<int64_t>(arena.getRank()));
  return limit && static_cast<int64_t>(arena.getBytes()) > *limit;
}

int64_t pipewright::tool::fullestArena(ModuleOp allocated) {
  int64_t most = 0;
  for (auto arena : allocated.getOps<pipe::ArenaOp>())
    most = std::max(most, static_cast<int64_t>(arena.getBytes()));
  return most;
}

void pipewright::tool::choosePlan(ModuleOp imported, CompileOptions &options) {
  if (options.stageChoices.empty())
    return;
  // A plan that is not possible is no candidate, and not worth a word.
  ScopedDiagnosticHandler silence(imported.getContext(),
                                  [](Diagnostic &) { return success(); });
  PlanChooser chooser(imported, options);
  std::optional<Candidate> best = chooser.choose();
  options.stageChoices.clear();
  if (!best)
    return;
  auto policy = schedules::choosePolicy(best->schedule);
  if (!policy)
    return llvm::consumeError(policy.takeError());
  options.chosen = best->origin;
  options.policy = std::move(*policy);
  options.pipelines.scheduled.policy = best->schedule;
  options.pipelines.staged.splitBackward = best->model->splits;
  options.pipelines.staged.stages = best->model->stages;
  options.pipelines.staged.rankOfStage = llvm::ArrayRef(std::vector<int64_t>(
      best->model->places.begin(), best->model->places.end()));
  options.given["stages"] = best->model->stages;
}
