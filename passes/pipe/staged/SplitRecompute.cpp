//===- SplitRecompute.cpp - pipe-split-recompute --------------------------===//
//
// Cuts the begin off a backward: what it computes before it first looks at a
// gradient, which is the forward again where that has kept too little. As a
// task of its own it can run while the gradients are on their way. Kernels are
// formed already and stay in their order, so no bit depends on the cut.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/pipe/staged/BackwardArguments.h"
#include "passes/pipe/staged/CheapOps.h"

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPESPLITRECOMPUTE
#include "passes/pipe/Passes.h.inc"

namespace {

/// Cuts the backward of one stage.
class RecomputeSplitter {
public:
  explicit RecomputeSplitter(BackwardOp backward)
      : backward(backward), block(*backward.getBody()) {
    saved = backward.getInputs().size() + backward.getOutputs().size();
    fields = backward.getStashFields().size();
  }

  /// Fails, with a diagnostic, where halves have been made of what is to be
  /// cut.
  LogicalResult split();

private:
  bool isGradient(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getArgNumber() >= saved + fields;
  }
  void findBegin();
  void addNeeded(Value value, llvm::SetVector<Operation *> &ops) const;
  bool isReadBehind(Value value) const;
  void build(ArrayRef<Value> handover);
  void dropArguments();

  BackwardOp backward;
  Block &block;
  size_t saved, fields;
  /// What moves; what only shows or brings values stands on both sides.
  llvm::SetVector<Operation *> begin;
};

} // namespace

/// Whether an op takes no time: a view, a weight, a number.
static bool isFree(Operation *op) {
  return isView(op) || isa<nn::ViewOpInterface, nn::SubviewOp, nn::ParameterOp,
                           nn::ConstantOp>(op);
}

/// All ops in front of the first one that takes time and needs a gradient, or
/// adds to one.
void RecomputeSplitter::findBegin() {
  llvm::DenseSet<Value> gradients;
  for (Operation &op : block.without_terminator()) {
    const bool needsGradient =
        llvm::any_of(op.getOperands(), [&](Value operand) {
          return isGradient(operand) || gradients.contains(operand);
        });
    // A loss in front of the model's end has gradients of its own.
    if ((needsGradient && !isFree(&op)) || isa<nn::AccumulateGradientOp>(op))
      return;
    if (needsGradient)
      gradients.insert_range(op.getResults());
    else if (!isFree(&op))
      begin.insert(&op);
  }
}

/// The ops in front of those that move without which they have no operands.
void RecomputeSplitter::addNeeded(Value value,
                                  llvm::SetVector<Operation *> &ops) const {
  Operation *op = value.getDefiningOp();
  if (!op || begin.contains(op) || ops.contains(op))
    return;
  for (Value operand : op->getOperands())
    addNeeded(operand, ops);
  ops.insert(op);
}

/// Whether ops that stay read a value, also through what takes no time.
bool RecomputeSplitter::isReadBehind(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (begin.contains(user))
      return false;
    return !isFree(user) || llvm::any_of(user->getResults(), [&](Value shown) {
      return isReadBehind(shown);
    });
  });
}

void RecomputeSplitter::build(ArrayRef<Value> handover) {
  auto stage = cast<StageOp>(backward->getParentOp());
  Block *body = new Block();
  IRMapping map;
  llvm::SetVector<Operation *> ops;
  for (Operation *op : begin) {
    for (Value operand : op->getOperands())
      addNeeded(operand, ops);
    ops.insert(op);
  }
  ArgumentLists used =
      addArguments(*body, backward, ops.getArrayRef(), {}, map);
  OpBuilder builder(stage.getContext());
  builder.setInsertionPoint(backward);
  auto recompute = RecomputeOp::create(builder, backward.getLoc(), used[0],
                                       used[1], used[2]);
  recompute.getBodyRegion().push_back(body);
  builder.setInsertionPointToEnd(body);
  for (Operation *op : ops)
    builder.clone(*op, map);
  ReturnOp::create(builder, backward.getReturn().getLoc(), ValueRange(),
                   llvm::map_to_vector(handover, [&](Value value) {
                     return map.lookup(value);
                   }));
}

/// Saved inputs and outputs that only what has moved has read.
void RecomputeSplitter::dropArguments() {
  SmallVector<int64_t> kept[2];
  ArrayRef<int64_t> all[] = {backward.getInputs(), backward.getOutputs()};
  llvm::BitVector unused(block.getNumArguments());
  unsigned number = 0;
  for (auto [indices, list] : llvm::zip_equal(all, kept))
    for (int64_t index : indices)
      if (block.getArgument(number++).use_empty())
        unused.set(number - 1);
      else
        list.push_back(index);
  block.eraseArguments(unused);
  backward.setInputs(kept[0]);
  backward.setOutputs(kept[1]);
}

LogicalResult RecomputeSplitter::split() {
  // There is nothing to wait for.
  if (backward.getGradientsOf().empty())
    return success();
  findBegin();
  if (begin.empty())
    return success();
  auto stage = cast<StageOp>(backward->getParentOp());
  if (stage.getInputGradient())
    return stage.emitOpError("has its backward in two halves already; run "
                             "pipe-split-recompute before pipe-split-backward");
  llvm::SetVector<Value> handover;
  for (Operation *op : begin)
    for (Value result : op->getResults())
      if (isReadBehind(result))
        handover.insert(result);
  build(handover.getArrayRef());
  for (Value value : handover)
    value.replaceAllUsesWith(
        block.addArgument(value.getType(), value.getLoc()));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (begin.contains(&op) || (isFree(&op) && op.use_empty()))
      op.erase();
  dropArguments();
  return success();
}

namespace {

struct SplitRecompute : impl::PipeSplitRecomputeBase<SplitRecompute> {
  void runOnOperation() override {
    for (StageOp stage : getOperation().getOps<StageOp>()) {
      if (stage.getRecompute() || !stage.getBackward())
        continue;
      if (failed(RecomputeSplitter(stage.getBackward()).split()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace pipewright::pipe
