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

FailureOr<Gradients> ReduceSumOp::buildGradients(GradientBuilder &g, Value dy) {
  RankedTensorType type = getX().getType();
  return Gradients{BroadcastToOp::create(g.builder(),
                                         tensorOf(dy).clone(type.getShape()),
                                         g.keepDims(dy, type, getAxes()))};
}

FailureOr<Gradients> ReduceMeanOp::buildGradients(GradientBuilder &g,
                                                  Value dy) {
  RankedTensorType type = getX().getType();
  double count = 1.0;
  for (int64_t axis : getAxes())
    count *= type.getDimSize(axis);
  // Divided while it is small.
  Value share = g.div(dy, g.scalar(count));
  return Gradients{BroadcastToOp::create(g.builder(),
                                         tensorOf(share).clone(type.getShape()),
                                         g.keepDims(share, type, getAxes()))};
}

FailureOr<Gradients> ReduceMaxOp::buildGradients(GradientBuilder &g, Value dy) {
  RankedTensorType type = getX().getType();
  Value largest = g.keepDims(getResult(), type, getAxes());
  dy = g.keepDims(dy, type, getAxes());
  Value mask = g.compare(getX(), largest, ComparePredicate::Eq);
  Value ones = CastOp::create(g.builder(),
                              f32TensorOf(getContext(), type.getShape()), mask);
  Value count = ReduceSumOp::create(g.builder(), ones, getAxes(),
                                    /*keep_dims=*/true);
  return Gradients{g.where(mask, g.div(dy, count), g.scalar(0.0))};
}
