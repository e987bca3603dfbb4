//===- ApproximateMath.cpp - functions as vectorizable formulas -----------===//
//
// exp, log, expm1 and log1p after Cephes, erf and tanh as ratios of polynomials
// with the coefficients that Eigen uses. None of them branches or calls:
// comparisons become selects, and a select on x < low keeps a NaN where a
// minimum would lose it.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Formula.h"
#include "codegen/kernels/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <limits>

using namespace mlir;

namespace pipewright::codegen {
#define GEN_PASS_DEF_KERNELAPPROXIMATEMATH
#include "codegen/kernels/Passes.h.inc"

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// e^x = 2^n (1 + rest) with x = n ln 2 + r, |r| <= ln 2 / 2.
struct PowerOfE {
  PowerOfE(Formula &f, Value x) {
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    // These two ops must not be reassociated.
    Value magic = f.constant(12582912.0f);
    Value shifted = f.fma(x, f.constant(1.44269504088896341f), magic);
    n = f.sub(shifted, magic);
    Value r = f.fma(n, f.constant(-0.693359375f), x);
    r = f.fma(n, f.constant(2.12194440e-4f), r);
    Value p =
        f.polynomial(r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                         4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f});
    rest = f.fma(f.mul(r, r), p, r);
    half = f.fromBits(f.addInt(
        arith::ShLIOp::create(f.b, f.loc, f.bits(shifted), f.integer(23)),
        f.integer(126 << 23)));
  }

  Value n, rest;
  /// 2^(n-1): 2^128 itself is not a number.
  Value half;
};

static Value exp(Formula &f, ValueRange operands) {
  constexpr float kLowest = -86.6f;
  Value input = operands[0];
  PowerOfE power(f, f.clamp(input, kLowest, 89.0f));
  // Times 2^(n-1), then times 2.
  Value half = f.mul(f.add(power.rest, f.constant(1.0f)), power.half);
  Value result = f.mul(half, f.constant(2.0f));
  return f.select(f.less(input, f.constant(kLowest)), f.constant(0.0f), result);
}

/// 2^n rest + (2^n - 1), where nothing cancels; below -25 that is -1.
static Value expM1(Formula &f, ValueRange operands) {
  PowerOfE power(f, f.clamp(operands[0], -25.0f, 89.0f));
  Value halves =
      f.fma(power.rest, power.half, f.sub(power.half, f.constant(0.5f)));
  // Half of the smallest denormals is not a number.
  Value result = f.mul(halves, f.constant(2.0f));
  Value isRest = f.equal(power.n, f.constant(0.0f));
  return f.select(isRest, power.rest, result);
}

/// ln x = e ln 2 + ln m with m in [sqrt(1/2), sqrt(2)).
static Value log(Formula &f, ValueRange operands) {
  Value input = operands[0];
  // Denormals become normal numbers 2^24 times as large.
  Value isSmall = f.less(input, f.constant(std::numeric_limits<float>::min()));
  Value x = f.select(isSmall, f.mul(input, f.constant(16777216.0f)), input);
  Value bits = f.bits(x);
  Value e = arith::SIToFPOp::create(
      f.b, f.loc, f.type,
      f.addInt(arith::ShRUIOp::create(f.b, f.loc, bits, f.integer(23)),
               f.integer(-126)));
  e = f.select(isSmall, f.sub(e, f.constant(24.0f)), e);
  Value m = f.fromBits(arith::OrIOp::create(
      f.b, f.loc,
      arith::AndIOp::create(f.b, f.loc, bits, f.integer(0x007fffff)),
      f.integer(0x3f000000)));
  Value low = f.less(m, f.constant(0.707106781186547524f));
  e = f.select(low, f.sub(e, f.constant(1.0f)), e);
  m = f.sub(f.select(low, f.add(m, m), m), f.constant(1.0f));
  Value z = f.mul(m, m);
  Value p =
      f.polynomial(m, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f,
                       -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                       2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
  p = f.mul(f.mul(p, m), z);
  p = f.fma(e, f.constant(-2.12194440e-4f), p);
  p = f.fma(z, f.constant(-0.5f), p);
  Value result = f.fma(e, f.constant(0.693359375f), f.add(m, p));
  Value zero = f.constant(0.0f);
  result = f.select(f.equal(input, f.constant(kInfinity)), input, result);
  result = f.select(f.equal(input, zero), f.constant(-kInfinity), result);
  result =
      f.select(f.less(input, zero),
               f.constant(std::numeric_limits<float>::quiet_NaN()), result);
  // A NaN fails every comparison above; its bits make no sense as a number.
  Value ordered = f.equal(input, input);
  return f.select(ordered, result, input);
}

/// ln(1 + x) by the rounded sum s and what it has lost: ln s + lost / s.
static Value log1p(Formula &f, ValueRange operands) {
  Value x = operands[0], one = f.constant(1.0f);
  Value sum = f.add(x, one);
  Value log = math::LogOp::create(f.b, f.loc, sum);
  // The sum of 1 and something large has lost the 1.
  Value isLarge = f.less(one, x);
  Value lost =
      f.sub(f.select(isLarge, one, x), f.sub(sum, f.select(isLarge, x, one)));
  Value result = f.add(log, f.div(lost, sum));
  // 0 / 0 and infinity - infinity; division may take denormals for 0.
  result = f.select(f.equal(sum, f.constant(0.0f)), log, result);
  result = f.select(f.equal(sum, f.constant(kInfinity)), sum, result);
  return f.select(f.equal(sum, one), x, result);
}

/// A function from -1 to 1 that is `ratio` up to `limit` and exactly 1 behind
/// it: what multiplies 1 - y by something large, as gelu does, must get 0.
static Value saturate(Formula &f, Value x, float limit, Value ratio) {
  Value one = f.constant(1.0f), minusOne = f.constant(-1.0f);
  Value y = f.clamp(ratio, -1.0f, 1.0f);
  y = f.select(f.less(f.constant(limit), x), one, y);
  return f.select(f.less(x, f.constant(-limit)), minusOne, y);
}

static Value erf(Formula &f, ValueRange operands) {
  constexpr float kLimit = 4.0f;
  Value x = f.clamp(operands[0], -kLimit, kLimit);
  Value x2 = f.mul(x, x);
  Value p = f.polynomial(x2, {-2.72614225801306e-10f, 2.77068142495902e-08f,
                              -2.10102402082508e-06f, -5.69250639462346e-05f,
                              -7.34990630326855e-04f, -2.95459980854025e-03f,
                              -1.60960333262415e-02f});
  Value q = f.polynomial(x2, {-1.45660718464996e-05f, -2.13374055278905e-04f,
                              -1.68282697438203e-03f, -7.37332916720468e-03f,
                              -1.42647390514189e-02f});
  return saturate(f, operands[0], kLimit, f.div(f.mul(x, p), q));
}

static Value tanh(Formula &f, ValueRange operands) {
  constexpr float kLimit = 9.0f;
  Value x = f.clamp(operands[0], -kLimit, kLimit);
  Value x2 = f.mul(x, x);
  Value p = f.polynomial(x2, {-2.76076847742355e-16f, 2.00018790482477e-13f,
                              -8.60467152213735e-11f, 5.12229709037114e-08f,
                              1.48572235717979e-05f, 6.37261928875436e-04f,
                              4.89352455891786e-03f});
  Value q = f.polynomial(x2, {1.19825839466702e-06f, 1.18534705686654e-04f,
                              2.26843463243900e-03f, 4.89352518554385e-03f});
  return saturate(f, operands[0], kLimit, f.div(f.mul(x, p), q));
}

struct ApproximateMath : impl::KernelApproximateMathBase<ApproximateMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateExpPattern(patterns);
    populateFormulaPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void populateExpPattern(RewritePatternSet &patterns) {
  patterns.add<ByFormula<math::ExpOp, exp>>(patterns.getContext());
}

void populateFormulaPatterns(RewritePatternSet &patterns) {
  patterns.add<ByFormula<math::ExpM1Op, expM1>, ByFormula<math::LogOp, log>,
               ByFormula<math::Log1pOp, log1p>, ByFormula<math::ErfOp, erf>,
               ByFormula<math::TanhOp, tanh>>(patterns.getContext());
}

} // namespace pipewright::codegen
