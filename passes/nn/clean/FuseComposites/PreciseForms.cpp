//===- PreciseForms.cpp - Recognise what loses digits when spelt out ------===//
//
// What exporters spell out in ops whose value or gradient is lost where the
// framework's own is exact: ln(1 + x), e^x - 1, 1 - erf(x), ln(1 + e^x), the
// logarithm of a sigmoid (0 from x = -89 on), the root of a variance (0 divided
// by 0 in the gradient of rows of equal elements), and a root that is bounded
// below.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/clean/FuseComposites/Matching.h"

using namespace mlir;

namespace pipewright::nn {

namespace {

/// `x` of `1 - sigmoid(x)`, or null.
Value matchComplement(Value value) {
  auto sub = value.getDefiningOp<SubOp>();
  if (!sub || scalarOf(sub.getLhs()) != 1.0)
    return Value();
  auto sigmoid = sub.getRhs().getDefiningOp<SigmoidOp>();
  return sigmoid ? sigmoid.getX() : Value();
}

/// `x` of `x + 1`, or null.
Value matchOnePlus(Value value) {
  for (auto [one, x] : operandOrders<AddOp>(value))
    if (scalarOf(one) == 1.0 && x.getType() == value.getType())
      return x;
  return Value();
}

LogicalResult fuseLog(LogOp op, PatternRewriter &rewriter) {
  Location loc = op.getLoc();
  if (auto sigmoid = op.getX().getDefiningOp<SigmoidOp>()) {
    Value negated = NegOp::create(rewriter, loc, sigmoid.getX());
    rewriter.replaceOpWithNewOp<NegOp>(
        op, SoftplusOp::create(rewriter, loc, negated));
    return success();
  }
  if (Value x = matchComplement(op.getX());
      x && x.getType() == op.getResult().getType()) {
    rewriter.replaceOpWithNewOp<NegOp>(op,
                                       SoftplusOp::create(rewriter, loc, x));
    return success();
  }
  Value x = matchOnePlus(op.getX());
  if (!x)
    return failure();
  if (auto exponential = x.getDefiningOp<ExpOp>())
    rewriter.replaceOpWithNewOp<SoftplusOp>(op, exponential.getX());
  else
    rewriter.replaceOpWithNewOp<Log1pOp>(op, x);
  return success();
}

/// 1 - erf(x)
LogicalResult fuseErfc(SubOp op, PatternRewriter &rewriter) {
  auto erf = op.getRhs().getDefiningOp<ErfOp>();
  if (!erf || scalarOf(op.getLhs()) != 1.0 ||
      erf.getType() != op.getResult().getType())
    return failure();
  rewriter.replaceOpWithNewOp<ErfcOp>(op, erf.getX());
  return success();
}

/// e^x - 1
LogicalResult fuseExpm1(SubOp op, PatternRewriter &rewriter) {
  auto exponential = op.getLhs().getDefiningOp<ExpOp>();
  if (!exponential || scalarOf(op.getRhs()) != 1.0 ||
      exponential.getType() != op.getResult().getType())
    return failure();
  rewriter.replaceOpWithNewOp<Expm1Op>(op, exponential.getX());
  return success();
}

/// Whether `value` is a multiple of the mean of (x - mean(x))^2.
bool isVariance(Value value) {
  double factor = 1;
  auto mean = fullyUnscaled(value, factor).getDefiningOp<ReduceMeanOp>();
  auto square = mean ? mean.getX().getDefiningOp<MulOp>() : MulOp();
  if (!square || square.getLhs() != square.getRhs())
    return false;
  auto centered = square.getLhs().getDefiningOp<SubOp>();
  auto inner = centered ? centered.getRhs().getDefiningOp<ReduceMeanOp>()
                        : ReduceMeanOp();
  return inner && inner.getX() == centered.getLhs() && inner.getKeepDims() &&
         inner.getAxes() == mean.getAxes();
}

/// A standard deviation of 0 has the gradient 0.
LogicalResult makeDeviationSafe(SqrtOp op, PatternRewriter &rewriter) {
  if (!isVariance(op.getX()))
    return failure();
  Location loc = op.getLoc();
  Value zero = createScalar(rewriter, loc, 0.0);
  Value isZero =
      CompareOp::create(rewriter, loc, op.getX(), zero, ComparePredicate::Eq);
  Value safe = WhereOp::create(rewriter, loc, isZero,
                               createScalar(rewriter, loc, 1.0), op.getX());
  Value root = SqrtOp::create(rewriter, loc, safe);
  rewriter.replaceOpWithNewOp<WhereOp>(op, isZero, zero, root);
  return success();
}

/// max(sqrt(x), bound) as sqrt(max(x, bound^2)): no root of 0 is
/// differentiated.
LogicalResult boundBelowRoot(MaximumOp op, PatternRewriter &rewriter) {
  for (auto [value, constant] : operandOrders<MaximumOp>(op.getResult())) {
    auto root = value.getDefiningOp<SqrtOp>();
    std::optional<double> bound = scalarOf(constant);
    // The square must be a normal number.
    if (!root || !bound || *bound < 1e-18 || *bound > 1e18 ||
        root.getType() != op.getResult().getType())
      continue;
    Location loc = op.getLoc();
    Value square = createScalar(rewriter, loc, *bound * *bound);
    rewriter.replaceOpWithNewOp<SqrtOp>(
        op, MaximumOp::create(rewriter, loc, root.getX(), square));
    return success();
  }
  return failure();
}

} // namespace

void populatePreciseFormPatterns(RewritePatternSet &patterns) {
  patterns.add(fuseLog)
      .add(fuseErfc)
      .add(fuseExpm1)
      .add(makeDeviationSafe)
      .add(boundBelowRoot);
}

} // namespace pipewright::nn
