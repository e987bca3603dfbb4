//===- SplitBackward.cpp - pipe-split-backward ----------------------------===//
//
// Cuts a backward in two: what the returned input gradients need, and the rest,
// which only weight gradients need. Kernels are formed already, so both halves
// call the very same ones in the same order, and no bit depends on the cut.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/pipe/staged/BackwardArguments.h"
#include "passes/pipe/staged/CheapOps.h"
#include "passes/pipe/staged/StashPlan.h"

using namespace mlir;

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPESPLITBACKWARD
#include "passes/pipe/Passes.h.inc"

namespace {

/// Splits the backward of one stage.
class BackwardSplitter {
public:
  explicit BackwardSplitter(StageOp stage)
      : stage(stage), whole(stage.getBackward()), block(*whole.getBody()) {}

  void split();
  /// Where the second half reads a part of the stash.
  void splitStash();

private:
  void sortOps();
  void buildInputGradient(OpBuilder &builder);
  void buildWeightGradient(OpBuilder &builder);

  StageOp stage;
  BackwardOp whole;
  Block &block;
  /// The ops of the two halves in their order; some stand in both.
  SmallVector<Operation *> inputOps, weightOps;
  llvm::DenseSet<Operation *> repeated;
  SmallVector<Value> handover;
};

} // namespace

/// The arguments that every rank can load.
static DenseSet<Value> modelInputsOf(StageOp stage) {
  BackwardOp backward = stage.getBackward();
  ArrayAttr sources = stage.getForward().getSources();
  DenseSet<Value> values;
  for (auto [number, index] : llvm::enumerate(backward.getInputs()))
    if (isa<InputAttr>(sources[index]))
      values.insert(backward.getBody()->getArgument(number));
  return values;
}

/// Decides which op belongs where and what is handed over.
void BackwardSplitter::sortOps() {
  llvm::SetVector<Operation *> needed;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  options.filter = [&](Operation *op) { return op->getBlock() == &block; };
  for (Value value : whole.getReturn().getValues())
    (void)getBackwardSlice(value, &needed, options);
  for (Operation &op : block.without_terminator())
    if (needed.contains(&op))
      inputOps.push_back(&op);

  // What is returned is not needed by the other half.
  SmallVector<Operation *> notAsking = inputOps;
  notAsking.push_back(whole.getReturn());
  StashPlan plan(block, notAsking, modelInputsOf(stage));
  for (Value value : plan.saved())
    if (value.getDefiningOp())
      handover.push_back(value);
  for (Operation &op : block.without_terminator()) {
    if (needed.contains(&op) && !plan.isRepeated(&op))
      continue;
    weightOps.push_back(&op);
    if (needed.contains(&op))
      repeated.insert(&op);
  }
}

/// Nothing where nothing is recomputed.
static DenseI64ArrayAttr orNull(OpBuilder &builder, ArrayRef<int64_t> fields) {
  return fields.empty() ? DenseI64ArrayAttr()
                        : builder.getDenseI64ArrayAttr(fields);
}

void BackwardSplitter::buildInputGradient(OpBuilder &builder) {
  Block *half = new Block();
  IRMapping map;
  auto results = whole.getReturn().getValues();
  ArgumentLists lists = addArguments(*half, whole, inputOps, results, map);
  auto op = InputGradientOp::create(
      builder, whole.getLoc(), lists[0], lists[1], lists[2], lists[3],
      whole.getInputGradients(), orNull(builder, lists[4]));
  op.getBodyRegion().push_back(half);
  OpBuilder inside = OpBuilder::atBlockEnd(half);
  for (Operation *each : inputOps)
    inside.clone(*each, map);
  auto mapped = [&](ValueRange values) {
    return llvm::map_to_vector(values,
                               [&](Value value) { return map.lookup(value); });
  };
  ReturnOp::create(inside, whole.getReturn().getLoc(), mapped(results),
                   mapped(handover));
}

void BackwardSplitter::buildWeightGradient(OpBuilder &builder) {
  Block *half = new Block();
  IRMapping map;
  ArgumentLists lists = addArguments(*half, whole, weightOps, {}, map);
  for (Value value : handover)
    map.map(value, half->addArgument(value.getType(), value.getLoc()));
  auto op =
      WeightGradientOp::create(builder, whole.getLoc(), lists[0], lists[1],
                               lists[2], lists[3], orNull(builder, lists[4]));
  op.getBodyRegion().push_back(half);
  OpBuilder inside = OpBuilder::atBlockEnd(half);
  SmallVector<Operation *> late;
  for (Operation *each : weightOps) {
    Operation *copy = inside.clone(*each, map);
    if (repeated.contains(each))
      late.push_back(copy);
  }
  ReturnOp::create(inside, whole.getReturn().getLoc());
  // Like in the whole backward, an op that is repeated stands right before its
  // first use, so that its result takes memory only when it is needed.
  for (Operation *copy : llvm::reverse(late))
    moveToFirstUse(copy);
}

void BackwardSplitter::split() {
  sortOps();
  OpBuilder builder(stage.getContext());
  builder.setInsertionPointAfter(whole);
  buildInputGradient(builder);
  buildWeightGradient(builder);
}

void BackwardSplitter::splitStash() {
  GradientBodyInterface half = stage.gradientBodyOf(TaskKind::weight_gradient);
  auto isPart = [](size_t read, size_t of) { return read > 0 && read < of; };
  stage.setSplitsStash(isPart(half.getStashFields().size(),
                              stage.getKept(TaskKind::forward).size()) ||
                       isPart(half.getRecomputedFields().size(),
                              stage.getKept(TaskKind::recompute).size()));
}

namespace {

struct SplitBackward : impl::PipeSplitBackwardBase<SplitBackward> {
  using PipeSplitBackwardBase::PipeSplitBackwardBase;

  void runOnOperation() override {
    for (StageOp stage : getOperation().getOps<StageOp>()) {
      if (!stage.getBackward() || stage.getInputGradient())
        continue;
      BackwardSplitter splitter(stage);
      splitter.split();
      if (!wholeStash)
        splitter.splitStash();
    }
  }
};

} // namespace
} // namespace pipewright::pipe
