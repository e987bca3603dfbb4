//===- Gelu.cpp - Recognise the Gaussian error linear unit ----------------===//
//
// x/2 * (1 + erf(x / sqrt 2)) and its approximation by tanh are products of a
// half, x and a gate; exporters multiply these in every order.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/clean/FuseComposites/Matching.h"

using namespace mlir;

namespace pipewright::nn {

namespace {

/// Counts how often `x` and `gate` occur in a product of nothing else but
/// constants.
struct Product {
  Value x, gate;
  int xCount = 0, gateCount = 0;
  double factor = 1;

  bool match(Value value) {
    if (value == x) {
      ++xCount;
      return true;
    }
    if (gate && value == gate) {
      ++gateCount;
      return true;
    }
    if (std::optional<double> scalar = scalarOf(value)) {
      factor *= *scalar;
      return true;
    }
    if (auto mul = value.getDefiningOp<MulOp>())
      return match(mul.getLhs()) && match(mul.getRhs());
    if (auto div = value.getDefiningOp<DivOp>()) {
      std::optional<double> scalar = scalarOf(div.getRhs());
      if (!scalar)
        return false;
      factor /= *scalar;
      return match(div.getLhs());
    }
    if (auto pow = value.getDefiningOp<PowOp>()) {
      std::optional<double> exponent = scalarOf(pow.getRhs());
      if (pow.getLhs() != x || !exponent || *exponent != std::round(*exponent))
        return false;
      xCount += static_cast<int>(*exponent);
      return true;
    }
    return false;
  }
};

/// Whether `value` is `factor * x^power`.
bool isMonomial(Value value, Value x, double factor, int power) {
  Product product{x, Value()};
  return product.match(value) && product.xCount == power &&
         isNear(product.factor, factor);
}

/// `x` of `1 + erf(x / sqrt 2)`, or null.
Value matchErfGate(Value gate) {
  for (auto [one, term] : operandOrders<AddOp>(gate)) {
    auto erf = term.getDefiningOp<ErfOp>();
    if (!erf || scalarOf(one) != 1.0)
      continue;
    double factor = 1;
    Value x = fullyUnscaled(erf.getX(), factor);
    if (isNear(factor, M_SQRT1_2))
      return x;
  }
  return Value();
}

/// Whether `sum` is `x + 0.044715 x^3`, or that divided by x.
bool isCubic(Value sum, Value x, bool divided) {
  for (auto [linear, cubic] : operandOrders<AddOp>(sum))
    if ((divided ? scalarOf(linear) == 1.0 : linear == x) &&
        isMonomial(cubic, x, 0.044715, divided ? 2 : 3))
      return true;
  return false;
}

/// `x` of `1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))`, or null.
Value matchTanhGate(Value gate) {
  for (auto [one, term] : operandOrders<AddOp>(gate)) {
    auto tanh = term.getDefiningOp<TanhOp>();
    if (!tanh || scalarOf(one) != 1.0)
      continue;
    double factor = 1;
    Value inner = fullyUnscaled(tanh.getX(), factor);
    if (isNear(factor, std::sqrt(2 / M_PI)))
      for (auto [x, rest] : operandOrders<AddOp>(inner))
        if (isCubic(inner, x, /*divided=*/false))
          return x;
    // sqrt(2/pi) * x * (1 + 0.044715 x^2)
    for (auto [left, sum] : operandOrders<MulOp>(inner)) {
      double both = factor;
      Value x = fullyUnscaled(left, both);
      double sumFactor = both;
      Value inside = fullyUnscaled(sum, sumFactor);
      if (isNear(sumFactor, std::sqrt(2 / M_PI)) &&
          isCubic(inside, x, /*divided=*/true))
        return x;
    }
  }
  return Value();
}

/// The first gate in a product, with the x that it is the gate of.
Value findGate(Value value, Value &x, GeluApproximation &approximation) {
  if (Value found = matchErfGate(value)) {
    x = found;
    approximation = GeluApproximation::None;
    return value;
  }
  if (Value found = matchTanhGate(value)) {
    x = found;
    approximation = GeluApproximation::Tanh;
    return value;
  }
  if (auto mul = value.getDefiningOp<MulOp>()) {
    if (Value gate = findGate(mul.getLhs(), x, approximation))
      return gate;
    return findGate(mul.getRhs(), x, approximation);
  }
  if (auto div = value.getDefiningOp<DivOp>())
    return findGate(div.getLhs(), x, approximation);
  return Value();
}

/// Tried on every product, so that the last multiplication or division is
/// found whatever it is.
template <typename OpTy>
LogicalResult fuseGelu(OpTy op, PatternRewriter &rewriter) {
  Value x;
  GeluApproximation approximation;
  Value gate = findGate(op.getResult(), x, approximation);
  if (!gate || x.getType() != op.getResult().getType())
    return failure();
  Product product{x, gate};
  if (!product.match(op.getResult()) || product.xCount != 1 ||
      product.gateCount != 1 || !isNear(product.factor, 0.5))
    return failure();
  rewriter.replaceOpWithNewOp<GeluOp>(op, x, approximation);
  return success();
}

} // namespace

void populateGeluPatterns(RewritePatternSet &patterns) {
  patterns.add(fuseGelu<MulOp>).add(fuseGelu<DivOp>);
}

} // namespace pipewright::nn
