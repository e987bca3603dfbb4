//===- Broadcasting.h - NumPy broadcasting of constants --------*- C++ -*-===//
//
// Index arithmetic for folding elementwise ops at import.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_BROADCASTING_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_BROADCASTING_H

#include "frontends/common/ConstantTensor.h"

#include <optional>

namespace pipewright::frontend {

class NodeContext;

/// The shape that both broadcast to; none if they do not.
std::optional<Shape> broadcastShape(llvm::ArrayRef<int64_t> a,
                                    llvm::ArrayRef<int64_t> b);

/// `tensor` repeated up to `shape`, which its own shape broadcasts to.
ConstantTensor broadcastTensor(const ConstantTensor &tensor,
                               llvm::ArrayRef<int64_t> shape);

/// All inputs of a node, which are constants, in one shape; fails if they do
/// not broadcast.
llvm::FailureOr<llvm::SmallVector<ConstantTensor>>
broadcastConstants(NodeContext &n);

/// Fails unless two inputs of a node have one element type.
llvm::LogicalResult checkSameKind(NodeContext &n, unsigned a, unsigned b);

/// Row-major strides of a shape.
Shape stridesOf(llvm::ArrayRef<int64_t> shape);

/// One slice along `axis` of a tensor that has the same one all along it; none
/// if they differ.
std::optional<ConstantTensor> commonSlice(const ConstantTensor &tensor,
                                          int64_t axis);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_BROADCASTING_H
