//===- Broadcasting.cpp - NumPy broadcasting of constants -----------------===//
//
// Index arithmetic for folding elementwise ops at import.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Broadcasting.h"

#include "frontends/onnx/NodeContext.h"

namespace pipewright::frontend {

std::optional<Shape> broadcastShape(llvm::ArrayRef<int64_t> a,
                                    llvm::ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Shape result(a);
  size_t offset = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t &dim = result[offset + i];
    if (dim != b[i] && dim != 1 && b[i] != 1)
      return std::nullopt;
    if (dim == 1)
      dim = b[i];
  }
  return result;
}

Shape stridesOf(llvm::ArrayRef<int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (int64_t i = int64_t(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

ConstantTensor broadcastTensor(const ConstantTensor &tensor,
                               llvm::ArrayRef<int64_t> shape) {
  if (tensor.shape() == shape)
    return tensor;
  Shape resultStrides = stridesOf(shape);
  Shape sourceStrides = stridesOf(tensor.shape());
  size_t offset = shape.size() - tensor.rank();
  return tensor.remapped(shape, [&](int64_t index) {
    int64_t source = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t coordinate = index / resultStrides[d];
      index %= resultStrides[d];
      if (d >= offset && tensor.shape()[d - offset] != 1)
        source += coordinate * sourceStrides[d - offset];
    }
    return source;
  });
}

llvm::FailureOr<llvm::SmallVector<ConstantTensor>>
broadcastConstants(NodeContext &n) {
  Shape shape;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    std::optional<Shape> joined = broadcastShape(shape, n.shape(i));
    if (!joined)
      return n.error() << "the shapes of the operands do not broadcast";
    shape = *joined;
  }
  bool isUniform = true;
  for (unsigned i = 0; i < n.numInputs(); ++i)
    isUniform &= n.constant(i)->isSplat();
  if (!isUniform && llvm::failed(n.expectComputable(shape)))
    return llvm::failure();
  llvm::SmallVector<ConstantTensor> result;
  for (unsigned i = 0; i < n.numInputs(); ++i)
    result.push_back(broadcastTensor(*n.constant(i), shape));
  return result;
}

llvm::LogicalResult checkSameKind(NodeContext &n, unsigned a, unsigned b) {
  if (n.input(a).element != n.input(b).element)
    return n.error() << "expects operands of one element type";
  return llvm::success();
}

std::optional<ConstantTensor> commonSlice(const ConstantTensor &tensor,
                                          int64_t axis) {
  Shape shape(tensor.shape());
  int64_t size = std::exchange(shape[axis], 1);
  int64_t inner = elementCount(llvm::ArrayRef(shape).drop_front(axis));
  ConstantTensor slice = tensor.remapped(
      shape, [&](int64_t i) { return i / inner * inner * size + i % inner; });
  if (broadcastTensor(slice, tensor.shape()).rawBytes() != tensor.rawBytes())
    return std::nullopt;
  return slice;
}

} // namespace pipewright::frontend
