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

LogicalResult NodeContext::followBatch(unsigned i, ArrayRef<int64_t> shape,
                                       bool mayBroadcast) {
  const std::optional<BatchChange> &batch = graph.batchChange;
  if (!batch || !hasInput(i) || inputs[i].value)
    return success();
  for (int64_t d = rank(i) - 1, to = int64_t(shape.size()) - 1;
       d >= 0 && to >= 0; --d, --to) {
    if (inputs[i].shape[d] != batch->original || shape[to] != batch->wanted)
      continue;
    if (inputs[i].isRandom()) {
      inputs[i].shape[d] = batch->wanted;
      continue;
    }
    FailureOr<ImportedValue> value = graph.asConstantIfUntrained(inputs[i]);
    if (failed(value))
      return failure();
    std::optional<ConstantTensor> slice;
    if (value->isConstant())
      slice = commonSlice(*value->constant, d);
    if (!slice)
      return success();
    Shape stretched(slice->shape());
    stretched[d] = batch->wanted;
    if (!mayBroadcast && failed(expectComputable(stretched)))
      return failure();
    inputs[i] = constantValue(
        mayBroadcast ? std::move(*slice) : broadcastTensor(*slice, stretched));
  }
  return success();
}

LogicalResult NodeContext::followBatch() {
  for (unsigned k = 0; graph.batchChange && k < numInputs(); ++k) {
    const OriginalValue *original = hasInput(k) ? originalInput(k) : nullptr;
    if (!original || ArrayRef(original->shape) == shape(k))
      continue;
    // Other dimensions of that size are no batch.
    Shape changed(shape(k));
    for (auto [size, before] : llvm::zip(changed, original->shape))
      size = size == before ? 0 : size;
    for (unsigned i = 0; i < numInputs(); ++i)
      if (i != k && failed(followBatch(i, changed, /*mayBroadcast=*/true)))
        return failure();
  }
  return success();
}

} // namespace pipewright::frontend
