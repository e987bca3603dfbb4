//===- AllReduceTiedWeights.cpp - Both holders of a weight update it ------===//
//
// A step, as unrolling writes it, sums the gradients of a tied weight at its
// owner, which updates it and hands the new value back. Here two holders on
// different ranks reduce gradients together instead, and update a copy each:
// less time between two steps, for one more copy of the optimizer's state. The
// sum of two numbers does not depend on their order, so both copies stay equal
// to the bit.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/step/Stages.h"

#include "mlir/IR/Builders.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEALLREDUCETIEDWEIGHTS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// What a step does with one tied weight that two stages hold.
struct TiedWeightOps {
  GradientOfOp replicaGradient;
  AddGradientOp sum;
  WeightOfOp newWeight;
  SetWeightOp copy;
};

class AllReduceTiedWeights
    : public pipe::impl::PipeAllReduceTiedWeightsBase<AllReduceTiedWeights> {
public:
  using PipeAllReduceTiedWeightsBase::PipeAllReduceTiedWeightsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Stages> stages = Stages::read(module);
    if (failed(stages))
      return signalPassFailure();
    if (stages->copies() > 1)
      return;
    for (StepOp step : module.getOps<StepOp>()) {
      if (step.getMode() != StepMode::train)
        continue;
      FailureOr<SmallVector<int32_t>> ranks = stages->ranks();
      if (failed(ranks))
        return signalPassFailure();
      for (const WeightGroup &group : stages->weights()) {
        if (!group.isTied() || group.isAllReduced() ||
            group.stages.size() != 2 ||
            (*ranks)[group.stages[0]] == (*ranks)[group.stages[1]])
          continue;
        if (failed(allReduce(step, *stages, group)))
          return signalPassFailure();
      }
    }
  }

private:
  static FailureOr<TiedWeightOps> findOps(StepOp step,
                                          const WeightGroup &group) {
    TiedWeightOps found;
    StringRef name = group.weight.getSymName();
    for (Operation &op : *step.getBody()) {
      if (auto gradient = dyn_cast<GradientOfOp>(op);
          gradient && gradient.getWeight() == name)
        found.replicaGradient = gradient;
      else if (auto sum = dyn_cast<AddGradientOp>(op);
               sum && sum.getWeight() == name)
        found.sum = sum;
      else if (auto weight = dyn_cast<WeightOfOp>(op);
               weight && weight.getWeight() == name)
        found.newWeight = weight;
      else if (auto copy = dyn_cast<SetWeightOp>(op);
               copy && copy.getWeight() == name)
        found.copy = copy;
    }
    if (!found.replicaGradient || !found.sum || !found.newWeight || !found.copy)
      return step.emitOpError("expects the gradients of the tied weight '")
             << name << "' to be summed at its owner, and its new value to be "
             << "sent back, as pipe-unroll-microbatches writes it";
    return found;
  }

  /// The update of a stage; a new one behind all others where it has none.
  static void updateAfter(StepOp step, const Stages &stages, int32_t stage,
                          Value gradients) {
    Operation *last = gradients.getDefiningOp();
    for (auto task : step.getBody()->getOps<TaskOp>()) {
      if (task.getKind() != TaskKind::update)
        continue;
      if (stages.numberOf(task.getStageAttr()) == stage)
        return;
      last = task;
    }
    OpBuilder builder(step.getContext());
    builder.setInsertionPointAfter(last);
    TaskOp::create(builder, stages[stage].getLoc(),
                   UpdatedType::get(step.getContext(), stages.nameOf(stage)),
                   TaskKindAttr::get(step.getContext(), TaskKind::update),
                   stages.nameOf(stage), IntegerAttr(), gradients,
                   /*buffers=*/ArrayAttr());
  }

  static LogicalResult allReduce(StepOp step, const Stages &stages,
                                 const WeightGroup &group) {
    FailureOr<TiedWeightOps> ops = findOps(step, group);
    if (failed(ops))
      return failure();
    int32_t replica = group.stages.back();
    Location location = group.weight.getLoc();
    FlatSymbolRefAttr weight = ops->sum.getWeightAttr();

    FailureOr<SmallVector<int32_t>> ranks = stages.ranks();
    if (failed(ranks))
      return failure();
    SmallVector<int64_t> over;
    for (int32_t stage : group.stages)
      over.push_back((*ranks)[stage]);
    llvm::sort(over);

    OpBuilder builder(ops->sum);
    auto reduce = [&](int32_t stage, Value gradients) {
      auto kind = CollectiveKindAttr::get(builder.getContext(),
                                          CollectiveKind::all_reduce);
      return CollectiveOp::create(builder, location, gradients.getType(), kind,
                                  weight, stages.nameOf(stage), gradients,
                                  builder.getDenseI64ArrayAttr(over),
                                  /*root=*/IntegerAttr(),
                                  /*event=*/IntegerAttr());
    };
    Value before = ops->replicaGradient.getGradient();
    CollectiveOp ofOwner = reduce(group.owner(), ops->sum.getGradient());
    CollectiveOp ofReplica = reduce(replica, before);
    ops->copy.erase();
    ops->newWeight.erase();
    // What comes behind, an update most of all, takes the whole sum.
    ops->sum.getResult().replaceAllUsesWith(ofOwner);
    ops->sum.erase();
    ops->replicaGradient.erase();
    before.replaceUsesWithIf(ofReplica, [&](OpOperand &use) {
      return ofReplica->isBeforeInBlock(use.getOwner());
    });
    updateAfter(step, stages, replica, ofReplica);
    group.weight->setAttr(PipeDialect::kAllReduced, builder.getUnitAttr());
    return success();
  }
};

} // namespace
