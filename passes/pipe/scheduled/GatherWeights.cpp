//===- GatherWeights.cpp - Weights are whole only while they are read -----===//
//
// With ZeRO-3 a replica keeps its part of a stage's weights, and the stages of
// a rank take turns in a few ranges where their weights are put together for
// the tasks that read them. A range is loaded as soon as the last task is over
// that reads what was there before, so that gathers run beside the tasks of
// stages in other ranges. Which stage has which range when is chosen in
// passes/schedules/SharedRanges.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/schedules/SharedRanges.h"
#include "passes/step/Buckets.h"
#include "passes/step/StepOrder.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEGATHERWEIGHTS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// One rank of a module.
class WeightGatherer {
public:
  WeightGatherer(ModuleOp module, const Stages &stages, int64_t numRanges)
      : stages(stages), replicas(programOf(module).replicas),
        numRanges(numRanges), builder(module.getContext()) {}

  /// Finds the ranges for the rank's tasks of a training step; none where they
  /// save no memory.
  void chooseRanges(ArrayRef<TaskOp> tasks);
  void gather(ArrayRef<TaskOp> tasks);

private:
  /// The stage whose updated weights each task reads; -1: none.
  SmallVector<int32_t> readersOf(ArrayRef<TaskOp> tasks) const;
  /// `range` is its number where the stage has another one each time.
  Value createGathers(int32_t stage, std::optional<int64_t> range,
                      Operation *place);
  void keepSplit(TaskOp update);

  const Stages &stages;
  const int64_t replicas, numRanges;
  OpBuilder builder;
  schedules::WeightRanges ranges;
};

} // namespace

/// Whether one stage hands its new weights to others: then it has them whole.
static bool handsOn(const Stages &stages, int32_t stage) {
  return llvm::any_of(stages.weights(), [&](const WeightGroup &group) {
    return group.isTied() && !group.isAllReduced() &&
           llvm::is_contained(group.stages, stage);
  });
}

SmallVector<int32_t> WeightGatherer::readersOf(ArrayRef<TaskOp> tasks) const {
  return llvm::map_to_vector(tasks, [&](TaskOp task) {
    const int32_t stage = stages.numberOf(task.getStage());
    return task.getMicroBatch() && stages.readsUpdated(stage, task.getKind())
               ? stage
               : -1;
  });
}

void WeightGatherer::chooseRanges(ArrayRef<TaskOp> tasks) {
  SmallVector<int32_t> readers = readersOf(tasks);
  schedules::BytesOfStage bytes;
  // A task is told of one place: of its weights, or of their bf16 copies.
  bool mayMove = true;
  for (int32_t stage : readers) {
    if (stage < 0 || !stages.hasUpdate(stage) || handsOn(stages, stage))
      continue;
    bytes[stage] =
        llvm::alignTo(stages.updatedBytes(stage), replicas * kShardAlignment);
    mayMove &= !(stages.readsRounded(stage) && stages.readsMasters(stage));
  }
  ranges = schedules::chooseWeightRanges(readers, bytes, replicas, numRanges,
                                         mayMove);
}

/// What was put together, of what tasks read: weights, and their bf16 copies.
Value WeightGatherer::createGathers(int32_t stage, std::optional<int64_t> range,
                                    Operation *place) {
  builder.setInsertionPoint(place);
  MLIRContext *context = builder.getContext();
  FlatSymbolRefAttr name = stages.nameOf(stage);
  Location location = stages[stage]->getLoc();
  Value weights = LoadWeightsOp::create(
      builder, location, UpdatedType::get(context, name, ReplicaState::split),
      name, range ? builder.getI64IntegerAttr(*range) : IntegerAttr(),
      /*weights=*/BufferAttr());
  using runtime::CollectiveKind;
  auto gather = [&](bool isRounded, std::optional<int64_t> bucket) {
    weights = CollectiveOp::create(
        builder, location, UpdatedType::get(context, name),
        CollectiveKindAttr::get(context, CollectiveKind::AllGather),
        isRounded ? builder.getUnitAttr() : UnitAttr(),
        /*weight=*/FlatSymbolRefAttr(),
        bucket ? builder.getI64IntegerAttr(*bucket) : IntegerAttr(), name,
        weights, GroupAttr::ofReplicas(context), /*root=*/IntegerAttr(),
        /*buffers=*/ArrayAttr(), /*event=*/IntegerAttr());
  };
  for (bool isRounded : {false, true})
    if (isRounded ? stages.readsRounded(stage) : stages.readsMasters(stage))
      for (std::optional<int64_t> bucket : bucketNumbers(stages, stage))
        gather(isRounded, bucket);
  return weights;
}

/// Nobody puts together what an update makes: the next step does.
void WeightGatherer::keepSplit(TaskOp update) {
  SmallVector<CollectiveOp> gathers;
  for (Value made = update.getResult(0); made.hasOneUse();) {
    auto gather = dyn_cast<CollectiveOp>(*made.getUsers().begin());
    if (!gather)
      return;
    gathers.push_back(gather);
    made = gather.getResult();
  }
  for (CollectiveOp gather : llvm::reverse(gathers))
    if (gather.getResult().use_empty())
      gather.erase();
}

void WeightGatherer::gather(ArrayRef<TaskOp> tasks) {
  for (TaskOp task : tasks)
    if (task.getKind() == TaskKind::update &&
        ranges.contains(stages.numberOf(task.getStage())))
      keepSplit(task);
  const SmallVector<int32_t> readers = readersOf(tasks);
  const std::vector<int64_t> chosen = ranges.of(readers);
  for (const schedules::RangeTurn &turn : schedules::turnsOf(readers, chosen)) {
    const int64_t range = chosen[turn.tasks.front()];
    Value weights = createGathers(
        turn.stage, ranges.areAny() ? std::optional(range) : std::nullopt,
        tasks[turn.freed]);
    for (int64_t reader : turn.tasks)
      TaskOp(tasks[reader]).setGathered(weights);
  }
}

namespace {

class GatherWeights : public pipe::impl::PipeGatherWeightsBase<GatherWeights> {
public:
  using PipeGatherWeightsBase::PipeGatherWeightsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (ranges < 1) {
      module.emitError("pipe-gather-weights expects ranges of at least 1, but "
                       "got ")
          << ranges.getValue();
      return signalPassFailure();
    }
    if (programOf(module).zero < 3)
      return;
    FailureOr<Stages> stages = Stages::read(module);
    if (failed(stages))
      return signalPassFailure();
    if (stages->copies() > 1)
      return;
    FailureOr<SmallVector<int32_t>> rankOf = stages->ranks();
    if (failed(rankOf))
      return signalPassFailure();
    std::map<int32_t, WeightGatherer> gatherers;
    for (StepMode mode : {StepMode::train, StepMode::evaluate})
      for (auto step : module.getOps<StepOp>()) {
        const bool isDone = !step.getBody()->getOps<LoadWeightsOp>().empty();
        if (step.getMode() != mode || isDone)
          continue;
        for (auto &[rank, ofRank] : tasksOfRanks(step, *stages, *rankOf)) {
          auto [gatherer, isNew] =
              gatherers.try_emplace(rank, module, *stages, ranges);
          if (mode == StepMode::train)
            gatherer->second.chooseRanges(ofRank);
          gatherer->second.gather(ofRank);
        }
      }
  }
};

} // namespace
