//===- SynchronizeWeights.cpp - One value of a weight in all its copies ---===//
//
// A step as unrolling writes it updates each weight where its first stage is,
// from that stage's own gradients. Weights may have more copies: in stages that
// share one (tied weights), in the second copy of the model, in replicas. Here
// is written what makes all copies equal, by a policy for each weight:
//
//   owner       the gradients of all stages are sent to the first one, which
//               updates, and sends the new value back
//   all-reduce  stages on different ranks sum gradients together and update a
//               copy each: less time between two steps, for more copies of the
//               optimizer's state
//
// Both have one order, so all copies have the same bits. Before that the
// gradients of each stage are summed over all replicas, so that these sums can
// begin inside its last backward; each replica's own sum is in the order of its
// micro-batches, which are consecutive ones of the batch. With ZeRO a
// replica gets its part of the sums alone, updates its part of the weights, and
// hands them out, bucket by bucket; ranks that share weights sum the parts that
// their replica has. Two copies of the model are summed before replicas are, as
// each has half of these; with `copies-last` behind them, so that copies stay
// alike in whatever order each of them sums over replicas. Running statistics
// become one, too. In a step with several updates, where weights are stale and
// none has copies, each is preceded by its own sum. Last, gradients are clipped
// by the norm of all.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/step/Buckets.h"
#include "passes/step/RunningStatistics.h"
#include "passes/step/Stages.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

#include <set>

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPESYNCHRONIZEWEIGHTS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;
using runtime::CollectiveKind;

namespace {

enum class Policy { Owner, AllReduce };

/// One training step with one update.
class StepSynchronizer {
public:
  StepSynchronizer(StepOp step, const Stages &stages, ArrayRef<int32_t> ranks,
                   bool prefersOwners, bool copiesLast)
      : step(step), stages(stages), ranks(ranks), prefersOwners(prefersOwners),
        copiesLast(copiesLast), builder(step.getContext()) {}

  /// For a step with one update.
  void run(const ProgramFields &program);
  /// For one with several.
  void sumOverReplicas();

private:
  Policy policyOf(const WeightGroup &group) const;
  bool isOfMirrors(const WeightGroup &group) const;
  bool isSharedWhole(int32_t stage) const;
  bool isSplit(int32_t stage);
  template <class StageType>
  Value lastOf(int32_t stage);
  Value gradientsOf(int32_t stage) { return lastOf<GradientType>(stage); }
  Value updatedOf(int32_t stage) { return lastOf<UpdatedType>(stage); }
  TaskOp updateOf(int32_t stage);
  void sumOverHolders(ArrayRef<const WeightGroup *> owned,
                      ArrayRef<const WeightGroup *> reduced);
  void sumLent(const WeightGroup &group);
  void addAtOwner(const WeightGroup &group);
  void handBack(const WeightGroup &group);
  void allReduceTied(ArrayRef<const WeightGroup *> groups);
  void allReduce(Location location, ArrayRef<int32_t> holders,
                 FlatSymbolRefAttr weight,
                 const WeightGroup *inBucket = nullptr);
  void takeGradients();
  void clipGradients();
  void mergeStatistics();
  CollectiveOp createSum(Location location, int32_t stage, Value gradients,
                         FlatSymbolRefAttr weight, GroupAttr over,
                         std::optional<int64_t> bucket = {});
  CollectiveOp create(Location location, CollectiveKind kind, int32_t stage,
                      Value value, Type result, GroupAttr over,
                      FlatSymbolRefAttr weight = {}, bool isRounded = false,
                      std::optional<int64_t> bucket = {});
  void sumOverReplicas(TaskOp update, ReplicaState state);
  void gatherWeights();
  void gatherWeights(TaskOp update);

  StepOp step;
  const Stages &stages;
  ArrayRef<int32_t> ranks;
  bool prefersOwners, copiesLast;
  OpBuilder builder;
};

} // namespace

/// All holders are on one rank each, or there is nothing to send between some,
/// and the order of the stages is no order of ranks.
Policy StepSynchronizer::policyOf(const WeightGroup &group) const {
  llvm::SmallSet<int32_t, 4> places;
  for (int32_t stage : group.stages)
    places.insert(ranks[stage]);
  return !prefersOwners && places.size() == group.stages.size()
             ? Policy::AllReduce
             : Policy::Owner;
}

/// Whether a stage of the first of two copies and its mirror, and nobody else,
/// hold a weight and update it.
bool StepSynchronizer::isOfMirrors(const WeightGroup &group) const {
  return stages.copies() > 1 && group.stages.size() == 2 &&
         policyOf(group) == Policy::AllReduce;
}

/// Whether all that a stage of the first copy and its mirror train is theirs
/// alone: then its gradients are summed as one range.
bool StepSynchronizer::isSharedWhole(int32_t stage) const {
  return llvm::all_of(stages.weights(), [&](const WeightGroup &group) {
    return !group.isTied() || !llvm::is_contained(group.stages, stage) ||
           isOfMirrors(group);
  });
}

/// Whether each replica has parts of a stage's gradients.
bool StepSynchronizer::isSplit(int32_t stage) {
  Value gradients = gradientsOf(stage);
  return gradients &&
         stateOfReplicas(gradients.getType()) == ReplicaState::split;
}

/// What the last op has made of a stage's gradients, or of its new weights.
template <class StageType>
Value StepSynchronizer::lastOf(int32_t stage) {
  for (Operation &op : llvm::reverse(*step.getBody()))
    for (Value result : op.getResults())
      if (auto type = dyn_cast<StageType>(result.getType());
          type && type.getStage() == stages.nameOf(stage))
        return result;
  return {};
}

/// The update of a stage; a new one behind all others where it has none.
TaskOp StepSynchronizer::updateOf(int32_t stage) {
  TaskOp last;
  for (auto task : step.getBody()->getOps<TaskOp>()) {
    if (task.getKind() != TaskKind::update)
      continue;
    if (stages.numberOf(task.getStageAttr()) == stage)
      return task;
    last = task;
  }
  builder.setInsertionPointAfter(last);
  return TaskOp::create(
      builder, stages[stage].getLoc(),
      UpdatedType::get(step.getContext(), stages.nameOf(stage)),
      TaskKindAttr::get(step.getContext(), TaskKind::update),
      stages.nameOf(stage), IntegerAttr(), gradientsOf(stage),
      /*buffers=*/ArrayAttr());
}

//===----------------------------------------------------------------------===//
// Within a replica
//===----------------------------------------------------------------------===//

void StepSynchronizer::addAtOwner(const WeightGroup &group) {
  Location location = group.weight.getLoc();
  auto symbol = FlatSymbolRefAttr::get(group.weight.getSymNameAttr());
  int32_t owner = group.owner();
  for (int32_t holder : ArrayRef(group.stages).drop_front()) {
    Value sum = gradientsOf(owner), own = gradientsOf(holder);
    Value gradient = GradientOfOp::create(
        builder, location, group.weight.getTensorType(), symbol,
        stages.nameOf(holder), own, /*buffers=*/ArrayAttr());
    AddGradientOp::create(builder, location, sum.getType(), symbol,
                          stages.nameOf(owner), sum, gradient);
  }
}

void StepSynchronizer::handBack(const WeightGroup &group) {
  Location location = group.weight.getLoc();
  auto symbol = FlatSymbolRefAttr::get(group.weight.getSymNameAttr());
  Value updated = updatedOf(group.owner());
  builder.setInsertionPointToEnd(step.getBody());
  Value weight = WeightOfOp::create(
      builder, location, group.weight.getTensorType(), symbol,
      stages.nameOf(group.owner()), updated, /*buffers=*/ArrayAttr());
  for (int32_t holder : ArrayRef(group.stages).drop_front())
    SetWeightOp::create(builder, location, symbol, stages.nameOf(holder),
                        weight, gradientsOf(holder));
}

CollectiveOp StepSynchronizer::createSum(Location location, int32_t stage,
                                         Value gradients,
                                         FlatSymbolRefAttr weight,
                                         GroupAttr over,
                                         std::optional<int64_t> bucket) {
  return create(location, CollectiveKind::AllReduce, stage, gradients,
                gradients.getType(), over, weight, /*isRounded=*/false, bucket);
}

CollectiveOp StepSynchronizer::create(Location location, CollectiveKind kind,
                                      int32_t stage, Value value, Type result,
                                      GroupAttr over, FlatSymbolRefAttr weight,
                                      bool isRounded,
                                      std::optional<int64_t> bucket) {
  return CollectiveOp::create(
      builder, location, result,
      CollectiveKindAttr::get(step.getContext(), kind),
      isRounded ? builder.getUnitAttr() : UnitAttr(), weight,
      bucket ? builder.getI64IntegerAttr(*bucket) : IntegerAttr(),
      stages.nameOf(stage), value, over,
      /*root=*/IntegerAttr(),
      /*buffers=*/ArrayAttr(), /*event=*/IntegerAttr());
}

/// The part of each holder, in the order of the stages. Without a weight: of
/// all that they update, or of the bucket that has weight `inBucket`.
void StepSynchronizer::allReduce(Location location, ArrayRef<int32_t> holders,
                                 FlatSymbolRefAttr weight,
                                 const WeightGroup *inBucket) {
  SmallVector<int64_t> over;
  for (int32_t stage : holders)
    over.push_back(ranks[stage]);
  // The sum of two is the same either way, so that two ranks are one group.
  if (over.size() == 2)
    llvm::sort(over);
  for (int32_t stage : holders) {
    std::optional<int64_t> bucket;
    if (inBucket)
      bucket = bucketNumbers(stages, stage)[*bucketOf(stages, stage, inBucket)];
    createSum(location, stage, gradientsOf(stage), weight,
              GroupAttr::ofRanks(step.getContext(), over), bucket);
  }
}

void StepSynchronizer::allReduceTied(ArrayRef<const WeightGroup *> groups) {
  // By stage of the first copy: those whose gradients are one range, or whose
  // replicas have parts of buckets.
  std::set<int32_t> whole, split;
  for (const WeightGroup *group : groups)
    if (isOfMirrors(*group) && isSplit(group->owner()))
      split.insert(group->owner());
    else if (isSharedWhole(group->owner()))
      whole.insert(group->owner());
    else
      allReduce(group->weight.getLoc(), group->stages,
                FlatSymbolRefAttr::get(group->weight.getSymNameAttr()));
  for (int32_t stage : split)
    for (const Bucket &bucket : bucketsOf(stages, stage))
      if (const WeightGroup *first = bucket.weights.front();
          isOfMirrors(*first))
        allReduce(stages[stage].getLoc(), first->stages, FlatSymbolRefAttr(),
                  first);
  for (int32_t stage : whole)
    allReduce(stages[stage].getLoc(), {stage, stage + stages.size() / 2},
              FlatSymbolRefAttr());
}

//===----------------------------------------------------------------------===//
// Over replicas
//===----------------------------------------------------------------------===//

/// The norm is that of all gradients of a step, so all have to be there before
/// the first update.
static LogicalResult checkClipping(ModuleOp module) {
  const ProgramFields program = programOf(module);
  if (!program.clipNorm || program.updates == 1)
    return success();
  return module.emitError("--clip-norm expects a schedule with one update in a "
                          "step, but this one has ")
         << program.updates;
}

/// What replicas would not do alike is refused.
static LogicalResult checkReplicas(ModuleOp module) {
  const ProgramFields program = programOf(module);
  int64_t replicas = program.replicas;
  if (replicas == 1)
    return success();
  if (program.zero > 0 && program.updates > 1)
    return module.emitError("--zero ")
           << program.zero
           << " expects a schedule with one update in a step, but this one has "
           << program.updates;
  if (program.zero > 0 && program.optimizer &&
      program.optimizer.getChoice().row->granularity == nn::Granularity::Weight)
    return module.emitError("--zero ")
           << program.zero << " expects an optimizer that works on parts of "
           << "weights, but " << program.optimizer.getChoice().row->name
           << " needs whole ones: leave --zero out, or take adamw";
  for (StageOp stage : module.getOps<StageOp>())
    for (auto [weight, decay] : decaysOf(stage))
      if (!decay)
        return stage.emitError("writes the state '")
               << weight.getValue()
               << "', which does not say what of it remains (decay): "
               << replicas << " replicas cannot make one of theirs";
      else if (program.updates > 1)
        return module.emitError("--data-parallel ")
               << replicas << " with the running statistic '"
               << weight.getValue()
               << "' (batch normalization) expects a schedule with one update "
                  "in a step, but this one has "
               << program.updates;
  return success();
}

/// Of a weight that an owner updates: what its other stages add.
void StepSynchronizer::sumLent(const WeightGroup &group) {
  for (int32_t holder : ArrayRef(group.stages).drop_front())
    createSum(group.weight.getLoc(), holder, gradientsOf(holder),
              FlatSymbolRefAttr::get(group.weight.getSymNameAttr()),
              GroupAttr::ofReplicas(step.getContext()));
}

void StepSynchronizer::sumOverReplicas(TaskOp update, ReplicaState state) {
  FlatSymbolRefAttr stage = update.getStageAttr();
  const int32_t number = stages.numberOf(stage);
  auto sum = [&](CollectiveKind kind, std::optional<int64_t> bucket) {
    update.setOperand(
        0, create(update.getLoc(), kind, number, update.getOperand(0),
                  GradientType::get(step.getContext(), stage, state),
                  GroupAttr::ofReplicas(step.getContext()), /*weight=*/{},
                  /*isRounded=*/false, bucket));
  };
  const auto kind = state == ReplicaState::whole
                        ? CollectiveKind::AllReduce
                        : CollectiveKind::ReduceScatter;
  for (std::optional<int64_t> bucket : bucketNumbers(stages, number))
    sum(kind, bucket);
}

/// Each replica updates its part of the weights, and hands it out: what tasks
/// read of it, the weights themselves or their bf16 copies.
void StepSynchronizer::gatherWeights() {
  for (auto task : llvm::to_vector(step.getBody()->getOps<TaskOp>()))
    if (task.getKind() == TaskKind::update)
      gatherWeights(task);
}

void StepSynchronizer::gatherWeights(TaskOp update) {
  FlatSymbolRefAttr stage = update.getStageAttr();
  const int32_t number = stages.numberOf(stage);
  auto over = GroupAttr::ofReplicas(step.getContext());
  Value updated = update.getResult(0);
  updated.setType(
      UpdatedType::get(step.getContext(), stage, ReplicaState::split));
  builder.setInsertionPointAfter(update);
  auto whole = UpdatedType::get(step.getContext(), stage);
  for (bool isRounded : {false, true})
    if (isRounded ? stages.readsRounded(number) : stages.readsMasters(number))
      for (std::optional<int64_t> bucket : bucketNumbers(stages, number))
        updated =
            create(update.getLoc(), CollectiveKind::AllGather, number, updated,
                   whole, over, /*weight=*/{}, isRounded, bucket);
}

/// Clipping takes all gradients; else a replica needs those that it updates.
void StepSynchronizer::sumOverReplicas() {
  const ProgramFields program = programOf(step->getParentOfType<ModuleOp>());
  const ReplicaState state = program.zero > 0 && !program.clipNorm
                                 ? ReplicaState::split
                                 : ReplicaState::whole;
  SmallVector<TaskOp> updates;
  for (auto task : step.getBody()->getOps<TaskOp>())
    if (task.getKind() == TaskKind::update)
      updates.push_back(task);
  for (TaskOp update : updates) {
    if (program.updates > 1)
      builder.setInsertionPoint(update);
    sumOverReplicas(update, state);
  }
}

/// On each rank, in front of its first update; a rank without one takes part,
/// too: the norm is known when all have come.
void StepSynchronizer::clipGradients() {
  SmallVector<int64_t> over;
  for (int32_t stage = 0; stage < stages.size(); ++stage)
    if (!llvm::is_contained(over, ranks[stage]))
      over.push_back(ranks[stage]);
  llvm::sort(over);
  auto updates = llvm::make_filter_range(
      step.getBody()->getOps<TaskOp>(),
      [](TaskOp task) { return task.getKind() == TaskKind::update; });
  builder.setInsertionPoint(*updates.begin());
  for (int64_t rank : over) {
    SmallVector<TaskOp> own;
    SmallVector<Value> gradients;
    for (TaskOp update : updates)
      if (ranks[stages.numberOf(update.getStageAttr())] == rank) {
        own.push_back(update);
        gradients.push_back(update.getOperand(0));
      }
    const auto *first = llvm::find(ranks, rank);
    auto stage = static_cast<int32_t>(first - ranks.begin());
    auto clip = ClipGradientsOp::create(
        builder, step.getLoc(), ValueRange(gradients).getTypes(),
        stages.nameOf(stage), gradients,
        GroupAttr::ofRanks(step.getContext(), over));
    for (auto [update, clipped] : llvm::zip(own, clip.getClipped()))
      update.setOperand(0, clipped);
  }
}

/// Behind all else that replicas do: nothing may be under way there.
void StepSynchronizer::mergeStatistics() {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(step.getBody());
  for (int32_t stage = 0; stage < stages.size(); ++stage)
    if (!decaysOf(stages[stage]).empty())
      MergeStatisticsOp::create(builder, stages[stage].getLoc(),
                                stages.nameOf(stage),
                                GroupAttr::ofReplicas(step.getContext()));
}

//===----------------------------------------------------------------------===//
// All of a step
//===----------------------------------------------------------------------===//

/// The stages that hold a weight, each.
void StepSynchronizer::sumOverHolders(ArrayRef<const WeightGroup *> owned,
                                      ArrayRef<const WeightGroup *> reduced) {
  for (const WeightGroup *group : owned)
    addAtOwner(*group);
  allReduceTied(reduced);
}

/// Updates are of all that was made of their gradients so far.
void StepSynchronizer::takeGradients() {
  for (auto task : step.getBody()->getOps<TaskOp>())
    if (task.getKind() == TaskKind::update)
      task.setOperand(0, gradientsOf(stages.numberOf(task.getStageAttr())));
}

void StepSynchronizer::run(const ProgramFields &program) {
  auto firstUpdate =
      llvm::find_if(step.getBody()->getOps<TaskOp>(), [](TaskOp task) {
        return task.getKind() == TaskKind::update;
      });
  if (firstUpdate == step.getBody()->getOps<TaskOp>().end())
    return;
  SmallVector<const WeightGroup *> owned, reduced;
  for (const WeightGroup &group : stages.weights())
    if (group.isTied())
      (policyOf(group) == Policy::Owner ? owned : reduced).push_back(&group);

  // Each holder of a weight that is all-reduced updates it.
  for (const WeightGroup *group : reduced) {
    group->weight->setAttr(PipeDialect::kAllReduced, builder.getUnitAttr());
    for (int32_t stage : group->stages)
      updateOf(stage);
  }
  // All sums come before all updates, on every rank: the gradients of a rank
  // are whole when its first update begins.
  builder.setInsertionPoint(*firstUpdate);
  const bool replicasFirst =
      program.replicas > 1 && (stages.copies() == 1 || copiesLast);
  if (!replicasFirst)
    sumOverHolders(owned, reduced);
  takeGradients();
  if (program.replicas > 1)
    sumOverReplicas();
  if (replicasFirst) {
    for (const WeightGroup *group : owned)
      sumLent(*group);
    sumOverHolders(owned, reduced);
  }
  takeGradients();
  if (program.clipNorm)
    clipGradients();
  if (program.replicas > 1 && program.zero > 0)
    gatherWeights();
  // No update waits for statistics, so the norm does not either.
  if (program.replicas > 1)
    mergeStatistics();
  for (const WeightGroup *group : owned)
    handBack(*group);
}

namespace {

class SynchronizeWeights
    : public pipe::impl::PipeSynchronizeWeightsBase<SynchronizeWeights> {
public:
  using PipeSynchronizeWeightsBase::PipeSynchronizeWeightsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (tied != "all-reduce" && tied != "owner") {
      module.emitError("pipe-synchronize-weights expects tied=all-reduce or "
                       "owner, but got '")
          << tied << "'";
      return signalPassFailure();
    }
    FailureOr<Stages> stages = Stages::read(module);
    if (failed(stages) || failed(checkReplicas(module)) ||
        failed(checkClipping(module)))
      return signalPassFailure();
    for (StepOp step : module.getOps<StepOp>()) {
      bool isDone = llvm::any_of(*step.getBody(), [](Operation &op) {
        return !isa<InputOp, TaskOp, HoldOp, MoveOp, WaitMoveOp>(op);
      });
      if (step.getMode() != StepMode::train || isDone)
        continue;
      FailureOr<SmallVector<int32_t>> ranks = stages->ranks();
      if (failed(ranks))
        return signalPassFailure();
      ProgramFields program = programOf(module);
      StepSynchronizer synchronizer(step, *stages, *ranks, tied == "owner",
                                    copiesLast);
      if (program.updates == 1)
        synchronizer.run(program);
      else if (program.replicas > 1)
        synchronizer.sumOverReplicas();
    }
  }
};

} // namespace
