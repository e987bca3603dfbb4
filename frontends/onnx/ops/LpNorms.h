//===- LpNorms.h - Roots of sums of powers ----------------------*- C++ -*-===//
//
// What norms of a tensor's parts share, whatever the parts are.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_LPNORMS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_LPNORMS_H

#include "frontends/onnx/NodeContext.h"

namespace pipewright::frontend {

/// sqrt(x) with the gradient 0 where x is 0, as PyTorch's norms have it.
mlir::Value rootOrZero(NodeContext &n, mlir::Value x);

/// |x|^p
mlir::Value absolutePower(NodeContext &n, mlir::Value x, int64_t p);

/// x^(1/p) of an x that is not negative, with the gradient 0 where it is 0,
/// unless p is 1.
mlir::Value rootOf(NodeContext &n, mlir::Value x, int64_t p);

/// The node's `p`, 2 by default; fails unless it is 1 to 64.
llvm::FailureOr<int64_t> readPower(NodeContext &n);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_LPNORMS_H
