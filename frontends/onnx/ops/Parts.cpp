//===- Parts.cpp - A tensor cut along an axis -----------------------------===//
//
// One function serves computed values and constants.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Parts.h"

using namespace mlir;

namespace pipewright::frontend {

ConstantTensor sliceConstant(const ConstantTensor &tensor, int64_t axis,
                             int64_t start, int64_t size, int64_t step) {
  Shape shape(tensor.shape());
  int64_t length = shape[axis];
  shape[axis] = size;
  int64_t inner = elementCount(ArrayRef<int64_t>(shape).drop_front(axis + 1));
  return tensor.remapped(shape, [&](int64_t index) {
    int64_t outer = index / (inner * size), k = index / inner % size;
    return (outer * length + start + k * step) * inner + index % inner;
  });
}

Shape evenParts(int64_t dim, int64_t size, int64_t parts) {
  Shape sizes;
  for (int64_t i = 0, left = dim; i < parts; ++i, left -= size)
    sizes.push_back(std::min(size, left));
  return sizes;
}

LogicalResult checkParts(NodeContext &n, ArrayRef<int64_t> sizes, int64_t axis,
                         size_t wanted) {
  int64_t dim = n.shape(0)[axis], sum = 0;
  for (int64_t size : sizes)
    sum = std::min(sum + (size >= 0 ? std::min(size, dim + 1) : dim + 1),
                   dim + 1);
  if (sum == dim && sizes.size() == wanted)
    return success();
  auto diag = n.error() << "cannot split dimension " << axis << " of size "
                        << dim << " into [";
  llvm::interleaveComma(sizes, diag);
  return diag << "] for " << wanted << " outputs";
}

/// A tensor that is no input of the node, as an op result; null after an error.
static Value valueOf(NodeContext &n, const ImportedValue &tensor) {
  return n.graph.materialize(
      tensor, n.graph.unusedName((n.outputName(0) + "_part").str()));
}

static FailureOr<ImportedValue> computedOrFailure(Value value) {
  if (!value)
    return failure();
  return computedValue(value);
}

FailureOr<ImportedValue> partOf(NodeContext &n, const ImportedValue &tensor,
                                int64_t axis, int64_t start, int64_t size) {
  if (tensor.isConstant())
    return constantValue(sliceConstant(*tensor.constant, axis, start, size));
  if (size == 0) {
    Shape shape = tensor.shape;
    shape[axis] = 0;
    return constantValue(ConstantTensor(tensor.element, shape));
  }
  Value whole = valueOf(n, tensor);
  if (!whole)
    return failure();
  return computedOrFailure(n.b.sliceAxis(whole, axis, start, size));
}

static FailureOr<ImportedValue>
reshaped(NodeContext &n, const ImportedValue &tensor, ArrayRef<int64_t> shape) {
  if (tensor.isConstant())
    return constantValue(tensor.constant->reshaped(shape));
  Value whole = valueOf(n, tensor);
  if (!whole)
    return failure();
  return computedOrFailure(n.b.reshape(whole, shape));
}

FailureOr<ImportedValue>
withoutAxis(NodeContext &n, const ImportedValue &tensor, int64_t axis) {
  Shape shape = tensor.shape;
  shape.erase(shape.begin() + axis);
  return reshaped(n, tensor, shape);
}

FailureOr<ImportedValue> withAxis(NodeContext &n, const ImportedValue &tensor,
                                  int64_t axis) {
  Shape shape = tensor.shape;
  shape.insert(shape.begin() + axis, 1);
  return reshaped(n, tensor, shape);
}

/// The shape of tensors one behind the other.
static FailureOr<Shape>
joinedShape(NodeContext &n, ArrayRef<ImportedValue> tensors, int64_t axis) {
  Shape shape = tensors.front().shape;
  shape[axis] = 0;
  for (const ImportedValue &tensor : tensors) {
    Shape expected(shape);
    if (tensor.shape.size() == shape.size())
      expected[axis] = tensor.shape[axis];
    if (tensor.shape != expected || tensor.element != tensors.front().element)
      return n.error() << "the operands do not fit together";
    shape[axis] += tensor.shape[axis];
  }
  return shape;
}

FailureOr<ImportedValue> joined(NodeContext &n, ArrayRef<ImportedValue> tensors,
                                int64_t axis) {
  FailureOr<Shape> shape = joinedShape(n, tensors, axis);
  if (failed(shape))
    return failure();
  if (!llvm::all_of(tensors, [](const auto &t) { return t.isConstant(); })) {
    SmallVector<Value> operands;
    for (const ImportedValue &tensor : tensors) {
      // Empty tensors have no value.
      if (elementCount(tensor.shape) == 0)
        continue;
      operands.push_back(valueOf(n, tensor));
      if (!operands.back())
        return failure();
    }
    return computedOrFailure(
        n.b.create<nn::ConcatOp>(operands, n.b.integer("axis", axis)));
  }
  if (failed(n.expectComputable(*shape)))
    return failure();
  ConstantTensor result(tensors.front().element, *shape);
  ArrayRef<int64_t> dims = *shape;
  int64_t inner = elementCount(dims.drop_front(axis + 1));
  int64_t outer = elementCount(dims.take_front(axis)), at = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (const ImportedValue &tensor : tensors)
      for (int64_t k = 0, run = tensor.shape[axis] * inner; k < run; ++k)
        result.copyElement(at++, *tensor.constant, o * run + k);
  return constantValue(std::move(result));
}

} // namespace pipewright::frontend
