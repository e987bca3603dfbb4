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

Value instruction(Formula &f, StringRef name, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(f.b, f.loc, f.type,
                                       f.b.getStringAttr("llvm.nvvm." + name),
                                       operands)
      .getResult(0);
}

/// 2^(x log2 e), corrected by what rounding the exponent lost. Relative error
/// below 4e-7; results below the smallest normal number are zero.
static Value exp(Formula &f, ValueRange operands) {
  Value x = operands[0];
  Value high = f.constant(1.44269504088896341f);
  Value low = f.constant(1.925963033e-8f);
  Value t = f.mul(x, high);
  Value lost =
      f.fma(x, low, f.fma(x, high, arith::NegFOp::create(f.b, f.loc, t)));
  Value correction =
      f.fma(lost, f.constant(0.693147180559945309f), f.constant(1.0f));
  // What lies far outside of the range, infinities and NaNs need no
  // correction and would spoil it.
  Value inside =
      f.less(math::AbsFOp::create(f.b, f.loc, t), f.constant(1024.0f));
  Value power = instruction(f, "ex2.approx.ftz", t);
  return f.mul(power, f.select(inside, correction, f.constant(1.0f)));
}

/// The same without the correction, where the op asks for no more: a relative
/// error of 6e-8 times |x|.
struct ExpAfn : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!isF32(op) ||
        !bitEnumContainsAny(op.getFastmath(), arith::FastMathFlags::afn))
      return failure();
    Formula f(rewriter, op);
    Value t = f.mul(op.getOperand(), f.constant(1.44269504088896341f));
    rewriter.replaceOp(op, instruction(f, "ex2.approx.ftz", t));
    return success();
  }
};

/// Divides by the instruction that is off by at most two units in the last
/// place; denormals count as zero.
static Value divide(Formula &f, ValueRange operands) {
  if (matchPattern(operands[0], m_OneFloat()))
    return instruction(f, "rcp.approx.ftz.f", operands[1]);
  return instruction(f, "div.full.ftz", operands);
}

static Value sqrt(Formula &f, ValueRange operands) {
  return instruction(f, "sqrt.approx.ftz.f", operands[0]);
}

/// e^(y ln |x|) with the signs of C's pow. The relative error grows with the
/// logarithm of the result: 1e-7 times |y ln x|.
static Value pow(Formula &f, ValueRange operands) {
  Value x = operands[0], y = operands[1];
  Value zero = f.constant(0.0f), one = f.constant(1.0f);
  Value size = math::ExpOp::create(
      f.b, f.loc,
      f.mul(y, math::LogOp::create(f.b, f.loc,
                                   math::AbsFOp::create(f.b, f.loc, x))));
  auto isWhole = [&](Value value) {
    return f.equal(math::FloorOp::create(f.b, f.loc, value), value);
  };
  Value odd = arith::AndIOp::create(
      f.b, f.loc, isWhole(y),
      arith::XOrIOp::create(
          f.b, f.loc, isWhole(f.mul(y, f.constant(0.5f))),
          arith::ConstantOp::create(f.b, f.loc, f.b.getBoolAttr(true))));
  Value negative = f.select(odd, arith::NegFOp::create(f.b, f.loc, size), size);
  Value nan = f.constant(std::numeric_limits<float>::quiet_NaN());
  negative = f.select(isWhole(y), negative, nan);
  Value result = f.select(f.less(x, zero), negative, size);
  result = f.select(f.equal(x, one), one, result);
  return f.select(f.equal(y, zero), one, result);
}

struct ApproximateMathGpu
    : impl::KernelApproximateMathGpuBase<ApproximateMathGpu> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ByFormula<math::ExpOp, exp>, ByFormula<arith::DivFOp, divide>,
                 ByFormula<math::SqrtOp, sqrt>, ByFormula<math::PowFOp, pow>>(
        &getContext());
    patterns.add<ExpAfn>(&getContext(), /*benefit=*/2);
    populateFormulaPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace pipewright::codegen
