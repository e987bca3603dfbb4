//===- PlanChoice.cpp - The fastest of all plans --------------------------===//
//
// A plan is known once programs of ranks are whole and their memory is planned.
// To take every candidate so far would be slow. But the schedule alone,
// simulated without sums, takes no longer than the whole plan: candidates are
// made whole in the order of that bound, until it says that the rest is slower.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/PlanChoice.h"

#include "codegen/plan/Plan.h"
#include "passes/schedules/WorkOrder.h"
#include "passes/schedules/policies/PlanSearch.h"
#include "passes/step/Prediction.h"
#include "tools/pipewright/Compilation.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <limits>
#include <optional>
#include <tuple>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::tool;

/// What a byte of a parameter in f32 takes at least on each rank that has it,
/// with its gradient and its states.
static double leastCopies(const CompileOptions &given) {
  const int64_t states = given.optimizer.keptStates().size();
  const auto parts = static_cast<double>(given.replicas);
  // Where bf16 copies are read, a replica needs of f32 only its part.
  double copies = given.zero >= 3 ? 1 / parts
                  : given.zero >= 1 && given.precision == Precision::BF16
                      ? 0.5 + 1 / parts
                      : 1;
  copies += given.zero >= 2 ? 1 / parts : 1;
  // Matrices lack a state that others have.
  return copies + (given.optimizer.takesMatrices() ? 1 : states) /
                      (given.zero >= 1 ? parts : 1);
}

/// What weights, gradients and states take at least, on all ranks of a replica.
static int64_t leastFixedBytes(ModuleOp imported,
                               const CompileOptions &options) {
  llvm::SmallPtrSet<Attribute, 16> read;
  imported.walk(
      [&](nn::ParameterOp op) { read.insert(op.getWeightAttr().getAttr()); });
  int64_t parameters = 0;
  for (auto weight : imported.getOps<nn::WeightOp>())
    if (weight.getRole() == nn::WeightRole::Parameter &&
        read.contains(weight.getSymNameAttr()))
      parameters += pipe::byteSize(weight.getTensorType());
  return static_cast<int64_t>(leastCopies(options) *
                              static_cast<double>(parameters));
}

/// Of the rank that may have most.
static int64_t mostBytesOf(const CompileOptions &options) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < options.pipelines.scheduled.ranks; ++rank)
    most = std::max(most, options.limitOf(rank).value_or(
                              std::numeric_limits<int64_t>::max()));
  return most;
}

static std::string needsMore(int64_t bytes, const CompileOptions &options) {
  const int64_t most = mostBytesOf(options);
  return "a rank needs at least " + codegen::formatBytes(bytes) + ", but " +
         (options.memoryLimit == most ? "--memory-limit is "
                                      : "--machine gives it ") +
         codegen::formatBytes(most) + ": " + kNeedLess.str();
}

std::string pipewright::tool::whyNothingFits(ModuleOp imported,
                                             const CompileOptions &options) {
  // Ranks of a replica have all of it together.
  int64_t bytes =
      leastFixedBytes(imported, options) / options.pipelines.scheduled.ranks;
  imported.walk([&](Operation *op) {
    if (isa<nn::MatmulOp, nn::ConvOp>(op))
      bytes = std::max(bytes, pipe::byteSize(cast<RankedTensorType>(
                                  op->getResult(0).getType())));
  });
  return bytes > mostBytesOf(options) ? needsMore(bytes, options) : "";
}

/// The staged level for a number of stages, backwards split or whole.
struct pipewright::tool::StagedModel {
  /// Null where the model cannot be cut so.
  OwningOpRef<ModuleOp> module;
  int64_t stages = 0;
  bool splits = false;
  /// Where it was cut for; empty where ranks are alike.
  schedules::Placement places;
  schedules::TaskCosts costs;
  std::vector<schedules::StageEdge> edges;
  /// By stage: of the weights that it alone has and updates, in f32. Of others
  /// it may turn out not to keep states.
  std::vector<int64_t> weightBytes;

  /// What the stage that takes longest does with a micro-batch.
  double worstStage() const {
    double worst = 0;
    for (const schedules::StageCosts &stage : costs.stages)
      worst = std::max(worst, stage.forward + stage.backward);
    return worst;
  }
};

namespace {

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
  PlanChooser(ModuleOp imported, const CompileOptions &options,
              double stepToBeat, StagedModels &known)
      : imported(imported), options(options), known(known),
        machine(options.machineModel()),
        limits(schedules::PlanLimits::of(options.sizes())),
        mostBytes(mostBytesOf(options)), stepToBeat(stepToBeat) {}

  /// The one with the shortest step, of those whose tasks alone take no longer
  /// than the step to beat.
  std::optional<Candidate> choose();
  /// Why all plans take too much, as far as that is known without them.
  std::string whyNoneFits();
  /// Where nothing was chosen: why, if that is memory or the step to beat.
  std::string reason() const;

private:
  std::shared_ptr<const StagedModel> stagedModel(int64_t stages, bool splits,
                                                 schedules::Placement places);
  std::vector<schedules::Placement> placementsOf(int64_t stages) const;
  void addCandidates(const StagedModel &model);
  void addCandidate(const StagedModel &model, const schedules::Policy &policy,
                    std::string schedule);
  /// Makes the plan; false where it is not possible within the limits.
  bool complete(Candidate &candidate);
  void addAllCandidates();
  schedules::ScheduleOptions sizesOf(const StagedModel &model) const;

  ModuleOp imported;
  const CompileOptions &options;
  StagedModels &known;
  const MachineModel &machine;
  const schedules::PlanLimits limits;
  const int64_t mostBytes;
  const double stepToBeat;
  std::vector<std::shared_ptr<const StagedModel>> models;
  /// With bounds in place of steps.
  std::vector<Candidate> candidates;
  /// Candidates that may be faster, and those of them that take too much.
  size_t faster = 0, tooLarge = 0;
  /// What has not become a candidate because it is slower.
  size_t slower = 0;
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

/// What the staged level depends on.
static std::string keyOf(ModuleOp imported,
                         const StagedPipelineOptions &staged) {
  pipe::ProgramFields program = pipe::programOf(imported);
  // Whether replicas share updates is what costs ask for.
  program.zero = std::min<int64_t>(program.zero, 1);
  std::string key;
  llvm::raw_string_ostream os(key);
  os << program.get(imported.getContext()) << "\n";
  staged.print(os);
  return key;
}

std::shared_ptr<const StagedModel>
PlanChooser::stagedModel(int64_t stages, bool splits,
                         schedules::Placement places) {
  StagedPipelineOptions staged;
  staged.copyOptionValuesFrom(options.pipelines.staged);
  staged.stages = stages;
  staged.splitBackward = splits;
  staged.formKernels = true;
  staged.rankOfStage =
      llvm::ArrayRef(std::vector<int64_t>(places.begin(), places.end()));
  std::shared_ptr<const StagedModel> &entry = known[keyOf(imported, staged)];
  if (entry)
    return entry;
  auto model = std::make_shared<StagedModel>();
  entry = model;
  model->stages = stages;
  model->splits = splits;
  OwningOpRef<ModuleOp> module = imported.clone();
  PassManager pm(imported.getContext());
  pm.enableVerifier(false);
  buildStagedPipeline(pm, staged);
  if (failed(pm.run(*module)))
    return model;
  FailureOr<pipe::Stages> read = pipe::Stages::read(*module);
  if (failed(read))
    return model;
  model->module = std::move(module);
  model->costs = read->costs(pipe::StepMode::train, machine, places);
  model->places = std::move(places);
  model->edges = read->edges(pipe::StepMode::train);
  model->weightBytes.assign(read->size(), 0);
  for (const pipe::WeightGroup &group : read->weights())
    if (!group.isTied() && group.isUpdatedIn(group.stages.front()))
      model->weightBytes[group.stages.front()] +=
          pipe::byteSize(group.weight.getTensorType());
  return model;
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
  // A second copy takes half of the micro-batches.
  if (model.worstStage() * static_cast<double>(sizes.microBatches) >
      stepToBeat * static_cast<double>(policy.copies())) {
    ++slower;
    return;
  }
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
  std::vector<int64_t> bytes;
  for (const schedules::RankSummary &rank : simulation->ranks)
    bytes.push_back(rank.peakStashBytes);
  const double copies = leastCopies(options);
  for (auto [stage, rank] : llvm::enumerate(order->rankOfStage))
    bytes[rank] += static_cast<int64_t>(
        copies * static_cast<double>(
                     model.weightBytes[stage % model.weightBytes.size()]));
  candidates.push_back({&model, std::move(schedule), std::move(origin),
                        simulation->globalStepTime, peak,
                        *std::max_element(bytes.begin(), bytes.end())});
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
  // It may have been made for another way to share states.
  pipe::changeProgram(*module, [&](pipe::ProgramFields &program) {
    program = pipe::programOf(imported);
  });
  ScheduledPipelineOptions scheduled;
  scheduled.copyOptionValuesFrom(options.pipelines.scheduled);
  scheduled.policy = candidate.schedule;
  scheduled.draft = true;
  AllocatedPipelineOptions allocated;
  allocated.copyOptionValuesFrom(options.pipelines.allocated);
  allocated.draft = true;
  PassManager pm(imported.getContext());
  pm.enableVerifier(false);
  buildUnrolledPipeline(pm);
  buildScheduledPipeline(pm, scheduled);
  // Bodies get their last copies when memory is planned.
  buildAllocatedPipeline(pm, allocated);
  if (failed(pm.run(*module)))
    return false;
  if (llvm::any_of(module->getOps<pipe::ArenaOp>(), [&](pipe::ArenaOp arena) {
        return isBeyondLimit(arena, options);
      })) {
    candidate.leastBytes = fullestArena(*module);
    return false;
  }
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

void PlanChooser::addAllCandidates() {
  for (int64_t stages : options.stageChoices)
    for (bool splits : {false, true})
      if (!splits || limits.splits)
        for (schedules::Placement &places : placementsOf(stages))
          if (auto model = stagedModel(stages, splits, std::move(places));
              model->module)
            models.push_back(std::move(model));
  for (const auto &model : models)
    addCandidates(*model);
}

std::string PlanChooser::whyNoneFits() {
  addAllCandidates();
  const auto least =
      llvm::min_element(candidates, [](const Candidate &a, const Candidate &b) {
        return a.leastBytes < b.leastBytes;
      });
  return slower == 0 && least != candidates.end() &&
                 least->leastBytes > mostBytes
             ? needsMore(least->leastBytes, options)
             : "";
}

std::optional<Candidate> PlanChooser::choose() {
  addAllCandidates();
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
    return std::tie(a.step, a.peak, a.schedule) <
           std::tie(b.step, b.peak, b.schedule);
  });
  // Tasks that the model has no need of take 0.1 us in a bound.
  constexpr double slack = 1 + 1e-3;
  std::optional<Candidate> best;
  for (Candidate &candidate : candidates) {
    if (candidate.step > (best ? best->step : stepToBeat) * slack)
      break;
    ++faster;
    const bool isPossible =
        candidate.leastBytes <= mostBytes && complete(candidate);
    tooLarge += candidate.leastBytes > mostBytes;
    if (!isPossible)
      continue;
    bool isEqual = best && !isShorterStep(candidate.step, best->step) &&
                   !isShorterStep(best->step, candidate.step);
    if (!best || isShorterStep(candidate.step, best->step) ||
        (isEqual && candidate.peak < best->peak))
      best = candidate;
  }
  return best;
}

std::string PlanChooser::reason() const {
  if (faster == 0 && !(candidates.empty() && slower == 0))
    return kNoneIsFaster.str();
  if (tooLarge == 0 || tooLarge < faster)
    return "";
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Candidate &candidate :
       llvm::ArrayRef(candidates).take_front(faster))
    least = std::min(least, candidate.leastBytes);
  return needsMore(least, options);
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

std::string pipewright::tool::choosePlan(ModuleOp imported,
                                         CompileOptions &options,
                                         double stepToBeat,
                                         StagedModels &known) {
  if (options.stageChoices.empty())
    return "";
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
    return llvm::toString(policy.takeError());
  options.chosen = best->origin;
  options.policy = std::move(*policy);
  options.pipelines.scheduled.policy = best->schedule;
  options.pipelines.staged.splitBackward = best->model->splits;
  options.pipelines.staged.stages = best->model->stages;
  options.pipelines.staged.rankOfStage = llvm::ArrayRef(std::vector<int64_t>(
      best->model->places.begin(), best->model->places.end()));
  options.given["stages"] = best->model->stages;
  return "";
}

std::string pipewright::tool::whyNoScheduleFits(ModuleOp imported,
                                                const CompileOptions &options,
                                                double stepToBeat,
                                                StagedModels &known) {
  ScopedDiagnosticHandler silence(imported.getContext(),
                                  [](Diagnostic &) { return success(); });
  return PlanChooser(imported, options, stepToBeat, known).whyNoneFits();
}
