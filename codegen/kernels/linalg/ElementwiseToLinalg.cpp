//===- ElementwiseToLinalg.cpp - pointwise nn ops in linalg ---------------===//

#include "codegen/kernels/linalg/LinalgBuilder.h"

#include "dialects/nn/NNFloatFormat.h"
#include "dialects/nn/NNOps.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace pipewright::nn {

static constexpr double kSqrtHalf = 0.70710678118654752440;
static constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
static constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;
static constexpr double kGeluCubic = 0.044715;

//===----------------------------------------------------------------------===//
// gelu
//===----------------------------------------------------------------------===//

/// The tanh form's tanh(sqrt(2/pi) (x + 0.044715 x^3)).
static Value geluTanh(Scalars &s, Value x) {
  Value x2 = s.mul(x, x);
  Value inner =
      s.mul(s.mul(s.constant(kSqrtTwoOverPi), x),
            s.add(s.mul(s.constant(kGeluCubic), x2), s.constant(1.0)));
  return s.tanh(inner);
}

static Value gelu(Scalars &s, Value x, GeluApproximation approximation) {
  Value t = approximation == GeluApproximation::Tanh
                ? geluTanh(s, x)
                : s.erf(s.mul(x, s.constant(kSqrtHalf)));
  return s.mul(s.mul(x, s.constant(0.5)), s.add(t, s.constant(1.0)));
}

static Value geluDerivative(Scalars &s, Value x,
                            GeluApproximation approximation) {
  Value one = s.constant(1.0), half = s.constant(0.5);
  Value x2 = s.mul(x, x);
  if (approximation == GeluApproximation::Tanh) {
    Value t = geluTanh(s, x);
    Value slope = s.mul(s.constant(kSqrtTwoOverPi),
                        s.add(s.mul(s.constant(3.0 * kGeluCubic), x2), one));
    Value tail = s.mul(s.mul(s.mul(half, x), s.sub(one, s.mul(t, t))), slope);
    return s.add(s.mul(half, s.add(one, t)), tail);
  }
  Value cdf = s.mul(half, s.add(one, s.erf(s.mul(x, s.constant(kSqrtHalf)))));
  Value density =
      s.mul(s.constant(kInverseSqrtTwoPi), s.exp(s.mul(x2, s.constant(-0.5))));
  return s.add(cdf, s.mul(x, density));
}

//===----------------------------------------------------------------------===//
// erfc
//===----------------------------------------------------------------------===//

/// t e^(-x^2 + p(t)) with t = 1 / (1 + |x| / 2), for x >= 0; 2 less that
/// below. The polynomial is that of Numerical Recipes (Press et al., 2nd ed.,
/// section 6.2), whose relative error is below 1.2e-7; rounding x^2 adds x^2
/// times 6e-8.
static Value erfc(Scalars &s, Value x) {
  static constexpr double coefficients[] = {
      0.17087277,  -0.82215223, 1.48851587, -1.13520398, 0.27886807,
      -0.18628806, 0.09678418,  0.37409196, 1.00002368,  -1.26551223};
  Value one = s.constant(1.0);
  Value t = s.div(one, s.add(one, s.mul(s.abs(x), s.constant(0.5))));
  Value p = s.constant(coefficients[0]);
  for (double coefficient : llvm::drop_begin(coefficients))
    p = s.add(s.mul(p, t), s.constant(coefficient));
  Value tail = s.mul(t, s.exp(s.sub(p, s.mul(x, x))));
  Value isNegative =
      s.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, s.constant(0.0));
  return s.select(isNegative, s.sub(s.constant(2.0), tail), tail);
}

//===----------------------------------------------------------------------===//
// sin and cos
//===----------------------------------------------------------------------===//

/// The nearest whole number, to even, of |x| < 2^22. No op may reassociate.
static Value nearest(Scalars &s, Value x) {
  Value magic = s.constant(12582912.0);
  return s.sub(s.add(x, magic), magic);
}

/// sin(x + quarters * pi / 2): x less the nearest multiple n of pi / 2, which
/// is taken off in three parts (Cody and Waite, Software Manual for the
/// Elementary Functions, 1980), and the polynomials of Cephes' sinf and cosf,
/// of which quarter n + quarters chooses one and a sign.
static Value sine(Scalars &s, Value x, double quarters) {
  // Beyond 2^22 quarters floats have no digits behind the point to speak of.
  Value n = nearest(s, s.mul(x, s.constant(0.63661977236758134308)));
  Value r = x;
  for (double part :
       {-1.5707963705062866, 4.371139000186241e-8, 1.7151245100059e-15})
    r = s.make<math::FmaOp>(n, s.constant(part), r);
  // A huge x leaves anything; NaN and infinity leave NaN.
  r = s.min(s.make<arith::MaximumFOp>(r, s.constant(-0.8)), s.constant(0.8));
  auto polynomial = [&](ArrayRef<double> coefficients, Value at) {
    Value sum = s.constant(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = s.make<math::FmaOp>(sum, at, s.constant(coefficient));
    return sum;
  };
  Value square = s.mul(r, r);
  Value sin = s.make<math::FmaOp>(
      s.mul(square, r),
      polynomial({-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}, square),
      r);
  Value cos = polynomial({2.443315711809948e-5, -1.388731625493765e-3,
                          4.166664568298827e-2, -0.5, 1.0},
                         square);
  // n + quarters less the multiple of 4 below it: 0, 1, 2 or 3.
  Value all = s.add(n, s.constant(quarters));
  Value fours =
      nearest(s, s.sub(s.mul(all, s.constant(0.25)), s.constant(0.375)));
  Value quarter = s.sub(all, s.mul(fours, s.constant(4.0)));
  auto is = [&](arith::CmpFPredicate predicate, double number) {
    return s.make<arith::CmpFOp>(predicate, quarter, s.constant(number));
  };
  Value isOdd = s.make<arith::OrIOp>(is(arith::CmpFPredicate::OEQ, 1.0),
                                     is(arith::CmpFPredicate::OEQ, 3.0));
  Value result = s.select(isOdd, cos, sin);
  return s.select(is(arith::CmpFPredicate::OGE, 2.0), s.neg(result), result);
}

//===----------------------------------------------------------------------===//
// atan
//===----------------------------------------------------------------------===//

/// The polynomial of Cephes' atanf for |x| up to tan(pi / 8), to which larger
/// ones are brought by a turn of pi / 4 or pi / 2.
static Value arcTangent(Scalars &s, Value x) {
  Value size = s.abs(x), one = s.constant(1.0);
  auto isAbove = [&](double edge) {
    return s.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, size,
                                 s.constant(edge));
  };
  Value isFar = isAbove(2.414213562373095),
        isMiddle = isAbove(0.4142135623730950);
  auto choose = [&](Value far, Value middle, Value near) {
    return s.select(isFar, far, s.select(isMiddle, middle, near));
  };
  Value r = s.div(choose(s.constant(-1.0), s.sub(size, one), size),
                  choose(size, s.add(size, one), one));
  Value turn = choose(s.constant(1.57079632679489662),
                      s.constant(0.78539816339744831), s.constant(0.0));
  Value square = s.mul(r, r), sum = s.constant(8.05374449538e-2);
  for (double coefficient :
       {-1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1})
    sum = s.make<math::FmaOp>(sum, square, s.constant(coefficient));
  Value result = s.add(turn, s.make<math::FmaOp>(s.mul(sum, square), r, r));
  Value isNegative =
      s.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, s.constant(0.0));
  return s.select(isNegative, s.neg(result), result);
}

//===----------------------------------------------------------------------===//
// Scalars of both kinds
//===----------------------------------------------------------------------===//

static Value compare(Scalars &s, Value x, Value y, ComparePredicate predicate) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  auto by = [&](F ofFloats, I ofIntegers, I ofTruths) {
    if (Scalars::isFloat(x))
      return s.make<arith::CmpFOp>(ofFloats, x, y);
    // A truth value is 1 when it is true, not -1.
    bool isTruth = x.getType().isInteger(1);
    return s.make<arith::CmpIOp>(isTruth ? ofTruths : ofIntegers, x, y);
  };
  switch (predicate) {
  case ComparePredicate::Eq:
    return by(F::OEQ, I::eq, I::eq);
  case ComparePredicate::Ne:
    return by(F::UNE, I::ne, I::ne);
  case ComparePredicate::Lt:
    return by(F::OLT, I::slt, I::ult);
  case ComparePredicate::Le:
    return by(F::OLE, I::sle, I::ule);
  case ComparePredicate::Gt:
    return by(F::OGT, I::sgt, I::ugt);
  case ComparePredicate::Ge:
    return by(F::OGE, I::sge, I::uge);
  }
  llvm_unreachable("all predicates are listed");
}

static Value cast(Scalars &s, Value x, Type to) {
  Type from = x.getType();
  // Stored as bf16, computed as f32.
  if (to.isBF16())
    to = s.b.getF32Type();
  if (from == to)
    return x;
  if (to.isInteger(1))
    return compare(s, x, s.zero(from), ComparePredicate::Ne);
  bool truth = from.isInteger(1);
  if (isa<FloatType>(from))
    return s.make<arith::FPToSIOp>(to, x);
  if (isa<FloatType>(to))
    return truth ? s.make<arith::UIToFPOp>(to, x)
                 : s.make<arith::SIToFPOp>(to, x);
  if (from.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth())
    return s.make<arith::TruncIOp>(to, x);
  return truth ? s.make<arith::ExtUIOp>(to, x) : s.make<arith::ExtSIOp>(to, x);
}

/// x^p for the exponents that models use; the general case is a library call.
static Value power(Scalars &s, Value x, Value y,
                   std::optional<double> exponent) {
  if (exponent) {
    double size = std::fabs(*exponent);
    Value result;
    if (size == 0.5)
      result = s.sqrt(x);
    else if (size == 1.0)
      result = x;
    else if (size == 2.0)
      result = s.mul(x, x);
    else if (size == 3.0)
      result = s.mul(s.mul(x, x), x);
    else if (size == 4.0)
      result = s.mul(s.mul(x, x), s.mul(x, x));
    if (result)
      return *exponent < 0 ? s.div(s.constant(1.0), result) : result;
  }
  return s.make<math::PowFOp>(x, y);
}

//===----------------------------------------------------------------------===//
// Floats of 8 bits
//===----------------------------------------------------------------------===//

/// |x| of a format with p digits lies between multiples of 2^(1 - p) times the
/// power of two below it, or times the least normal number. To the nearest of
/// these it is rounded by adding a number so large that f32 has no others, and
/// taking it off again. No op may reassociate.
static Value fakeQuantize(Scalars &s, Value x, FloatFormat format,
                          bool saturates) {
  const llvm::fltSemantics &semantics = semanticsOf(format);
  const double largest = largestOf(format);
  const double least =
      std::ldexp(1.0, llvm::APFloat::semanticsMinExponent(semantics));
  const int dropped = 24 - int(llvm::APFloat::semanticsPrecision(semantics));
  Type i32 = s.b.getI32Type(), f32 = s.b.getF32Type();
  auto integer = [&](int32_t value) {
    return s.make<arith::ConstantOp>(s.b.getI32IntegerAttr(value));
  };
  // What is larger still would leave the range of f32. NaN stays NaN.
  Value size = s.min(s.abs(x), s.constant(2 * largest));
  Value exponent = s.make<arith::AndIOp>(s.make<arith::BitcastOp>(i32, size),
                                         integer(0x7f800000));
  Value power =
      s.max(s.make<arith::BitcastOp>(f32, exponent), s.constant(least));
  Value magic = s.mul(power, s.constant(std::ldexp(1.0, dropped)));
  Value rounded = s.sub(s.add(size, magic), magic);
  bool hasInfinity = llvm::APFloat::semanticsHasInf(semantics);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double beyond = saturates     ? largest
                  : hasInfinity ? infinity
                                : std::numeric_limits<double>::quiet_NaN();
  Value isBeyond = s.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, rounded,
                                         s.constant(largest));
  rounded = s.select(isBeyond, s.constant(beyond), rounded);
  Value isNegative = s.make<arith::CmpIOp>(
      arith::CmpIPredicate::slt, s.make<arith::BitcastOp>(i32, x), integer(0));
  Value result = s.select(isNegative, s.neg(rounded), rounded);
  // This makes 0 of -0.
  bool hasNegativeZero = llvm::APFloat::getZero(semantics, true).isNegative();
  return hasNegativeZero ? result : s.add(result, s.constant(0.0));
}

//===----------------------------------------------------------------------===//
// Meanings: one for each pointwise op
//===----------------------------------------------------------------------===//

static Value meaning(NegOp, Scalars &s, ValueRange a) { return s.neg(a[0]); }

static Value meaning(AbsOp, Scalars &s, ValueRange a) { return s.abs(a[0]); }

static Value meaning(ExpOp, Scalars &s, ValueRange a) { return s.exp(a[0]); }

static Value meaning(LogOp, Scalars &s, ValueRange a) { return s.log(a[0]); }

static Value meaning(Expm1Op, Scalars &s, ValueRange a) {
  return s.make<math::ExpM1Op>(a[0]);
}

static Value meaning(Log1pOp, Scalars &s, ValueRange a) {
  return s.log1p(a[0]);
}

static Value meaning(SoftplusOp, Scalars &s, ValueRange a) {
  Value size = s.abs(a[0]);
  return s.add(s.max(a[0], s.constant(0.0)), s.log1p(s.exp(s.neg(size))));
}

static Value meaning(SqrtOp, Scalars &s, ValueRange a) { return s.sqrt(a[0]); }

static Value meaning(RsqrtOp, Scalars &s, ValueRange a) {
  return s.div(s.constant(1.0), s.sqrt(a[0]));
}

static Value meaning(ReciprocalOp, Scalars &s, ValueRange a) {
  return s.div(s.constant(1.0), a[0]);
}

static Value meaning(ErfOp, Scalars &s, ValueRange a) { return s.erf(a[0]); }

static Value meaning(ErfcOp, Scalars &s, ValueRange a) { return erfc(s, a[0]); }

static Value meaning(SinOp, Scalars &s, ValueRange a) {
  return sine(s, a[0], 0);
}

static Value meaning(CosOp, Scalars &s, ValueRange a) {
  return sine(s, a[0], 1);
}

static Value meaning(AtanOp, Scalars &s, ValueRange a) {
  return arcTangent(s, a[0]);
}

static Value meaning(TanhOp, Scalars &s, ValueRange a) { return s.tanh(a[0]); }

static Value meaning(SigmoidOp, Scalars &s, ValueRange a) {
  Value one = s.constant(1.0);
  return s.div(one, s.add(one, s.exp(s.neg(a[0]))));
}

static Value meaning(ReluOp, Scalars &s, ValueRange a) {
  return s.max(a[0], s.constant(0.0));
}

static Value meaning(GeluOp op, Scalars &s, ValueRange a) {
  return gelu(s, a[0], op.getApproximate());
}

static Value meaning(GeluBackwardOp op, Scalars &s, ValueRange a) {
  return s.mul(a[0], geluDerivative(s, a[1], op.getApproximate()));
}

static Value meaning(FakeQuantizeOp op, Scalars &s, ValueRange a) {
  return fakeQuantize(s, a[0], op.getFormat(), op.getSaturate());
}

static Value meaning(LogicalNotOp, Scalars &s, ValueRange a) {
  return s.make<arith::XOrIOp>(
      a[0], s.make<arith::ConstantOp>(s.b.getBoolAttr(true)));
}

static Value meaning(CastOp op, Scalars &s, ValueRange a) {
  return cast(s, a[0], op.getType().getElementType());
}

static Value meaning(BroadcastToOp, Scalars &, ValueRange a) { return a[0]; }

static Value meaning(AddOp, Scalars &s, ValueRange a) {
  return s.add(a[0], a[1]);
}

static Value meaning(SubOp, Scalars &s, ValueRange a) {
  return s.sub(a[0], a[1]);
}

static Value meaning(MulOp, Scalars &s, ValueRange a) {
  return s.mul(a[0], a[1]);
}

static Value meaning(DivOp, Scalars &s, ValueRange a) {
  return s.div(a[0], a[1]);
}

static Value meaning(PowOp op, Scalars &s, ValueRange a) {
  std::optional<double> exponent;
  DenseElementsAttr data;
  if (matchPattern(op.getRhs(), m_Constant(&data)) && data.isSplat())
    exponent = data.getSplatValue<APFloat>().convertToFloat();
  return power(s, a[0], a[1], exponent);
}

static Value meaning(MaximumOp, Scalars &s, ValueRange a) {
  return s.max(a[0], a[1]);
}

static Value meaning(MinimumOp, Scalars &s, ValueRange a) {
  return s.min(a[0], a[1]);
}

static Value meaning(LogicalAndOp, Scalars &s, ValueRange a) {
  return s.make<arith::AndIOp>(a[0], a[1]);
}

static Value meaning(LogicalOrOp, Scalars &s, ValueRange a) {
  return s.make<arith::OrIOp>(a[0], a[1]);
}

static Value meaning(CompareOp op, Scalars &s, ValueRange a) {
  return compare(s, a[0], a[1], op.getPredicate());
}

static Value meaning(WhereOp, Scalars &s, ValueRange a) {
  return s.select(a[0], a[1], a[2]);
}

/// Lowers the op if it is a pointwise OpTy; one without a meaning above is not
/// compiled.
template <typename OpTy>
static bool lowerAs(Operation *op, LinalgBuilder &builder, Value &result) {
  if constexpr (OpTy::template hasTrait<Elementwise<RowWalk::Cheap>::Impl>() ||
                OpTy::template hasTrait<Elementwise<RowWalk::Costly>::Impl>()) {
    auto pointwise = dyn_cast<OpTy>(op);
    if (!pointwise)
      return false;
    RankedTensorType type = tensorType(op->getResult(0));
    SmallVector<LinalgBuilder::Input> inputs;
    for (Value operand : op->getOperands())
      inputs.push_back(builder.broadcast(operand, type.getShape()));
    result = builder.pointwise(type, inputs,
                               [&](Scalars &scalars, ValueRange arguments) {
                                 return meaning(pointwise, scalars, arguments);
                               });
    return true;
  }
  return false;
}

template <typename... OpTys>
static Value lowerAny(Operation *op, LinalgBuilder &builder) {
  Value result;
  (lowerAs<OpTys>(op, builder, result) || ...);
  return result;
}

Lowered lowerElementwise(Operation *op, LinalgBuilder &builder) {
  Value result = lowerAny<
#define GET_OP_LIST
#include "dialects/nn/NNOps.cpp.inc"
      >(op, builder);
  if (!result)
    return failure();
  return SmallVector<Value>{result};
}

} // namespace pipewright::nn
