//===- Parts.h - A tensor cut along an axis --------------------*- C++ -*-===//
//
// What Slice, Split, sequences and loops share, which cut tensors up and put
// them together again.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_PARTS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_PARTS_H

#include "frontends/onnx/NodeContext.h"

namespace pipewright::frontend {

/// Elements start, start + step, ... of one axis of a constant.
ConstantTensor sliceConstant(const ConstantTensor &tensor, int64_t axis,
                             int64_t start, int64_t size, int64_t step = 1);

/// The sizes of `parts` parts of `size`; the last has what is left.
Shape evenParts(int64_t dim, int64_t size, int64_t parts);

/// Fails unless `sizes`, which may be anything, fill dimension `axis` of input
/// 0 and are as many as `wanted`.
llvm::LogicalResult checkParts(NodeContext &n, llvm::ArrayRef<int64_t> sizes,
                               int64_t axis, size_t wanted);

/// A tensor from `start` on along an axis.
llvm::FailureOr<ImportedValue> partOf(NodeContext &n,
                                      const ImportedValue &tensor, int64_t axis,
                                      int64_t start, int64_t size);

/// A tensor without a dimension of size 1, and with another one.
llvm::FailureOr<ImportedValue>
withoutAxis(NodeContext &n, const ImportedValue &tensor, int64_t axis);
llvm::FailureOr<ImportedValue>
withAxis(NodeContext &n, const ImportedValue &tensor, int64_t axis);

/// Tensors one behind the other along an axis; constant if all are. Fails
/// unless they fit together.
llvm::FailureOr<ImportedValue>
joined(NodeContext &n, llvm::ArrayRef<ImportedValue> tensors, int64_t axis);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_PARTS_H
