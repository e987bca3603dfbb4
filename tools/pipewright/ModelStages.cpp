//===- ModelStages.cpp - What is known of a model's stages ----------------===//

#include "tools/pipewright/ModelStages.h"

#include "passes/pipe/staged/StageAssignment.h"
#include "passes/pipe/staged/StageWords.h"
#include "passes/schedules/policies/PlanSearch.h"
#include "passes/step/CostModel.h"
#include "passes/step/Stages.h"

#include "mlir/Pass/PassManager.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace pipewright::tool {

std::vector<schedules::Placement>
ModelStages::placementsOf(int64_t stages) const {
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
  // What ops take decides where `step` cuts.
  os << imported->getAttr(pipe::PipeDialect::kOpSeconds).getAsOpaquePointer();
  staged.print(os);
  return key;
}

void ModelStages::setOptions(StagedPipelineOptions &staged, int64_t stages,
                             bool splits,
                             const schedules::Placement &places) const {
  staged.copyOptionValuesFrom(options.pipelines.staged);
  staged.stages = stages;
  staged.splitBackward = splits;
  staged.formKernels = true;
  staged.rankOfStage =
      llvm::ArrayRef(std::vector<int64_t>(places.begin(), places.end()));
}

LogicalResult
pipewright::tool::checkRematModes(ModuleOp module,
                                  const StagedPipelineOptions &staged) {
  const llvm::StringRef modes = staged.remat.getValue();
  const auto count = static_cast<int64_t>(modes.count(',')) + 1;
  const int64_t stages = staged.stages;
  if (count == 1 || count == stages)
    return success();
  return mlir::emitError(module.getLoc())
         << "--remat expects one mode, or one for each of " << stages
         << " stages, but got " << count << ": " << modes;
}

std::shared_ptr<const StagedModel> ModelStages::made() {
  const StagedPipelineOptions &own = options.pipelines.staged;
  return made(own.stages, own.splitBackward,
              {own.rankOfStage.begin(), own.rankOfStage.end()});
}

OwningOpRef<ModuleOp> ModelStages::copyOfMade() const {
  const StagedPipelineOptions &own = options.pipelines.staged;
  StagedPipelineOptions staged;
  setOptions(staged, own.stages, own.splitBackward,
             {own.rankOfStage.begin(), own.rankOfStage.end()});
  auto model = known.models.find(keyOf(imported, staged));
  return model == known.models.end() || !model->second->module
             ? nullptr
             : copyOf(*model->second);
}

OwningOpRef<ModuleOp> ModelStages::copyOf(const StagedModel &model) const {
  OwningOpRef<ModuleOp> copy = model.module.get().clone();
  // It may have been made for another way to share states.
  pipe::changeProgram(*copy, [&](pipe::ProgramFields &program) {
    program = pipe::programOf(imported);
  });
  return copy;
}

std::shared_ptr<const StagedModel>
ModelStages::made(int64_t stages, bool splits, schedules::Placement places) {
  StagedPipelineOptions staged;
  setOptions(staged, stages, splits, places);
  std::shared_ptr<const StagedModel> &entry =
      known.models[keyOf(imported, staged)];
  if (entry)
    return entry;
  auto model = std::make_shared<StagedModel>();
  entry = model;
  model->stages = stages;
  if (failed(checkRematModes(imported, staged)))
    return model;
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
  if (std::string costs = keyOfCosts(staged);
      !costs.empty() && staged.stageMemory.empty()) {
    std::vector<schedules::StageCosts> &all = known.costs[costs];
    all = model->costs.stages;
    // That is a matter of replicas.
    for (schedules::StageCosts &stage : all)
      stage.update = 0;
  }
  model->weightBytes.assign(read->size(), 0);
  for (const pipe::WeightGroup &group : read->weights())
    if (!group.isTied() && group.isUpdatedIn(group.stages.front()))
      model->weightBytes[group.stages.front()] +=
          pipe::byteSize(group.weight.getTensorType());
  return model;
}

/// What costs of stages depend on, but for updates; empty where they may depend
/// on more. What `keep:N` keeps is chosen for the micro-batches in flight.
std::string ModelStages::keyOfCosts(const StagedPipelineOptions &staged) const {
  if (machine.isUneven() || !pipe::isBalanceOfModelAlone(staged.balance))
    return "";
  return llvm::formatv("{0} of {1} {2} {3} {4} {5} {6}",
                       std::min<int64_t>(staged.stages, options.microBatches),
                       staged.stages, staged.balance, staged.remat,
                       staged.earlyRecompute, staged.splitBackward,
                       staged.wholeStash);
}

/// Times that were given are those of tasks, modes of several stages belong to
/// these, and which micro-batches recompute is a matter of the schedule.
bool ModelStages::mayBeEstimated() const {
  const llvm::StringRef remat = options.pipelines.staged.remat;
  // Stages of a second copy are known when stages are made.
  return !machine.isUneven() && options.taskTimes.empty() &&
         (!options.policy.policy || options.policy->copies() == 1) &&
         !remat.contains(',') && !pipe::isWindowMode(remat);
}

const std::optional<StageEstimates> &
ModelStages::estimatesOfOps(const StagedPipelineOptions &staged) {
  auto [ops, isNew] = known.estimates.try_emplace(
      staged.remat + (staged.earlyRecompute ? " early" : ""));
  if (isNew)
    ops->second = StageEstimates::of(imported, staged, machine);
  return ops->second;
}

std::shared_ptr<const StagedModel>
ModelStages::ofOps(const std::string &balance) {
  StagedPipelineOptions staged;
  const int64_t stages = options.pipelines.staged.stages;
  setOptions(staged, stages, /*splits=*/true, {});
  if (!mayBeEstimated())
    return nullptr;
  const std::optional<StageEstimates> &ops = estimatesOfOps(staged);
  if (!ops)
    return nullptr;
  auto cut = pipe::cutModel(imported, {stages, balance});
  if (failed(cut))
    return nullptr;
  auto model = std::make_shared<StagedModel>();
  model->stages = stages;
  model->estimate = "by ops " + balance;
  model->costs = ops->ofCut(*cut, costsOfLinks(imported, machine));
  model->edges = std::move(cut->edges);
  model->weightBytes = std::move(cut->weightBytes);
  return model;
}

std::shared_ptr<const StagedModel> ModelStages::estimated(int64_t stages,
                                                          bool splits) {
  StagedPipelineOptions staged;
  setOptions(staged, stages, splits, {});
  if (!mayBeEstimated())
    return nullptr;
  // Those of halves tell those of the whole.
  auto made = known.costs.find(keyOfCosts(staged));
  staged.splitBackward = true;
  if (made == known.costs.end())
    made = known.costs.find(keyOfCosts(staged));
  const bool isMade = made != known.costs.end();
  auto model = std::make_shared<StagedModel>();
  model->stages = stages;
  model->estimate = isMade ? made->first : "by ops " + std::to_string(stages);
  std::shared_ptr<const StagedModel> &entry = estimates[model->estimate];
  if (entry)
    return entry;
  const std::optional<StageEstimates> &ops = estimatesOfOps(staged);
  if (!ops)
    return nullptr;
  staged.remat = "";
  staged.earlyRecompute = false;
  const std::string balance = staged.balance;
  auto [cut, isNewCut] =
      known.cuts.try_emplace(pipe::isBalanceOfModelAlone(balance)
                                 ? balance + " " + std::to_string(stages)
                                 : keyOf(imported, staged));
  if (isNewCut) {
    auto found =
        pipe::cutModel(imported, {stages, balance,
                                  llvm::ArrayRef<int64_t>(staged.stageMemory)});
    if (succeeded(found))
      cut->second = std::move(*found);
  }
  if (!cut->second)
    return nullptr;
  schedules::TaskCosts links = costsOfLinks(imported, machine);
  if (isMade) {
    // Halves are not fused as the whole is.
    constexpr double slackOfMade = 0.96;
    model->slack = model->keptSlack = slackOfMade;
    model->costs = std::move(links);
    model->costs.stages = made->second;
  } else {
    model->slack = ops->slack();
    model->keptSlack = ops->keptSlack();
    model->costs = ops->ofCut(*cut->second, std::move(links));
  }
  model->edges = cut->second->edges;
  model->weightBytes = cut->second->weightBytes;
  return entry = std::move(model);
}

schedules::ScheduleOptions
ModelStages::sizesOf(const StagedModel &model) const {
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

std::vector<double>
ModelStages::fixedBytes(const StagedModel &model,
                        const schedules::Placement &places) const {
  std::vector<double> bytes(options.pipelines.scheduled.ranks, 0);
  std::vector<double> stages(bytes.size(), 0);
  for (auto [stage, rank] : llvm::enumerate(places)) {
    bytes[rank] += static_cast<double>(
        model.weightBytes[stage % model.weightBytes.size()]);
    ++stages[rank];
  }
  for (auto [all, number] : llvm::zip_equal(bytes, stages))
    if (number > 0)
      all *= leastCopies(options, number);
  return bytes;
}

int64_t ModelStages::fullestOf(const StagedModel &model, const KeptBytes &kept,
                               double share) const {
  std::vector<double> bytes = fixedBytes(model, kept.places);
  for (auto [all, own] : llvm::zip_equal(bytes, kept.most))
    all += share * static_cast<double>(own);
  return static_cast<int64_t>(*std::max_element(bytes.begin(), bytes.end()));
}

std::vector<double>
ModelStages::freeBytes(const StagedModel &model,
                       const schedules::Placement &places) const {
  std::vector<double> bytes = fixedBytes(model, places);
  for (double &rank : bytes)
    rank = (static_cast<double>(mostBytes) - rank) / model.keptSlack;
  return bytes;
}

std::shared_ptr<const KeptStates>
ModelStages::keptStates(const StagedModel &model,
                        const schedules::PolicyChoice &policy,
                        const std::string &schedule) const {
  const schedules::ScheduleOptions sizes = policy.with(sizesOf(model));
  if (policy->plansWithTimes() || policy->stashLimit(sizes) ||
      sizes.offload > 0)
    return nullptr;
  std::string key = llvm::formatv("{0} {1} {2} {3}", schedule, sizes.ranks,
                                  sizes.stages, sizes.microBatches);
  for (const schedules::StageCosts &stage : model.costs.stages)
    key += !stage.recomputesEarly ? " -"
           : stage.window.isLast  ? " last"
                                  : " " + std::to_string(stage.window.count);
  auto [entry, isNew] = known.states.try_emplace(key);
  if (!isNew)
    return entry->second;
  llvm::Expected<schedules::Schedule> order = policy->build(sizes);
  if (!order) {
    llvm::consumeError(order.takeError());
    return nullptr;
  }
  auto result = std::make_shared<KeptStates>();
  for (int32_t rank = 0; rank < order->ranks; ++rank)
    result->ranks.push_back(schedules::StashStates::of(*order, rank));
  result->places = std::move(order->rankOfStage);
  return entry->second = std::move(result);
}

std::optional<KeptBytes>
ModelStages::keptBytes(const StagedModel &model,
                       const schedules::PolicyChoice &policy,
                       const std::string &schedule) const {
  auto states = keptStates(model, policy, schedule);
  if (!states)
    return std::nullopt;
  KeptBytes kept{{}, states->places};
  for (const schedules::StashStates &rank : states->ranks)
    kept.most.push_back(rank.peakBytes(model.costs.stages));
  return kept;
}

std::shared_ptr<const TimedSchedule>
ModelStages::timesOf(const StagedModel &model, bool splits,
                     const schedules::PolicyChoice &policy,
                     const std::string &schedule,
                     schedules::BuiltSchedules &built) {
  StagedPipelineOptions staged;
  setOptions(staged, model.stages, splits, model.places);
  const std::string key =
      keyOf(imported, staged) + schedule + " " + model.estimate;
  auto [entry, isNew] = known.schedules.try_emplace(key);
  if (isNew)
    entry->second = simulated(model, policy, schedule, built);
  return entry->second;
}

std::shared_ptr<const TimedSchedule> ModelStages::simulated(
    const StagedModel &model, const schedules::PolicyChoice &policy,
    const std::string &schedule, schedules::BuiltSchedules &built) const {
  schedules::ScheduleOptions sizes = policy.with(sizesOf(model));
  // What is compared on other places has other costs.
  if (!sizes.costsAt)
    sizes.built = &built;
  auto found = built.of(*policy, sizes);
  if (!found) {
    llvm::consumeError(found.takeError());
    return nullptr;
  }
  const auto &[order, simulation] = **found;
  // Who names a schedule wants its sums, too.
  if (!options.stageChoices.empty() && !schedules::sumsAscending(order))
    return nullptr;
  auto result = std::make_shared<TimedSchedule>();
  result->origin = order.origin.empty() ? schedule : order.origin;
  result->step = simulation.globalStepTime;
  result->peak = peakOf(simulation, /*hasBytes=*/true);
  for (const schedules::RankSummary &rank : simulation.ranks)
    result->kept.most.push_back(rank.peakStashBytes);
  result->kept.places = order.rankOfStage;
  return result;
}

} // namespace pipewright::tool
