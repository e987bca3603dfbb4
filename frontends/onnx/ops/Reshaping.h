//===- Reshaping.h - Reshapes that follow the batch -------------*- C++ -*-===//
//
// For ops that give the same elements another shape.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_RESHAPING_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_RESHAPING_H

#include "frontends/onnx/NodeContext.h"

namespace pipewright::frontend {

/// Sets result 0 to input 0 under the shape that a Reshape's target says: -1 is
/// what is left, 0 a dimension of the input, or none if `allowZero`. The target
/// may be of the file's batch size.
llvm::LogicalResult setReshapedTo(NodeContext &n, Shape target, bool allowZero);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_RESHAPING_H
