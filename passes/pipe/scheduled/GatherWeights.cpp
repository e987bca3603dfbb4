//===- GatherWeights.cpp - Weights are put together where they are read ---===//
//
// Replicas that update a part each of a stage's weights put these together
// before the first task of the next step that reads them, beside the tasks of
// other stages, and not behind the update, where nothing is left to run.
//
// With ZeRO-3 weights are whole only while they are read: the stages of a rank
// take turns in a few ranges where they are put together. A range is loaded as
// soon as the last task is over that reads what was there before. Which stage
// has which range when is chosen in passes/schedules/SharedRanges.
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
      : stages(stages), program(programOf(module)), numRanges(numRanges),
        builder(module.getContext()) {}

  /// Finds what is gathered for the rank's tasks of a training step: with
  /// ZeRO-3 in ranges, unless they save no memory; otherwise once, of stages
  /// that other tasks come before.
  void choose(ArrayRef<TaskOp> tasks);
  void gather(ArrayRef<TaskOp> tasks);

private:
  /// The stage whose updated weights each task reads; -1: none.
  SmallVector<int32_t> readersOf(ArrayRef<TaskOp> tasks) const;
  /// Behind `load`, of what that brings.
  Value createGathers(int32_t stage, LoadWeightsOp load);
  LoadWeightsOp createLoad(int32_t stage, Operation *place);
  void keepSplit(TaskOp update);

  const Stages &stages;
  const ProgramFields program;
  const int64_t numRanges;
  OpBuilder builder;
  schedules::WeightRanges ranges;
  std::vector<int32_t> later;
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
  std::map<std::pair<int32_t, TaskKind>, bool> reads;
  return llvm::map_to_vector(tasks, [&](TaskOp task) {
    const int32_t stage = stages.numberOf(task.getStage());
    if (!task.getMicroBatch())
      return -1;
    auto [known, isNew] = reads.try_emplace({stage, task.getKind()});
    if (isNew)
      known->second = stages.readsUpdated(stage, task.getKind());
    return known->second ? stage : -1;
  });
}

void WeightGatherer::choose(ArrayRef<TaskOp> tasks) {
  SmallVector<int32_t> readers = readersOf(tasks);
  schedules::BytesOfStage bytes;
  // A task is told of one place: of its weights, or of their bf16 copies.
  bool mayMove = true;
  for (int32_t stage : readers) {
    if (stage < 0 || bytes.contains(stage) || !stages.hasUpdate(stage) ||
        handsOn(stages, stage))
      continue;
    bytes[stage] = llvm::alignTo(stages.updatedBytes(stage),
                                 program.replicas * kShardAlignment);
    mayMove &= !(stages.readsRounded(stage) && stages.readsMasters(stage));
  }
  if (program.zero >= 3)
    ranges = schedules::chooseWeightRanges(readers, bytes, program.replicas,
                                           numRanges, mayMove);
  if (ranges.empty())
    later = schedules::stagesReadLater(readers);
  std::erase_if(later, [&](int32_t stage) { return !bytes.contains(stage); });
}

LoadWeightsOp WeightGatherer::createLoad(int32_t stage, Operation *place) {
  builder.setInsertionPoint(place);
  FlatSymbolRefAttr name = stages.nameOf(stage);
  return LoadWeightsOp::create(
      builder, stages[stage]->getLoc(),
      UpdatedType::get(builder.getContext(), name, ReplicaState::split), name,
      /*in_place=*/UnitAttr(), /*range=*/IntegerAttr(),
      /*weights=*/BufferAttr());
}

/// What was put together, of what tasks read: weights, and their bf16 copies.
Value WeightGatherer::createGathers(int32_t stage, LoadWeightsOp load) {
  MLIRContext *context = builder.getContext();
  FlatSymbolRefAttr name = stages.nameOf(stage);
  Value weights = load;
  using runtime::CollectiveKind;
  auto gather = [&](bool isRounded, std::optional<int64_t> bucket) {
    weights = CollectiveOp::create(
        builder, load.getLoc(), UpdatedType::get(context, name),
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
  for (TaskOp task : tasks) {
    const int32_t stage = stages.numberOf(task.getStage());
    if (task.getKind() == TaskKind::update &&
        (ranges.contains(stage) || llvm::is_contained(later, stage)))
      keepSplit(task);
  }
  const SmallVector<int32_t> readers = readersOf(tasks);
  for (int32_t stage : later) {
    LoadWeightsOp load = createLoad(stage, tasks.front());
    load.setInPlace(true);
    Value weights = createGathers(stage, load);
    for (auto [task, reader] : llvm::zip_equal(tasks, readers))
      if (reader == stage)
        TaskOp(task).setGathered(weights);
  }
  const std::vector<int64_t> chosen = ranges.of(readers);
  for (const schedules::RangeTurn &turn : schedules::turnsOf(readers, chosen)) {
    LoadWeightsOp load = createLoad(turn.stage, tasks[turn.freed]);
    if (ranges.areAny())
      load.setRange(chosen[turn.tasks.front()]);
    Value weights = createGathers(turn.stage, load);
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
    if (programOf(module).zero == 0)
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
            gatherer->second.choose(ofRank);
          gatherer->second.gather(ofRank);
        }
      }
  }
};

} // namespace
