//===- GateOrder.cpp - The gates of recurrent weights as stored -----------===//

#include "frontends/onnx/ops/GateOrder.h"

#include "dialects/nn/NNOps.h"
#include "frontends/common/ConstantTensor.h"
#include "frontends/common/TensorBuilder.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {
/// Elements of a tensor in row-major order.
struct Span {
  Value tensor;
  int64_t begin, size;
};
} // namespace

/// Where a slice begins in its operand, if it is elements one behind the other.
static std::optional<int64_t> beginOf(nn::SliceOp slice) {
  ArrayRef<int64_t> from = shapeOf(slice.getX()), to = shapeOf(slice);
  size_t axis =
      std::mismatch(from.begin(), from.end(), to.begin()).first - from.begin();
  if (axis == from.size())
    return 0;
  ArrayRef<int64_t> inner = from.drop_front(axis + 1);
  if (elementCount(from.take_front(axis)) != 1 || slice.getSteps()[axis] != 1 ||
      inner != to.drop_front(axis + 1))
    return std::nullopt;
  return slice.getStarts()[axis] * elementCount(inner);
}

/// The operand of a concatenation that has all of a span of its result.
static std::optional<Span> partOf(nn::ConcatOp concat, Span span) {
  if (elementCount(shapeOf(concat).take_front(concat.getAxis())) != 1)
    return std::nullopt;
  for (Value input : concat.getInputs()) {
    int64_t size = elementCount(shapeOf(input));
    if (span.begin + span.size <= size)
      return Span{input, span.begin, span.size};
    if (span.begin < size)
      return std::nullopt;
    span.begin -= size;
  }
  return std::nullopt;
}

/// The same elements in the tensor that reshapes, slices and concatenations
/// took them from.
static Span trace(Span span) {
  while (Operation *op = span.tensor.getDefiningOp()) {
    if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
      span.tensor = reshape.getX();
    } else if (auto slice = dyn_cast<nn::SliceOp>(op)) {
      std::optional<int64_t> begin = beginOf(slice);
      if (!begin)
        break;
      span = {slice.getX(), span.begin + *begin, span.size};
    } else if (auto concat = dyn_cast<nn::ConcatOp>(op)) {
      std::optional<Span> part = partOf(concat, span);
      if (!part)
        break;
      span = *part;
    } else {
      break;
    }
  }
  return span;
}

StoredGates findStoredGates(Value gates, int64_t count) {
  StoredGates asGiven = {gates, llvm::to_vector(llvm::seq(count))};
  int64_t all = elementCount(shapeOf(gates)), size = all / count;
  if (size == 0)
    return asGiven;
  StoredGates found;
  SmallVector<bool> isTaken(count, false);
  for (int64_t gate = 0; gate < count; ++gate) {
    Span span = trace({gates, gate * size, size});
    if (gate == 0)
      found.tensor = span.tensor;
    if (span.tensor != found.tensor ||
        elementCount(shapeOf(span.tensor)) != all || span.begin % size != 0 ||
        isTaken[span.begin / size])
      return asGiven;
    isTaken[span.begin / size] = true;
    found.places.push_back(span.begin / size);
  }
  return found;
}

} // namespace pipewright::frontend
