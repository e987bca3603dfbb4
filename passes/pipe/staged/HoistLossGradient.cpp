//===- HoistLossGradient.cpp - pipe-hoist-loss-gradient -------------------===//
//
// The gradient of a loss needs nothing but the forward: computed there, one
// kernel reads the logits once for both, and the gradient takes the logits'
// place in the stash.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEHOISTLOSSGRADIENT
#include "passes/pipe/Passes.h.inc"

namespace {

/// Where the arguments of a backward come from in its forward.
class ForwardValues {
public:
  ForwardValues(ForwardOp forward, BackwardOp backward)
      : builder(forward.getReturn()) {
    ReturnOp kept = forward.getReturn();
    SmallVector<Value> originals;
    for (int64_t index : backward.getInputs())
      originals.push_back(forward.getBody()->getArgument(index));
    for (int64_t index : backward.getOutputs())
      originals.push_back(kept.getValues()[index]);
    llvm::append_range(originals, kept.getStash());
    for (auto [argument, original] :
         llvm::zip(backward.getBody()->getArguments(), originals))
      map.map(argument, original);
  }

  /// Repeats in the forward what `value` is made from; false if it depends on
  /// a gradient that another stage sends.
  bool bring(Value value) {
    if (map.contains(value))
      return true;
    Operation *op = value.getDefiningOp();
    return op && isPure(op) &&
           (op->hasTrait<OpTrait::ConstantLike>() || isa<nn::ReshapeOp>(op)) &&
           bringOp(op);
  }

  /// Copies an op with all that it needs; false as above.
  bool bringOp(Operation *op) {
    for (Value operand : op->getOperands())
      if (!bring(operand))
        return false;
    builder.clone(*op, map);
    return true;
  }

  Value of(Value value) const { return map.lookup(value); }

private:
  OpBuilder builder;
  IRMapping map;
};

/// Stashes `value` last and gives the backward's argument for it.
BlockArgument addToStash(ForwardOp forward, BackwardOp backward, Value value) {
  ReturnOp kept = forward.getReturn();
  unsigned position = backward.getInputs().size() +
                      backward.getOutputs().size() + kept.getStash().size();
  kept.getStashMutable().append(value);
  return backward.getBody()->insertArgument(position, value.getType(),
                                            value.getLoc());
}

/// Erases the arguments in a list that nothing reads any more, and the list's
/// entries for them. `begin` is the first one's position.
SmallVector<int64_t> keepUsed(Block &block, unsigned begin,
                              ArrayRef<int64_t> list) {
  SmallVector<int64_t> used;
  for (size_t i = list.size(); i-- > 0;) {
    if (block.getArgument(begin + i).use_empty())
      block.eraseArgument(begin + i);
    else
      used.insert(used.begin(), list[i]);
  }
  return used;
}

void eraseUnused(ForwardOp forward, BackwardOp backward) {
  Block &block = *backward.getBody();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  unsigned inputs = backward.getInputs().size();
  unsigned outputs = backward.getOutputs().size();
  MutableOperandRange stash = forward.getReturn().getStashMutable();
  for (size_t i = stash.size(); i-- > 0;) {
    if (!block.getArgument(inputs + outputs + i).use_empty())
      continue;
    block.eraseArgument(inputs + outputs + i);
    stash.erase(i);
  }
  backward.setOutputs(keepUsed(block, inputs, backward.getOutputs()));
  backward.setInputs(keepUsed(block, 0, backward.getInputs()));
}

struct HoistLossGradient : impl::PipeHoistLossGradientBase<HoistLossGradient> {
  void runOnOperation() override {
    for (StageOp stage : getOperation().getOps<StageOp>()) {
      BackwardOp backward = stage.getBackward();
      if (!backward)
        continue;
      if (stage.getInputGradient()) {
        stage.emitOpError("has a split backward already; run "
                          "pipe-hoist-loss-gradient before "
                          "pipe-split-backward");
        return signalPassFailure();
      }
      hoist(stage.getForward(), backward);
    }
  }

  static void hoist(ForwardOp forward, BackwardOp backward) {
    ForwardValues values(forward, backward);
    auto gradients =
        backward.getBody()->getOps<nn::SoftmaxCrossEntropyBackwardOp>();
    bool changed = false;
    for (auto gradient : llvm::make_early_inc_range(gradients)) {
      if (!values.bringOp(gradient))
        continue;
      Value logitsGradient = values.of(gradient.getResult());
      gradient.getResult().replaceAllUsesWith(
          addToStash(forward, backward, logitsGradient));
      gradient.erase();
      changed = true;
    }
    if (changed)
      eraseUnused(forward, backward);
  }
};

} // namespace
} // namespace pipewright::pipe
