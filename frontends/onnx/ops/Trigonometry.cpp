//===- Trigonometry.cpp - Functions of angles and of hyperbolas -----------===//
//
// Composed so that neither values nor slopes lose digits: near 0, near the ends
// of what a function is defined for, where slopes are infinite, and where a
// square would overflow.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Unary.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace pipewright::frontend {

template <typename OpTy>
static LogicalResult importDirectly(NodeContext &n) {
  return n.setResult(0, n.b.create<OpTy>(n.value(0)));
}

/// Imports what `build` makes of the float operand.
template <Value (*build)(NodeContext &, Value)>
static LogicalResult importOfFloats(NodeContext &n) {
  Value x = floatOperand(n);
  return n.setResult(0, x ? build(n, x) : x);
}

static Value plus(NodeContext &n, Value x, float number) {
  return n.b.create<nn::AddOp>({x, n.b.splat(number)});
}

static Value twice(NodeContext &n, Value x) {
  return n.b.create<nn::MulOp>({x, n.b.splat(2)});
}

static Value isNegative(NodeContext &n, Value x) {
  return n.b.compare(x, n.b.splat(0), nn::ComparePredicate::Lt);
}

static Value negatedWhere(NodeContext &n, Value condition, Value x) {
  return n.b.create<nn::WhereOp>({condition, n.b.create<nn::NegOp>(x), x});
}

/// |x|, whose slope at 0 is 1: that of an odd function by what it is above 0.
static Value sizeOf(NodeContext &n, Value x, Value isBelow) {
  return negatedWhere(n, isBelow, x);
}

static Value tangent(NodeContext &n, Value x) {
  return n.b.create<nn::DivOp>(
      {n.b.create<nn::SinOp>(x), n.b.create<nn::CosOp>(x)});
}

/// sqrt(1 - x^2). As a product of roots it has the slope -inf, not NaN, at 1.
static Value rootOfRest(NodeContext &n, Value x) {
  Value below = n.b.create<nn::SubOp>({n.b.splat(1), x});
  return n.b.create<nn::MulOp>(
      {n.b.create<nn::SqrtOp>(below), n.b.create<nn::SqrtOp>(plus(n, x, 1))});
}

/// 2 atan(x / (1 + sqrt(1 - x^2)))
static Value arcSine(NodeContext &n, Value x) {
  Value tangent = n.b.create<nn::DivOp>({x, plus(n, rootOfRest(n, x), 1)});
  return twice(n, n.b.create<nn::AtanOp>(tangent));
}

/// 2 atan(sqrt(1 - x^2) / (1 + x)), below 0 what is left of pi.
static Value arcCosine(NodeContext &n, Value x) {
  Value isBelow = isNegative(n, x);
  Value size = sizeOf(n, x, isBelow);
  Value tangent =
      n.b.create<nn::DivOp>({rootOfRest(n, size), plus(n, size, 1)});
  Value angle = twice(n, n.b.create<nn::AtanOp>(tangent));
  Value rest =
      n.b.create<nn::SubOp>({n.b.splat(std::numbers::pi_v<float>), angle});
  return n.b.create<nn::WhereOp>({isBelow, rest, angle});
}

/// (e^x - e^-x) / 2 by e^|x| - 1, which keeps the digits near 0.
static Value hyperbolicSine(NodeContext &n, Value x) {
  Value isBelow = isNegative(n, x);
  Value u = n.b.create<nn::Expm1Op>(sizeOf(n, x, isBelow));
  Value fraction = n.b.create<nn::DivOp>({u, plus(n, u, 1)});
  Value size = n.b.create<nn::MulOp>(
      {n.b.create<nn::AddOp>({u, fraction}), n.b.splat(0.5f)});
  return negatedWhere(n, isBelow, size);
}

static Value hyperbolicCosine(NodeContext &n, Value x) {
  Value sum =
      n.b.create<nn::AddOp>({n.b.create<nn::ExpOp>(x),
                             n.b.create<nn::ExpOp>(n.b.create<nn::NegOp>(x))});
  return n.b.create<nn::MulOp>({sum, n.b.splat(0.5f)});
}

/// `near` of x up to 2^30, and log(2 x) beyond, where both are the same to the
/// last digit. Each sees numbers of its own side alone.
template <typename Function>
static Value orLogarithm(NodeContext &n, Value x, Function near) {
  Value isFar = n.b.compare(x, n.b.splat(0x1p30f), nn::ComparePredicate::Gt);
  Value far = n.b.create<nn::WhereOp>({isFar, x, n.b.splat(1)});
  far = plus(n, n.b.create<nn::LogOp>(far), std::numbers::ln2_v<float>);
  Value result = near(n.b.create<nn::WhereOp>({isFar, n.b.splat(1), x}));
  return n.b.create<nn::WhereOp>({isFar, far, result});
}

/// sign(x) log(1 + |x| + x^2 / (1 + sqrt(x^2 + 1)))
static Value areaSine(NodeContext &n, Value x) {
  Value isBelow = isNegative(n, x);
  Value size = orLogarithm(n, sizeOf(n, x, isBelow), [&](Value size) {
    Value square = n.b.create<nn::MulOp>({size, size});
    Value root = n.b.create<nn::SqrtOp>(plus(n, square, 1));
    Value rest = n.b.create<nn::DivOp>({square, plus(n, root, 1)});
    return n.b.create<nn::Log1pOp>(n.b.create<nn::AddOp>({size, rest}));
  });
  return negatedWhere(n, isBelow, size);
}

/// log(1 + t + sqrt(t) sqrt(t + 2)) with t = x - 1
static Value areaCosine(NodeContext &n, Value x) {
  return orLogarithm(n, x, [&](Value size) {
    Value t = plus(n, size, -1);
    Value root = n.b.create<nn::MulOp>(
        {n.b.create<nn::SqrtOp>(t), n.b.create<nn::SqrtOp>(plus(n, t, 2))});
    return n.b.create<nn::Log1pOp>(n.b.create<nn::AddOp>({t, root}));
  });
}

/// (log(1 + x) - log(1 - x)) / 2
static Value areaTangent(NodeContext &n, Value x) {
  Value difference = n.b.create<nn::SubOp>(
      {n.b.create<nn::Log1pOp>(x),
       n.b.create<nn::Log1pOp>(n.b.create<nn::NegOp>(x))});
  return n.b.create<nn::MulOp>({difference, n.b.splat(0.5f)});
}

ArrayRef<OpRow> trigonometryOps() {
  static const OpRow rows[] = {
      {"Sin", 7, exactly(1), importDirectly<nn::SinOp>, foldUnary<std::sin>},
      {"Cos", 7, exactly(1), importDirectly<nn::CosOp>, foldUnary<std::cos>},
      {"Tan", 7, exactly(1), importOfFloats<tangent>, foldUnary<std::tan>},
      {"Asin", 7, exactly(1), importOfFloats<arcSine>, foldUnary<std::asin>},
      {"Acos", 7, exactly(1), importOfFloats<arcCosine>, foldUnary<std::acos>},
      {"Atan", 7, exactly(1), importDirectly<nn::AtanOp>, foldUnary<std::atan>},
      {"Sinh", 9, exactly(1), importOfFloats<hyperbolicSine>,
       foldUnary<std::sinh>},
      {"Cosh", 9, exactly(1), importOfFloats<hyperbolicCosine>,
       foldUnary<std::cosh>},
      {"Asinh", 9, exactly(1), importOfFloats<areaSine>, foldUnary<std::asinh>},
      {"Acosh", 9, exactly(1), importOfFloats<areaCosine>,
       foldUnary<std::acosh>},
      {"Atanh", 9, exactly(1), importOfFloats<areaTangent>,
       foldUnary<std::atanh>},
  };
  return rows;
}

} // namespace pipewright::frontend
