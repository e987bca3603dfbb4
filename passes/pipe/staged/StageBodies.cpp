//===- StageBodies.cpp - Build stages from placed ops ---------------------===//
//
// Placed ops are copied into their stage in the model's order; what they read
// is fetched on demand: repeated ops are copied in front of their first use,
// results of other stages become an argument here and a result there.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/staged/StageBodies.h"

#include "dialects/nn/NNAttributeNames.h"
#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace pipewright::pipe {

namespace {

/// One forward or evaluate body under construction. Keys are values of the
/// model's function.
struct Body {
  Block *block = nullptr;
  IRMapping map;
  /// What each argument stands for.
  SmallVector<Value> arguments;
  SmallVector<Attribute> sources;
  /// What is returned, and to which stage.
  llvm::MapVector<std::pair<Value, int32_t>, int64_t> results;
};

/// Builds one body per stage of either kind.
class BodyBuilder {
public:
  BodyBuilder(const ModelOps &model, const SmallVector<StageOp> &stages,
              const DenseMap<Operation *, int32_t> &stageOf, bool evaluates)
      : model(model), stages(stages), stageOf(stageOf), evaluates(evaluates),
        builder(model.getFunction().getContext()), bodies(stages.size()) {}

  template <typename BodyOp>
  void open();

  /// Takes over arguments and results, so that indices mean the same here as
  /// in `forward`.
  void adoptInterface(const BodyBuilder &forward);

  /// Copies a placed op into its stage.
  LogicalResult place(Operation *op);

  /// Reports a model output from the given stage.
  LogicalResult report(Value output, StringRef name, int32_t stage);

  /// Ends the bodies.
  template <typename BodyOp>
  LogicalResult close();

private:
  /// The copy of a value in a stage, made if need be; null after an error.
  Value fetch(Value value, int32_t stage);
  Value addArgument(Value value, Attribute source, int32_t stage);

  const ModelOps &model;
  SmallVector<StageOp> stages;
  const DenseMap<Operation *, int32_t> &stageOf;
  bool evaluates;
  OpBuilder builder;
  SmallVector<Body> bodies;
};

template <typename BodyOp>
void BodyBuilder::open() {
  for (auto [number, stage] : llvm::enumerate(stages)) {
    builder.setInsertionPointToEnd(stage.getBody());
    auto op = BodyOp::create(builder, stage.getLoc(), builder.getArrayAttr({}));
    bodies[number].block = &op.getBodyRegion().emplaceBlock();
  }
}

void BodyBuilder::adoptInterface(const BodyBuilder &forward) {
  for (auto [body, from] : llvm::zip_equal(bodies, forward.bodies)) {
    body.arguments = from.arguments;
    body.sources = from.sources;
    body.results = from.results;
    for (Value argument : body.arguments)
      body.map.map(argument, body.block->addArgument(argument.getType(),
                                                     argument.getLoc()));
  }
}

Value BodyBuilder::addArgument(Value value, Attribute source, int32_t stage) {
  Body &body = bodies[stage];
  body.arguments.push_back(value);
  body.sources.push_back(source);
  Value argument = body.block->addArgument(value.getType(), value.getLoc());
  body.map.map(value, argument);
  return argument;
}

Value BodyBuilder::fetch(Value value, int32_t stage) {
  Body &body = bodies[stage];
  if (Value known = body.map.lookupOrNull(value))
    return known;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto name = model.getFunction().getArgAttrOfType<StringAttr>(
        argument.getArgNumber(), nn::kName);
    return addArgument(value, InputAttr::get(name.getContext(), name), stage);
  }
  Operation *op = value.getDefiningOp();
  if (model.isRepeated(op)) {
    for (Value operand : op->getOperands())
      if (!fetch(operand, stage))
        return Value();
    builder.setInsertionPointToEnd(body.block);
    builder.clone(*op, body.map);
    return body.map.lookup(value);
  }
  int32_t producer = stageOf.lookup(op);
  if (producer == stage) {
    op->emitOpError("has no result ")
        << cast<OpResult>(value).getResultNumber()
        << " in evaluation, but the model uses it";
    return Value();
  }
  auto &results = bodies[producer].results;
  auto [it, isNew] =
      results.insert({{value, stage}, static_cast<int64_t>(results.size())});
  auto name = FlatSymbolRefAttr::get(stages[producer].getSymNameAttr());
  return addArgument(
      value, OutputAttr::get(builder.getContext(), name, it->second), stage);
}

LogicalResult BodyBuilder::place(Operation *op) {
  // Evaluation leaves no state behind.
  if (evaluates && isa<nn::AssignStateOp>(op))
    return success();
  int32_t stage = stageOf.lookup(op);
  for (Value operand : op->getOperands())
    if (!fetch(operand, stage))
      return failure();
  Body &body = bodies[stage];
  builder.setInsertionPointToEnd(body.block);
  Operation *copy = builder.clone(*op, body.map);
  auto stateful = dyn_cast<nn::StatefulOpInterface>(copy);
  if (!evaluates || !stateful)
    return success();
  SmallVector<Value> inferred;
  if (failed(stateful.buildInference(builder, inferred)))
    return copy->emitOpError("has no form for evaluation");
  for (auto [result, value] : llvm::zip_equal(op->getResults(), inferred)) {
    if (value)
      body.map.map(result, value);
    else
      body.map.erase(result);
  }
  copy->erase();
  return success();
}

LogicalResult BodyBuilder::report(Value output, StringRef name, int32_t stage) {
  Value value = fetch(output, stage);
  if (!value)
    return failure();
  builder.setInsertionPointToEnd(bodies[stage].block);
  ReportOp::create(builder, output.getLoc(), name, value);
  return success();
}

template <typename BodyOp>
LogicalResult BodyBuilder::close() {
  for (auto [number, body] : llvm::enumerate(bodies)) {
    auto op = cast<BodyOp>(body.block->getParentOp());
    SmallVector<Value> values;
    for (auto &[key, index] : body.results) {
      values.push_back(body.map.lookupOrNull(key.first));
      if (!values.back())
        return key.first.getDefiningOp()->emitOpError(
            "is sent to another stage, but evaluation does not compute it");
    }
    builder.setInsertionPointToEnd(body.block);
    ReturnOp::create(builder, op.getLoc(), values, ValueRange());
    op.setSourcesAttr(builder.getArrayAttr(body.sources));
  }
  return success();
}

/// The stage that can compute what is made from `origin` without waiting.
int32_t lastProducer(const ValueOrigin &origin,
                     const DenseMap<Operation *, int32_t> &stageOf,
                     int32_t otherwise) {
  if (origin.placed.empty())
    return otherwise;
  int32_t last = 0;
  for (Value value : origin.placed)
    last = std::max(last, stageOf.lookup(value.getDefiningOp()));
  return last;
}

} // namespace

/// Makes empty stages whose names differ from those of the weights.
static SmallVector<StageOp> createStages(func::FuncOp function, int64_t count) {
  auto module = cast<ModuleOp>(function->getParentOp());
  SymbolTable symbols(module);
  OpBuilder builder(function);
  SmallVector<StageOp> stages;
  for (int64_t number = 0; number < count; ++number) {
    auto stage = StageOp::create(builder, function.getLoc(),
                                 "s" + std::to_string(number), IntegerAttr(),
                                 /*mirrors=*/FlatSymbolRefAttr(),
                                 /*keeps=*/WindowAttr());
    stage.getBodyRegion().emplaceBlock();
    symbols.insert(stage);
    stages.push_back(stage);
  }
  return stages;
}

LogicalResult buildStages(const ModelOps &model,
                          DenseMap<Operation *, int32_t> stageOf,
                          int64_t count) {
  func::FuncOp function = model.getFunction();
  // What only other outputs need runs as early as it can.
  for (Operation *op : model.placed()) {
    if (model.isNeededForLoss(op))
      continue;
    int32_t stage = 0;
    for (Value operand : op->getOperands())
      stage =
          std::max(stage, lastProducer(model.originOf(operand), stageOf, 0));
    stageOf[op] = stage;
  }
  auto stageOfOutput = [&](Value output) {
    return lastProducer(model.originOf(output), stageOf, count - 1);
  };
  SmallVector<StageOp> stages = createStages(function, count);
  Value loss = model.getLoss();

  BodyBuilder forward(model, stages, stageOf, /*evaluates=*/false);
  forward.open<ForwardOp>();
  for (Operation *op : model.placed())
    if (model.isNeededForLoss(op) && failed(forward.place(op)))
      return failure();
  if (failed(forward.report(loss, "loss", stageOfOutput(loss))) ||
      failed(forward.close<ForwardOp>()))
    return failure();

  BodyBuilder evaluate(model, stages, stageOf, /*evaluates=*/true);
  evaluate.open<EvaluateOp>();
  evaluate.adoptInterface(forward);
  for (Operation *op : model.placed())
    if (model.isAlive(op) && failed(evaluate.place(op)))
      return failure();
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [number, output] : llvm::enumerate(terminator->getOperands())) {
    auto name = function.getResultAttrOfType<StringAttr>(number, nn::kName);
    std::string label = number == 0 ? "loss"
                        : name      ? name.getValue().str()
                                    : "output" + std::to_string(number);
    if (failed(evaluate.report(output, label, stageOfOutput(output))))
      return failure();
  }
  return evaluate.close<EvaluateOp>();
}

} // namespace pipewright::pipe
