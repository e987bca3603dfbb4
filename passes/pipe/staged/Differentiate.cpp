//===- Differentiate.cpp - pipe-differentiate -----------------------------===//
//
// Builds each stage's backward. It starts with a copy of the forward, lets the
// ops build their vector-Jacobian products against that copy, and then replaces
// what the products use of the copy by what StashPlan decided to keep.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNLocation.h"
#include "dialects/nn/NNOps.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/pipe/staged/CheapOps.h"
#include "passes/pipe/staged/JoinedGradients.h"
#include "passes/pipe/staged/StageWords.h"
#include "passes/pipe/staged/StashPlan.h"
#include "passes/step/Stages.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEDIFFERENTIATE
#include "passes/pipe/Passes.h.inc"

namespace {

bool isFloat(Value value) {
  return isa<FloatType>(
      cast<RankedTensorType>(value.getType()).getElementType());
}

/// Results of forwards that depend on a trained weight, by stage and index.
using ActiveResults = DenseSet<std::pair<StringAttr, int64_t>>;

/// The values of a forward that depend on a trained weight.
DenseSet<Value> findActive(ForwardOp forward, const ActiveResults &active,
                           SymbolTableCollection &symbolTables) {
  DenseSet<Value> values;
  Block &block = *forward.getBody();
  for (auto [argument, source] :
       llvm::zip_equal(block.getArguments(), forward.getSources()))
    if (auto output = dyn_cast<OutputAttr>(source))
      if (active.contains({output.getStage().getAttr(), output.getIndex()}))
        values.insert(argument);
  for (Operation &op : block) {
    bool isActive = readsTrainedWeight(&op, symbolTables) ||
                    llvm::any_of(op.getOperands(), [&](Value operand) {
                      return values.contains(operand);
                    });
    for (Value result : op.getResults())
      if (isActive && isFloat(result))
        values.insert(result);
  }
  return values;
}

/// Builds the backward of one stage.
class StageGradient {
public:
  StageGradient(StageOp stage, const DenseSet<Value> &active,
                ArrayRef<int64_t> gradientsOf, int64_t meanOver,
                RepeatRule rule)
      : stage(stage), forward(stage.getForward()), active(active),
        gradientsOf(gradientsOf), meanOver(meanOver), rule(rule),
        builder(stage.getContext()) {}

  /// Adds a backward to the stage, or nothing if no gradient is needed.
  LogicalResult build();

private:
  void copyForward();
  void seed();
  LogicalResult differentiate(Operation *op, Operation *copy);
  void addGradient(Value value, Value gradient, Location location);
  bool finish();
  void eraseDead();
  void handOver();

  StageOp stage;
  ForwardOp forward;
  const DenseSet<Value> &active;
  ArrayRef<int64_t> gradientsOf;
  /// Micro-batches of one update, in all replicas.
  int64_t meanOver;
  RepeatRule rule;
  OpBuilder builder;

  BackwardOp backward;
  Block *block = nullptr;
  /// Maps values of the forward to those of its copy.
  IRMapping map;
  SmallVector<Operation *> copies;
  /// Maps a value of the copy to its gradient.
  DenseMap<Value, Value> gradients;
};

void StageGradient::copyForward() {
  builder.setInsertionPointAfter(forward);
  auto none = builder.getDenseI64ArrayAttr({});
  backward =
      BackwardOp::create(builder, forward.getLoc(), none, none,
                         builder.getDenseI64ArrayAttr(gradientsOf), none);
  block = &backward.getBodyRegion().emplaceBlock();
  builder.setInsertionPointToEnd(block);
  for (BlockArgument argument : forward.getBody()->getArguments())
    map.map(argument,
            block->addArgument(argument.getType(), argument.getLoc()));
  for (Operation &op : forward.getBody()->without_terminator())
    if (!isa<ReportOp>(op))
      copies.push_back(builder.clone(op, map));
}

void StageGradient::addGradient(Value value, Value gradient,
                                Location location) {
  // A seed may be merged with the model's constants.
  if (Operation *made = gradient.getDefiningOp();
      made && !made->hasTrait<OpTrait::ConstantLike>())
    made->setLoc(nn::asGradient(made->getLoc()));
  // Sums of a weight's gradients need no tensor: each is added where all end.
  if (auto parameter = value.getDefiningOp<nn::ParameterOp>()) {
    nn::AccumulateGradientOp::create(builder, parameter.getLoc(),
                                     parameter.getWeightAttr(), gradient);
    return;
  }
  Value &sum = gradients[value];
  sum =
      sum ? nn::AddOp::create(builder, nn::asGradient(location), sum, gradient)
                .getResult()
          : gradient;
}

void StageGradient::seed() {
  for (ReportOp report : forward.getBody()->getOps<ReportOp>()) {
    if (report.getName() != "loss" || !active.contains(report.getValue()))
      continue;
    // The loss is the mean over the batch, that is over M micro-batches.
    auto type = cast<RankedTensorType>(report.getValue().getType());
    addGradient(map.lookup(report.getValue()),
                nn::createSplat(builder, report.getLoc(), type, 1.0 / meanOver),
                report.getLoc());
  }
  auto values = forward.getReturn().getValues();
  for (int64_t index : gradientsOf) {
    Value value = values[index];
    addGradient(map.lookup(value),
                block->addArgument(value.getType(), value.getLoc()),
                value.getLoc());
  }
}

LogicalResult StageGradient::differentiate(Operation *op, Operation *copy) {
  SmallVector<Value> resultGradients;
  for (Value result : copy->getResults())
    resultGradients.push_back(gradients.lookup(result));
  if (llvm::none_of(resultGradients, [](Value v) { return bool(v); }))
    return success();
  if (llvm::none_of(op->getOperands(),
                    [&](Value v) { return active.contains(v); }))
    return success();
  auto differentiable = dyn_cast<nn::DifferentiableOpInterface>(copy);
  if (!differentiable)
    return op->emitOpError("has no derivative, but stands between a trained "
                           "weight and the loss");
  SmallVector<Value> operandGradients;
  if (failed(
          differentiable.buildVjp(builder, resultGradients, operandGradients)))
    return op->emitOpError("could not be differentiated");
  for (auto [operand, copied, gradient] : llvm::zip_equal(
           op->getOperands(), copy->getOperands(), operandGradients)) {
    if (!gradient || !active.contains(operand))
      continue;
    auto type = cast<RankedTensorType>(copied.getType());
    // On the way to the f32 sum of a weight nothing is rounded.
    if (nn::isWorkingCopy(copied))
      type = type.clone(builder.getF32Type());
    if (cast<RankedTensorType>(gradient.getType()).getShape() !=
        type.getShape())
      return op->emitOpError("has a gradient of type ")
             << gradient.getType() << " for an operand of type "
             << copied.getType();
    if (gradient.getType() != type)
      gradient = nn::CastOp::create(builder, op->getLoc(), type, gradient);
    addGradient(copied, gradient, op->getLoc());
  }
  return success();
}

void StageGradient::eraseDead() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (isOpTriviallyDead(&op)) {
      llvm::erase(copies, &op);
      op.erase();
    }
}

/// Returns the gradients of the inputs; false if the backward does nothing.
bool StageGradient::finish() {
  SmallVector<int64_t> inputs;
  SmallVector<Value> values;
  for (BlockArgument argument : forward.getBody()->getArguments()) {
    Value gradient = gradients.lookup(map.lookup(argument));
    if (!gradient || !active.contains(argument))
      continue;
    inputs.push_back(argument.getArgNumber());
    values.push_back(gradient);
  }
  ReturnOp::create(builder, forward.getReturn().getLoc(), values, ValueRange());
  backward.setInputGradients(inputs);
  return !inputs.empty() || !block->getOps<nn::AccumulateGradientOp>().empty();
}

/// Replaces the copy of the forward by what is saved and what is repeated.
void StageGradient::handOver() {
  size_t inputCount = forward.getBody()->getNumArguments();
  DenseSet<Value> modelInputs;
  DenseMap<Value, Value> originals;
  for (auto [argument, source] :
       llvm::zip_equal(forward.getBody()->getArguments(), forward.getSources()))
    if (isa<InputAttr>(source))
      modelInputs.insert(map.lookup(argument));
  for (auto [original, copy] : map.getValueMap())
    originals[copy] = original;
  StashPlan plan(*block, copies, std::move(modelInputs), rule);

  auto results = forward.getReturn().getValues();
  SmallVector<int64_t> inputs, outputs;
  llvm::MapVector<int64_t, Value> savedOutputs;
  SmallVector<Value> stashed;
  for (Value value : plan.saved()) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getArgNumber() < inputCount)
        inputs.push_back(argument.getArgNumber());
      continue;
    }
    auto it = llvm::find(results, originals[value]);
    if (it == results.end())
      stashed.push_back(value);
    else
      savedOutputs[it - results.begin()] = value;
  }
  for (auto &[index, value] : savedOutputs)
    outputs.push_back(index);
  llvm::sort(outputs);

  size_t position = inputCount;
  auto replace = [&](Value value) {
    value.replaceAllUsesWith(
        block->insertArgument(position++, value.getType(), value.getLoc()));
  };
  for (int64_t index : outputs)
    replace(savedOutputs[index]);
  for (Value value : stashed)
    replace(value);
  for (Value value : stashed)
    forward.getReturn().getStashMutable().append(originals[value]);

  for (Operation *copy : llvm::reverse(copies)) {
    if (!plan.isRepeated(copy)) {
      copy->erase();
      continue;
    }
    // Repeated late, so that the result does not take memory early.
    moveToFirstUse(copy);
  }
  for (size_t i = inputCount; i-- > 0;)
    if (!llvm::is_contained(inputs, static_cast<int64_t>(i)))
      block->eraseArgument(i);
  backward.setInputs(inputs);
  backward.setOutputs(outputs);
}

LogicalResult StageGradient::build() {
  copyForward();
  seed();
  SmallVector<Operation *> originals;
  for (Operation &op : forward.getBody()->without_terminator())
    if (!isa<ReportOp>(op))
      originals.push_back(&op);
  for (auto [op, copy] : llvm::reverse(llvm::zip_equal(originals, copies)))
    if (failed(differentiate(op, copy)))
      return failure();
  if (!finish()) {
    backward.erase();
    return success();
  }
  eraseDead();
  handOver();
  return success();
}

struct Differentiate : impl::PipeDifferentiateBase<Differentiate> {
  using PipeDifferentiateBase::PipeDifferentiateBase;

  void runOnOperation() override {
    auto repeated =
        wordsOfStages(getOperation(), "pipe-differentiate: expects repeat",
                      repeat, {"cheap", "pointwise"});
    if (failed(repeated) || failed(differentiate(*repeated)) ||
        failed(cleanUp()))
      signalPassFailure();
  }

  /// Merges what several products built alike or in parts.
  LogicalResult cleanUp() {
    RewritePatternSet patterns(&getContext());
    populateJoinedGradientPatterns(patterns);
    // Bodies are one block each.
    GreedyRewriteConfig config;
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit)
        .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return failure();
    for (StageOp stage : getOperation().getOps<StageOp>())
      if (BackwardOp backward = stage.getBackward()) {
        joinAddedProducts(*backward.getBody());
        IRRewriter rewriter(&getContext());
        DominanceInfo dominance(backward);
        eliminateCommonSubExpressions(rewriter, dominance, backward);
      }
    return success();
  }

  /// What each stage repeats.
  LogicalResult differentiate(ArrayRef<StringRef> repeated) {
    ModuleOp module = getOperation();
    FailureOr<int64_t> microBatches = microBatchesOf(module);
    if (failed(microBatches))
      return failure();
    // An update takes the mean over its own micro-batches.
    int64_t perUpdate = *microBatches / programOf(module).updates;
    if (perUpdate * programOf(module).updates != *microBatches)
      return module.emitError("pipe-differentiate: expects updates that share "
                              "the micro-batches evenly, but got ")
             << programOf(module).updates << " updates and " << *microBatches
             << " micro-batches";

    SymbolTableCollection symbolTables;
    ActiveResults activeResults;
    SmallVector<StageOp> stages(module.getOps<StageOp>());
    SmallVector<DenseSet<Value>> active;
    for (StageOp stage : stages) {
      ForwardOp forward = stage.getForward();
      active.push_back(findActive(forward, activeResults, symbolTables));
      for (auto [index, value] :
           llvm::enumerate(forward.getReturn().getValues()))
        if (active.back().contains(value))
          activeResults.insert({stage.getSymNameAttr(), index});
    }

    // Last stage first: what a backward returns is what its producers take.
    DenseMap<StringAttr, SmallVector<int64_t>> gradientsOf;
    for (auto [stage, values, word] :
         llvm::reverse(llvm::zip_equal(stages, active, repeated))) {
      SmallVector<int64_t> indices = gradientsOf[stage.getSymNameAttr()];
      llvm::sort(indices);
      if (!stage.getBackward() &&
          failed(StageGradient(stage, values, indices,
                               perUpdate * programOf(module).replicas,
                               RepeatRule{word == "pointwise", keepGelu})
                     .build()))
        return failure();
      BackwardOp backward = stage.getBackward();
      if (!backward)
        continue;
      for (int64_t index : backward.getInputGradients())
        if (auto output =
                dyn_cast<OutputAttr>(stage.getForward().getSources()[index]))
          gradientsOf[output.getStage().getAttr()].push_back(output.getIndex());
    }
    return success();
  }
};

} // namespace
} // namespace pipewright::pipe
