//===- LayerNorm.cpp - Recognise layer normalization ----------------------===//
//
// (x - mean) / sqrt(variance + epsilon) * scale + bias over the last
// dimension, as exporters before opset 17 and the other frameworks spell it.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/clean/FuseComposites/Matching.h"

using namespace mlir;

namespace pipewright::nn {

namespace {

/// `x` of `x - reduce_mean(x)`, or null.
Value matchCentered(Value value) {
  auto sub = value.getDefiningOp<SubOp>();
  if (!sub)
    return Value();
  auto mean = sub.getRhs().getDefiningOp<ReduceMeanOp>();
  return mean && mean.getKeepDims() && isOverLastDim(mean) &&
                 mean.getX() == sub.getLhs()
             ? sub.getLhs()
             : Value();
}

/// Whether `value` is `variance(x) + epsilon`.
bool matchVariance(Value value, Value x, double &epsilon) {
  for (auto [variance, constant] : operandOrders<AddOp>(value)) {
    auto mean = variance.getDefiningOp<ReduceMeanOp>();
    std::optional<double> scalar = scalarOf(constant);
    if (!mean || !scalar || !mean.getKeepDims() || !isOverLastDim(mean))
      continue;
    Value centered;
    if (auto mul = mean.getX().getDefiningOp<MulOp>())
      centered = mul.getLhs() == mul.getRhs() ? mul.getLhs() : Value();
    else if (auto pow = mean.getX().getDefiningOp<PowOp>())
      centered = scalarOf(pow.getRhs()) == 2.0 ? pow.getLhs() : Value();
    if (!centered || matchCentered(centered) != x)
      continue;
    epsilon = *scalar;
    return true;
  }
  return false;
}

/// Whether `value` is `sqrt(variance(x) + epsilon)`.
bool matchDeviation(Value value, Value x, double &epsilon) {
  auto sqrt = value.getDefiningOp<SqrtOp>();
  return sqrt && matchVariance(sqrt.getX(), x, epsilon);
}

/// Whether `value` is `1 / sqrt(variance(x) + epsilon)`.
bool matchReciprocalDeviation(Value value, Value x, double &epsilon) {
  if (auto rsqrt = value.getDefiningOp<RsqrtOp>())
    return matchVariance(rsqrt.getX(), x, epsilon);
  if (auto reciprocal = value.getDefiningOp<ReciprocalOp>())
    return matchDeviation(reciprocal.getX(), x, epsilon);
  auto div = value.getDefiningOp<DivOp>();
  return div && scalarOf(div.getLhs()) == 1.0 &&
         matchDeviation(div.getRhs(), x, epsilon);
}

/// `x` of the normalized but not yet scaled value, or null.
Value matchNormalized(Value value, double &epsilon) {
  if (auto div = value.getDefiningOp<DivOp>()) {
    Value x = matchCentered(div.getLhs());
    return x && matchDeviation(div.getRhs(), x, epsilon) ? x : Value();
  }
  for (auto [centered, reciprocal] : operandOrders<MulOp>(value))
    if (Value x = matchCentered(centered))
      if (matchReciprocalDeviation(reciprocal, x, epsilon))
        return x;
  return Value();
}

/// Whether `value` is one row of `size` elements.
bool isRow(Value value, int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() == size && type.getRank() > 0 &&
         type.getShape().back() == size;
}

LogicalResult fuseLayerNorm(AddOp op, PatternRewriter &rewriter) {
  for (auto [scaled, bias] : operandOrders<AddOp>(op.getResult()))
    for (auto [normalized, scale] : operandOrders<MulOp>(scaled)) {
      double epsilon = 0;
      Value x = matchNormalized(normalized, epsilon);
      if (!x || x.getType() != op.getResult().getType())
        continue;
      int64_t size = cast<RankedTensorType>(x.getType()).getShape().back();
      if (!isRow(scale, size) || !isRow(bias, size))
        continue;
      auto norm = LayerNormOp::create(
          rewriter, op.getLoc(), x, asVector(rewriter, scale),
          asVector(rewriter, bias),
          rewriter.getF32FloatAttr(static_cast<float>(epsilon)));
      rewriter.replaceOp(op, norm.getY());
      return success();
    }
  return failure();
}

} // namespace

void populateLayerNormPatterns(RewritePatternSet &patterns) {
  patterns.add(fuseLayerNorm);
}

} // namespace pipewright::nn
