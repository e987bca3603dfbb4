//===- Softmax.cpp - Recognise softmax and its logarithm ------------------===//
//
// e^x / sum(e^x) over the last dimension, with or without the maximum taken
// off first, the logarithm of that, and zeros where that is NaN.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/clean/FuseComposites/Matching.h"

using namespace mlir;

namespace pipewright::nn {

namespace {

/// `x` of `x - reduce_max(x)`; softmax does that by itself.
Value withoutMaximum(Value value) {
  auto sub = value.getDefiningOp<SubOp>();
  if (!sub)
    return value;
  auto maximum = sub.getRhs().getDefiningOp<ReduceMaxOp>();
  return maximum && maximum.getKeepDims() && isOverLastDim(maximum) &&
                 maximum.getX() == sub.getLhs()
             ? sub.getLhs()
             : value;
}

/// Whether `value` is the sum of `e^x` along its rows.
bool isSumOf(Value value, Value exponential) {
  auto sum = value.getDefiningOp<ReduceSumOp>();
  return sum && sum.getKeepDims() && isOverLastDim(sum) &&
         sum.getX() == exponential;
}

LogicalResult fuseSoftmax(DivOp op, PatternRewriter &rewriter) {
  auto exponential = op.getLhs().getDefiningOp<ExpOp>();
  if (!exponential || !isSumOf(op.getRhs(), op.getLhs()))
    return failure();
  rewriter.replaceOpWithNewOp<SoftmaxOp>(op,
                                         withoutMaximum(exponential.getX()));
  return success();
}

/// ln softmax(x)
LogicalResult fuseLogOfSoftmax(LogOp op, PatternRewriter &rewriter) {
  auto softmax = op.getX().getDefiningOp<SoftmaxOp>();
  if (!softmax || softmax.getSafe())
    return failure();
  rewriter.replaceOpWithNewOp<LogSoftmaxOp>(op, softmax.getX());
  return success();
}

/// x - ln sum(e^x)
LogicalResult fuseLogSoftmax(SubOp op, PatternRewriter &rewriter) {
  auto log = op.getRhs().getDefiningOp<LogOp>();
  if (!log)
    return failure();
  auto sum = log.getX().getDefiningOp<ReduceSumOp>();
  auto exponential = sum ? sum.getX().getDefiningOp<ExpOp>() : ExpOp();
  if (!exponential || !isSumOf(log.getX(), exponential) ||
      exponential.getX() != op.getLhs())
    return failure();
  rewriter.replaceOpWithNewOp<LogSoftmaxOp>(op, withoutMaximum(op.getLhs()));
  return success();
}

/// Whether `condition` is that `value` is NaN (or, `negated`, that it is not):
/// what differs from itself.
bool isNaNTest(Value condition, Value value, bool negated) {
  if (auto negation = condition.getDefiningOp<LogicalNotOp>())
    return isNaNTest(negation.getX(), value, !negated);
  auto compare = condition.getDefiningOp<CompareOp>();
  return compare && compare.getLhs() == value && compare.getRhs() == value &&
         compare.getPredicate() ==
             (negated ? ComparePredicate::Eq : ComparePredicate::Ne);
}

/// where(isnan(softmax(x)), 0, softmax(x)): rows without a key are zeros. The
/// gradient is then 0 as well, not NaN.
LogicalResult fuseSafeSoftmax(WhereOp op, PatternRewriter &rewriter) {
  for (bool negated : {false, true}) {
    Value zero = negated ? op.getB() : op.getA();
    Value kept = negated ? op.getA() : op.getB();
    auto softmax = kept.getDefiningOp<SoftmaxOp>();
    if (!softmax || scalarOf(zero) != 0.0 ||
        kept.getType() != op.getResult().getType() ||
        !isNaNTest(op.getCond(), kept, negated))
      continue;
    rewriter.replaceOpWithNewOp<SoftmaxOp>(op, softmax.getX(),
                                           /*safe=*/true);
    return success();
  }
  return failure();
}

} // namespace

void populateSoftmaxPatterns(RewritePatternSet &patterns) {
  patterns.add(fuseSoftmax)
      .add(fuseLogOfSoftmax)
      .add(fuseLogSoftmax)
      .add(fuseSafeSoftmax);
}

} // namespace pipewright::nn
