//===- Rematerialize.cpp - pipe-rematerialize -----------------------------===//
//
// Recomputes a stage's forward in its backward instead of keeping its values:
// all of it from the stage's inputs, or each run of layers from what the run
// before it has made, which is kept (T. Chen et al., "Training Deep Nets with
// Sublinear Memory Cost", 2016). The copied ops are those of the forward, with
// their kernels, so every number keeps its bits.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/pipe/staged/CheapOps.h"
#include "passes/pipe/staged/ModelLayers.h"
#include "passes/pipe/staged/StageWords.h"

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/SetVector.h"

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

/// What a value shows the bytes of.
Value baseOf(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isView(op) ? baseOf(op->getOperand(0)) : value;
}

/// What is computed again together.
struct Runs {
  /// By op of the forward; not of views and what is made of weights alone,
  /// which is computed again wherever it is read.
  llvm::DenseMap<Operation *, int64_t> numberOf;
  /// What runs read of runs before them, in the order in which it is made.
  llvm::SetVector<Value> between;

  /// Of so many layers each; no runs with 0.
  Runs(Block &forward, int64_t layers);
};

Runs::Runs(Block &forward, int64_t layers) {
  if (layers == 0)
    return;
  SmallVector<Operation *> ops;
  for (Operation &op : forward.without_terminator())
    ops.push_back(&op);
  llvm::DenseSet<Operation *> ofWeights;
  for (auto [op, layer] : llvm::zip_equal(ops, layerNumbers(ops)))
    if (llvm::all_of(op->getOperands(), [&](Value operand) {
          return ofWeights.contains(operand.getDefiningOp());
        }))
      ofWeights.insert(op);
    else if (!isView(op))
      numberOf[op] = layer / layers;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      for (Operation *user : result.getUsers()) {
        const auto reader = numberOf.find(forward.findAncestorOpInBlock(*user));
        Value base = baseOf(result);
        const auto maker = numberOf.find(base.getDefiningOp());
        if (reader != numberOf.end() && maker != numberOf.end() &&
            maker->second < reader->second)
          between.insert(base);
      }
}

/// Moves an op to where it is read first, if it is read.
void sink(Operation *op, Block &block) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *reader = block.findAncestorOpInBlock(*user);
    if (!first || reader->isBeforeInBlock(first))
      first = reader;
  }
  if (first && isMemoryEffectFree(op))
    op->moveBefore(first);
}

/// Moves each run to where the first of its ops is needed. `numberOf` has runs
/// of copies.
void sinkRuns(ArrayRef<Operation *> copies,
              const llvm::DenseMap<Operation *, int64_t> &numberOf,
              Block &block) {
  for (Operation *copy : llvm::reverse(copies))
    sink(copy, block);
  llvm::MapVector<int64_t, SmallVector<Operation *>> runs;
  for (Operation *copy : copies)
    if (auto run = numberOf.find(copy); run != numberOf.end())
      runs[run->second].push_back(copy);
  for (auto &[number, ops] : runs) {
    // Operands come before their readers, so the first one in the block is
    // behind none that it reads.
    Operation *first = *llvm::min_element(
        ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    Operation *before = first->getPrevNode();
    for (Operation *op : ops) {
      if (before)
        op->moveAfter(before);
      else
        op->moveBefore(&block, block.begin());
      before = op;
    }
  }
  for (Operation *copy : llvm::reverse(copies))
    if (!numberOf.contains(copy))
      sink(copy, block);
}

/// Makes the backward depend on nothing of the forward but its inputs, and what
/// runs of `layers` layers give to later ones; 0 for one run.
void recompute(ForwardOp forward, BackwardOp backward, int64_t layers) {
  Block &block = *backward.getBody();
  ReturnOp kept = forward.getReturn();
  Runs runs(*forward.getBody(), layers);

  llvm::DenseSet<Operation *> own;
  for (Operation &op : block)
    own.insert(&op);

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

  // What the forward returns anyway comes before what it returns for this.
  SmallVector<std::pair<Value, std::optional<int64_t>>> given;
  for (auto [number, value] : llvm::enumerate(kept.getValues()))
    if (runs.between.remove(value))
      given.emplace_back(value, number);
  for (Value value : runs.between)
    given.emplace_back(value, std::nullopt);
  for (auto [number, one] : llvm::enumerate(given))
    map.lookup(one.first).replaceAllUsesWith(block.insertArgument(
        inputCount + number, one.first.getType(), one.first.getLoc()));

  llvm::DenseMap<Operation *, int64_t> numberOfCopy;
  for (auto [op, number] : runs.numberOf)
    if (Operation *copy = map.lookupOrNull(op))
      numberOfCopy[copy] = number;

  eraseDead(block);
  SmallVector<int64_t> outputs;
  SmallVector<Value> stash;
  for (auto [number, one] : llvm::enumerate(given)) {
    if (block.getArgument(inputCount + number).use_empty())
      continue;
    if (one.second)
      outputs.push_back(*one.second);
    else
      stash.push_back(one.first);
  }
  for (size_t i = given.size(); i-- > 0;)
    if (block.getArgument(inputCount + i).use_empty())
      block.eraseArgument(inputCount + i);
  kept.getStashMutable().assign(stash);
  SmallVector<int64_t> inputs;
  for (size_t i = 0; i < inputCount; ++i)
    if (!block.getArgument(i).use_empty())
      inputs.push_back(i);
  for (size_t i = inputCount; i-- > 0;)
    if (block.getArgument(i).use_empty())
      block.eraseArgument(i);
  backward.setInputs(inputs);
  backward.setOutputs(outputs);
  if (!given.empty()) {
    SmallVector<Operation *> copies;
    for (Operation &op : block)
      if (!own.contains(&op))
        copies.push_back(&op);
    sinkRuns(copies, numberOfCopy, block);
  }

  // What the backward repeated by itself is in the copy as well.
  IRRewriter rewriter(backward.getContext());
  DominanceInfo dominance(backward);
  eliminateCommonSubExpressions(rewriter, dominance, backward);
}

struct Rematerialize : impl::PipeRematerializeBase<Rematerialize> {
  using PipeRematerializeBase::PipeRematerializeBase;

  void runOnOperation() override {
    auto modes = wordsOfStages(
        getOperation(), "pipe-rematerialize: expects mode", mode, kRematModes);
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
      int64_t layers = 0;
      if (word.consume_front("every:"))
        word.getAsInteger(10, layers);
      if (stage.getInputGradient()) {
        stage.emitOpError("has a split backward already; run "
                          "pipe-rematerialize before pipe-split-backward");
        return signalPassFailure();
      }
      recompute(forward, backward, layers);
    }
  }
};

} // namespace
} // namespace pipewright::pipe
