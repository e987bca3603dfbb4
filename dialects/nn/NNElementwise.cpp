//===- NNElementwise.cpp - Pointwise ops ----------------------------------===//
//
// Inference with broadcasting, and the derivatives of pointwise functions,
// from results rather than operands where that stashes less.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"
#include "mlir/IR/Matchers.h"
#include <numbers>

using namespace mlir;
using namespace pipewright::nn;

//===----------------------------------------------------------------------===//
// Inference and verification
//===----------------------------------------------------------------------===//

LogicalResult CompareOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  SmallVector<Type, 1> operandType;
  // (C1), (C2)
  if (failed(inferElementwise({location, getOperationName()}, adaptor.getLhs(),
                              adaptor.getRhs(), operandType)))
    return failure();
  types.push_back(RankedTensorType::get(
      cast<RankedTensorType>(operandType.front()).getShape(),
      IntegerType::get(context, 1)));
  return success();
}

LogicalResult WhereOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  SmallVector<Type, 1> valueType;
  // (C1), (C2)
  if (failed(inferElementwise(site, adaptor.getA(), adaptor.getB(), valueType)))
    return failure();
  auto type = cast<RankedTensorType>(valueType.front());
  RankedTensorType condType = tensorOf(adaptor.getCond());
  FailureOr<SmallVector<int64_t>> shape =
      broadcastShapes(condType.getShape(), type.getShape());
  if (failed(shape))
    return site.error("expects shapes that broadcast, but got ", condType,
                      " and ", type);
  types.push_back(type.clone(*shape));
  return success();
}

LogicalResult CastOp::verify() {
  // (C1)
  if (getX().getType().getShape() != getResult().getType().getShape())
    return emitOpError("expects one shape, but got ")
           << getX().getType() << " and " << getResult().getType();
  return success();
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getX().getType() == getResult().getType() ? getX() : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

int64_t GeluOp::getFlops() {
  int64_t perElement =
      getApproximate() == GeluApproximation::Tanh ? kGeluTanhFlops : 5;
  return perElement * getX().getType().getNumElements();
}

int64_t GeluBackwardOp::getFlops() {
  int64_t perElement =
      getApproximate() == GeluApproximation::Tanh ? kGeluTanhBackwardFlops : 10;
  return perElement * getX().getType().getNumElements();
}

//===----------------------------------------------------------------------===//
// Gradients of unary ops
//===----------------------------------------------------------------------===//

FailureOr<Gradients> NegOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{g.neg(dy)};
}

FailureOr<Gradients> ExpOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{g.mul(dy, getResult())};
}

FailureOr<Gradients> LogOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{g.div(dy, getX())};
}

FailureOr<Gradients> Expm1Op::buildGradients(GradientBuilder &g, Value dy) {
  // Not the result plus one: that has no digits left where e^x is small.
  return Gradients{g.mul(dy, g.exp(getX()))};
}

FailureOr<Gradients> Log1pOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{g.div(dy, g.add(getX(), g.scalar(1.0)))};
}

FailureOr<Gradients> SoftplusOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{g.mul(dy, SigmoidOp::create(g.builder(), g.widen(getX())))};
}

FailureOr<Gradients> SqrtOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{g.div(g.mul(dy, g.scalar(0.5)), getResult())};
}

FailureOr<Gradients> RsqrtOp::buildGradients(GradientBuilder &g, Value dy) {
  // y = x^-1/2, so y' = -1/2 y^3.
  Value y = getResult();
  Value cube = g.mul(g.mul(y, y), y);
  return Gradients{g.mul(g.mul(dy, g.scalar(-0.5)), cube)};
}

FailureOr<Gradients> ReciprocalOp::buildGradients(GradientBuilder &g,
                                                  Value dy) {
  return Gradients{g.neg(g.mul(dy, g.mul(getResult(), getResult())))};
}

FailureOr<Gradients> AbsOp::buildGradients(GradientBuilder &g, Value dy) {
  Value zero = g.scalar(0.0);
  Value negative = g.compare(getX(), zero, ComparePredicate::Lt);
  Value positive = g.compare(getX(), zero, ComparePredicate::Gt);
  return Gradients{g.where(positive, dy, g.where(negative, g.neg(dy), zero))};
}

/// dy times the derivative of erf at x, and `sign`.
static Value erfGradient(GradientBuilder &g, Value dy, Value x, double sign) {
  Value bell = g.exp(g.neg(g.mul(x, x)));
  Value scale = g.scalar(sign * 2.0 * std::numbers::inv_sqrtpi);
  return g.mul(dy, g.mul(bell, scale));
}

FailureOr<Gradients> ErfOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{erfGradient(g, dy, getX(), 1)};
}

FailureOr<Gradients> ErfcOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{erfGradient(g, dy, getX(), -1)};
}

FailureOr<Gradients> SinOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{g.mul(dy, CosOp::create(g.builder(), g.widen(getX())))};
}

FailureOr<Gradients> CosOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{
      g.neg(g.mul(dy, SinOp::create(g.builder(), g.widen(getX()))))};
}

FailureOr<Gradients> AtanOp::buildGradients(GradientBuilder &g, Value dy) {
  Value x = g.widen(getX());
  return Gradients{g.div(dy, g.add(g.scalar(1.0), g.mul(x, x)))};
}

FailureOr<Gradients> FakeQuantizeOp::buildGradients(GradientBuilder &,
                                                    Value dy) {
  return Gradients{dy};
}

FailureOr<Gradients> TanhOp::buildGradients(GradientBuilder &g, Value dy) {
  Value square = g.mul(getResult(), getResult());
  return Gradients{g.mul(dy, g.sub(g.scalar(1.0), square))};
}

FailureOr<Gradients> SigmoidOp::buildGradients(GradientBuilder &g, Value dy) {
  Value y = getResult();
  return Gradients{g.mul(dy, g.mul(y, g.sub(g.scalar(1.0), y)))};
}

FailureOr<Gradients> ReluOp::buildGradients(GradientBuilder &g, Value dy) {
  Value zero = g.scalar(0.0);
  Value mask = g.compare(getResult(), zero, ComparePredicate::Gt);
  return Gradients{g.where(mask, dy, zero)};
}

FailureOr<Gradients> GeluOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{
      GeluBackwardOp::create(g.builder(), dy, getX(), getApproximate())};
}

FailureOr<Gradients> CastOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{isa<FloatType>(getX().getType().getElementType())
                       ? g.toElementTypeOf(getX(), dy)
                       : Value()};
}

//===----------------------------------------------------------------------===//
// Gradients of binary ops
//===----------------------------------------------------------------------===//

FailureOr<Gradients> AddOp::buildGradients(GradientBuilder &g, Value dy) {
  return g.sumToOperands(*this, {dy, dy});
}

FailureOr<Gradients> SubOp::buildGradients(GradientBuilder &g, Value dy) {
  return g.sumToOperands(*this, {dy, g.neg(dy)});
}

FailureOr<Gradients> MulOp::buildGradients(GradientBuilder &g, Value dy) {
  return g.sumToOperands(*this, {g.mul(dy, getRhs()), g.mul(dy, getLhs())});
}

FailureOr<Gradients> DivOp::buildGradients(GradientBuilder &g, Value dy) {
  // d(a/b)/db = -y/b: the result, not a, is what the second gradient needs.
  Value da = g.div(dy, getRhs());
  return g.sumToOperands(*this, {da, g.neg(g.mul(da, getResult()))});
}

FailureOr<Gradients> PowOp::buildGradients(GradientBuilder &g, Value dy) {
  Value base = getLhs(), exponent = getRhs(), zero = g.scalar(0.0);
  DenseElementsAttr constant;
  bool isConstant = matchPattern(exponent, m_Constant(&constant));
  if (isConstant && constant.isSplat()) {
    double e = constant.getSplatValue<APFloat>().convertToDouble();
    if (e == 0.0)
      return g.sumToOperands(*this, {Value(), Value()});
    // A square is by far the most common power; keep it cheap.
    Value power = e == 2.0 ? base : g.pow(base, g.scalar(e - 1.0));
    return g.sumToOperands(*this,
                           {g.mul(dy, g.mul(power, g.scalar(e))), Value()});
  }
  // x^0 is 1 also at 0, where x^-1 is infinite.
  Value power = g.pow(base, g.sub(exponent, g.scalar(1.0)));
  Value da = g.where(g.compare(exponent, zero, ComparePredicate::Eq), zero,
                     g.mul(dy, g.mul(exponent, power)));
  if (isConstant)
    return g.sumToOperands(*this, {da, Value()});
  // 0^b is 0 for all b near a positive one, though ln 0 is infinite.
  Value flat = LogicalAndOp::create(
      g.builder(), g.compare(base, zero, ComparePredicate::Eq),
      g.compare(exponent, zero, ComparePredicate::Ge));
  Value db = g.mul(g.mul(dy, getResult()), g.log(base));
  return g.sumToOperands(*this, {da, g.where(flat, zero, db)});
}

/// The gradients of a choice between two operands: the one that does not lose
/// as `loses` says gets it, and both get half where they are equal.
template <typename OpTy>
static Gradients choiceGradients(GradientBuilder &g, OpTy op, Value dy,
                                 ComparePredicate loses) {
  Value zero = g.scalar(0.0), half = g.mul(dy, g.scalar(0.5));
  Value a = op.getLhs(), b = op.getRhs();
  Value equal = g.compare(a, b, ComparePredicate::Eq);
  auto share = [&](Value own, Value other) {
    Value lost = g.compare(own, other, loses);
    return g.where(equal, half, g.where(lost, zero, dy));
  };
  return g.sumToOperands(op, {share(a, b), share(b, a)});
}

FailureOr<Gradients> MaximumOp::buildGradients(GradientBuilder &g, Value dy) {
  return choiceGradients(g, *this, dy, ComparePredicate::Lt);
}

FailureOr<Gradients> MinimumOp::buildGradients(GradientBuilder &g, Value dy) {
  return choiceGradients(g, *this, dy, ComparePredicate::Gt);
}

FailureOr<Gradients> WhereOp::buildGradients(GradientBuilder &g, Value dy) {
  Value zero = g.scalar(0.0);
  return g.sumToOperands(*this, {Value(), g.where(getCond(), dy, zero),
                                 g.where(getCond(), zero, dy)});
}
