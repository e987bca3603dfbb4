//===- NNRandom.cpp - Random numbers by counter ---------------------------===//
//
// Dropout, its call, its gradient and its absence in evaluation.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNOps.h"
#include "runtime/calls/Dropout.h"

using namespace mlir;
using namespace pipewright;
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

LibraryCall DropoutOp::getCall(StringRef) {
  runtime::DropoutShape shape = {.elements = getX().getType().getNumElements(),
                                 .rate = getRate().convertToFloat(),
                                 .id = static_cast<int64_t>(getId()),
                                 .type = elementTypeOf(getX())};
  return {.function = PIPEWRIGHT_CALL(dropout),
          .shape = fieldsOf(shape),
          .takesMicroBatch = true,
          .buffers = {getX(), getResult()},
          .work = CallWork::Random};
}

FailureOr<Gradients> DropoutOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{DropoutOp::create(g.builder(), dy, getRate(), getId())};
}

void DropoutOp::dropEffects() {
  // Its random numbers are counted, not consumed.
}

LogicalResult DropoutOp::buildInference(OpBuilder &builder,
                                        SmallVectorImpl<Value> &results) {
  results.push_back(getX());
  return success();
}
