//===- Activation.cpp - Unary functions and activations -------------------===//
//
// Functions of one tensor. Those without an nn op of their own are composed
// from ones that have it.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Unary.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace pipewright::frontend {

template <typename OpTy>
static LogicalResult importUnary(NodeContext &n) {
  return n.setResult(0, n.b.create<OpTy>(n.value(0)));
}

static float negate(float v) { return -v; }
static float reciprocal(float v) { return 1.0f / v; }
static float sigmoid(float v) { return 1.0f / (1.0f + std::exp(-v)); }
static float relu(float v) { return v < 0 ? 0 : v; }
static float signOf(float v) { return v > 0 ? 1 : v < 0 ? -1 : v; }
static float softplus(float v) {
  return std::max(v, 0.0f) + std::log1p(std::exp(-std::abs(v)));
}

template <bool (*function)(float)>
static LogicalResult foldPredicate(NodeContext &n) {
  const ConstantTensor &x = *n.constant(0);
  if (x.kind() != ElementKind::Float)
    return n.error() << "expects a float operand";
  ConstantTensor result(ElementKind::Bool, x.shape(), x.isSplat());
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k)
    result.setBool(k, function(x.floatAt(k)));
  return n.setResult(0, std::move(result));
}

static LogicalResult foldAbs(NodeContext &n) {
  ConstantTensor result = *n.constant(0);
  if (result.kind() == ElementKind::Float)
    return foldUnary<std::abs>(n);
  if (result.kind() == ElementKind::Bool)
    return n.error() << "expects a number";
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k)
    if (int64_t v = result.intAt(k); v < 0)
      result.setInt(k, int64_t(-uint64_t(v)));
  return n.setResult(0, std::move(result));
}

static LogicalResult foldSign(NodeContext &n) {
  ConstantTensor result = *n.constant(0);
  if (result.kind() != ElementKind::Int)
    return foldUnary<signOf>(n);
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k)
    result.setInt(k, (result.intAt(k) > 0) - (result.intAt(k) < 0));
  return n.setResult(0, std::move(result));
}

static LogicalResult foldNeg(NodeContext &n) {
  ConstantTensor result = *n.constant(0);
  if (result.kind() == ElementKind::Float)
    return foldUnary<negate>(n);
  if (result.kind() == ElementKind::Bool)
    return n.error() << "expects a number";
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k)
    result.setInt(k, int64_t(-uint64_t(result.intAt(k))));
  return n.setResult(0, std::move(result));
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

static LogicalResult importGelu(NodeContext &n) {
  std::string name = n.stringAttribute("approximate", "none");
  auto kind = nn::symbolizeGeluApproximation(name);
  if (!kind)
    return n.error() << "approximate=" << name << " is not supported";
  auto attr = nn::GeluApproximationAttr::get(&n.graph.context, *kind);
  return n.setResult(
      0, n.b.create<nn::GeluOp>(
             n.value(0), n.b.getBuilder().getNamedAttr("approximate", attr)));
}

/// x * sigmoid(alpha x), which is what SiLU is called since opset 24.
static Value swish(NodeContext &n) {
  float alpha = n.floatAttribute("alpha", 1);
  Value x = n.value(0), scaled = x;
  if (alpha != 1)
    scaled = n.b.create<nn::MulOp>({x, n.b.splat(alpha)});
  return n.b.create<nn::MulOp>({x, n.b.create<nn::SigmoidOp>(scaled)});
}

static LogicalResult importSwish(NodeContext &n) {
  return n.setResult(0, swish(n));
}

static LogicalResult importSwiGlu(NodeContext &n) {
  if (n.shape(0) != n.shape(1))
    return n.error() << "expects a gate and values of one shape";
  Value gate = swish(n);
  if (!gate)
    return failure();
  return n.setResult(0, n.b.create<nn::MulOp>({gate, n.value(1)}));
}

/// Functions of two branches are choices, not maxima: at a kink the gradient
/// must be the one of PyTorch's formula, and not half of each side's.
static Value isPositive(NodeContext &n, Value x) {
  return n.b.compare(x, n.b.splat(0), nn::ComparePredicate::Gt);
}

/// x where it is not positive, else 0: what the branch below 0 computes from,
/// so that the side not taken is finite.
static Value notPositive(NodeContext &n, Value positive, Value x) {
  return n.b.create<nn::WhereOp>({positive, n.b.splat(0), x});
}

static LogicalResult importLeakyRelu(NodeContext &n) {
  float alpha = n.floatAttribute("alpha", 0.01f);
  Value x = n.value(0), positive = isPositive(n, x);
  if (!positive)
    return failure();
  Value below = n.b.create<nn::MulOp>({x, n.b.splat(alpha)});
  return n.setResult(0, n.b.create<nn::WhereOp>({positive, x, below}));
}

/// x where positive, else slope * x; the slope is a weight that broadcasts to
/// the input from the right.
static LogicalResult importPRelu(NodeContext &n) {
  Value x = n.value(0), positive = isPositive(n, x);
  if (!positive)
    return failure();
  Value below =
      n.b.create<nn::MulOp>({notPositive(n, positive, x), n.weight(1)});
  return n.setResult(0, n.b.create<nn::WhereOp>({positive, x, below}));
}

/// `x` times a number, and no op where that is 1.
static Value times(NodeContext &n, Value x, float factor) {
  return factor == 1 ? x : n.b.create<nn::MulOp>({x, n.b.splat(factor)});
}

/// x where positive, else alpha * (e^(x / width) - 1).
static LogicalResult exponentialBelowZero(NodeContext &n, float alpha,
                                          float width, float gamma) {
  Value x = n.value(0), positive = isPositive(n, x);
  if (!positive)
    return failure();
  Value inner = notPositive(n, positive, x);
  if (width != 1)
    inner = n.b.create<nn::DivOp>({inner, n.b.splat(width)});
  Value below = times(n, n.b.create<nn::Expm1Op>(inner), alpha);
  Value y = n.b.create<nn::WhereOp>({positive, x, below});
  return n.setResult(0, times(n, y, gamma));
}

static LogicalResult importElu(NodeContext &n) {
  return exponentialBelowZero(n, n.floatAttribute("alpha", 1), /*width=*/1,
                              /*gamma=*/1);
}

/// As Elu, with a slope of 1 on both sides of 0.
static LogicalResult importCelu(NodeContext &n) {
  float alpha = n.floatAttribute("alpha", 1);
  if (alpha == 0)
    return n.error() << "expects alpha not to be 0";
  return exponentialBelowZero(n, alpha, /*width=*/alpha, /*gamma=*/1);
}

/// Elu times gamma; both numbers are chosen to keep mean 0 and variance 1.
static LogicalResult importSelu(NodeContext &n) {
  return exponentialBelowZero(n, n.floatAttribute("alpha", 1.67326319f),
                              /*width=*/1,
                              n.floatAttribute("gamma", 1.05070102f));
}

/// x above alpha, else 0.
static LogicalResult importThresholdedRelu(NodeContext &n) {
  Value x = n.value(0);
  Value isAbove = n.b.compare(x, n.b.splat(n.floatAttribute("alpha", 1)),
                              nn::ComparePredicate::Gt);
  return n.setResult(0, n.b.create<nn::WhereOp>({isAbove, x, n.b.splat(0)}));
}

/// x / (1 + |x|)
static LogicalResult importSoftsign(NodeContext &n) {
  Value x = n.value(0);
  Value size = n.b.create<nn::AddOp>({n.b.create<nn::AbsOp>(x), n.b.splat(1)});
  return n.setResult(0, n.b.create<nn::DivOp>({x, size}));
}

/// x * tanh(softplus(x))
static LogicalResult importMish(NodeContext &n) {
  Value x = n.value(0);
  Value gate = n.b.create<nn::TanhOp>(n.b.create<nn::SoftplusOp>(x));
  return n.setResult(0, n.b.create<nn::MulOp>({x, gate}));
}

/// A NaN is what differs from itself.
static LogicalResult importIsNaN(NodeContext &n) {
  return n.setResult(
      0, n.b.compare(n.value(0), n.value(0), nn::ComparePredicate::Ne));
}

Value bounded(NodeContext &n, Value x, Value bound,
              nn::ComparePredicate beyond) {
  return n.b.create<nn::WhereOp>({n.b.compare(x, bound, beyond), bound, x});
}

/// max(0, min(1, alpha x + beta))
static Value hardSigmoid(NodeContext &n, Value x, float alpha, float beta) {
  Value line = n.b.create<nn::AddOp>(
      {n.b.create<nn::MulOp>({x, n.b.splat(alpha)}), n.b.splat(beta)});
  Value top = bounded(n, line, n.b.splat(1), nn::ComparePredicate::Ge);
  return bounded(n, top, n.b.splat(0), nn::ComparePredicate::Le);
}

static LogicalResult importHardSigmoid(NodeContext &n) {
  float alpha = n.floatAttribute("alpha", 0.2f);
  float beta = n.floatAttribute("beta", 0.5f);
  return n.setResult(0, hardSigmoid(n, n.value(0), alpha, beta));
}

static LogicalResult importHardSwish(NodeContext &n) {
  Value x = n.value(0);
  return n.setResult(
      0, n.b.create<nn::MulOp>({x, hardSigmoid(n, x, 1.0f / 6, 0.5f)}));
}

/// One bound of Clip; null where there is none. Bounds are attributes up to
/// opset 10 and inputs after. A computed one is torch.maximum's or minimum's
/// operand, and shares the gradient where x is the bound.
template <typename ChoiceOp>
static Value clipAt(NodeContext &n, Value x, unsigned i, StringRef name,
                    nn::ComparePredicate beyond) {
  if (n.opset < 11 && n.hasAttribute(name))
    return bounded(n, x, n.b.splat(n.floatAttribute(name, 0)), beyond);
  if (!n.hasInput(i))
    return x;
  Value bound = n.value(i);
  if (n.constant(i))
    return bounded(n, x, bound, beyond);
  return n.b.create<ChoiceOp>({x, bound});
}

static LogicalResult importClip(NodeContext &n) {
  Value x = n.value(0);
  if (!x)
    return failure();
  x = clipAt<nn::MaximumOp>(n, x, 1, "min", nn::ComparePredicate::Le);
  x = clipAt<nn::MinimumOp>(n, x, 2, "max", nn::ComparePredicate::Ge);
  return n.setResult(0, x);
}

/// An initializer that is read under a second name: exporters in evaluation
/// mode merge equal initializers, which would tie weights that are not.
static LogicalResult importIdentity(NodeContext &n) {
  const ImportedValue &input = n.input(0);
  if (!input.isWeight() || n.graph.trainingExport || n.graph.isInSubgraph())
    return n.forward(0, 0);
  n.graph.untied.push_back(n.outputName(0).str());
  n.graph.copyWeight(n.outputName(0), input);
  return success();
}

Value floatOperand(NodeContext &n) {
  if (n.input(0).element == ElementKind::Float)
    return n.value(0);
  n.error() << "expects a float operand";
  return Value();
}

/// Its gradient is 0 everywhere.
static LogicalResult importSign(NodeContext &n) {
  Value x = floatOperand(n);
  auto number = [&](float value) { return n.b.splat(value); };
  Value isAbove = n.b.compare(x, number(0), nn::ComparePredicate::Gt);
  Value isBelow = n.b.compare(x, number(0), nn::ComparePredicate::Lt);
  Value negative = n.b.create<nn::WhereOp>({isBelow, number(-1), number(0)});
  return n.setResult(0,
                     n.b.create<nn::WhereOp>({isAbove, number(1), negative}));
}

Value floorOf(NodeContext &n, Value x) {
  auto number = [&](float value) { return n.b.splat(value); };
  Value whole = n.b.cast(n.b.cast(x, ElementKind::Int), ElementKind::Float);
  Value isAbove = n.b.compare(whole, x, nn::ComparePredicate::Gt);
  Value below = n.b.create<nn::SubOp>({whole, number(1)});
  Value floor = n.b.create<nn::WhereOp>({isAbove, below, whole});
  // Beyond 2^62 floats are whole; infinities and NaN are no integers.
  Value isSmall = n.b.compare(n.b.create<nn::AbsOp>(x), number(0x1p62f),
                              nn::ComparePredicate::Lt);
  return n.b.create<nn::WhereOp>({isSmall, floor, x});
}

static LogicalResult importFloor(NodeContext &n) {
  Value x = floatOperand(n);
  return n.setResult(0, x ? floorOf(n, x) : x);
}

static LogicalResult importCeil(NodeContext &n) {
  Value x = floatOperand(n);
  if (!x)
    return failure();
  return n.setResult(
      0, n.b.create<nn::NegOp>(floorOf(n, n.b.create<nn::NegOp>(x))));
}

Value roundToEven(NodeContext &n, Value x) {
  auto number = [&](float value) { return n.b.splat(value); };
  Value floor = floorOf(n, x);
  Value rest = n.b.create<nn::SubOp>({x, floor});
  Value half = n.b.create<nn::MulOp>({floor, number(0.5f)});
  Value isOdd = n.b.compare(half, floorOf(n, half), nn::ComparePredicate::Ne);
  Value next = n.b.create<nn::AddOp>({floor, number(1)});
  Value ofHalf = n.b.create<nn::WhereOp>({isOdd, next, floor});
  Value isHalf = n.b.compare(rest, number(0.5f), nn::ComparePredicate::Eq);
  Value isMore = n.b.compare(rest, number(0.5f), nn::ComparePredicate::Gt);
  return n.b.create<nn::WhereOp>(
      {isHalf, ofHalf, n.b.create<nn::WhereOp>({isMore, next, floor})});
}

static LogicalResult importRound(NodeContext &n) {
  Value x = floatOperand(n);
  return n.setResult(0, x ? roundToEven(n, x) : x);
}

/// x less bias above lambd, x plus bias below -lambd, else 0.
static LogicalResult importShrink(NodeContext &n) {
  float bias = n.floatAttribute("bias", 0),
        edge = n.floatAttribute("lambd", 0.5f);
  Value x = floatOperand(n);
  auto number = [&](float value) { return n.b.splat(value); };
  Value isAbove = n.b.compare(x, number(edge), nn::ComparePredicate::Gt);
  Value isBelow = n.b.compare(x, number(-edge), nn::ComparePredicate::Lt);
  Value low = n.b.create<nn::AddOp>({x, number(bias)});
  Value high = n.b.create<nn::SubOp>({x, number(bias)});
  return n.setResult(
      0,
      n.b.create<nn::WhereOp>(
          {isAbove, high, n.b.create<nn::WhereOp>({isBelow, low, number(0)})}));
}

static LogicalResult importIsInf(NodeContext &n) {
  bool positive = n.intAttribute("detect_positive", 1),
       negative = n.intAttribute("detect_negative", 1);
  float infinity = std::numeric_limits<float>::infinity();
  Value x = floatOperand(n);
  if (!positive && !negative) {
    // Nothing is more than infinity.
    return n.setResult(
        0, n.b.compare(x, n.b.splat(infinity), nn::ComparePredicate::Gt));
  }
  if (positive && negative)
    x = n.b.create<nn::AbsOp>(x);
  return n.setResult(0,
                     n.b.compare(x, n.b.splat(positive ? infinity : -infinity),
                                 nn::ComparePredicate::Eq));
}

ArrayRef<OpRow> activationOps() {
  static const OpRow rows[] = {
      {"Identity", 7, exactly(1), importIdentity, nullptr, kAnyNumber},
      {"Neg", 7, exactly(1), importUnary<nn::NegOp>, foldNeg},
      {"Abs", 7, exactly(1), importUnary<nn::AbsOp>, foldAbs},
      {"Exp", 7, exactly(1), importUnary<nn::ExpOp>, foldUnary<std::exp>},
      {"Log", 7, exactly(1), importUnary<nn::LogOp>, foldUnary<std::log>},
      {"Sqrt", 7, exactly(1), importUnary<nn::SqrtOp>, foldUnary<std::sqrt>},
      {"Reciprocal", 7, exactly(1), importUnary<nn::ReciprocalOp>,
       foldUnary<reciprocal>},
      {"Erf", 9, exactly(1), importUnary<nn::ErfOp>, foldUnary<std::erf>},
      {"Tanh", 7, exactly(1), importUnary<nn::TanhOp>, foldUnary<std::tanh>},
      {"Floor", 7, exactly(1), importFloor, foldUnary<std::floor>},
      {"Ceil", 7, exactly(1), importCeil, foldUnary<std::ceil>},
      {"Round", 11, exactly(1), importRound, foldUnary<std::nearbyint>},
      {"Sign", 9, exactly(1), importSign, foldSign},
      {"Shrink", 9, exactly(1), importShrink},
      {"IsInf", 10, exactly(1), importIsInf},
      {"Sigmoid", 7, exactly(1), importUnary<nn::SigmoidOp>,
       foldUnary<sigmoid>},
      {"Relu", 7, exactly(1), importUnary<nn::ReluOp>, foldUnary<relu>},
      {"Gelu", 20, exactly(1), importGelu},
      {"Swish", 24, exactly(1), importSwish},
      {"SwiGLU", 28, exactly(2), importSwiGlu},
      {"LeakyRelu", 7, exactly(1), importLeakyRelu},
      {"PRelu", 7, exactly(2), importPRelu},
      {"Elu", 7, exactly(1), importElu},
      {"Celu", 12, exactly(1), importCelu},
      {"Selu", 7, exactly(1), importSelu},
      {"ThresholdedRelu", 10, exactly(1), importThresholdedRelu},
      {"Softsign", 7, exactly(1), importSoftsign},
      {"Mish", 18, exactly(1), importMish},
      {"IsNaN", 9, exactly(1), importIsNaN, foldPredicate<std::isnan>},
      {"HardSigmoid", 7, exactly(1), importHardSigmoid},
      {"HardSwish", 14, exactly(1), importHardSwish},
      {"Clip", 7, between(1, 3), importClip},
      {"Softplus", 7, exactly(1), importUnary<nn::SoftplusOp>,
       foldUnary<softplus>},
  };
  return rows;
}

} // namespace pipewright::frontend
