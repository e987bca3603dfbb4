//===- Rematerialize.cpp - pipe-rematerialize -----------------------------===//
//
// Recomputes a stage's forward in its backward instead of keeping its values:
// all of it from the stage's inputs, each run of layers from what the run
// before it has made, which is kept (T. Chen et al., "Training Deep Nets with
// Sublinear Memory Cost", 2016), attention alone (V. Korthikanti et al.,
// "Reducing Activation Recomputation in Large Transformer Models", 2023), or
// what takes the least time within a number of bytes; or, of some micro-batches
// only, all of it before the backward, which reads one stash, whoever made it.
// The copied ops are those of the forward, with their kernels, so every number
// keeps its bits.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/pipe/staged/AttentionCore.h"
#include "passes/pipe/staged/CheapOps.h"
#include "passes/pipe/staged/ModelLayers.h"
#include "passes/pipe/staged/StageWords.h"
#include "passes/planning/KeptValues.h"
#include "passes/step/CostModel.h"

#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVectorExtras.h"

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

/// The ops of a forward but views and what is made of weights alone, which is
/// computed again wherever it is read.
SmallVector<Operation *> opsOfInputs(Block &forward) {
  llvm::DenseSet<Operation *> ofWeights;
  SmallVector<Operation *> ops;
  for (Operation &op : forward.without_terminator())
    if (llvm::all_of(op.getOperands(), [&](Value operand) {
          return ofWeights.contains(operand.getDefiningOp());
        }))
      ofWeights.insert(&op);
    else if (!isView(&op))
      ops.push_back(&op);
  return ops;
}

llvm::DenseMap<Operation *, int64_t> layersByOp(Block &forward) {
  SmallVector<Operation *> ops;
  for (Operation &op : forward.without_terminator())
    ops.push_back(&op);
  llvm::DenseMap<Operation *, int64_t> layers;
  for (auto [op, layer] : llvm::zip_equal(ops, layerNumbers(ops)))
    layers[op] = layer;
  return layers;
}

/// What a backward is given of its forward beside the stage's inputs.
struct Kept {
  /// Results of ops.
  llvm::SetVector<Value> values;
  /// Ops of the forward that are computed again together have a number.
  llvm::DenseMap<Operation *, int64_t> runOf;
};

/// What runs of so many layers read of runs before them.
Kept keepBetweenLayers(Block &forward, int64_t layers) {
  Kept kept;
  const llvm::DenseMap<Operation *, int64_t> layerOf = layersByOp(forward);
  auto &runOf = kept.runOf;
  for (Operation *op : opsOfInputs(forward))
    runOf[op] = layerOf.lookup(op) / layers;
  for (Operation &op : forward.without_terminator())
    for (Value result : op.getResults())
      for (Operation *user : result.getUsers()) {
        const auto reader = runOf.find(forward.findAncestorOpInBlock(*user));
        Value base = baseOf(result);
        const auto maker = runOf.find(base.getDefiningOp());
        if (reader != runOf.end() && maker != runOf.end() &&
            maker->second < reader->second)
          kept.values.insert(base);
      }
  return kept;
}

/// What the backward reads of its forward, as the forward has it.
SmallVector<Value> valuesRead(ForwardOp forward, BackwardOp backward) {
  SmallVector<Value> values;
  for (int64_t index : backward.getInputs())
    values.push_back(forward.getBody()->getArgument(index));
  ReturnOp end = forward.getReturn();
  for (int64_t index : backward.getOutputs())
    values.push_back(end.getValues()[index]);
  llvm::append_range(values, end.getStash());
  return values;
}

/// All but what attention makes of q, k and v, and these; none where nothing of
/// that is read.
std::optional<Kept> keepAllButAttention(ForwardOp forward,
                                        BackwardOp backward) {
  const llvm::DenseSet<Operation *> core = attentionCore(*forward.getBody());
  const SmallVector<Operation *> ofInputs = opsOfInputs(*forward.getBody());
  const SmallVector<Value> read = valuesRead(forward, backward);
  auto isInCore = [&](Value value) {
    return core.contains(baseOf(value).getDefiningOp());
  };
  if (llvm::none_of(read, isInCore))
    return std::nullopt;
  Kept kept;
  llvm::DenseSet<Value> bases;
  auto add = [&](Value value) {
    if (value.getDefiningOp() && !isInCore(value) &&
        bases.insert(baseOf(value)).second)
      kept.values.insert(value);
  };
  llvm::for_each(read, add);
  for (Operation *op : ofInputs)
    if (core.contains(op))
      for (Value operand : op->getOperands())
        if (llvm::is_contained(ofInputs, baseOf(operand).getDefiningOp()))
          add(operand);
  return kept;
}

/// What takes at most so many percent of the bytes that are read, of all
/// micro-batches in flight, so that the least time goes by for what is computed
/// again, the most that is computed again in a layer among the bytes.
Kept keepPercent(ForwardOp forward, BackwardOp backward, int64_t percent,
                 int64_t inFlight, const MachineModel &machine,
                 KeptChooser &chooser) {
  ForwardGraph graph;
  llvm::MapVector<Value, int32_t> numberOf;
  auto add = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    numberOf[value] = static_cast<int32_t>(graph.values.size());
    graph.values.push_back({type ? byteSize(type) : 0, false});
  };
  Block &block = *forward.getBody();
  for (BlockArgument argument : block.getArguments())
    add(argument);
  const llvm::DenseMap<Operation *, int64_t> layerOf = layersByOp(block);
  SmallVector<int64_t> layers;
  SymbolTableCollection none;
  for (Operation *op : opsOfInputs(block)) {
    if (isa<ReportOp, nn::AssignStateOp>(op))
      continue;
    ForwardGraph::Op node;
    layers.push_back(layerOf.lookup(op));
    const Block::iterator place(op);
    node.seconds =
        workOf(llvm::make_range(place, std::next(place)), machine, none)
            .seconds;
    for (Value operand : op->getOperands())
      if (auto known = numberOf.find(baseOf(operand)); known != numberOf.end())
        node.operands.push_back(known->second);
    for (Value result : op->getResults()) {
      add(result);
      node.results.push_back(numberOf[result]);
    }
    graph.ops.push_back(std::move(node));
  }
  int64_t bytes = 0;
  for (Value value : valuesRead(forward, backward))
    if (auto known = numberOf.find(baseOf(value)); known != numberOf.end()) {
      ForwardGraph::Value &read = graph.values[known->second];
      bytes += read.isNeeded ? 0 : read.bytes;
      read.isNeeded = true;
    }
  const auto limit = static_cast<int64_t>(static_cast<double>(bytes) *
                                          inFlight * percent / 100);
  // What one layer gives to the next need not be kept where several of them are
  // computed again together.
  KeptValues best;
  for (int32_t together = 1;; together *= 2) {
    bool isOneRun = true;
    for (ForwardGraph::Op &op : graph.ops) {
      op.run = static_cast<int32_t>(layers[&op - graph.ops.data()] / together);
      isOneRun &= op.run == 0;
    }
    KeptValues chosen = chooser.choose(graph, inFlight, limit);
    if (together == 1 || chosen.isBetter(best, inFlight, limit))
      best = std::move(chosen);
    if (isOneRun)
      break;
  }
  Kept kept;
  for (int32_t number : best.values)
    if (Value value = (numberOf.begin() + number)->first; value.getDefiningOp())
      kept.values.insert(value);
  return kept;
}

/// Moves ops to where they are read first, the last ones first.
void sink(ArrayRef<Operation *> ops) {
  for (Operation *op : llvm::reverse(ops))
    if (isMemoryEffectFree(op))
      moveToFirstUse(op);
}

/// Moves each run to where the first of its ops is needed. `numberOf` has runs
/// of copies.
void sinkRuns(ArrayRef<Operation *> copies,
              const llvm::DenseMap<Operation *, int64_t> &numberOf,
              Block &block) {
  sink(copies);
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
  sink(llvm::filter_to_vector(
      copies, [&](Operation *copy) { return !numberOf.contains(copy); }));
}

/// Makes the backward depend on nothing of the forward but its inputs and what
/// is kept.
void recompute(ForwardOp forward, BackwardOp backward, Kept kept) {
  Block &block = *backward.getBody();
  ReturnOp end = forward.getReturn();

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

  const SmallVector<Value> originals = valuesRead(forward, backward);
  for (auto [number, original] : llvm::enumerate(originals))
    block.getArgument(inputCount + number)
        .replaceAllUsesWith(map.lookup(original));
  block.eraseArguments(inputCount, originals.size());

  // What the forward returns anyway comes before what it returns for this.
  SmallVector<std::pair<Value, std::optional<int64_t>>> given;
  for (auto [number, value] : llvm::enumerate(end.getValues()))
    if (kept.values.remove(value))
      given.emplace_back(value, number);
  for (Value value : kept.values)
    given.emplace_back(value, std::nullopt);
  for (auto [number, one] : llvm::enumerate(given))
    map.lookup(one.first).replaceAllUsesWith(block.insertArgument(
        inputCount + number, one.first.getType(), one.first.getLoc()));

  llvm::DenseMap<Operation *, int64_t> numberOfCopy;
  for (auto [op, number] : kept.runOf)
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
  end.getStashMutable().assign(stash);
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

/// Which micro-batches keep their stash under a mode; null if it treats them
/// alike.
WindowAttr windowOf(StringRef mode, MLIRContext *context) {
  if (!isWindowMode(mode))
    return {};
  int64_t count = 1;
  const bool isFirst = mode.consume_front("window:");
  if (isFirst)
    mode.getAsInteger(10, count);
  return WindowAttr::get(context, isFirst ? WindowEnd::first : WindowEnd::last,
                         count);
}

/// Gives a stage what makes the stash of its forward again, and leaves that and
/// the backward as they are.
void addWindow(StageOp stage, WindowAttr window) {
  ForwardOp forward = stage.getForward();
  OpBuilder builder(stage.getBackward());
  auto again =
      RecomputeOp::create(builder, forward.getLoc(), ArrayRef<int64_t>(),
                          ArrayRef<int64_t>(), ArrayRef<int64_t>());
  Block &body = again.getBodyRegion().emplaceBlock();
  IRMapping map;
  for (BlockArgument argument : forward.getBody()->getArguments())
    map.map(argument, body.addArgument(argument.getType(), argument.getLoc()));
  copyForward(forward, body, map);
  builder.setInsertionPointToEnd(&body);
  ReturnOp end = forward.getReturn();
  ReturnOp::create(builder, end.getLoc(), ValueRange(),
                   llvm::map_to_vector(end.getStash(), [&](Value value) {
                     return map.lookup(value);
                   }));
  eraseDead(body);
  SmallVector<int64_t> inputs;
  llvm::BitVector unused(body.getNumArguments());
  for (BlockArgument argument : body.getArguments())
    if (argument.use_empty())
      unused.set(argument.getArgNumber());
    else
      inputs.push_back(argument.getArgNumber());
  body.eraseArguments(unused);
  again.setInputs(inputs);
  stage.setKeepsAttr(window);
}

/// What a mode other than `none` keeps in a stage of so many; nothing where it
/// leaves the stage as it is.
std::optional<Kept> keep(StageOp stage, int64_t number, int64_t stages,
                         StringRef mode, const MachineModel &machine,
                         KeptChooser &chooser) {
  int64_t count = 0;
  if (mode == "selective")
    return keepAllButAttention(stage.getForward(), stage.getBackward());
  if (mode.consume_front("every:")) {
    mode.getAsInteger(10, count);
    return keepBetweenLayers(*stage.getForward().getBody(), count);
  }
  if (mode.consume_front("keep:")) {
    mode.getAsInteger(10, count);
    const int64_t microBatches =
        programOf(stage->getParentOfType<ModuleOp>()).microBatches.value_or(1);
    // Under 1F1B.
    const int64_t inFlight = std::clamp<int64_t>(
        stages - number, 1, std::max<int64_t>(1, microBatches));
    return keepPercent(stage.getForward(), stage.getBackward(), count, inFlight,
                       machineOfStage(machine, stage, number, {}), chooser);
  }
  return Kept();
}

struct Rematerialize : impl::PipeRematerializeBase<Rematerialize> {
  using PipeRematerializeBase::PipeRematerializeBase;

  void runOnOperation() override {
    auto modes = wordsOfStages(
        getOperation(), "pipe-rematerialize: expects mode", mode, kRematModes);
    FailureOr<MachineModel> machine = machineOf(getOperation());
    if (failed(modes) || failed(machine))
      return signalPassFailure();
    KeptChooser chooser;
    bool looksForAttention = false, hasAttention = false;
    for (auto [number, stage, word] :
         llvm::enumerate(getOperation().getOps<StageOp>(), *modes)) {
      if (word == "none")
        continue;
      BackwardOp backward = stage.getBackward();
      ForwardOp forward = stage.getForward();
      if (!backward || (backward.getOutputs().empty() &&
                        forward.getReturn().getStash().empty()))
        continue;
      WindowAttr window = windowOf(word, &getContext());
      // What is kept beside a stash is kept of all micro-batches.
      if (window &&
          (forward.getReturn().getStash().empty() || stage.getRecompute()))
        continue;
      if (stage.getInputGradient()) {
        stage.emitOpError("has a split backward already; run "
                          "pipe-rematerialize before pipe-split-backward");
        return signalPassFailure();
      }
      if (window) {
        addWindow(stage, window);
        continue;
      }
      std::optional<Kept> kept =
          keep(stage, number, modes->size(), word, *machine, chooser);
      looksForAttention |= word == "selective";
      hasAttention |= word == "selective" && kept;
      if (kept)
        recompute(forward, backward, std::move(*kept));
    }
    if (looksForAttention && !hasAttention)
      getOperation().emitWarning(
          "remat 'selective' recomputes nothing: no stage with it keeps what "
          "attention makes of q, k and v");
  }
};

} // namespace
} // namespace pipewright::pipe
