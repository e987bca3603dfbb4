//===- Activation.cpp - Unary functions and activations -------------------===//
//
// Functions of one tensor. Those without an nn op of their own are composed
// from ones that have it.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"

#include <cmath>

using namespace mlir;

namespace pipewright::frontend {

template <typename OpTy>
static LogicalResult importUnary(NodeContext &n) {
  return n.setResult(0, n.b.create<OpTy>(n.value(0)));
}

/// Folds a function of floats.
template <float (*function)(float)>
static LogicalResult foldUnary(NodeContext &n) {
  ConstantTensor result = *n.constant(0);
  if (result.kind() != ElementKind::Float)
    return n.error() << "expects a float operand";
  for (int64_t k = 0, e = result.storedSize(); k < e; ++k)
    result.setFloat(k, function(result.floatAt(k)));
  return n.setResult(0, std::move(result));
}

static LogicalResult importFoldOnly(NodeContext &n) {
  return n.error() << "this operator is not supported on computed values";
}

static float negate(float v) { return -v; }
static float reciprocal(float v) { return 1.0f / v; }

static LogicalResult foldNeg(NodeContext &n) {
  ConstantTensor result = *n.constant(0);
  if (result.kind() == ElementKind::Float)
    return foldUnary<negate>(n);
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
static LogicalResult importSwish(NodeContext &n) {
  float alpha = n.floatAttribute("alpha", 1);
  Value x = n.value(0), scaled = x;
  if (alpha != 1)
    scaled = n.b.create<nn::MulOp>({x, n.b.splat(alpha)});
  return n.setResult(
      0, n.b.create<nn::MulOp>({x, n.b.create<nn::SigmoidOp>(scaled)}));
}

static LogicalResult importLeakyRelu(NodeContext &n) {
  float alpha = n.floatAttribute("alpha", 0.01f);
  if (alpha < 0 || alpha > 1)
    return n.error() << "alpha=" << std::to_string(alpha)
                     << " is not supported, only 0 to 1 is";
  Value x = n.value(0);
  Value small = n.b.create<nn::MulOp>({x, n.b.splat(alpha)});
  return n.setResult(0, n.b.create<nn::MaximumOp>({x, small}));
}

/// x where positive, else slope * x; the slope is a weight that broadcasts to
/// the input from the right.
static LogicalResult importPRelu(NodeContext &n) {
  Value x = n.value(0);
  Value above = n.b.create<nn::ReluOp>(x);
  if (!above)
    return failure();
  Value below = n.b.create<nn::MinimumOp>({x, n.b.splat(0)});
  below = n.b.create<nn::MulOp>({below, n.weight(1)});
  return n.setResult(0, n.b.create<nn::AddOp>({above, below}));
}

/// x where positive, else alpha * (e^x - 1); the exponent is capped at 0, so
/// that the side not taken does not overflow.
static LogicalResult importElu(NodeContext &n) {
  float alpha = n.floatAttribute("alpha", 1);
  Value x = n.value(0);
  Value above = n.b.create<nn::ReluOp>(x);
  if (!above)
    return failure();
  Value power =
      n.b.create<nn::ExpOp>(n.b.create<nn::MinimumOp>({x, n.b.splat(0)}));
  Value below = n.b.create<nn::MulOp>(
      {n.b.create<nn::SubOp>({power, n.b.splat(1)}), n.b.splat(alpha)});
  return n.setResult(0, n.b.create<nn::AddOp>({above, below}));
}

/// A NaN is what differs from itself.
static LogicalResult importIsNaN(NodeContext &n) {
  auto attr =
      nn::ComparePredicateAttr::get(&n.graph.context, nn::ComparePredicate::Ne);
  return n.setResult(0, n.b.create<nn::CompareOp>(
                            {n.value(0), n.value(0)},
                            n.b.getBuilder().getNamedAttr("predicate", attr)));
}

/// max(0, min(1, alpha x + beta))
static Value hardSigmoid(NodeContext &n, Value x, float alpha, float beta) {
  Value line = n.b.create<nn::AddOp>(
      {n.b.create<nn::MulOp>({x, n.b.splat(alpha)}), n.b.splat(beta)});
  Value top = n.b.create<nn::MinimumOp>({line, n.b.splat(1)});
  return n.b.create<nn::MaximumOp>({top, n.b.splat(0)});
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

/// Bounds are attributes up to opset 10 and inputs after.
static LogicalResult importClip(NodeContext &n) {
  Value x = n.value(0);
  if (!x)
    return failure();
  auto bound = [&](unsigned i, StringRef name) -> FailureOr<Value> {
    if (n.hasInput(i))
      return n.value(i);
    if (n.opset < 11 && n.hasAttribute(name))
      return n.b.splat(n.floatAttribute(name, 0));
    return Value();
  };
  FailureOr<Value> low = bound(1, "min"), high = bound(2, "max");
  if (*low)
    x = n.b.create<nn::MaximumOp>({x, *low});
  if (*high)
    x = n.b.create<nn::MinimumOp>({x, *high});
  return n.setResult(0, x);
}

/// log(1 + e^x) as max(x, 0) + log(1 + e^-|x|), which does not overflow.
static LogicalResult importSoftplus(NodeContext &n) {
  Value x = n.value(0);
  Value tail =
      n.b.create<nn::ExpOp>(n.b.create<nn::NegOp>(n.b.create<nn::AbsOp>(x)));
  Value log =
      n.b.create<nn::LogOp>(n.b.create<nn::AddOp>({tail, n.b.splat(1)}));
  if (!log)
    return failure();
  return n.setResult(0,
                     n.b.create<nn::AddOp>({n.b.create<nn::ReluOp>(x), log}));
}

/// An initializer that is read under a second name: exporters in evaluation
/// mode merge equal initializers, which would tie weights that are not.
static LogicalResult importIdentity(NodeContext &n) {
  const ImportedValue &input = n.input(0);
  if (!input.isWeight() || n.graph.trainingExport)
    return n.forward(0, 0);
  n.graph.untied.push_back(n.outputName(0).str());
  return n.graph.copyWeight(n.outputName(0), input);
}

ArrayRef<OpRow> activationOps() {
  static const OpRow rows[] = {
      {"Identity", 7, exactly(1), importIdentity},
      {"Neg", 7, exactly(1), importUnary<nn::NegOp>, foldNeg},
      {"Abs", 7, exactly(1), importUnary<nn::AbsOp>},
      {"Exp", 7, exactly(1), importUnary<nn::ExpOp>, foldUnary<std::exp>},
      {"Log", 7, exactly(1), importUnary<nn::LogOp>, foldUnary<std::log>},
      {"Sqrt", 7, exactly(1), importUnary<nn::SqrtOp>, foldUnary<std::sqrt>},
      {"Reciprocal", 7, exactly(1), importUnary<nn::ReciprocalOp>,
       foldUnary<reciprocal>},
      {"Erf", 9, exactly(1), importUnary<nn::ErfOp>, foldUnary<std::erf>},
      {"Tanh", 7, exactly(1), importUnary<nn::TanhOp>, foldUnary<std::tanh>},
      {"Sin", 7, exactly(1), importFoldOnly, foldUnary<std::sin>},
      {"Cos", 7, exactly(1), importFoldOnly, foldUnary<std::cos>},
      {"Floor", 7, exactly(1), importFoldOnly, foldUnary<std::floor>},
      {"Ceil", 7, exactly(1), importFoldOnly, foldUnary<std::ceil>},
      {"Sigmoid", 7, exactly(1), importUnary<nn::SigmoidOp>},
      {"Relu", 7, exactly(1), importUnary<nn::ReluOp>},
      {"Gelu", 20, exactly(1), importGelu},
      {"Swish", 24, exactly(1), importSwish},
      {"LeakyRelu", 7, exactly(1), importLeakyRelu},
      {"PRelu", 7, exactly(2), importPRelu},
      {"Elu", 7, exactly(1), importElu},
      {"IsNaN", 9, exactly(1), importIsNaN},
      {"HardSigmoid", 7, exactly(1), importHardSigmoid},
      {"HardSwish", 14, exactly(1), importHardSwish},
      {"Clip", 7, between(1, 3), importClip},
      {"Softplus", 7, exactly(1), importSoftplus},
  };
  return rows;
}

} // namespace pipewright::frontend
