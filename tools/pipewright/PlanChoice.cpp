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
#include "passes/pipelines/StageEstimates.h"
#include "passes/schedules/WorkOrder.h"
#include "passes/schedules/policies/PlanSearch.h"
#include "passes/step/CostModel.h"
#include "passes/step/Prediction.h"
#include "tools/pipewright/Compilation.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <limits>
#include <optional>
#include <set>
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

/// The staged level for a number of stages, backwards split or whole, or what
/// is known of it before it is made.
struct pipewright::tool::StagedModel {
  /// Null where the model cannot be cut so, and in an estimate.
  OwningOpRef<ModuleOp> module;
  int64_t stages = 0;
  /// Where it was cut for; empty where ranks are alike.
  schedules::Placement places;
  bool isEstimate = false;
  /// Of the bytes kept, the share that is certain.
  double keptSlack = 1;
  schedules::TaskCosts costs;
  std::vector<schedules::StageEdge> edges;
  /// By stage: of the weights that it alone has and updates, in f32. Of others
  /// it may turn out not to keep states.
  std::vector<int64_t> weightBytes;
};

namespace {

/// What is known of it gets more, and more exact, while it may be the fastest.
struct Candidate {
  std::shared_ptr<const StagedModel> model;
  const schedules::Policy *policy = nullptr;
  bool splits = false;
  /// As the user could have given it, and what it came to.
  std::string schedule, origin;
  /// Whether its order was simulated with the costs of `model`.
  bool isSimulated = false;
  /// No plan of it has a shorter one; nor takes its fullest rank less.
  double step = 0;
  int64_t peak = 0, leastBytes = 0;

  bool operator<(const Candidate &other) const {
    return std::tie(step, peak, schedule) <
           std::tie(other.step, other.peak, other.schedule);
  }
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
  /// What the fastest one takes at least that may fit, by estimates; infinite
  /// where none may, or none is below the step to beat.
  double estimate();
  /// Where nothing was chosen: why, if that is memory or the step to beat.
  std::string reason() const;

private:
  void setOptions(StagedPipelineOptions &staged, int64_t stages, bool splits,
                  const schedules::Placement &places) const;
  std::shared_ptr<const StagedModel> stagedModel(int64_t stages, bool splits,
                                                 schedules::Placement places);
  std::shared_ptr<const StagedModel> estimatedModel(int64_t stages);
  std::vector<schedules::Placement> placementsOf(int64_t stages) const;
  void addCandidates(const std::shared_ptr<const StagedModel> &model,
                     bool splits);
  void addCandidate(const std::shared_ptr<const StagedModel> &model,
                    bool splits, const schedules::Policy &policy,
                    std::string schedule);
  void addAllCandidates();
  /// Puts it back with what a simulation says, where it may fit.
  void simulate(Candidate candidate);
  /// Makes the plan; false where it is not possible within the limits.
  bool complete(Candidate &candidate);
  schedules::ScheduleOptions sizesOf(const StagedModel &model) const;
  void refuseForMemory(const Candidate &candidate);

  ModuleOp imported;
  const CompileOptions &options;
  StagedModels &known;
  const MachineModel &machine;
  const schedules::PlanLimits limits;
  const int64_t mostBytes;
  const double stepToBeat;
  /// The one that may be the fastest comes first.
  std::multiset<Candidate> candidates;
  /// Candidates that may be faster and of which all is known, and those of them
  /// that take too much.
  size_t faster = 0, tooLarge = 0;
  int64_t leastBytes = std::numeric_limits<int64_t>::max();
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

void PlanChooser::setOptions(StagedPipelineOptions &staged, int64_t stages,
                             bool splits,
                             const schedules::Placement &places) const {
  staged.copyOptionValuesFrom(options.pipelines.staged);
  staged.stages = stages;
  staged.splitBackward = splits;
  staged.formKernels = true;
  staged.rankOfStage =
      llvm::ArrayRef(std::vector<int64_t>(places.begin(), places.end()));
}

std::shared_ptr<const StagedModel>
PlanChooser::stagedModel(int64_t stages, bool splits,
                         schedules::Placement places) {
  StagedPipelineOptions staged;
  setOptions(staged, stages, splits, places);
  std::shared_ptr<const StagedModel> &entry =
      known.models[keyOf(imported, staged)];
  if (entry)
    return entry;
  auto model = std::make_shared<StagedModel>();
  entry = model;
  model->stages = stages;
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

/// Null where stages have to be made to know what they cost.
std::shared_ptr<const StagedModel> PlanChooser::estimatedModel(int64_t stages) {
  StagedPipelineOptions staged;
  setOptions(staged, stages, true, {});
  const std::string remat = staged.remat;
  // Times that were given are those of tasks, and modes of several stages
  // belong to these.
  if (machine.isUneven() || !options.taskTimes.empty() ||
      llvm::StringRef(remat).contains(','))
    return nullptr;
  auto [ops, isNew] = known.estimates.try_emplace(
      remat + (staged.earlyRecompute ? " early" : ""));
  if (isNew)
    ops->second = StageEstimates::of(imported, staged, machine);
  if (!ops->second)
    return nullptr;
  staged.remat = "";
  auto [cut, isNewCut] = known.cuts.try_emplace(keyOf(imported, staged));
  if (isNewCut) {
    const std::string balance = staged.balance;
    auto model =
        pipe::cutModel(imported, {stages, balance,
                                  llvm::ArrayRef<int64_t>(staged.stageMemory)});
    if (succeeded(model))
      cut->second = std::move(*model);
  }
  if (!cut->second)
    return nullptr;
  auto model = std::make_shared<StagedModel>();
  model->stages = stages;
  model->isEstimate = true;
  model->keptSlack = ops->second->keptSlack();
  model->costs =
      ops->second->ofCut(*cut->second, costsOfLinks(imported, machine));
  model->edges = cut->second->edges;
  model->weightBytes = cut->second->weightBytes;
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

void PlanChooser::addCandidate(const std::shared_ptr<const StagedModel> &model,
                               bool splits, const schedules::Policy &policy,
                               std::string schedule) {
  llvm::Expected<schedules::PolicyChoice> choice =
      schedules::choosePolicy(schedule);
  if (!choice)
    return llvm::consumeError(choice.takeError());
  const schedules::ScheduleOptions sizes = choice->with(sizesOf(*model));
  if (!isCutFor(*model, policy, sizes))
    return;
  schedules::Placement places;
  // One that chooses places takes long to do so.
  if (!policy.isChoice()) {
    llvm::Expected<schedules::Placement> placed = policy.place(sizes);
    if (!placed)
      return llvm::consumeError(placed.takeError());
    places = std::move(*placed);
  }
  Candidate candidate;
  candidate.model = model;
  candidate.policy = &policy;
  candidate.splits = splits;
  candidate.origin = candidate.schedule = std::move(schedule);
  candidate.step =
      leastStep(places, sizes.ranks, sizes.microBatches, model->costs, splits);
  if (model->isEstimate)
    candidate.step *= StageEstimates::slack;
  candidates.insert(std::move(candidate));
}

void PlanChooser::refuseForMemory(const Candidate &candidate) {
  ++faster;
  ++tooLarge;
  leastBytes = std::min(leastBytes, candidate.leastBytes);
}

void PlanChooser::simulate(Candidate candidate) {
  const StagedModel &model = *candidate.model;
  llvm::Expected<schedules::PolicyChoice> choice =
      schedules::choosePolicy(candidate.schedule);
  if (!choice)
    return llvm::consumeError(choice.takeError());
  llvm::Expected<schedules::Schedule> order =
      candidate.policy->build(choice->with(sizesOf(model)));
  if (!order)
    return llvm::consumeError(order.takeError());
  if (!schedules::sumsAscending(*order))
    return;
  llvm::Expected<schedules::Simulation> simulation =
      schedules::simulateWithMoves(*order, model.costs, model.edges);
  if (!simulation)
    return llvm::consumeError(simulation.takeError());
  candidate.isSimulated = true;
  if (!order->origin.empty())
    candidate.origin = order->origin;
  candidate.step = simulation->globalStepTime;
  candidate.peak = peakOf(*simulation, /*hasBytes=*/true);
  if (model.isEstimate)
    candidate.step *= StageEstimates::slack;
  std::vector<double> bytes;
  for (const schedules::RankSummary &rank : simulation->ranks)
    bytes.push_back(model.keptSlack * static_cast<double>(rank.peakStashBytes));
  const double copies = leastCopies(options);
  for (auto [stage, rank] : llvm::enumerate(order->rankOfStage))
    bytes[rank] +=
        copies * static_cast<double>(
                     model.weightBytes[stage % model.weightBytes.size()]);
  candidate.leastBytes =
      static_cast<int64_t>(*std::max_element(bytes.begin(), bytes.end()));
  if (candidate.leastBytes > mostBytes)
    refuseForMemory(candidate);
  else
    candidates.insert(std::move(candidate));
}

void PlanChooser::addCandidates(const std::shared_ptr<const StagedModel> &model,
                                bool splits) {
  for (const schedules::Policy *policy : schedules::allPolicies()) {
    if (policy->splitsBackward() != splits ||
        !canBeChosen(*policy, sizesOf(*model), limits))
      continue;
    addCandidate(model, splits, *policy, policy->name().str());
    bool hasLimit = llvm::any_of(policy->parameters(), [](const auto &known) {
      return known.name == "limit";
    });
    if (hasLimit && limits.shares >= 1)
      addCandidate(model, splits, *policy,
                   (policy->name() + ":limit=" + Twine(limits.shares)).str());
  }
  // What it plans itself.
  std::string own = options.pipelines.scheduled.policy;
  if (!splits && limits.splits)
    own += ":unsplit";
  addCandidate(model, splits, *options.policy, own);
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
  candidate.step = prediction->simulation.globalStepTime;
  candidate.peak = peakOf(prediction->simulation, /*hasBytes=*/true);
  return limits.hold(prediction->order, prediction->simulation);
}

void PlanChooser::addAllCandidates() {
  for (int64_t stages : options.stageChoices) {
    auto estimate = estimatedModel(stages);
    for (bool splits : {false, true}) {
      if (splits && !limits.splits)
        continue;
      if (estimate) {
        addCandidates(estimate, splits);
        continue;
      }
      for (schedules::Placement &places : placementsOf(stages))
        if (auto model = stagedModel(stages, splits, std::move(places));
            model->module)
          addCandidates(model, splits);
    }
  }
}

double PlanChooser::estimate() {
  addAllCandidates();
  while (!candidates.empty() && candidates.begin()->step <= stepToBeat) {
    if (candidates.begin()->isSimulated)
      return candidates.begin()->step;
    simulate(std::move(candidates.extract(candidates.begin()).value()));
  }
  return std::numeric_limits<double>::infinity();
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
    if (candidate.model->isEstimate) {
      candidate.model =
          stagedModel(candidate.model->stages, candidate.splits, {});
      if (candidate.model->module)
        simulate(std::move(candidate));
      continue;
    }
    if (!complete(candidate))
      continue;
    bool isEqual = best && !isShorterStep(candidate.step, best->step) &&
                   !isShorterStep(best->step, candidate.step);
    if (!best || isShorterStep(candidate.step, best->step) ||
        (isEqual && candidate.peak < best->peak))
      best = candidate;
    most = std::min(most, best->step);
  }
  return best;
}

std::string PlanChooser::reason() const {
  if (faster == 0 && !candidates.empty())
    return kNoneIsFaster.str();
  return tooLarge > 0 && tooLarge == faster ? needsMore(leastBytes, options)
                                            : "";
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
  options.pipelines.staged.splitBackward = best->splits;
  options.pipelines.staged.stages = best->model->stages;
  options.pipelines.staged.rankOfStage = llvm::ArrayRef(std::vector<int64_t>(
      best->model->places.begin(), best->model->places.end()));
  options.given["stages"] = best->model->stages;
  return "";
}

double pipewright::tool::estimateStep(ModuleOp imported,
                                      const CompileOptions &options,
                                      double stepToBeat, StagedModels &known) {
  if (options.stageChoices.empty())
    return 0;
  ScopedDiagnosticHandler silence(imported.getContext(),
                                  [](Diagnostic &) { return success(); });
  return PlanChooser(imported, options, stepToBeat, known).estimate();
}
