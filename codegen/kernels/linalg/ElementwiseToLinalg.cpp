//===- ElementwiseToLinalg.cpp - pointwise nn ops in linalg ---------------===//

#include "codegen/kernels/linalg/LinalgBuilder.h"

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
// Scalars of both kinds
//===----------------------------------------------------------------------===//

static bool isFloat(Value value) { return isa<FloatType>(value.getType()); }

static Value pickLarger(Scalars &s, Value x, Value y) {
  if (isFloat(x))
    return s.max(x, y);
  return arith::MaxSIOp::create(s.b, s.loc, x, y);
}

static Value pickSmaller(Scalars &s, Value x, Value y) {
  if (isFloat(x))
    return arith::MinimumFOp::create(s.b, s.loc, x, y, s.flags);
  return arith::MinSIOp::create(s.b, s.loc, x, y);
}

static Value compare(Scalars &s, Value x, Value y, ComparePredicate predicate) {
  if (isFloat(x)) {
    arith::CmpFPredicate p = [&] {
      switch (predicate) {
      case ComparePredicate::Eq:
        return arith::CmpFPredicate::OEQ;
      case ComparePredicate::Ne:
        return arith::CmpFPredicate::UNE;
      case ComparePredicate::Lt:
        return arith::CmpFPredicate::OLT;
      case ComparePredicate::Le:
        return arith::CmpFPredicate::OLE;
      case ComparePredicate::Gt:
        return arith::CmpFPredicate::OGT;
      case ComparePredicate::Ge:
        return arith::CmpFPredicate::OGE;
      }
      llvm_unreachable("all predicates are listed");
    }();
    return arith::CmpFOp::create(s.b, s.loc, p, x, y);
  }
  // A truth value is 1 when it is true, not -1.
  bool isUnsigned = x.getType().isInteger(1);
  arith::CmpIPredicate p = [&] {
    switch (predicate) {
    case ComparePredicate::Eq:
      return arith::CmpIPredicate::eq;
    case ComparePredicate::Ne:
      return arith::CmpIPredicate::ne;
    case ComparePredicate::Lt:
      return isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    case ComparePredicate::Le:
      return isUnsigned ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle;
    case ComparePredicate::Gt:
      return isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
    case ComparePredicate::Ge:
      return isUnsigned ? arith::CmpIPredicate::uge : arith::CmpIPredicate::sge;
    }
    llvm_unreachable("all predicates are listed");
  }();
  return arith::CmpIOp::create(s.b, s.loc, p, x, y);
}

static Value cast(Scalars &s, Value x, Type to) {
  Type from = x.getType();
  OpBuilder &b = s.b;
  // Stored as bf16, computed as f32.
  if (to.isBF16())
    to = b.getF32Type();
  if (from == to)
    return x;
  if (to.isInteger(1)) {
    Value zero = arith::ConstantOp::create(b, s.loc, b.getZeroAttr(from));
    return compare(s, x, zero, ComparePredicate::Ne);
  }
  bool truth = from.isInteger(1);
  if (isa<FloatType>(from))
    return arith::FPToSIOp::create(b, s.loc, to, x);
  if (isa<FloatType>(to))
    return truth ? Value(arith::UIToFPOp::create(b, s.loc, to, x))
                 : Value(arith::SIToFPOp::create(b, s.loc, to, x));
  if (from.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(b, s.loc, to, x);
  return truth ? Value(arith::ExtUIOp::create(b, s.loc, to, x))
               : Value(arith::ExtSIOp::create(b, s.loc, to, x));
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
  return math::PowFOp::create(s.b, s.loc, x, y, s.flags);
}

/// The scalar meaning of `op`, or null when it is not a pointwise op.
static Value scalarOf(Operation *op, Scalars &s, ValueRange a,
                      std::optional<double> exponent) {
  OpBuilder &b = s.b;
  Location loc = s.loc;
  bool isF = !a.empty() && isFloat(a[0]);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](NegOp) -> Value {
        if (isF)
          return s.neg(a[0]);
        Value zero =
            arith::ConstantOp::create(b, loc, b.getZeroAttr(a[0].getType()));
        return arith::SubIOp::create(b, loc, zero, a[0]);
      })
      .Case([&](AbsOp) -> Value {
        if (isF)
          return math::AbsFOp::create(b, loc, a[0], s.flags);
        return math::AbsIOp::create(b, loc, a[0]);
      })
      .Case([&](ExpOp) { return s.exp(a[0]); })
      .Case([&](LogOp) { return s.log(a[0]); })
      .Case([&](Expm1Op) -> Value {
        return math::ExpM1Op::create(b, loc, a[0], s.flags);
      })
      .Case([&](Log1pOp) { return s.log1p(a[0]); })
      .Case([&](SoftplusOp) {
        Value size = math::AbsFOp::create(b, loc, a[0], s.flags);
        return s.add(s.max(a[0], s.constant(0.0)), s.log1p(s.exp(s.neg(size))));
      })
      .Case([&](SqrtOp) { return s.sqrt(a[0]); })
      .Case([&](RsqrtOp) { return s.div(s.constant(1.0), s.sqrt(a[0])); })
      .Case([&](ReciprocalOp) { return s.div(s.constant(1.0), a[0]); })
      .Case([&](ErfOp) { return s.erf(a[0]); })
      .Case([&](TanhOp) { return s.tanh(a[0]); })
      .Case([&](SigmoidOp) {
        Value one = s.constant(1.0);
        return s.div(one, s.add(one, s.exp(s.neg(a[0]))));
      })
      .Case([&](ReluOp) { return s.max(a[0], s.constant(0.0)); })
      .Case(
          [&](GeluOp gelu) { return nn::gelu(s, a[0], gelu.getApproximate()); })
      .Case([&](GeluBackwardOp gelu) {
        return s.mul(a[0], geluDerivative(s, a[1], gelu.getApproximate()));
      })
      .Case([&](LogicalNotOp) -> Value {
        Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
        return arith::XOrIOp::create(b, loc, a[0], yes);
      })
      .Case([&](CastOp cast) {
        return nn::cast(s, a[0], cast.getType().getElementType());
      })
      .Case([&](AddOp) -> Value {
        if (isF)
          return s.add(a[0], a[1]);
        return arith::AddIOp::create(b, loc, a[0], a[1]);
      })
      .Case([&](SubOp) -> Value {
        if (isF)
          return s.sub(a[0], a[1]);
        return arith::SubIOp::create(b, loc, a[0], a[1]);
      })
      .Case([&](MulOp) -> Value {
        if (isF)
          return s.mul(a[0], a[1]);
        return arith::MulIOp::create(b, loc, a[0], a[1]);
      })
      .Case([&](DivOp) -> Value {
        if (isF)
          return s.div(a[0], a[1]);
        return arith::DivSIOp::create(b, loc, a[0], a[1]);
      })
      .Case([&](PowOp) { return power(s, a[0], a[1], exponent); })
      .Case([&](MaximumOp) { return pickLarger(s, a[0], a[1]); })
      .Case([&](MinimumOp) { return pickSmaller(s, a[0], a[1]); })
      .Case([&](LogicalAndOp) -> Value {
        return arith::AndIOp::create(b, loc, a[0], a[1]);
      })
      .Case([&](LogicalOrOp) -> Value {
        return arith::OrIOp::create(b, loc, a[0], a[1]);
      })
      .Case([&](CompareOp op) {
        return compare(s, a[0], a[1], op.getPredicate());
      })
      .Case([&](WhereOp) { return s.select(a[0], a[1], a[2]); })
      .Default(Value());
}

Lowered lowerElementwise(Operation *op, LinalgBuilder &builder) {
  if (!isa<NegOp, AbsOp, ExpOp, Expm1Op, LogOp, Log1pOp, SqrtOp, RsqrtOp,
           ReciprocalOp, ErfOp, TanhOp, SigmoidOp, ReluOp, SoftplusOp, GeluOp,
           GeluBackwardOp, LogicalNotOp, CastOp, AddOp, SubOp, MulOp, DivOp,
           PowOp, MaximumOp, MinimumOp, LogicalAndOp, LogicalOrOp, CompareOp,
           WhereOp>(op))
    return failure();
  RankedTensorType type = tensorType(op->getResult(0));
  SmallVector<LinalgBuilder::Input> inputs;
  for (Value operand : op->getOperands())
    inputs.push_back(builder.broadcast(operand, type.getShape()));
  std::optional<double> exponent;
  DenseElementsAttr data;
  if (isa<PowOp>(op) && matchPattern(op->getOperand(1), m_Constant(&data)) &&
      data.isSplat())
    exponent = data.getSplatValue<APFloat>().convertToFloat();
  return SmallVector<Value>{builder.pointwise(
      type, inputs, [&](Scalars &scalars, ValueRange arguments) {
        return scalarOf(op, scalars, arguments, exponent);
      })};
}

} // namespace pipewright::nn
