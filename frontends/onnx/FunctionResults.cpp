//===- FunctionResults.cpp - Loss and outputs of the function -------------===//
//
// The loss is the model's own scalar output, or what --loss computes from an
// output and a new input.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/FunctionResults.h"

#include "dialects/nn/NNAttributeNames.h"
#include "frontends/common/LossBuilder.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {

struct Output {
  std::string name;
  Value value;
};

class ResultBuilder {
public:
  ResultBuilder(GraphImporter &graph, const ImportOptions &options)
      : graph(graph), options(options), builder(graph.builder),
        b(builder, NameLoc::get(builder.getStringAttr("loss")),
          [this] { return this->graph.error() << lossPrefix(); }) {}

  LogicalResult build();

private:
  LogicalResult collectOutputs();
  std::string lossPrefix() const;
  std::string describeOutputs() const;
  Value useScalarOutput();
  Value attachLoss();
  Value attachCrossEntropy(const Output &output);
  Value addTarget(ArrayRef<int64_t> shape, ElementKind kind);
  const Output *chooseOutput();
  void finish();

  GraphImporter &graph;
  const ImportOptions &options;
  OpBuilder &builder;
  TensorBuilder b;
  std::vector<Output> outputs;
};

} // namespace

std::string ResultBuilder::lossPrefix() const {
  return options.loss.empty() ? "" : "--loss " + options.loss + ": ";
}

LogicalResult ResultBuilder::collectOutputs() {
  for (const auto &output : graph.file.graph().output()) {
    FailureOr<ImportedValue> value = graph.lookup(output.name());
    if (failed(value))
      return failure();
    Value result = graph.materialize(*value, output.name());
    if (!result)
      return failure();
    outputs.push_back({output.name(), result});
  }
  return success();
}

std::string ResultBuilder::describeOutputs() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(outputs, os, [&](const Output &output) {
    os << "'" << output.name << "' ("
       << (kindOf(output.value) == ElementKind::Float ? "float" : "other")
       << " [";
    llvm::interleaveComma(shapeOf(output.value), os);
    os << "])";
  });
  return text;
}

/// The first float output of one element, as a result of its own.
Value ResultBuilder::useScalarOutput() {
  for (auto it = outputs.begin(); it != outputs.end(); ++it) {
    if (kindOf(it->value) != ElementKind::Float ||
        elementCount(shapeOf(it->value)) != 1)
      continue;
    Value loss = b.reshape(it->value, {});
    outputs.erase(it);
    return loss;
  }
  if (options.requireLoss)
    graph.error() << "there is no scalar output to train on: pass --loss "
                     "softmax-cross-entropy or --loss mse, and --loss-output "
                     "NAME to choose among "
                  << describeOutputs();
  return Value();
}

const Output *ResultBuilder::chooseOutput() {
  for (const Output &output : outputs) {
    bool isFloat = kindOf(output.value) == ElementKind::Float;
    if (options.lossOutput.empty() ? isFloat
                                   : output.name == options.lossOutput) {
      if (isFloat)
        return &output;
      b.error() << "output '" << output.name << "' is not float";
      return nullptr;
    }
  }
  if (options.lossOutput.empty())
    b.error() << "the model has no float output";
  else
    b.error() << "there is no output '" << options.lossOutput
              << "'; the model has " << describeOutputs();
  return nullptr;
}

/// Appends the input that the loss compares with.
Value ResultBuilder::addTarget(ArrayRef<int64_t> shape, ElementKind kind) {
  func::FuncOp function = graph.function;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, nn::kName);
    if (name && name.getValue() == options.targetInput) {
      b.error() << "the model already has an input '" << options.targetInput
                << "': choose another name for the targets";
      return Value();
    }
  }
  auto type = RankedTensorType::get(shape, elementType(kind, &graph.context));
  StringAttr name = builder.getStringAttr(options.targetInput);
  unsigned index = function.getNumArguments();
  auto attrs = builder.getDictionaryAttr(builder.getNamedAttr(nn::kName, name));
  if (failed(function.insertArgument(index, type, attrs, NameLoc::get(name))))
    return Value();
  return function.getArgument(index);
}

/// What a softmax at the end of a classifier was computed from.
static Value softmaxOperand(Value x) {
  while (auto reshape = x.getDefiningOp<nn::ReshapeOp>())
    x = reshape.getX();
  if (auto softmax = x.getDefiningOp<nn::SoftmaxOp>())
    return softmax.getX();
  if (auto softmax = x.getDefiningOp<nn::LogSoftmaxOp>())
    return softmax.getX();
  return Value();
}

Value ResultBuilder::attachCrossEntropy(const Output &output) {
  Value logits = output.value;
  if (Value operand = softmaxOperand(logits)) {
    graph.warn("output '" + output.name +
               "' ends in a softmax; the loss is computed from what goes into "
               "it");
    logits = operand;
  }
  Shape shape(shapeOf(logits));
  // Fully convolutional classifiers end in [N, C, 1, 1].
  while (shape.size() > 2 && shape.back() == 1)
    shape.pop_back();
  if (shape.size() < 2 || shape.size() > 3) {
    b.error() << "expects scores [N, classes] or [N, T, classes], but output '"
              << output.name << "' has rank " << shapeOf(output.value).size()
              << ": reshape it in the model (of images, [N, classes, H, W] to "
                 "[N, H W, classes]), or let the model return its loss";
    return Value();
  }
  logits = b.reshape(logits, shape);
  Value labels =
      addTarget(ArrayRef<int64_t>(shape).drop_back(), ElementKind::Int);
  return buildCrossEntropy(b, logits, labels, kNoIgnoredLabel);
}

Value ResultBuilder::attachLoss() {
  if (options.loss != "softmax-cross-entropy" && options.loss != "mse") {
    emitError(UnknownLoc::get(&graph.context))
        << "--loss: expects softmax-cross-entropy or mse, but got '"
        << options.loss << "'";
    return Value();
  }
  const Output *output = chooseOutput();
  if (!output)
    return Value();
  if (options.loss == "softmax-cross-entropy")
    return attachCrossEntropy(*output);
  Value target = addTarget(shapeOf(output->value), ElementKind::Float);
  return target ? buildMeanSquaredError(b, output->value, target) : Value();
}

void ResultBuilder::finish() {
  SmallVector<Value> values;
  SmallVector<Type> types;
  for (const Output &output : outputs) {
    values.push_back(output.value);
    types.push_back(output.value.getType());
  }
  func::ReturnOp::create(builder, graph.function.getLoc(), values);
  func::FuncOp function = graph.function;
  function.setFunctionType(
      builder.getFunctionType(function.getArgumentTypes(), types));
  for (auto [i, output] : llvm::enumerate(outputs))
    function.setResultAttr(i, nn::kName, builder.getStringAttr(output.name));
}

LogicalResult ResultBuilder::build() {
  if (failed(collectOutputs()))
    return failure();
  Value loss = options.loss.empty() ? useScalarOutput() : attachLoss();
  if (!loss && (options.requireLoss || !options.loss.empty()))
    return failure();
  for (const Output &output : outputs)
    if (loss && output.name == "loss") {
      graph.error() << "output 'loss' is not what is trained on, which is "
                       "reported by that name: rename it in the model";
      return failure();
    }
  if (loss)
    outputs.insert(outputs.begin(), {"loss", loss});
  finish();
  return success();
}

LogicalResult buildResults(GraphImporter &graph, const ImportOptions &options) {
  return ResultBuilder(graph, options).build();
}

} // namespace pipewright::frontend
