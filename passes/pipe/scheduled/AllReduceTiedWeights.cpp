//===- AllReduceTiedWeights.cpp - All holders of a weight update it -------===//
//
// A step, as unrolling writes it, sums the gradients of a weight that several
// stages hold at its owner, which updates it and hands the new value back. Here
// holders on different ranks reduce gradients together instead, and update a
// copy each: less time between two steps, for more copies of the optimizer's
// state. The sum is in the order of the stages, as at the owner, so all copies
// have the bits that they had there.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/step/Stages.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

#include <set>

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEALLREDUCETIEDWEIGHTS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// One training step.
class StepReducer {
public:
  StepReducer(StepOp step, const Stages &stages, ArrayRef<int32_t> ranks)
      : step(step), stages(stages), ranks(ranks), builder(step.getContext()) {}

  LogicalResult run();

private:
  bool isReduced(const WeightGroup &group) const;
  bool areReducedWhole(int32_t stage) const;
  LogicalResult removeOwner(const WeightGroup &group);
  Value gradientsOf(int32_t stage);
  void reduce(Location location, ArrayRef<int32_t> holders,
              FlatSymbolRefAttr weight);
  void updateAfter(int32_t stage, Value gradients);

  StepOp step;
  const Stages &stages;
  ArrayRef<int32_t> ranks;
  OpBuilder builder;
};

} // namespace

/// Whether its holders, several, are on one rank each.
bool StepReducer::isReduced(const WeightGroup &group) const {
  llvm::SmallSet<int32_t, 4> places;
  for (int32_t stage : group.stages)
    places.insert(ranks[stage]);
  return group.isTied() && places.size() == group.stages.size();
}

/// Whether a stage of the first of two copies and its mirror, and nobody else,
/// hold all that both train: then its gradients are reduced as one range.
bool StepReducer::areReducedWhole(int32_t stage) const {
  if (stages.copies() == 1 || !stages.hasGradients(stage))
    return false;
  int32_t mirror = stage + stages.size() / 2;
  return llvm::all_of(stages.weights(), [&](const WeightGroup &group) {
    return !group.isTied() || !llvm::is_contained(group.stages, stage) ||
           (isReduced(group) &&
            ArrayRef(group.stages) == ArrayRef<int32_t>({stage, mirror}));
  });
}

/// Takes away what a step does with a weight that has an owner.
LogicalResult StepReducer::removeOwner(const WeightGroup &group) {
  SmallVector<GradientOfOp> gradients;
  SmallVector<AddGradientOp> sums;
  SmallVector<WeightOfOp> values;
  SmallVector<SetWeightOp> copies;
  StringRef name = group.weight.getSymName();
  auto collect = [&](auto &to) {
    using OpTy = typename std::decay_t<decltype(to)>::value_type;
    for (auto op : step.getBody()->getOps<OpTy>())
      if (op.getWeight() == name)
        to.push_back(op);
  };
  collect(gradients);
  collect(sums);
  collect(values);
  collect(copies);
  size_t replicas = group.stages.size() - 1;
  if (gradients.size() != replicas || sums.size() != replicas ||
      values.size() != 1 || copies.size() != replicas)
    return step.emitOpError("expects the gradients of the tied weight '")
           << name << "' to be summed at its owner, and its new value to be "
           << "sent back, as pipe-unroll-microbatches writes it";
  for (SetWeightOp op : copies)
    op.erase();
  values.front().erase();
  for (AddGradientOp op : sums) {
    op.getResult().replaceAllUsesWith(op.getGradient());
    op.erase();
  }
  for (GradientOfOp op : gradients)
    op.erase();
  return success();
}

/// What the last op before the updates has made of a stage's gradients.
Value StepReducer::gradientsOf(int32_t stage) {
  Value last;
  for (Operation &op : *step.getBody())
    for (Value result : op.getResults())
      if (result.getType() ==
          GradientType::get(step.getContext(), stages.nameOf(stage)))
        last = result;
  return last;
}

/// The update of a stage; a new one behind all others where it has none.
void StepReducer::updateAfter(int32_t stage, Value gradients) {
  Operation *last = gradients.getDefiningOp();
  for (auto task : step.getBody()->getOps<TaskOp>()) {
    if (task.getKind() != TaskKind::update)
      continue;
    if (stages.numberOf(task.getStageAttr()) == stage)
      return;
    last = task;
  }
  builder.setInsertionPointAfter(last);
  TaskOp::create(builder, stages[stage].getLoc(),
                 UpdatedType::get(step.getContext(), stages.nameOf(stage)),
                 TaskKindAttr::get(step.getContext(), TaskKind::update),
                 stages.nameOf(stage), IntegerAttr(), gradients,
                 /*buffers=*/ArrayAttr());
}

/// The part of each holder, in the order of the stages. Without a weight: of
/// all that they update.
void StepReducer::reduce(Location location, ArrayRef<int32_t> holders,
                         FlatSymbolRefAttr weight) {
  SmallVector<int64_t> over;
  for (int32_t stage : holders)
    over.push_back(ranks[stage]);
  // The sum of two is the same either way, so that two ranks are one group.
  if (over.size() == 2)
    llvm::sort(over);
  auto firstUpdate =
      llvm::find_if(step.getBody()->getOps<TaskOp>(), [](TaskOp task) {
        return task.getKind() == TaskKind::update;
      });
  SmallVector<Value> sums;
  for (int32_t stage : holders) {
    Value gradients = gradientsOf(stage);
    builder.setInsertionPoint(*firstUpdate);
    auto part = CollectiveOp::create(
        builder, location, gradients.getType(),
        CollectiveKindAttr::get(step.getContext(),
                                runtime::CollectiveKind::AllReduce),
        /*rounded=*/UnitAttr(), weight, stages.nameOf(stage), gradients,
        builder.getDenseI64ArrayAttr(over), /*root=*/IntegerAttr(),
        /*buffers=*/ArrayAttr(), /*event=*/IntegerAttr());
    // What comes behind the updates takes it, too.
    gradients.replaceUsesWithIf(part, [&](OpOperand &use) {
      return part->isBeforeInBlock(use.getOwner());
    });
    sums.push_back(part);
  }
  for (auto [stage, sum] : llvm::zip(holders, sums))
    updateAfter(stage, sum);
}

LogicalResult StepReducer::run() {
  // By stage of the first copy: those whose gradients are one range.
  std::set<int32_t> whole;
  SmallVector<const WeightGroup *> alone;
  for (const WeightGroup &group : stages.weights()) {
    if (!isReduced(group) || group.isAllReduced())
      continue;
    if (failed(removeOwner(group)))
      return failure();
    group.weight->setAttr(PipeDialect::kAllReduced, builder.getUnitAttr());
    if (areReducedWhole(group.owner()))
      whole.insert(group.owner());
    else
      alone.push_back(&group);
  }
  for (const WeightGroup *group : alone)
    reduce(group->weight.getLoc(), group->stages,
           FlatSymbolRefAttr::get(group->weight.getSymNameAttr()));
  for (int32_t stage : whole)
    reduce(stages[stage].getLoc(), {stage, stage + stages.size() / 2},
           FlatSymbolRefAttr());
  return success();
}

namespace {

class AllReduceTiedWeights
    : public pipe::impl::PipeAllReduceTiedWeightsBase<AllReduceTiedWeights> {
public:
  using PipeAllReduceTiedWeightsBase::PipeAllReduceTiedWeightsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Stages> stages = Stages::read(module);
    if (failed(stages))
      return signalPassFailure();
    for (StepOp step : module.getOps<StepOp>()) {
      if (step.getMode() != StepMode::train)
        continue;
      FailureOr<SmallVector<int32_t>> ranks = stages->ranks();
      if (failed(ranks) || failed(StepReducer(step, *stages, *ranks).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
