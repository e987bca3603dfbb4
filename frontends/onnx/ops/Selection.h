//===- Selection.h - Which elements are chosen -----------------*- C++ -*-===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_SELECTION_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_SELECTION_H

#include "frontends/onnx/NodeContext.h"

namespace pipewright::frontend {

/// The element of `places`, integers that broadcast to the shape of `x`, where
/// `x` is largest along an axis, which stays as 1; the first of equal ones.
mlir::Value placeOfLargest(NodeContext &n, mlir::Value x, int64_t axis,
                           mlir::Value places);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_SELECTION_H
