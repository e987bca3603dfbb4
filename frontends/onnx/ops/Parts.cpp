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
    sum =
        std::min(sum + (size > 0 ? std::min(size, dim + 1) : dim + 1), dim + 1);
  if (sum == dim && sizes.size() == wanted)
    return success();
  auto diag = n.error() << "cannot split dimension " << axis << " of size "
                        << dim << " into [";
  llvm::interleaveComma(sizes, diag);
  return diag << "] for " << wanted << " outputs";
}

FailureOr<ImportedValue> partOf(NodeContext &n, int64_t axis, int64_t start,
                                int64_t size) {
  if (const ConstantTensor *constant = n.constant(0))
    return constantValue(sliceConstant(*constant, axis, start, size));
  Value part = n.b.sliceAxis(n.value(0), axis, start, size);
  if (!part)
    return failure();
  return computedValue(part);
}

} // namespace pipewright::frontend
