//===- Sequence.cpp - Sequences of tensors --------------------------------===//
//
// A sequence exists while the model is imported and has a length that is known
// then; the module has its tensors only. PyTorch's newer exporter writes
// torch.split and torch.chunk so.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Parts.h"

using namespace mlir;

namespace pipewright::frontend {

/// More parts than any model has; sizes in a file may be anything.
static constexpr int64_t kMaxParts = 65536;

static LogicalResult setSequence(NodeContext &n,
                                 std::vector<ImportedValue> elements) {
  ImportedValue sequence;
  sequence.kind = ImportedValue::Sequence;
  sequence.elements = std::move(elements);
  return n.setResult(0, std::move(sequence));
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
    FailureOr<ImportedValue> part = partOf(n, *axis, start, size);
    if (failed(part))
      return failure();
    if (drops) {
      Shape shape = part->shape;
      shape.erase(shape.begin() + *axis);
      *part = part->isConstant()
                  ? constantValue(part->constant->reshaped(shape))
                  : computedValue(n.b.reshape(part->value, shape));
    }
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

static LogicalResult importSequenceAt(NodeContext &n) {
  FailureOr<Shape> position = n.constantInts(1, "position");
  if (failed(position))
    return failure();
  const auto &elements = n.input(0).elements;
  const int64_t count = elements.size();
  if (position->size() != 1)
    return n.error() << "expects one position, but got " << position->size();
  const int64_t at = position->front();
  if (at < -count || at >= count)
    return n.error() << "position " << at << " is out of range for a sequence "
                     << "of " << count << " tensors";
  return n.setResult(0, elements[at < 0 ? at + count : at]);
}

static LogicalResult importSequenceLength(NodeContext &n) {
  const int64_t count = n.input(0).elements.size();
  return n.setResult(0, ConstantTensor::scalar(count));
}

ArrayRef<OpRow> sequenceOps() {
  static const OpRow rows[] = {
      {"SplitToSequence", 11, between(1, 2), importSplitToSequence},
      {"SequenceConstruct", 11, atLeast(1), importSequenceConstruct},
      {"SequenceAt", 11, exactly(2), importSequenceAt, nullptr, 1},
      {"SequenceLength", 11, exactly(1), importSequenceLength, nullptr, 1},
  };
  return rows;
}

} // namespace pipewright::frontend
