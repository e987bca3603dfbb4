//===- NNReduction.cpp - Reductions over dimensions -----------------------===//
//
// The gradient of a reduction is spread back over what was reduced.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"

using namespace mlir;
using namespace pipewright::nn;

LogicalResult ReduceSumOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                    SmallVectorImpl<Value> &operandGrads) {
  FailureOr<bool> flows = beginVjp(*this, resultGrads, operandGrads);
  if (failed(flows) || !*flows)
    return failure(failed(flows));
  GradientBuilder g(builder, getLoc());
  RankedTensorType type = getX().getType();
  operandGrads[0] = BroadcastToOp::create(
      g.builder(), tensorOf(resultGrads[0]).clone(type.getShape()),
      g.keepDims(resultGrads[0], type, getAxes()));
  return success();
}

LogicalResult ReduceMeanOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                     SmallVectorImpl<Value> &operandGrads) {
  FailureOr<bool> flows = beginVjp(*this, resultGrads, operandGrads);
  if (failed(flows) || !*flows)
    return failure(failed(flows));
  GradientBuilder g(builder, getLoc());
  RankedTensorType type = getX().getType();
  double count = 1.0;
  for (int64_t axis : getAxes())
    count *= type.getDimSize(axis);
  // Divided while it is small.
  Value share = g.div(resultGrads[0], g.scalar(count));
  operandGrads[0] =
      BroadcastToOp::create(g.builder(), tensorOf(share).clone(type.getShape()),
                            g.keepDims(share, type, getAxes()));
  return success();
}

LogicalResult ReduceMaxOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                    SmallVectorImpl<Value> &operandGrads) {
  FailureOr<bool> flows = beginVjp(*this, resultGrads, operandGrads);
  if (failed(flows) || !*flows)
    return failure(failed(flows));
  GradientBuilder g(builder, getLoc());
  RankedTensorType type = getX().getType();
  Value largest = g.keepDims(getResult(), type, getAxes());
  Value dy = g.keepDims(resultGrads[0], type, getAxes());
  Value mask = g.compare(getX(), largest, ComparePredicate::Eq);
  Value ones = CastOp::create(
      g.builder(), f32TensorOf(builder.getContext(), type.getShape()), mask);
  Value count = ReduceSumOp::create(g.builder(), ones, getAxes(),
                                    /*keep_dims=*/true);
  operandGrads[0] = g.where(mask, g.div(dy, count), g.scalar(0.0));
  return success();
}
