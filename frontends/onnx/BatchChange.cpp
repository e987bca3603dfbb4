//===- BatchChange.cpp - Another batch size than the file's ---------------===//
//
// A model with a fixed batch is imported twice. The first time, at the file's
// batch size, tells the shape of every value and where the batch lies in it;
// the second time, what the file wrote for its batch size follows: targets of
// reshapes, constants that have every sample once, random numbers.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/ops/Broadcasting.h"

using namespace mlir;

namespace pipewright::frontend {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

llvm::StringMap<OriginalValue>
GraphImporter::recordValues(int64_t batch) const {
  llvm::StringMap<OriginalValue> result;
  BatchPlaces found(batch);
  auto record = [&](const auto &entry) {
    const ImportedValue &value = entry.getValue();
    std::optional<BatchPlace> place;
    if (value.value && batch > 1)
      place = found.find(value.value);
    result[entry.getKey()] = {value.shape, place};
  };
  llvm::for_each(valuesInSubgraphs, record);
  llvm::for_each(values, record);
  return result;
}

std::optional<BatchPlace>
GraphImporter::placeOf(const ImportedValue &value,
                       const OriginalValue &original) {
  if (batchChange->original > 1)
    return original.place;
  if (!places)
    places.emplace(batchChange->wanted);
  return places->find(value.value);
}

std::optional<BatchPlace>
GraphImporter::findBatch(const ImportedValue &value,
                         const OriginalValue &original) {
  if (original.shape.size() != value.shape.size())
    return std::nullopt;
  std::optional<int64_t> changed;
  for (auto [i, size] : llvm::enumerate(original.shape)) {
    if (size == value.shape[i])
      continue;
    if (changed || size % batchChange->original)
      return std::nullopt;
    changed = i;
  }
  if (!changed)
    return std::nullopt;
  int64_t others = original.shape[*changed] / batchChange->original;
  // What is known of a constant is only that its samples follow the inputs'.
  if (others == 1 || !value.value)
    return BatchPlace{*changed, others};
  std::optional<BatchPlace> place = placeOf(value, original);
  return place && place->dim == *changed ? place : std::nullopt;
}

/// Whether the size that a shape has of the batch is the file's, as far as its
/// first dimension tells.
static bool staysAsInFile(const ImportedValue &value,
                          const OriginalValue &original, BatchChange batch) {
  return value.value && !original.shape.empty() && batch.original > 1 &&
         original.shape.front() == batch.original &&
         ArrayRef(original.shape) == ArrayRef(value.shape);
}

LogicalResult GraphImporter::checkBatch(NodeContext &n) {
  for (unsigned i = 0; batchChange && i < n.numOutputs(); ++i) {
    const OriginalValue *original = n.originalResult(i);
    auto it = values.find(n.outputName(i));
    if (!original || it == values.end() || !it->second.value ||
        original->shape.size() != it->second.shape.size())
      continue;
    std::optional<BatchPlace> place = placeOf(it->second, *original);
    if (!place)
      continue;
    Shape expected = original->shape;
    expected[place->dim] =
        expected[place->dim] / batchChange->original * batchChange->wanted;
    if (expected == it->second.shape)
      continue;
    auto diag = n.error() << "a result of shape [";
    llvm::interleaveComma(original->shape, diag);
    diag << "] becomes one of [";
    llvm::interleaveComma(it->second.shape, diag);
    diag << "], but with the batch it would be [";
    llvm::interleaveComma(expected, diag);
    return diag << "]";
  }
  return success();
}

LogicalResult GraphImporter::checkOutputBatch() {
  for (const auto &output : file.graph().output()) {
    auto value = values.find(output.name());
    auto original = originals.find(output.name());
    if (!batchChange || value == values.end() || original == originals.end() ||
        !staysAsInFile(value->second, original->second, *batchChange))
      continue;
    auto diag = error() << "output '" << output.name() << "' has shape [";
    llvm::interleaveComma(value->second.shape, diag);
    return diag << "] whatever the batch size is";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Inputs of a node
//===----------------------------------------------------------------------===//

const OriginalValue *NodeContext::originalResult(unsigned i) const {
  if (!graph.batchChange)
    return nullptr;
  auto it = graph.originals.find(outputName(i));
  return it == graph.originals.end() ? nullptr : &it->second;
}

const OriginalValue *NodeContext::originalInput(unsigned i) const {
  if (!graph.batchChange)
    return nullptr;
  auto it = graph.originals.find(inputName(i));
  return it == graph.originals.end() ? nullptr : &it->second;
}

/// What the numbers of samples, which count along `dim`, are multiplied by:
/// PyTorch's arange of the batch. None if a constant is anything else.
static std::optional<int64_t> stepOfNumbers(const ConstantTensor &tensor,
                                            int64_t dim) {
  if (tensor.kind() != ElementKind::Int || tensor.isSplat())
    return std::nullopt;
  int64_t inner = elementCount(tensor.shape().drop_front(dim + 1));
  int64_t step = tensor.intAt(inner);
  for (int64_t i = 0, e = tensor.size(); i < e; ++i)
    if (tensor.intAt(i) != i / inner % tensor.shape()[dim] * step)
      return std::nullopt;
  return step;
}

/// Such numbers for any batch.
static ConstantTensor numbersOf(ArrayRef<int64_t> shape, int64_t dim,
                                int64_t step) {
  int64_t inner = elementCount(shape.drop_front(dim + 1));
  ConstantTensor result(ElementKind::Int, shape);
  for (int64_t i = 0, e = result.size(); i < e; ++i)
    result.setInt(i, i / inner % shape[dim] * step);
  return result;
}

LogicalResult NodeContext::repeatSamples(unsigned i, BatchPlace place,
                                         bool mayBroadcast) {
  BatchChange batch = *graph.batchChange;
  Shape &shape = inputs[i].shape;
  int64_t size = shape[place.dim], perSample = size / batch.original;
  if (inputs[i].isRandom()) {
    shape[place.dim] = perSample * batch.wanted;
    return success();
  }
  FailureOr<ImportedValue> value = graph.asConstantIfUntrained(inputs[i]);
  if (failed(value))
    return failure();
  if (!value->isConstant())
    return success();
  Shape apart(shape);
  apart[place.dim] = perSample / place.stride;
  int64_t at = place.dim + 1;
  apart.insert(apart.begin() + at, {batch.original, place.stride});
  std::optional<ConstantTensor> one =
      commonSlice(value->constant->reshaped(apart), at);
  if (std::optional<int64_t> step =
          one || perSample != 1 ? std::nullopt
                                : stepOfNumbers(*value->constant, place.dim)) {
    shape[place.dim] = batch.wanted;
    inputs[i] = constantValue(numbersOf(shape, place.dim, *step));
  }
  if (!one)
    return success();
  apart[at] = mayBroadcast && perSample == 1 ? 1 : batch.wanted;
  if (failed(expectComputable(apart)))
    return failure();
  Shape result(shape);
  result[place.dim] = perSample * apart[at];
  inputs[i] = constantValue(broadcastTensor(*one, apart).reshaped(result));
  return success();
}

LogicalResult NodeContext::followBatch(unsigned i, ArrayRef<int64_t> shape) {
  const std::optional<BatchChange> &batch = graph.batchChange;
  if (!batch || !hasInput(i) || inputs[i].value)
    return success();
  for (int64_t d = rank(i) - 1, to = int64_t(shape.size()) - 1;
       d >= 0 && to >= 0; --d, --to)
    if (inputs[i].shape[d] == batch->original && shape[to] == batch->wanted &&
        failed(repeatSamples(i, {d}, /*mayBroadcast=*/false)))
      return failure();
  return success();
}

/// What a value repeats along a dimension, where nothing else made it.
static Value repeated(Value value, int64_t dim) {
  auto op = value ? value.getDefiningOp<nn::BroadcastToOp>() : nullptr;
  if (!op)
    return Value();
  ArrayRef<int64_t> from = shapeOf(op.getX());
  int64_t d = dim + int64_t(from.size()) - int64_t(shapeOf(value).size());
  return d < 0 || from[d] == 1 ? op.getX() : Value();
}

LogicalResult NodeContext::followOperand(unsigned i, unsigned leader) {
  const OriginalValue &original = *originalInput(leader);
  std::optional<BatchPlace> place = graph.findBatch(inputs[leader], original);
  if (!place)
    return success();
  int64_t d = place->dim + rank(i) - rank(leader);
  if (d < 0 || inputs[i].shape[d] == 1 ||
      inputs[i].shape[d] != original.shape[place->dim])
    return success();
  if (!inputs[i].value)
    return repeatSamples(i, {d, place->stride}, /*mayBroadcast=*/true);
  if (Value once = repeated(inputs[i].value, d))
    inputs[i] = computedValue(once);
  return success();
}

LogicalResult NodeContext::followBatch() {
  for (unsigned k = 0; graph.batchChange && k < numInputs(); ++k) {
    const OriginalValue *original = hasInput(k) ? originalInput(k) : nullptr;
    if (!original || ArrayRef(original->shape) == shape(k))
      continue;
    for (unsigned i = 0; i < numInputs(); ++i)
      if (i != k && hasInput(i) && failed(followOperand(i, k)))
        return failure();
  }
  return success();
}

} // namespace pipewright::frontend
