//===- Unary.h - What functions of one tensor share ------------*- C++ -*-===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_OPS_UNARY_H
#define PIPEWRIGHT_FRONTENDS_ONNX_OPS_UNARY_H

#include "frontends/onnx/NodeContext.h"

namespace pipewright::frontend {

/// Folds a function of floats.
template <float (*function)(float)>
llvm::LogicalResult foldUnary(NodeContext &n) {
  ConstantTensor result = *n.constant(0);
  if (result.kind() != ElementKind::Float)
    return n.error() << "expects a float operand";
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k)
    result.setFloat(k, function(result.floatAt(k)));
  return n.setResult(0, std::move(result));
}

/// Input 0 where it is of floats; null after an error.
mlir::Value floatOperand(NodeContext &n);

/// The whole number below x, or x where it is large enough to be one. No
/// gradient comes back: it is of integers.
mlir::Value floorOf(NodeContext &n, mlir::Value x);

/// The nearest whole number; halves go to the even neighbour. As floorOf, it
/// has no gradient.
mlir::Value roundToEven(NodeContext &n, mlir::Value x);

/// `x` up to a constant bound, the bound from there on: no gradient flows
/// where x is the bound. `beyond` is Le for a lower bound, Ge for an upper.
mlir::Value bounded(NodeContext &n, mlir::Value x, mlir::Value bound,
                    nn::ComparePredicate beyond);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_OPS_UNARY_H
