//===- LpNorms.cpp - Roots of sums of powers ------------------------------===//
//
// LpNormalization and what it shares with reductions and pooling.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/LpNorms.h"

#include "frontends/onnx/OpRegistry.h"

using namespace mlir;

namespace pipewright::frontend {

/// `function` of x where x is not 0, else 0; it sees no 0.
template <typename Function>
static Value whereNotZero(NodeContext &n, Value x, Function function) {
  Value isZero = n.b.compare(x, n.b.splat(0), nn::ComparePredicate::Eq);
  Value safe = n.b.create<nn::WhereOp>({isZero, n.b.splat(1), x});
  return n.b.create<nn::WhereOp>({isZero, n.b.splat(0), function(safe)});
}

Value rootOrZero(NodeContext &n, Value x) {
  return whereNotZero(n, x,
                      [&](Value safe) { return n.b.create<nn::SqrtOp>(safe); });
}

Value absolutePower(NodeContext &n, Value x, int64_t p) {
  if (p == 2)
    return n.b.create<nn::MulOp>({x, x});
  Value size = n.b.create<nn::AbsOp>(x);
  return p == 1 ? size : n.b.create<nn::PowOp>({size, n.b.splat(float(p))});
}

Value rootOf(NodeContext &n, Value x, int64_t p) {
  if (p == 1)
    return x;
  if (p == 2)
    return rootOrZero(n, x);
  return whereNotZero(n, x, [&](Value safe) {
    return n.b.create<nn::PowOp>({safe, n.b.splat(1 / float(p))});
  });
}

FailureOr<int64_t> readPower(NodeContext &n) {
  int64_t p = n.intAttribute("p", 2);
  constexpr int64_t largest = 64;
  if (p < 1 || p > largest)
    return n.error() << "expects p of 1 to " << largest << ", but got " << p;
  return p;
}

/// x divided by its norm along one axis; 0 where that is 0.
static LogicalResult importLpNormalization(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", -1), n.rank(0));
  if (failed(axis))
    return failure();
  FailureOr<int64_t> p = readPower(n);
  if (failed(p))
    return failure();
  if (*p > 2)
    return n.error() << "expects p of 1 or 2, but got " << *p;
  Value x = n.value(0);
  Value sum = n.b.reduce<nn::ReduceSumOp>(absolutePower(n, x, *p), {*axis},
                                          /*keepDims=*/true);
  Value norm = rootOf(n, sum, *p);
  return n.setResult(0, whereNotZero(n, norm, [&](Value safe) {
                       return n.b.create<nn::DivOp>({x, safe});
                     }));
}

/// (x - mean) / (root of the mean square of that + 1e-9)
static LogicalResult importMeanVariance(NodeContext &n) {
  FailureOr<Shape> axes = n.normalizeAxes(
      n.intsAttribute("axes").value_or(Shape{0, 2, 3}), n.rank(0));
  if (failed(axes))
    return failure();
  Value x = n.value(0);
  auto meanOf = [&](Value v) {
    return n.b.reduce<nn::ReduceMeanOp>(v, *axes, /*keepDims=*/true);
  };
  Value centered = n.b.create<nn::SubOp>({x, meanOf(x)});
  Value deviation = rootOrZero(n, meanOf(absolutePower(n, centered, 2)));
  Value divisor = n.b.create<nn::AddOp>({deviation, n.b.splat(1e-9f)});
  return n.setResult(0, n.b.create<nn::DivOp>({centered, divisor}));
}

ArrayRef<OpRow> lpNormOps() {
  static const OpRow rows[] = {
      {"LpNormalization", 7, exactly(1), importLpNormalization},
      {"MeanVarianceNormalization", 9, exactly(1), importMeanVariance},
  };
  return rows;
}

} // namespace pipewright::frontend
