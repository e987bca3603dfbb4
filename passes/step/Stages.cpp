//===- Stages.cpp - What passes ask about all stages of a module ----------===//
//
// One walk over the stages. See Stages.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/Stages.h"
#include "passes/step/Buckets.h"
#include "passes/step/TaskTimes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

FailureOr<Stages> Stages::read(ModuleOp module) {
  Stages stages;
  for (StageOp stage : module.getOps<StageOp>()) {
    stages.numbers[stage.getSymName()] = stages.ops.size();
    stages.ops.push_back(stage);
  }
  FailureOr<MachineModel> machine = machineOf(module);
  if (failed(machine))
    return failure();
  stages.machine = *machine;
  if (failed(stages.readCopies()) ||
      failed(verifyTaskTimes(module, stages.size() / stages.copies())) ||
      failed(stages.readLinks(&StageOp::getForward, StepMode::train)) ||
      failed(stages.readLinks(&StageOp::getEvaluate, StepMode::evaluate)) ||
      failed(stages.readWeights(module)))
    return failure();
  return stages;
}

int32_t Stages::numberOf(StringRef name) const {
  auto found = numbers.find(name);
  return found == numbers.end() ? -1 : found->second;
}

int64_t Stages::linkOutOf(int32_t stage, int64_t result, StepMode mode) const {
  for (auto [number, link] : llvm::enumerate(links(mode)))
    if (link.from == stage && link.result == result)
      return number;
  return -1;
}

/// The second copy stands behind the first, in the same order.
LogicalResult Stages::readCopies() {
  auto isMirror = [](StageOp stage) {
    return stage.getMirrorsAttr() != nullptr;
  };
  auto count = static_cast<int32_t>(llvm::count_if(ops, isMirror));
  if (count == 0)
    return success();
  numCopies = 2;
  for (int32_t stage = 0; stage < size(); ++stage) {
    StageOp op = ops[stage];
    if (2 * count != size() || isMirror(op) != (stage >= count))
      return op.emitOpError("expects the second copy of the model behind the "
                            "first, but ")
             << count << " of " << size() << " stages mirror others";
    if (isMirror(op) && numberOf(op.getMirrorsAttr()) != stage - count)
      return op.emitOpError("expects to mirror '@")
             << ops[stage - count].getSymName() << "', but got "
             << op.getMirrorsAttr();
  }
  return success();
}

template <typename Body>
LogicalResult Stages::readLinks(Body (StageOp::*bodyOf)(), StepMode mode) {
  for (int32_t to = 0; to < size(); ++to) {
    Body body = (ops[to].*bodyOf)();
    if (!body)
      continue;
    for (auto [argument, source] : llvm::enumerate(body.getSources())) {
      auto output = dyn_cast<OutputAttr>(source);
      if (!output)
        continue;
      int32_t from = numberOf(output.getStage());
      Body producer = from < 0 || from >= to ? Body() : (ops[from].*bodyOf)();
      if (!producer)
        return body.emitOpError("expects source ")
               << argument << " to be a result of an earlier stage, but got "
               << output.getStage();
      OperandRange results = producer.getReturn().getValues();
      auto count = static_cast<int64_t>(results.size());
      if (output.getIndex() < 0 || output.getIndex() >= count)
        return body.emitOpError("names result ")
               << output.getIndex() << " of stage " << output.getStage()
               << ", which has " << count;
      Type produced = results[output.getIndex()].getType();
      Type consumed = body.getBody()->getArgument(argument).getType();
      if (produced != consumed)
        return body.emitOpError("takes argument ")
               << argument << " as " << consumed << ", but stage "
               << output.getStage() << " returns " << produced;
      if (linkOutOf(from, output.getIndex(), mode) >= 0)
        return body.emitOpError("is another consumer of result ")
               << output.getIndex() << " of stage " << output.getStage()
               << "; a result has exactly one";
      StageLink link{from,
                     to,
                     output.getIndex(),
                     static_cast<int64_t>(argument),
                     byteSize(cast<RankedTensorType>(produced)),
                     /*gradientResult=*/-1};
      if (mode == StepMode::train)
        findGradient(link);
      allLinks[static_cast<size_t>(mode)].push_back(link);
    }
  }
  return success();
}

void Stages::findGradient(StageLink &link) const {
  BackwardOp taker = ops[link.from].getBackward();
  BackwardOp giver = ops[link.to].getBackward();
  if (!taker || !giver ||
      !llvm::is_contained(taker.getGradientsOf(), link.result))
    return;
  auto given = llvm::find(giver.getInputGradients(), link.argument);
  if (given != giver.getInputGradients().end())
    link.gradientResult = given - giver.getInputGradients().begin();
}

LogicalResult Stages::readWeights(ModuleOp module) {
  llvm::MapVector<StringAttr, WeightGroup> known;
  for (auto weight : module.getOps<nn::WeightOp>())
    known[weight.getSymNameAttr()].weight = weight;
  withGradients.assign(size(), false);
  withUpdate.assign(size(), false);

  // Most ops of stages that are alike have the same attributes.
  llvm::DenseMap<DictionaryAttr, SmallVector<WeightGroup *, 1>> namedBy;
  auto groupsNamedBy =
      [&](DictionaryAttr attributes) -> ArrayRef<WeightGroup *> {
    auto [entry, isNew] = namedBy.try_emplace(attributes);
    if (isNew)
      attributes.walk([&](FlatSymbolRefAttr symbol) {
        if (auto found = known.find(symbol.getAttr()); found != known.end())
          entry->second.push_back(&found->second);
      });
    return entry->second;
  };
  for (int32_t stage = 0; stage < size(); ++stage)
    ops[stage].walk([&](SymbolUserOpInterface op) {
      for (WeightGroup *group : groupsNamedBy(op->getAttrDictionary())) {
        if (group->stages.empty() || group->stages.back() != stage) {
          group->stages.push_back(stage);
          group->trained.push_back(false);
        }
        group->trained.back() |= isa<nn::AccumulateGradientOp>(op);
      }
    });

  for (auto &[name, group] : known) {
    if (group.stages.empty())
      continue;
    bool allTrained = llvm::all_of(group.trained, [](bool t) { return t; });
    bool noneTrained = llvm::none_of(group.trained, [](bool t) { return t; });
    // A copy without a gradient would have to follow the trained one.
    if (!allTrained && !noneTrained)
      return group.weight.emitOpError(
          "is trained in some of the stages that use it and not in others, "
          "which is not supported");
    if (group.weight.getRole() == nn::WeightRole::State &&
        group.stages.size() > 1)
      return group.weight.emitOpError("is a state that ")
             << group.stages.size()
             << " stages use, but only one stage can write it";
    for (int32_t stage : group.stages) {
      withGradients[stage] = withGradients[stage] || allTrained;
      withUpdate[stage] = withUpdate[stage] || group.isUpdatedIn(stage);
    }
    weightNumbers[name] = allWeights.size();
    allWeights.push_back(std::move(group));
  }
  return success();
}

const WeightGroup *Stages::groupOf(FlatSymbolRefAttr weight) const {
  auto found = weightNumbers.find(weight.getAttr());
  return found == weightNumbers.end() ? nullptr : &allWeights[found->second];
}

SmallVector<FlatSymbolRefAttr>
Stages::holdersOf(FlatSymbolRefAttr weight) const {
  SmallVector<FlatSymbolRefAttr> holders;
  if (const WeightGroup *group = groupOf(weight))
    for (int32_t stage : group->stages)
      holders.push_back(nameOf(stage));
  return holders;
}

LogicalResult Stages::refuseTiedWeights() const {
  for (const WeightGroup &group : allWeights)
    if (group.isTied())
      return group.weight.emitOpError("is used by ")
             << group.stages.size() << " stages, which schedules with stale "
             << "weights do not allow: their copies would differ; use another "
             << "schedule, or another number of stages";
  return success();
}

std::vector<schedules::StageEdge> Stages::edges(StepMode mode) const {
  std::vector<schedules::StageEdge> edges;
  for (const StageLink &link : links(mode))
    edges.push_back({link.from, link.to, link.bytes, link.gradientResult >= 0});
  return edges;
}

/// Whether any code under an op reads a parameter of which that holds.
static bool anyRead(Operation *op,
                    llvm::function_ref<bool(nn::ParameterOp)> holds) {
  return op && op->walk([&](nn::ParameterOp read) {
                   return holds(read) ? WalkResult::interrupt()
                                      : WalkResult::advance();
                 }).wasInterrupted();
}

bool Stages::readsRounded(int32_t stage, const WeightGroup &group) const {
  StringAttr weight = group.weight.getSymNameAttr();
  return anyRead(ops[stage], [&](nn::ParameterOp read) {
    return read.isWorkingCopy() && read.getWeightAttr().getAttr() == weight;
  });
}

bool Stages::readsUpdatedAs(int32_t stage, bool isRounded) const {
  return anyRead(ops[stage], [&](nn::ParameterOp read) {
    if (read.isWorkingCopy() != isRounded)
      return false;
    const WeightGroup *group = groupOf(read.getWeightAttr());
    return group && group->isUpdatedIn(stage);
  });
}

bool Stages::readsRounded(int32_t stage) const {
  return readsUpdatedAs(stage, /*isRounded=*/true);
}

bool Stages::readsMasters(int32_t stage) const {
  return llvm::any_of(allWeights,
                      [&](const WeightGroup &group) {
                        return group.isTied() && !group.isAllReduced() &&
                               llvm::is_contained(group.stages, stage) &&
                               group.isUpdatedIn(stage);
                      }) ||
         readsUpdatedAs(stage, /*isRounded=*/false);
}

bool Stages::readsUpdated(int32_t stage, TaskKind kind) const {
  return anyRead(StageOp(ops[stage]).bodyOf(kind), [&](nn::ParameterOp read) {
    const WeightGroup *group = groupOf(read.getWeightAttr());
    return group && group->isUpdatedIn(stage);
  });
}

int64_t Stages::updatedBytes(int32_t stage) const {
  int64_t bytes = 0;
  for (const WeightGroup &group : allWeights)
    if (llvm::is_contained(group.stages, stage) && group.isUpdatedIn(stage))
      bytes += byteSize(group.weight.getTensorType());
  return bytes;
}

/// The bytes of a stage's update: a gradient, the weight and each state are
/// read, and all but the gradient written. If gradients are clipped, they are
/// read once more. With ZeRO a replica updates its part, and then clears all
/// gradients.
int64_t Stages::updateBytes(int32_t stage) const {
  StageOp op = ops[stage];
  ProgramFields program = programOf(op->getParentOfType<ModuleOp>());
  auto states = static_cast<int64_t>(
      program.optimizer ? program.optimizer.getChoice().states().size() : 0);
  const int64_t bytes = updatedBytes(stage);
  const int64_t shards = program.zero > 0 ? program.replicas : 1;
  return bytes * (4 + 2 * states) / shards + (shards > 1 ? bytes : 0) +
         bytes * (program.clipNorm ? 1 : 0);
}

schedules::TaskCosts Stages::costs(StepMode mode,
                                   llvm::ArrayRef<int32_t> rankOfStage) const {
  return costs(mode, machine, rankOfStage);
}

schedules::TaskCosts Stages::costs(StepMode mode, const MachineModel &machine,
                                   llvm::ArrayRef<int32_t> rankOfStage) const {
  if (ops.empty())
    return {};
  StageOp first = ops.front();
  auto module = first->getParentOfType<ModuleOp>();
  schedules::TaskCosts costs = predictCosts(module, machine, mode, rankOfStage);
  if (mode == StepMode::evaluate)
    return costs;
  for (auto [number, cost] : llvm::enumerate(costs.stages)) {
    const auto stage = static_cast<int32_t>(number);
    const MachineModel own =
        machineOfStage(machine, ops[stage], stage, rankOfStage);
    cost.update += static_cast<double>(updateBytes(stage)) / own.bandwidth +
                   matrixOperations(*this, stage) / own.matmulFlops;
  }
  applyTaskTimes(module, costs);
  return costs;
}

FailureOr<SmallVector<int32_t>> Stages::ranks() const {
  SmallVector<int32_t> ranks;
  for (StageOp stage : ops) {
    if (!stage.getRank())
      return stage.emitOpError("expects a rank; run pipe-schedule first");
    ranks.push_back(static_cast<int32_t>(*stage.getRank()));
  }
  return ranks;
}

FailureOr<int64_t> pipewright::pipe::microBatchesOf(ModuleOp module) {
  if (std::optional<int64_t> number = programOf(module).microBatches)
    return *number;
  return module.emitError("expects '")
         << PipeDialect::kProgram << "' to have 'micro_batches'";
}

schedules::TaskKind pipewright::pipe::scheduleKindOf(TaskKind kind) {
  switch (kind) {
  case TaskKind::forward:
  case TaskKind::evaluate:
    return schedules::TaskKind::Forward;
  case TaskKind::backward:
    return schedules::TaskKind::Backward;
  case TaskKind::input_gradient:
    return schedules::TaskKind::InputGradient;
  case TaskKind::weight_gradient:
    return schedules::TaskKind::WeightGradient;
  case TaskKind::recompute:
    return schedules::TaskKind::Recompute;
  case TaskKind::update:
    return schedules::TaskKind::Update;
  }
  llvm_unreachable("all kinds of tasks are covered");
}

FailureOr<ArenaOp> pipe::arenaOf(RankOp program) {
  for (auto arena : program->getParentOfType<ModuleOp>().getOps<ArenaOp>())
    if (arena.getRank() == program.getRank())
      return arena;
  return program.emitOpError("has no pipe.arena; run pipe-plan-memory");
}
