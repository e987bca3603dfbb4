//===- Sequence.cpp - Sequences of tensors --------------------------------===//
//
// A sequence exists while the model is imported and has a length that is known
// then; the module has its tensors only. PyTorch's newer exporter writes
// torch.split and torch.chunk so.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Subgraphs.h"
#include "frontends/onnx/ops/Parts.h"

using namespace mlir;

namespace pipewright::frontend {

/// More parts than any model has; sizes in a file may be anything.
static constexpr int64_t kMaxParts = 65536;

static ImportedValue makeSequence(std::vector<ImportedValue> elements) {
  ImportedValue sequence;
  sequence.kind = ImportedValue::Sequence;
  sequence.elements =
      std::make_shared<std::vector<ImportedValue>>(std::move(elements));
  return sequence;
}

static LogicalResult setSequence(NodeContext &n,
                                 std::vector<ImportedValue> elements) {
  return n.setResult(0, makeSequence(std::move(elements)));
}

/// The sizes that input 1 gives: one for all parts, or one for each; parts of
/// one where it is left out.
static FailureOr<Shape> readParts(NodeContext &n, int64_t axis) {
  const int64_t dim = n.shape(0)[axis];
  Shape given{1};
  if (n.hasInput(1)) {
    FailureOr<Shape> sizes = n.constantInts(1, "sizes");
    if (failed(sizes))
      return failure();
    given = *sizes;
  }
  const bool isOneForAll = !n.hasInput(1) || n.rank(1) == 0;
  if (!isOneForAll)
    return given;
  const int64_t size = given.front();
  if (size < 1)
    return n.error() << "expects parts of at least 1, but got " << size;
  const int64_t parts = dim / size + (dim % size != 0);
  if (parts > kMaxParts)
    return n.error() << "splits a dimension of " << dim << " into " << parts
                     << " parts, but expects at most " << kMaxParts;
  return evenParts(dim, size, parts);
}

static LogicalResult importSplitToSequence(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", 0), n.rank(0));
  // ONNX keeps the dimension wherever sizes are given.
  const bool drops = n.intAttribute("keepdims", 1) == 0 && !n.hasInput(1);
  if (failed(axis))
    return failure();
  FailureOr<Shape> sizes = readParts(n, *axis);
  if (failed(sizes) || failed(checkParts(n, *sizes, *axis, sizes->size())))
    return failure();
  std::vector<ImportedValue> elements;
  int64_t start = 0;
  for (int64_t size : *sizes) {
    FailureOr<ImportedValue> part = partOf(n, n.input(0), *axis, start, size);
    if (succeeded(part) && drops)
      part = withoutAxis(n, *part, *axis);
    if (failed(part))
      return failure();
    elements.push_back(std::move(*part));
    start += size;
  }
  return setSequence(n, std::move(elements));
}

static LogicalResult importSequenceConstruct(NodeContext &n) {
  std::vector<ImportedValue> elements;
  for (unsigned i = 0; i < n.numInputs(); ++i)
    elements.push_back(n.input(i));
  return setSequence(n, std::move(elements));
}

static LogicalResult importSequenceEmpty(NodeContext &n) {
  // The type of what will be in it follows from that.
  n.intAttribute("dtype", 1);
  return setSequence(n, {});
}

/// The position that an input gives among `count` places, counted from the end
/// if it is negative; `defaultValue` where the input is left out.
static FailureOr<int64_t> readPosition(NodeContext &n, unsigned input,
                                       int64_t count, int64_t defaultValue) {
  Shape position{defaultValue};
  if (n.hasInput(input)) {
    FailureOr<Shape> given = n.constantInts(input, "position");
    if (failed(given))
      return failure();
    position = *given;
  }
  if (position.size() != 1)
    return n.error() << "expects one position, but got " << position.size();
  const int64_t size = n.input(0).elements->size(), at = position.front();
  if (at < -size || at >= count)
    return n.error() << "position " << at << " is out of range for a sequence "
                     << "of " << size << " tensors";
  return at < 0 ? at + size : at;
}

static LogicalResult importSequenceAt(NodeContext &n) {
  const auto &elements = *n.input(0).elements;
  FailureOr<int64_t> at = readPosition(n, 1, elements.size(), 0);
  if (failed(at))
    return failure();
  return n.setResult(0, elements[*at]);
}

static LogicalResult importSequenceInsert(NodeContext &n) {
  std::vector<ImportedValue> elements = *n.input(0).elements;
  const int64_t count = elements.size();
  FailureOr<int64_t> at = readPosition(n, 2, count + 1, count);
  if (failed(at))
    return failure();
  elements.insert(elements.begin() + *at, n.input(1));
  return setSequence(n, std::move(elements));
}

static LogicalResult importSequenceErase(NodeContext &n) {
  std::vector<ImportedValue> elements = *n.input(0).elements;
  FailureOr<int64_t> at = readPosition(n, 1, elements.size(), -1);
  if (failed(at))
    return failure();
  elements.erase(elements.begin() + *at);
  return setSequence(n, std::move(elements));
}

static LogicalResult importSequenceLength(NodeContext &n) {
  const int64_t count = n.input(0).elements->size();
  return n.setResult(0, ConstantTensor::scalar(count));
}

static LogicalResult importConcatFromSequence(NodeContext &n) {
  std::vector<ImportedValue> elements = *n.input(0).elements;
  const bool isNew = n.intAttribute("new_axis", 0) != 0;
  if (elements.empty())
    return n.error() << "expects a sequence of 1 tensor or more, but got none";
  const int64_t rank = elements.front().shape.size() + isNew;
  if (!n.hasAttribute("axis"))
    return n.error() << "expects attribute 'axis'";
  FailureOr<int64_t> axis = n.normalizeAxis(n.intAttribute("axis", 0), rank);
  if (failed(axis))
    return failure();
  for (ImportedValue &element : elements) {
    if (!isNew)
      continue;
    if (int64_t(element.shape.size()) != rank - 1)
      return n.error() << "the operands do not fit together";
    FailureOr<ImportedValue> with = withAxis(n, element, *axis);
    if (failed(with))
      return failure();
    element = std::move(*with);
  }
  FailureOr<ImportedValue> result = joined(n, elements, *axis);
  if (failed(result))
    return failure();
  return n.setResult(0, std::move(*result));
}

/// What iteration `i` of SequenceMap reads: the tensors of sequences at that
/// place, and tensors as they are.
static FailureOr<std::vector<ImportedValue>> mapInputs(NodeContext &n,
                                                       size_t i) {
  std::vector<ImportedValue> inputs;
  for (unsigned k = 0; k < n.numInputs(); ++k) {
    const ImportedValue &input = n.input(k);
    if (input.isSequence() && input.elements->size() <= i)
      return n.error() << "expects sequences of one length, but got "
                       << n.input(0).elements->size() << " and "
                       << input.elements->size();
    inputs.push_back(input.isSequence() ? (*input.elements)[i] : input);
  }
  return inputs;
}

static LogicalResult importSequenceMap(NodeContext &n) {
  const onnx::GraphProto *body = n.graphAttribute("body");
  if (!body)
    return failure();
  if (!n.input(0).isSequence())
    return n.error() << "expects input 0 ('" << n.inputName(0)
                     << "') to be a sequence of tensors, but it is a tensor";
  if (failed(n.expectPorts(*body, "body", n.numInputs(), n.numOutputs())))
    return failure();
  std::vector<std::vector<ImportedValue>> results(n.numOutputs());
  for (size_t i = 0, e = n.input(0).elements->size(); i < e; ++i) {
    FailureOr<std::vector<ImportedValue>> inputs = mapInputs(n, i);
    if (failed(inputs))
      return failure();
    FailureOr<std::vector<ImportedValue>> outputs = n.graph.importSubgraph(
        n, *body, iterationLabel(n.getLabel(), i), std::move(*inputs));
    if (failed(outputs))
      return failure();
    for (auto [result, output] : llvm::zip(results, *outputs))
      result.push_back(std::move(output));
  }
  for (auto [i, result] : llvm::enumerate(results))
    if (failed(n.setResult(i, makeSequence(std::move(result)))))
      return failure();
  return success();
}

ArrayRef<OpRow> sequenceOps() {
  static const OpRow rows[] = {
      {"SplitToSequence", 11, between(1, 2), importSplitToSequence},
      {"SequenceConstruct", 11, atLeast(1), importSequenceConstruct},
      {"SequenceEmpty", 11, exactly(0), importSequenceEmpty},
      {"SequenceInsert", 11, between(2, 3), importSequenceInsert, nullptr, 1},
      {"SequenceErase", 11, between(1, 2), importSequenceErase, nullptr, 1},
      {"ConcatFromSequence", 11, exactly(1), importConcatFromSequence, nullptr,
       1},
      {"SequenceMap", 17, atLeast(1), importSequenceMap, nullptr, kAnyNumber},
      {"SequenceAt", 11, exactly(2), importSequenceAt, nullptr, 1},
      {"SequenceLength", 11, exactly(1), importSequenceLength, nullptr, 1},
  };
  return rows;
}

} // namespace pipewright::frontend
