//===- Softmax.cpp - Recognise softmax and its logarithm ------------------===//
//
// e^x / sum(e^x) over the last dimension, with or without the maximum taken
// off first, and the logarithm of that.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/FuseComposites/Matching.h"

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

struct FuseSoftmax : OpRewritePattern<DivOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DivOp op,
                                PatternRewriter &rewriter) const override {
    auto exponential = op.getLhs().getDefiningOp<ExpOp>();
    if (!exponential || !isSumOf(op.getRhs(), op.getLhs()))
      return failure();
    rewriter.replaceOpWithNewOp<SoftmaxOp>(op,
                                           withoutMaximum(exponential.getX()));
    return success();
  }
};

/// ln softmax(x)
struct FuseLogOfSoftmax : OpRewritePattern<LogOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LogOp op,
                                PatternRewriter &rewriter) const override {
    auto softmax = op.getX().getDefiningOp<SoftmaxOp>();
    if (!softmax)
      return failure();
    rewriter.replaceOpWithNewOp<LogSoftmaxOp>(op, softmax.getX());
    return success();
  }
};

/// x - ln sum(e^x)
struct FuseLogSoftmax : OpRewritePattern<SubOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SubOp op,
                                PatternRewriter &rewriter) const override {
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
};

} // namespace

void populateSoftmaxPatterns(RewritePatternSet &patterns) {
  patterns.add<FuseSoftmax, FuseLogOfSoftmax, FuseLogSoftmax>(
      patterns.getContext());
}

} // namespace pipewright::nn
