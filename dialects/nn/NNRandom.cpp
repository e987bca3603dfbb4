//===- NNRandom.cpp - Random numbers by counter ---------------------------===//
//
// Dropout, its gradient and its absence in evaluation.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNOps.h"

using namespace mlir;
using namespace pipewright::nn;

LogicalResult DropoutOp::verify() {
  // (C1)
  double rate = getRate().convertToDouble();
  if (!(rate >= 0.0 && rate < 1.0))
    return emitOpError("expects a rate in [0, 1), but got ")
           << std::to_string(rate);
  return success();
}

OpFoldResult DropoutOp::fold(FoldAdaptor) {
  return getRate().isZero() ? getX() : OpFoldResult();
}

int64_t DropoutOp::getFlops() { return 2 * getX().getType().getNumElements(); }

LogicalResult DropoutOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                  SmallVectorImpl<Value> &operandGrads) {
  FailureOr<bool> flows = beginVjp(*this, resultGrads, operandGrads);
  if (failed(flows) || !*flows)
    return failure(failed(flows));
  operandGrads[0] =
      DropoutOp::create(builder, getLoc(), resultGrads[0], getRate(), getId());
  return success();
}

void DropoutOp::dropEffects() {
  // Its random numbers are counted, not consumed.
}

LogicalResult DropoutOp::buildInference(OpBuilder &builder,
                                        SmallVectorImpl<Value> &results) {
  results.push_back(getX());
  return success();
}
