//===- OptimizerToLinalg.cpp - optimizer updates in linalg ----------------===//
//
// The formula of each optimizer. Each result is a generic of its own; kernel
// fusion computes what they share once.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/linalg/LinalgBuilder.h"

#include "dialects/nn/NNOps.h"

using namespace mlir;

namespace pipewright::nn {

using Input = LinalgBuilder::Input;

namespace {
/// What formulas are made of.
struct Update {
  UpdateOp op;
  LinalgBuilder &builder;
  OptimizerChoice choice;

  Value w() { return op.getW(); }
  Value g() { return op.getG(); }
  Value state(unsigned number) { return op.getStates()[number]; }
  RankedTensorType type() { return tensorType(op.getW()); }
  double number(StringRef name) const { return choice.get(name); }
  /// A scalar of the step, as an input of a generic over the weights.
  Input scalar(StringRef kind, StringRef of = "") {
    return builder.element(op.getH(), type().getRank(),
                           choice.row->positionOf(kind, of));
  }
  Input rate() { return scalar("LearningRate"); }
  /// `after`, or `before` where the gradients' scale is not a number.
  Value unlessSkipped(Value before, Value after);
  /// What a state becomes: later nests of a kernel read it where it is stored.
  Value newState(unsigned number, Value after) {
    return unlessSkipped(state(number), after);
  }
};
} // namespace

Value Update::unlessSkipped(Value before, Value after) {
  if (!op.getMaySkip())
    return after;
  return builder.pointwise(
      type(),
      {builder.same(before), builder.same(after), scalar("GradientScale")},
      [](Scalars &s, ValueRange a) {
        Value isSkipped =
            s.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, a[2], a[2]);
        return s.select(isSkipped, a[0], a[1]);
      });
}

/// The scaled gradient, with weight decay added.
static Value gradient(Update &u, double decay) {
  LinalgBuilder &builder = u.builder;
  return builder.pointwise(
      u.type(),
      {builder.same(u.w()), builder.same(u.g()), u.scalar("GradientScale")},
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

static SmallVector<Value> lowerSgd(Update &u) {
  double momentum = u.number("momentum");
  Value g = gradient(u, u.number("weight_decay"));
  if (momentum == 0.0)
    return {step(u.w(), g, u.rate(), u.builder)};
  Value buffer = u.newState(0, blend(u.state(0), g, momentum, u.builder));
  Value d = u.number("nesterov") != 0 ? blend(buffer, g, momentum, u.builder)
                                      : buffer;
  return {step(u.w(), d, u.rate(), u.builder), buffer};
}

/// What Adam divides its direction by.
static Value adamRoot(Scalars &s, Value v, Value correction, double epsilon) {
  return s.add(s.sqrt(s.mul(v, correction)), s.constant(epsilon));
}

/// `rateFactor` is what the learning rate is multiplied by.
static SmallVector<Value> lowerAdam(Update &u, bool isDecoupled, double decay,
                                    double rateFactor = 1) {
  LinalgBuilder &builder = u.builder;
  double epsilon = u.number("eps");
  Value g = gradient(u, isDecoupled ? 0.0 : decay);
  Value m =
      u.newState(0, average(u.state(0), g, u.number("beta1"), false, builder));
  Value v =
      u.newState(1, average(u.state(1), g, u.number("beta2"), true, builder));
  Value w = builder.pointwise(
      u.type(),
      {builder.same(u.w()), builder.same(m), builder.same(v), u.rate(),
       u.scalar("BiasCorrection", "beta1"),
       u.scalar("BiasCorrection", "beta2")},
      [&](Scalars &s, ValueRange a) {
        Value weight = a[0], rate = a[3];
        if (rateFactor != 1)
          rate = s.mul(rate, s.constant(rateFactor));
        if (isDecoupled && decay != 0.0)
          weight = s.mul(
              weight, s.sub(s.constant(1.0), s.mul(rate, s.constant(decay))));
        Value root = adamRoot(s, a[2], a[5], epsilon);
        return s.sub(weight, s.div(s.mul(s.mul(rate, a[4]), a[1]), root));
      });
  return {w, m, v};
}

static SmallVector<Value> lowerRmsprop(Update &u) {
  LinalgBuilder &builder = u.builder;
  double epsilon = u.number("eps"), momentum = u.number("momentum");
  Value g = gradient(u, u.number("weight_decay"));
  Value v =
      u.newState(0, average(u.state(0), g, u.number("alpha"), true, builder));
  Value d = builder.pointwise(
      tensorType(g), {builder.same(g), builder.same(v)},
      [&](Scalars &s, ValueRange a) {
        return s.div(a[0], s.add(s.sqrt(a[1]), s.constant(epsilon)));
      });
  if (momentum == 0.0)
    return {step(u.w(), d, u.rate(), builder), v};
  Value buffer = u.newState(1, blend(u.state(1), d, momentum, builder));
  return {step(u.w(), buffer, u.rate(), builder), v, buffer};
}

/// The sum of all squares, as an input of a generic over the weights.
static Input squares(Value x, LinalgBuilder &builder) {
  RankedTensorType type = tensorType(x);
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  Value sum = builder.reduce(
      Reduction::Sum, type.getShape(), axes, {builder.same(x)},
      [](Scalars &s, ValueRange a) { return s.mul(a[0], a[0]); });
  return builder.at(sum, type.getRank(), {});
}

static SmallVector<Value> lowerLamb(Update &u) {
  LinalgBuilder &builder = u.builder;
  double decay = u.number("weight_decay"), epsilon = u.number("eps");
  Value g = gradient(u, 0.0);
  Value m =
      u.newState(0, average(u.state(0), g, u.number("beta1"), false, builder));
  Value v =
      u.newState(1, average(u.state(1), g, u.number("beta2"), true, builder));
  Value d = builder.pointwise(
      u.type(),
      {builder.same(u.w()), builder.same(m), builder.same(v),
       u.scalar("BiasCorrection", "beta1"),
       u.scalar("BiasCorrection", "beta2")},
      [&](Scalars &s, ValueRange a) {
        Value root = adamRoot(s, a[2], a[4], epsilon);
        Value direction = s.div(s.mul(a[3], a[1]), root);
        return decay == 0.0 ? direction
                            : s.add(direction, s.mul(s.constant(decay), a[0]));
      });
  Value w = builder.pointwise(
      u.type(),
      {builder.same(u.w()), builder.same(d), u.rate(), squares(u.w(), builder),
       squares(d, builder)},
      [](Scalars &s, ValueRange a) {
        auto isPositive = [&](Value x) {
          return s.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, x,
                                       s.constant(0.0));
        };
        // How far the weight goes is a share of its own length.
        Value ratio = s.div(s.sqrt(a[3]), s.sqrt(a[4]));
        Value hasLengths =
            s.make<arith::AndIOp>(isPositive(a[3]), isPositive(a[4]));
        ratio = s.select(hasLengths, ratio, s.constant(1.0));
        return s.sub(a[0], s.mul(s.mul(a[2], ratio), a[1]));
      });
  return {w, m, v};
}

/// 1, -1 or 0; not a number stays what it is.
static Value sign(Scalars &s, Value x) {
  auto compare = [&](arith::CmpFPredicate predicate) {
    return s.make<arith::CmpFOp>(predicate, x, s.constant(0.0));
  };
  Value notAbove =
      s.select(compare(arith::CmpFPredicate::OLT), s.constant(-1.0), x);
  return s.select(compare(arith::CmpFPredicate::OGT), s.constant(1.0),
                  notAbove);
}

static SmallVector<Value> lowerLion(Update &u) {
  LinalgBuilder &builder = u.builder;
  double decay = u.number("weight_decay");
  Value g = gradient(u, 0.0);
  Value direction = average(u.state(0), g, u.number("beta1"), false, builder);
  Value m =
      u.newState(0, average(u.state(0), g, u.number("beta2"), false, builder));
  Value w = builder.pointwise(
      u.type(), {builder.same(u.w()), builder.same(direction), u.rate()},
      [&](Scalars &s, ValueRange a) {
        Value d = sign(s, a[1]);
        if (decay != 0.0)
          d = s.add(d, s.mul(s.constant(decay), a[0]));
        return s.sub(a[0], s.mul(a[2], d));
      });
  return {w, m};
}

/// What weights and states become, weights as if nothing were skipped.
static SmallVector<Value> lowerRule(Update &u) {
  switch (u.choice.row->rule) {
  case UpdateRule::Sgd:
    return lowerSgd(u);
  case UpdateRule::Adam:
    return lowerAdam(u, /*isDecoupled=*/false, u.number("weight_decay"));
  case UpdateRule::DecoupledAdam:
    return lowerAdam(u, /*isDecoupled=*/true, u.number("weight_decay"));
  case UpdateRule::Rmsprop:
    return lowerRmsprop(u);
  case UpdateRule::Lamb:
    return lowerLamb(u);
  case UpdateRule::Lion:
    return lowerLion(u);
  case UpdateRule::Muon:
    // Of what is no matrix.
    return lowerAdam(u, /*isDecoupled=*/true, u.number("adamw_weight_decay"),
                     u.number("adamw_lr_factor"));
  }
  llvm_unreachable("all rules are listed");
}

Lowered lowerOptimizer(Operation *op, LinalgBuilder &builder) {
  auto update = dyn_cast<UpdateOp>(op);
  if (!update)
    return failure();
  Update u{update, builder, update.getOptimizer().getChoice()};
  SmallVector<Value> results = lowerRule(u);
  results[0] = u.unlessSkipped(u.w(), results[0]);
  return results;
}

} // namespace pipewright::nn
