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

namespace {
/// The VJP of a unary op whose gradient is `build(gradientBuilder, dy)`.
template <typename OpTy, typename BuildFn>
LogicalResult unaryVjp(OpTy op, OpBuilder &builder, ValueRange resultGrads,
                       SmallVectorImpl<Value> &operandGrads, BuildFn build) {
  FailureOr<bool> flows = beginVjp(op, resultGrads, operandGrads);
  if (failed(flows))
    return failure();
  GradientBuilder g(builder, op.getLoc());
  if (*flows)
    operandGrads[0] = build(g, resultGrads[0]);
  return success();
}
} // namespace

LogicalResult NegOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                              SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) { return g.neg(dy); });
}

LogicalResult ExpOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                              SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(
      *this, builder, resultGrads, operandGrads,
      [&](GradientBuilder &g, Value dy) { return g.mul(dy, getResult()); });
}

LogicalResult LogOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                              SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(
      *this, builder, resultGrads, operandGrads,
      [&](GradientBuilder &g, Value dy) { return g.div(dy, getX()); });
}

LogicalResult Expm1Op::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                SmallVectorImpl<Value> &operandGrads) {
  // Not the result plus one: that has no digits left where e^x is small.
  return unaryVjp(
      *this, builder, resultGrads, operandGrads,
      [&](GradientBuilder &g, Value dy) { return g.mul(dy, g.exp(getX())); });
}

LogicalResult Log1pOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) {
                    return g.div(dy, g.add(getX(), g.scalar(1.0)));
                  });
}

LogicalResult SoftplusOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                   SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) {
                    return g.mul(
                        dy, SigmoidOp::create(g.builder(), g.widen(getX())));
                  });
}

LogicalResult SqrtOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                               SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) {
                    return g.div(g.mul(dy, g.scalar(0.5)), getResult());
                  });
}

LogicalResult RsqrtOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                SmallVectorImpl<Value> &operandGrads) {
  // y = x^-1/2, so y' = -1/2 y^3.
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) {
                    Value y = getResult();
                    Value cube = g.mul(g.mul(y, y), y);
                    return g.mul(g.mul(dy, g.scalar(-0.5)), cube);
                  });
}

LogicalResult ReciprocalOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                     SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) {
                    return g.neg(g.mul(dy, g.mul(getResult(), getResult())));
                  });
}

LogicalResult AbsOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                              SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(
      *this, builder, resultGrads, operandGrads,
      [&](GradientBuilder &g, Value dy) {
        Value zero = g.scalar(0.0);
        Value negative = g.compare(getX(), zero, ComparePredicate::Lt);
        Value positive = g.compare(getX(), zero, ComparePredicate::Gt);
        return g.where(positive, dy, g.where(negative, g.neg(dy), zero));
      });
}

LogicalResult ErfOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                              SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) {
                    Value bell = g.exp(g.neg(g.mul(getX(), getX())));
                    Value scale = g.scalar(2.0 * std::numbers::inv_sqrtpi);
                    return g.mul(dy, g.mul(bell, scale));
                  });
}

LogicalResult TanhOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                               SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) {
                    Value square = g.mul(getResult(), getResult());
                    return g.mul(dy, g.sub(g.scalar(1.0), square));
                  });
}

LogicalResult SigmoidOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                  SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) {
                    Value y = getResult();
                    return g.mul(dy, g.mul(y, g.sub(g.scalar(1.0), y)));
                  });
}

LogicalResult ReluOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                               SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) {
                    Value zero = g.scalar(0.0);
                    Value mask =
                        g.compare(getResult(), zero, ComparePredicate::Gt);
                    return g.where(mask, dy, zero);
                  });
}

LogicalResult GeluOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                               SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) -> Value {
                    return GeluBackwardOp::create(g.builder(), dy, getX(),
                                                  getApproximate());
                  });
}

LogicalResult CastOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                               SmallVectorImpl<Value> &operandGrads) {
  return unaryVjp(*this, builder, resultGrads, operandGrads,
                  [&](GradientBuilder &g, Value dy) {
                    return isa<FloatType>(getX().getType().getElementType())
                               ? g.toElementTypeOf(getX(), dy)
                               : Value();
                  });
}

//===----------------------------------------------------------------------===//
// Gradients of binary ops
//===----------------------------------------------------------------------===//

namespace {
/// The VJP of an op with broadcast operands: `build` gives one gradient per
/// operand in the result's shape, which is summed back to the operand's.
template <typename OpTy, typename BuildFn>
LogicalResult broadcastVjp(OpTy op, OpBuilder &builder, ValueRange resultGrads,
                           SmallVectorImpl<Value> &operandGrads,
                           BuildFn build) {
  FailureOr<bool> flows = beginVjp(op, resultGrads, operandGrads);
  if (failed(flows))
    return failure();
  if (!*flows)
    return success();
  GradientBuilder g(builder, op.getLoc());
  SmallVector<Value, 3> grads = build(g, resultGrads[0]);
  for (auto [index, grad] : llvm::enumerate(grads))
    if (grad)
      operandGrads[index] =
          g.unbroadcast(grad, tensorOf(op->getOperand(index)));
  return success();
}

using Grads = SmallVector<Value, 3>;
} // namespace

LogicalResult AddOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                              SmallVectorImpl<Value> &operandGrads) {
  return broadcastVjp(
      *this, builder, resultGrads, operandGrads,
      [&](GradientBuilder &g, Value dy) { return Grads{dy, dy}; });
}

LogicalResult SubOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                              SmallVectorImpl<Value> &operandGrads) {
  return broadcastVjp(
      *this, builder, resultGrads, operandGrads,
      [&](GradientBuilder &g, Value dy) { return Grads{dy, g.neg(dy)}; });
}

LogicalResult MulOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                              SmallVectorImpl<Value> &operandGrads) {
  return broadcastVjp(*this, builder, resultGrads, operandGrads,
                      [&](GradientBuilder &g, Value dy) {
                        return Grads{g.mul(dy, getRhs()), g.mul(dy, getLhs())};
                      });
}

LogicalResult DivOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                              SmallVectorImpl<Value> &operandGrads) {
  // d(a/b)/db = -y/b: the result, not a, is what the second gradient needs.
  return broadcastVjp(*this, builder, resultGrads, operandGrads,
                      [&](GradientBuilder &g, Value dy) {
                        Value da = g.div(dy, getRhs());
                        return Grads{da, g.neg(g.mul(da, getResult()))};
                      });
}

LogicalResult PowOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                              SmallVectorImpl<Value> &operandGrads) {
  return broadcastVjp(
      *this, builder, resultGrads, operandGrads,
      [&](GradientBuilder &g, Value dy) {
        Value base = getLhs(), exponent = getRhs(), zero = g.scalar(0.0);
        DenseElementsAttr constant;
        bool isConstant = matchPattern(exponent, m_Constant(&constant));
        if (isConstant && constant.isSplat()) {
          double e = constant.getSplatValue<APFloat>().convertToDouble();
          if (e == 0.0)
            return Grads{Value(), Value()};
          // A square is by far the most common power; keep it cheap.
          Value power = e == 2.0 ? base : g.pow(base, g.scalar(e - 1.0));
          return Grads{g.mul(dy, g.mul(power, g.scalar(e))), Value()};
        }
        // x^0 is 1 also at 0, where x^-1 is infinite.
        Value power = g.pow(base, g.sub(exponent, g.scalar(1.0)));
        Value da = g.where(g.compare(exponent, zero, ComparePredicate::Eq),
                           zero, g.mul(dy, g.mul(exponent, power)));
        if (isConstant)
          return Grads{da, Value()};
        // 0^b is 0 for all b near a positive one, though ln 0 is infinite.
        Value flat = LogicalAndOp::create(
            g.builder(), g.compare(base, zero, ComparePredicate::Eq),
            g.compare(exponent, zero, ComparePredicate::Ge));
        Value db = g.mul(g.mul(dy, getResult()), g.log(base));
        return Grads{da, g.where(flat, zero, db)};
      });
}

/// The VJP of a choice between two operands: the one that does not lose as
/// `loses` says gets the gradient, and both get half where they are equal.
template <typename OpTy>
static LogicalResult choiceVjp(OpTy op, ComparePredicate loses,
                               OpBuilder &builder, ValueRange resultGrads,
                               SmallVectorImpl<Value> &operandGrads) {
  return broadcastVjp(op, builder, resultGrads, operandGrads,
                      [&](GradientBuilder &g, Value dy) {
                        Value zero = g.scalar(0.0),
                              half = g.mul(dy, g.scalar(0.5));
                        Value a = op.getLhs(), b = op.getRhs();
                        Value equal = g.compare(a, b, ComparePredicate::Eq);
                        auto share = [&](Value own, Value other) {
                          Value lost = g.compare(own, other, loses);
                          return g.where(equal, half, g.where(lost, zero, dy));
                        };
                        return Grads{share(a, b), share(b, a)};
                      });
}

LogicalResult MaximumOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                  SmallVectorImpl<Value> &operandGrads) {
  return choiceVjp(*this, ComparePredicate::Lt, builder, resultGrads,
                   operandGrads);
}

LogicalResult MinimumOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                  SmallVectorImpl<Value> &operandGrads) {
  return choiceVjp(*this, ComparePredicate::Gt, builder, resultGrads,
                   operandGrads);
}

LogicalResult WhereOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                SmallVectorImpl<Value> &operandGrads) {
  return broadcastVjp(*this, builder, resultGrads, operandGrads,
                      [&](GradientBuilder &g, Value dy) {
                        Value zero = g.scalar(0.0);
                        return Grads{Value(), g.where(getCond(), dy, zero),
                                     g.where(getCond(), zero, dy)};
                      });
}
