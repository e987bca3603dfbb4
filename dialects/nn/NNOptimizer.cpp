//===- NNOptimizer.cpp - Optimizer updates --------------------------------===//
//
// What inference cannot say about updates: attributes and buffers that belong
// together.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNOps.h"

using namespace mlir;
using namespace pipewright::nn;

/// Momentum and its buffer come together.
template <typename OpTy>
static LogicalResult verifyMomentum(OpTy op) {
  // (C3) is said by inference: there are as many results as updated buffers.
  // (C4)
  if (!op.getMomentumBuffer() && !op.getMomentum().isZero())
    return op.emitOpError("expects a momentum buffer for momentum ")
           << op.getMomentum().convertToDouble() << ", but got none";
  return success();
}

LogicalResult SgdOp::verify() {
  // (C4)
  if (getNesterov() && !getMomentumBuffer())
    return emitOpError("expects a momentum buffer for nesterov, but got none");
  return verifyMomentum(*this);
}

LogicalResult RmspropOp::verify() { return verifyMomentum(*this); }
