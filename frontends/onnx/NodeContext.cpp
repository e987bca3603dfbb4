//===- NodeContext.cpp - One ONNX node while it is imported ---------------===//
//
// Access to a node's inputs, attributes and results, with errors that name it.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"

#include "dialects/nn/NNLimits.h"
#include "frontends/onnx/ExporterMetadata.h"
#include "frontends/onnx/GraphOrder.h"
#include "frontends/onnx/Limits.h"

using namespace mlir;
using onnx::AttributeProto;

namespace pipewright::frontend {

/// A node's name, with that of its module where the exporter noted it.
static Location locationOf(MLIRContext *context, const onnx::NodeProto &node,
                           StringRef label) {
  auto name = StringAttr::get(context, label);
  std::string module = moduleOf(node);
  return module.empty()
             ? NameLoc::get(name)
             : NameLoc::get(name,
                            NameLoc::get(StringAttr::get(context, module)));
}

NodeContext::NodeContext(GraphImporter &graph, const onnx::NodeProto &node,
                         NodeNames names)
    : node(node), graph(graph), opset(graph.file.opsetOf(node)),
      b(graph.builder,
        locationOf(graph.builder.getContext(), node, names.label),
        [this] { return error(); }),
      names(std::move(names)) {}

InFlightDiagnostic NodeContext::error() {
  InFlightDiagnostic diag = graph.error();
  diag << "node '" << names.label << "' (" << node.op_type() << ", opset "
       << opset << "): ";
  return diag;
}

LogicalResult NodeContext::resolveInputs() {
  for (const std::string &name : names.inputs) {
    FailureOr<ImportedValue> value = graph.lookup(name);
    if (failed(value))
      return failure();
    inputs.push_back(std::move(*value));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const AttributeProto *NodeContext::attribute(StringRef name) {
  readAttributes.insert(name);
  for (const AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

bool NodeContext::hasAttribute(StringRef name) const {
  return llvm::any_of(node.attribute(), [&](const AttributeProto &attribute) {
    return attribute.name() == name;
  });
}

int64_t NodeContext::intAttribute(StringRef name, int64_t defaultValue) {
  const AttributeProto *found = attribute(name);
  if (found && !found->has_i())
    wrongAttribute = name.str() + " is not an integer";
  return found && found->has_i() ? found->i() : defaultValue;
}

float NodeContext::floatAttribute(StringRef name, float defaultValue) {
  const AttributeProto *found = attribute(name);
  if (found && !found->has_f())
    wrongAttribute = name.str() + " is not a float";
  return found && found->has_f() ? found->f() : defaultValue;
}

std::string NodeContext::stringAttribute(StringRef name,
                                         StringRef defaultValue) {
  const AttributeProto *found = attribute(name);
  if (found && !found->has_s())
    wrongAttribute = name.str() + " is not a string";
  return found && found->has_s() ? found->s() : defaultValue.str();
}

std::optional<Shape> NodeContext::intsAttribute(StringRef name) {
  const AttributeProto *found = attribute(name);
  if (!found)
    return std::nullopt;
  if (found->type() != AttributeProto::INTS)
    wrongAttribute = name.str() + " is not a list of integers";
  return Shape(found->ints().begin(), found->ints().end());
}

const onnx::GraphProto *NodeContext::graphAttribute(StringRef name) {
  const AttributeProto *found = attribute(name);
  if (found && found->has_g())
    return &found->g();
  error() << "expects attribute '" << name << "' to be a graph, but it "
          << (found ? "is something else" : "is left out");
  return nullptr;
}

LogicalResult NodeContext::checkAttributes() {
  if (!wrongAttribute.empty())
    return error() << "attribute " << wrongAttribute;
  for (const AttributeProto &attribute : node.attribute())
    if (!readAttributes.contains(attribute.name()))
      return error() << "attribute '" << attribute.name()
                     << "' is not supported";
  return success();
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

Value NodeContext::value(unsigned i) {
  if (!hasInput(i)) {
    error() << "expects input " << i;
    return Value();
  }
  return graph.materialize(inputs[i], inputName(i));
}

Value NodeContext::weight(unsigned i) {
  if (!hasInput(i) || !inputs[i].isConstant() ||
      !inputs[i].constant->weightLike)
    return value(i);
  FailureOr<std::string> symbol =
      graph.weightSymbol(inputName(i), nn::WeightRole::Parameter);
  if (failed(symbol))
    return Value();
  inputs[i] = *graph.lookup(inputName(i));
  return value(i);
}

Value NodeContext::made(ConstantTensor tensor, const Twine &what) {
  return graph.materialize(constantValue(std::move(tensor)),
                           graph.unusedName((outputName(0) + what).str()));
}

bool NodeContext::allConstant() const {
  return llvm::all_of(inputs, [](const ImportedValue &input) {
    return !input || input.isConstant();
  });
}

bool NodeContext::hasRandomInput() const {
  return llvm::any_of(
      inputs, [](const ImportedValue &input) { return input.isRandom(); });
}

LogicalResult NodeContext::takeUntrainedAsConstants() {
  SmallVector<ImportedValue, 4> constants;
  for (const ImportedValue &input : inputs) {
    if (input && !input.isConstant() && !input.isWeight())
      return success();
    FailureOr<ImportedValue> constant = graph.asConstantIfUntrained(input);
    if (failed(constant))
      return failure();
    if (constant->isWeight())
      return success();
    constants.push_back(std::move(*constant));
  }
  inputs = std::move(constants);
  return success();
}

FailureOr<Shape> NodeContext::constantInts(unsigned i, StringRef what) {
  const ConstantTensor *tensor = constant(i);
  if (!tensor)
    return error() << "expects constant " << what
                   << ", but it depends on the model's inputs or weights";
  if (tensor->kind() != ElementKind::Int || tensor->rank() > 1)
    return error() << "expects " << what << " to be a list of int64";
  if (failed(expectComputable(tensor->shape())))
    return failure();
  Shape result;
  for (int64_t k = 0, e = tensor->size(); k < e; ++k)
    result.push_back(tensor->intAt(k));
  return result;
}

LogicalResult NodeContext::expectInputs(InputCount count) {
  auto [least, most] = count;
  if (numInputs() < least || numInputs() > most) {
    auto diag = error() << "expects " << least;
    if (most == kAnyNumber)
      diag << " or more";
    else if (most != least)
      diag << " to " << most;
    return diag << (least == 1 && most == 1 ? " input" : " inputs")
                << ", but got " << numInputs();
  }
  for (unsigned i = 0; i < (most == kAnyNumber ? numInputs() : least); ++i)
    if (!hasInput(i))
      return error() << "expects input " << i << ", but it is left out";
  return success();
}

LogicalResult NodeContext::expectPorts(const onnx::GraphProto &subgraph,
                                       StringRef attribute, int64_t inputs,
                                       int64_t outputs) {
  if (subgraph.input_size() == inputs && subgraph.output_size() == outputs)
    return success();
  return error() << "expects '" << attribute << "' to have " << inputs
                 << " inputs and " << outputs << " outputs, but it has "
                 << subgraph.input_size() << " and " << subgraph.output_size();
}

static StringRef kindNameOf(const ImportedValue &value) {
  if (value.isEmptyOptional())
    return "an optional that holds nothing";
  return value.isSequence() ? "a sequence of tensors" : "a tensor";
}

LogicalResult NodeContext::expectTensors(unsigned first) {
  if (first == kAnyNumber)
    return success();
  for (unsigned i = 0; i < numInputs(); ++i) {
    if (!hasInput(i) ||
        (inputs[i].isSequence() == (i < first) && !inputs[i].isEmptyOptional()))
      continue;
    return error() << "expects input " << i << " ('" << inputName(i)
                   << "') to be "
                   << (i < first ? "a sequence of tensors" : "a tensor")
                   << ", but it is " << kindNameOf(inputs[i]);
  }
  return success();
}

LogicalResult NodeContext::expectShape(unsigned i, StringRef what,
                                       ArrayRef<int64_t> expected) {
  if (failed(followBatch(i, expected)))
    return failure();
  if (!hasInput(i) || shape(i) == expected)
    return success();
  auto diag = error() << "expects " << what << " of shape [";
  llvm::interleaveComma(expected, diag);
  diag << "], but got [";
  llvm::interleaveComma(shape(i), diag);
  return diag << "]";
}

LogicalResult NodeContext::expectComputable(ArrayRef<int64_t> shape) {
  if (int64_t count = elementCount(shape); count > kMaxComputedElements)
    return error() << "computes a constant of " << count
                   << " elements, more than the " << kMaxComputedElements
                   << " that are computed while compiling: make it an "
                      "initializer or an input of the model";
  return success();
}

LogicalResult NodeContext::expectListable(int64_t count, StringRef what) {
  if (count > kMaxListedPlaces)
    return error() << "has " << count << " " << what << ", more than the "
                   << kMaxListedPlaces << " that are listed while compiling";
  return success();
}

FailureOr<int64_t> NodeContext::normalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return error() << "axis " << axis << " is out of range for rank " << rank;
  return axis < 0 ? axis + rank : axis;
}

FailureOr<Shape> NodeContext::normalizeAxes(ArrayRef<int64_t> axes,
                                            int64_t rank) {
  Shape result;
  for (int64_t axis : axes) {
    FailureOr<int64_t> normal = normalizeAxis(axis, rank);
    if (failed(normal))
      return failure();
    if (llvm::is_contained(result, *normal))
      return error() << "axis " << axis << " is given twice";
    result.push_back(*normal);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

bool NodeContext::isOutputRead(unsigned i) const {
  return i < numOutputs() && !outputName(i).empty() &&
         graph.isRead(outputName(i));
}

LogicalResult NodeContext::setResult(unsigned i, Value value) {
  if (!value)
    return failure();
  if (i < numOutputs() && !outputName(i).empty())
    graph.define(outputName(i), value);
  return success();
}

LogicalResult NodeContext::setResult(unsigned i, ConstantTensor tensor) {
  if (std::string problem = nn::problemOfSize(tensor.shape()); !problem.empty())
    return error() << problem;
  if (tensor.size() > kMaxMadeElements)
    return error() << "makes a constant of " << tensor.size()
                   << " elements, but expects at most " << kMaxMadeElements;
  if (i < numOutputs() && !outputName(i).empty())
    graph.define(outputName(i), std::move(tensor));
  return success();
}

LogicalResult NodeContext::setResult(unsigned i, ImportedValue value) {
  if (i < numOutputs() && !outputName(i).empty())
    graph.define(outputName(i), std::move(value));
  return success();
}

LogicalResult NodeContext::forward(unsigned result, unsigned input) {
  graph.define(outputName(result), inputs[input]);
  return success();
}

LogicalResult NodeContext::expectUnread(unsigned i) {
  for (; i < numOutputs(); ++i)
    if (isOutputRead(i))
      return error() << "output " << i << " ('" << outputName(i)
                     << "') is used, but is not supported";
  return success();
}

} // namespace pipewright::frontend
