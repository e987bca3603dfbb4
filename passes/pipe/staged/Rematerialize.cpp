//===- Rematerialize.cpp - pipe-rematerialize -----------------------------===//
//
// Recomputes a stage's forward in its backward instead of keeping its values.
// The whole body is copied and only dead ops are left out, so that kernels are
// formed from the same neighbours and every number keeps its bits.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/pipe/staged/StageWords.h"

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEREMATERIALIZE
#include "passes/pipe/Passes.h.inc"

namespace {

/// Copies the forward's ops to the beginning of the backward, without effects.
void copyForward(ForwardOp forward, Block &block, IRMapping &map) {
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  for (Operation &op : forward.getBody()->without_terminator()) {
    if (isa<ReportOp, nn::AssignStateOp>(op))
      continue;
    Operation *copy = builder.clone(op, map);
    if (auto stateful = dyn_cast<nn::StatefulOpInterface>(copy))
      stateful.dropEffects();
  }
}

void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Makes the backward depend on nothing of the forward but its inputs.
void recomputeAll(ForwardOp forward, BackwardOp backward) {
  Block &block = *backward.getBody();
  ReturnOp kept = forward.getReturn();

  // All inputs become arguments first; those that nothing reads go again.
  IRMapping map;
  size_t inputCount = forward.getBody()->getNumArguments();
  for (BlockArgument argument : forward.getBody()->getArguments())
    map.map(argument,
            block.insertArgument(argument.getArgNumber(), argument.getType(),
                                 argument.getLoc()));
  copyForward(forward, block, map);

  SmallVector<Value> originals;
  for (int64_t index : backward.getInputs())
    originals.push_back(forward.getBody()->getArgument(index));
  for (int64_t index : backward.getOutputs())
    originals.push_back(kept.getValues()[index]);
  llvm::append_range(originals, kept.getStash());
  for (auto [number, original] : llvm::enumerate(originals))
    block.getArgument(inputCount + number)
        .replaceAllUsesWith(map.lookup(original));
  block.eraseArguments(inputCount, originals.size());
  kept.getStashMutable().clear();

  eraseDead(block);
  SmallVector<int64_t> inputs;
  for (size_t i = 0; i < inputCount; ++i)
    if (!block.getArgument(i).use_empty())
      inputs.push_back(i);
  for (size_t i = inputCount; i-- > 0;)
    if (block.getArgument(i).use_empty())
      block.eraseArgument(i);
  backward.setInputs(inputs);
  backward.setOutputs(ArrayRef<int64_t>());

  // What the backward repeated by itself is in the copy as well.
  IRRewriter rewriter(backward.getContext());
  DominanceInfo dominance(backward);
  eliminateCommonSubExpressions(rewriter, dominance, backward);
}

struct Rematerialize : impl::PipeRematerializeBase<Rematerialize> {
  using PipeRematerializeBase::PipeRematerializeBase;

  void runOnOperation() override {
    auto modes =
        wordsOfStages(getOperation(), "pipe-rematerialize: expects mode", mode,
                      {"none", "full"});
    if (failed(modes))
      return signalPassFailure();
    for (auto [stage, word] :
         llvm::zip_equal(getOperation().getOps<StageOp>(), *modes)) {
      if (word == "none")
        continue;
      BackwardOp backward = stage.getBackward();
      ForwardOp forward = stage.getForward();
      if (!backward || (backward.getOutputs().empty() &&
                        forward.getReturn().getStash().empty()))
        continue;
      if (stage.getInputGradient()) {
        stage.emitOpError("has a split backward already; run "
                          "pipe-rematerialize before pipe-split-backward");
        return signalPassFailure();
      }
      recomputeAll(forward, backward);
    }
  }
};

} // namespace
} // namespace pipewright::pipe
