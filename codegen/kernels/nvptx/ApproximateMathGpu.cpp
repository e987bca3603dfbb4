//===- ApproximateMathGpu.cpp - math functions of a GPU thread ------------===//
//
// exp, division and square root by the approximate instructions of the special
// function unit, with what it takes to come near f32's precision; the other
// functions by the formulas of the CPU. Which instructions an op becomes does
// not depend on what surrounds it.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Formula.h"
#include "codegen/kernels/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace pipewright::codegen {
#define GEN_PASS_DEF_KERNELAPPROXIMATEMATHGPU
#include "codegen/kernels/Passes.h.inc"

namespace {

Value instruction(OpBuilder &b, Location loc, StringRef name,
                  ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, operands.front().getType(),
                                       b.getStringAttr("llvm.nvvm." + name),
                                       operands)
      .getResult(0);
}

/// 2^(x log2 e), corrected by what rounding the exponent lost. Relative error
/// below 4e-7; results below the smallest normal number are zero.
struct ExpByInstruction : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    Formula f(rewriter, op);
    Value x = op.getOperand();
    Value high = f.constant(1.44269504088896341f);
    Value low = f.constant(1.925963033e-8f);
    Value t = f.mul(x, high);
    Value lost = f.fma(
        x, low, f.fma(x, high, arith::NegFOp::create(rewriter, f.loc, t)));
    Value correction =
        f.fma(lost, f.constant(0.693147180559945309f), f.constant(1.0f));
    // What lies far outside of the range, infinities and NaNs need no
    // correction and would spoil it.
    Value inside =
        f.less(math::AbsFOp::create(rewriter, f.loc, t), f.constant(1024.0f));
    Value power = instruction(rewriter, f.loc, "ex2.approx.ftz", t);
    rewriter.replaceOp(
        op, f.mul(power, f.select(inside, correction, f.constant(1.0f))));
    return success();
  }
};

/// Divides by the instruction that is off by at most two units in the last
/// place; denormals count as zero.
struct DivByInstruction : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    Value result;
    if (matchPattern(op.getLhs(), m_OneFloat()))
      result =
          instruction(rewriter, op.getLoc(), "rcp.approx.ftz.f", op.getRhs());
    else
      result =
          instruction(rewriter, op.getLoc(), "div.full.ftz", op->getOperands());
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct SqrtByInstruction : OpRewritePattern<math::SqrtOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::SqrtOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    rewriter.replaceOp(op, instruction(rewriter, op.getLoc(),
                                       "sqrt.approx.ftz.f", op.getOperand()));
    return success();
  }
};

/// e^(y ln |x|) with the signs of C's pow. The relative error grows with the
/// logarithm of the result: 1e-7 times |y ln x|.
struct PowByExp : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::PowFOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    Formula f(rewriter, op);
    Value x = op.getLhs(), y = op.getRhs();
    Value zero = f.constant(0.0f), one = f.constant(1.0f);
    Value size = math::ExpOp::create(
        rewriter, f.loc,
        f.mul(y,
              math::LogOp::create(rewriter, f.loc,
                                  math::AbsFOp::create(rewriter, f.loc, x))));
    auto isWhole = [&](Value value) {
      return f.equal(math::FloorOp::create(rewriter, f.loc, value), value);
    };
    Value odd = arith::AndIOp::create(
        rewriter, f.loc, isWhole(y),
        arith::XOrIOp::create(
            rewriter, f.loc, isWhole(f.mul(y, f.constant(0.5f))),
            arith::ConstantOp::create(rewriter, f.loc,
                                      rewriter.getBoolAttr(true))));
    Value negative =
        f.select(odd, arith::NegFOp::create(rewriter, f.loc, size), size);
    Value nan = f.constant(std::numeric_limits<float>::quiet_NaN());
    negative = f.select(isWhole(y), negative, nan);
    Value result = f.select(f.less(x, zero), negative, size);
    result = f.select(f.equal(x, one), one, result);
    rewriter.replaceOp(op, f.select(f.equal(y, zero), one, result));
    return success();
  }
};

struct ApproximateMathGpu
    : impl::KernelApproximateMathGpuBase<ApproximateMathGpu> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns
        .add<ExpByInstruction, DivByInstruction, SqrtByInstruction, PowByExp>(
            &getContext());
    populateFormulaPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace pipewright::codegen
