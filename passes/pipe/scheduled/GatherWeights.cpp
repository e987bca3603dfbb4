//===- GatherWeights.cpp - Weights are whole only while they are read -----===//
//
// With ZeRO-3 a replica keeps its part of a stage's weights, and the stages of
// a rank take turns in a few ranges where their weights are put together for
// the tasks that read them. A range is loaded as soon as the last task is over
// that reads what was there before, so that gathers run beside the tasks of
// stages in other ranges. Which stages share a range is chosen so that the
// fewest bytes are gathered: all uses are known beforehand. (A body names bytes
// of the arena, so that a stage has one range; where any stage may be in any
// range, the rule of L. A. Belady, "A study of replacement algorithms for a
// virtual-storage computer", 1966, is the best one.)
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/step/Buckets.h"
#include "passes/step/StepOrder.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <tuple>

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEGATHERWEIGHTS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// By stage of a rank: the range that its weights are put together in.
using Ranges = std::map<int32_t, int64_t>;

/// What it costs that stages have those ranges.
struct RangeCost {
  /// Ranges and parts take as much memory as whole weights.
  bool savesNothing = false;
  int64_t gathered = 0;
  /// Of these: by a task right behind one that reads what was there before.
  int64_t exposed = 0;
  /// Of all ranges.
  int64_t bytes = 0;

  /// The first one is the most important.
  auto key() const { return std::tie(savesNothing, gathered, exposed, bytes); }
};

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
  bool reads(TaskOp task, int32_t stage) const {
    return task.getMicroBatch() && stages.readsUpdated(stage, task.getKind());
  }
  RangeCost costOf(ArrayRef<int32_t> runs, const Ranges &given) const;
  Ranges bestRanges(ArrayRef<int32_t> runs) const;
  Value createGathers(int32_t stage, Operation *place);
  void keepSplit(TaskOp update);

  const Stages &stages;
  const int64_t replicas, numRanges;
  OpBuilder builder;
  /// By stage that may share: the bytes of its weights.
  std::map<int32_t, int64_t> bytesOf;
  Ranges ranges;
};

} // namespace

/// Whether one stage hands its new weights to others: then it has them whole.
static bool handsOn(const Stages &stages, int32_t stage) {
  return llvm::any_of(stages.weights(), [&](const WeightGroup &group) {
    return group.isTied() && !group.isAllReduced() &&
           llvm::is_contained(group.stages, stage);
  });
}

/// Of stages one after the other, the first of which loads all it needs.
RangeCost WeightGatherer::costOf(ArrayRef<int32_t> runs,
                                 const Ranges &given) const {
  RangeCost cost;
  std::map<int64_t, int32_t> holders;
  std::map<int64_t, int64_t> largest;
  int64_t before = -1;
  for (int32_t stage : runs) {
    const int64_t range = given.at(stage), bytes = bytesOf.at(stage);
    auto [holder, isFirst] = holders.insert({range, stage});
    if (isFirst || holder->second != stage) {
      cost.gathered += bytes;
      if (range == before)
        cost.exposed += bytes;
    }
    holder->second = stage;
    before = range;
    largest[range] = std::max(largest[range], bytes);
  }
  for (auto [range, bytes] : largest)
    cost.bytes += bytes;
  int64_t apart = 0;
  for (auto [stage, bytes] : bytesOf)
    apart += bytes;
  cost.savesNothing = cost.bytes + apart / replicas >= apart;
  return cost;
}

/// Of all ways, if they are few; otherwise stages take ranges in turns.
Ranges WeightGatherer::bestRanges(ArrayRef<int32_t> runs) const {
  constexpr int64_t mostWays = 4096;
  SmallVector<int32_t> order;
  Ranges best;
  int64_t ways = 1;
  for (int32_t stage : runs)
    if (!best.contains(stage)) {
      best[stage] = static_cast<int64_t>(order.size()) % numRanges;
      order.push_back(stage);
      ways = std::min(ways * numRanges, mostWays + 1);
    }
  if (ways > mostWays)
    return best;
  RangeCost least = costOf(runs, best);
  for (int64_t way = 0; way < ways; ++way) {
    Ranges other;
    int64_t rest = way;
    for (int32_t stage : order) {
      other[stage] = rest % numRanges;
      rest /= numRanges;
    }
    RangeCost cost = costOf(runs, other);
    if (cost.key() < least.key()) {
      least = cost;
      best = std::move(other);
    }
  }
  return best;
}

void WeightGatherer::chooseRanges(ArrayRef<TaskOp> tasks) {
  SmallVector<int32_t> runs;
  for (TaskOp task : tasks) {
    const int32_t stage = stages.numberOf(task.getStage());
    if (!stages.hasUpdate(stage) || handsOn(stages, stage) ||
        !reads(task, stage) || (!runs.empty() && runs.back() == stage))
      continue;
    runs.push_back(stage);
    bytesOf[stage] =
        llvm::alignTo(stages.updatedBytes(stage), replicas * kShardAlignment);
  }
  if (static_cast<int64_t>(bytesOf.size()) <= numRanges)
    return;
  Ranges best = bestRanges(runs);
  if (!costOf(runs, best).savesNothing)
    ranges = std::move(best);
}

/// What was put together, of what tasks read: weights, and their bf16 copies.
Value WeightGatherer::createGathers(int32_t stage, Operation *place) {
  builder.setInsertionPoint(place);
  MLIRContext *context = builder.getContext();
  FlatSymbolRefAttr name = stages.nameOf(stage);
  Location location = stages[stage]->getLoc();
  Value weights = LoadWeightsOp::create(
      builder, location, UpdatedType::get(context, name, ReplicaState::split),
      name);
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
  struct Turn {
    int32_t stage = -1;
    Value weights;
    /// The number of the task behind the last one that reads them.
    size_t end = 0;
  };
  std::map<int64_t, Turn> turns;
  for (auto [number, of] : llvm::enumerate(tasks)) {
    TaskOp task = of;
    const int32_t stage = stages.numberOf(task.getStage());
    auto range = ranges.find(stage);
    if (range == ranges.end())
      continue;
    if (task.getKind() == TaskKind::update)
      keepSplit(task);
    if (!reads(task, stage))
      continue;
    Turn &turn = turns[range->second];
    if (turn.stage != stage)
      turn = {stage, createGathers(stage, tasks[turn.end]), turn.end};
    task.setGathered(turn.weights);
    turn.end = number + 1;
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
