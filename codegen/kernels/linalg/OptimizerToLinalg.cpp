//===- OptimizerToLinalg.cpp - optimizer updates in linalg ----------------===//
//
// The formulas stand in NNOptimizer.td. Each result is a generic of its own;
// kernel fusion computes what they share once.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/linalg/LinalgBuilder.h"

#include "dialects/nn/NNOps.h"

using namespace mlir;

namespace pipewright::nn {

using Input = LinalgBuilder::Input;

namespace {
/// The parts of %h, as inputs of a generic over the weights.
struct Hyper {
  Input rate, inverseBeta1, inverseBeta2, gradientScale;
};
} // namespace

static Hyper hyperOf(Value h, unsigned rank, LinalgBuilder &builder) {
  return {builder.element(h, rank, 0), builder.element(h, rank, 1),
          builder.element(h, rank, 2), builder.element(h, rank, 3)};
}

/// The scaled gradient, with weight decay added.
static Value gradient(Value w, Value g, Input scale, double decay,
                      LinalgBuilder &builder) {
  return builder.pointwise(
      tensorType(w), {builder.same(w), builder.same(g), scale},
      [&](Scalars &s, ValueRange a) {
        Value scaled = s.mul(a[1], a[2]);
        return decay == 0.0 ? scaled
                            : s.add(scaled, s.mul(s.constant(decay), a[0]));
      });
}

/// beta * x + (1 - beta) * y, or of y squared.
static Value average(Value x, Value y, double beta, bool squared,
                     LinalgBuilder &builder) {
  return builder.pointwise(tensorType(x), {builder.same(x), builder.same(y)},
                           [&](Scalars &s, ValueRange a) {
                             Value fresh =
                                 squared ? s.mul(a[1], a[1]) : Value(a[1]);
                             return s.add(s.mul(s.constant(beta), a[0]),
                                          s.mul(s.constant(1.0 - beta), fresh));
                           });
}

/// w - rate * d
static Value step(Value w, Value d, Input rate, LinalgBuilder &builder) {
  return builder.pointwise(
      tensorType(w), {builder.same(w), builder.same(d), rate},
      [](Scalars &s, ValueRange a) { return s.sub(a[0], s.mul(a[2], a[1])); });
}

/// factor * x + y
static Value blend(Value x, Value y, double factor, LinalgBuilder &builder) {
  return builder.pointwise(tensorType(x), {builder.same(x), builder.same(y)},
                           [&](Scalars &s, ValueRange a) {
                             return s.add(s.mul(s.constant(factor), a[0]),
                                          a[1]);
                           });
}

static SmallVector<Value> lowerSgd(SgdOp op, LinalgBuilder &builder) {
  unsigned rank = tensorType(op.getW()).getRank();
  Hyper h = hyperOf(op.getH(), rank, builder);
  double momentum = op.getMomentum().convertToDouble();
  Value g = gradient(op.getW(), op.getG(), h.gradientScale,
                     op.getWeightDecay().convertToDouble(), builder);
  if (!op.getMomentumBuffer())
    return {step(op.getW(), g, h.rate, builder)};
  Value buffer = blend(op.getMomentumBuffer(), g, momentum, builder);
  Value d = op.getNesterov() ? blend(buffer, g, momentum, builder) : buffer;
  return {step(op.getW(), d, h.rate, builder), buffer};
}

template <typename AdamLike>
static SmallVector<Value> lowerAdam(AdamLike op, LinalgBuilder &builder) {
  constexpr bool decoupled = std::is_same_v<AdamLike, AdamWOp>;
  unsigned rank = tensorType(op.getW()).getRank();
  Hyper h = hyperOf(op.getH(), rank, builder);
  double decay = op.getWeightDecay().convertToDouble();
  double epsilon = op.getEps().convertToDouble();
  Value g = gradient(op.getW(), op.getG(), h.gradientScale,
                     decoupled ? 0.0 : decay, builder);
  Value m =
      average(op.getM(), g, op.getBeta1().convertToDouble(), false, builder);
  Value v =
      average(op.getV(), g, op.getBeta2().convertToDouble(), true, builder);
  Value w = builder.pointwise(
      tensorType(op.getW()),
      {builder.same(op.getW()), builder.same(m), builder.same(v), h.rate,
       h.inverseBeta1, h.inverseBeta2},
      [&](Scalars &s, ValueRange a) {
        Value weight = a[0];
        if (decoupled && decay != 0.0)
          weight = s.mul(
              weight, s.sub(s.constant(1.0), s.mul(a[3], s.constant(decay))));
        Value root = s.add(s.sqrt(s.mul(a[2], a[5])), s.constant(epsilon));
        return s.sub(weight, s.div(s.mul(s.mul(a[3], a[4]), a[1]), root));
      });
  return {w, m, v};
}

static SmallVector<Value> lowerRmsprop(RmspropOp op, LinalgBuilder &builder) {
  unsigned rank = tensorType(op.getW()).getRank();
  Hyper h = hyperOf(op.getH(), rank, builder);
  double epsilon = op.getEps().convertToDouble();
  Value g = gradient(op.getW(), op.getG(), h.gradientScale,
                     op.getWeightDecay().convertToDouble(), builder);
  Value v =
      average(op.getV(), g, op.getAlpha().convertToDouble(), true, builder);
  Value d = builder.pointwise(
      tensorType(g), {builder.same(g), builder.same(v)},
      [&](Scalars &s, ValueRange a) {
        return s.div(a[0], s.add(s.sqrt(a[1]), s.constant(epsilon)));
      });
  if (!op.getMomentumBuffer())
    return {step(op.getW(), d, h.rate, builder), v};
  Value buffer = blend(op.getMomentumBuffer(), d,
                       op.getMomentum().convertToDouble(), builder);
  return {step(op.getW(), buffer, h.rate, builder), v, buffer};
}

Lowered lowerOptimizer(Operation *op, LinalgBuilder &builder) {
  if (auto update = dyn_cast<SgdOp>(op))
    return lowerSgd(update, builder);
  if (auto update = dyn_cast<AdamOp>(op))
    return lowerAdam(update, builder);
  if (auto update = dyn_cast<AdamWOp>(op))
    return lowerAdam(update, builder);
  if (auto update = dyn_cast<RmspropOp>(op))
    return lowerRmsprop(update, builder);
  return failure();
}

} // namespace pipewright::nn
