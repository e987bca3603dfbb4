//===- Random.cpp - Dropout -----------------------------------------------===//
//
// Each dropout gets a number of its own, which keys its random stream.
//
// Where PyTorch drops in place or whole samples (stochastic depth), exporters
// write random numbers, a comparison or a floor that makes 0 and 1 of them, a
// division by the rate of those that are kept, and a product. These are
// followed until they meet the tensor, and are one nn.dropout then.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"

#include <cmath>

using namespace mlir;

namespace pipewright::frontend {

/// x as it is; the mask, if it is read, keeps all. It has x's type before opset
/// 10.
static LogicalResult keepAll(NodeContext &n) {
  ConstantTensor mask(n.opset < 10 ? ElementKind::Float : ElementKind::Bool,
                      n.shape(0), /*splat=*/true);
  if (mask.kind() == ElementKind::Float)
    mask.setFloat(0, 1);
  else
    mask.setBool(0, true);
  if (n.isOutputRead(1) && failed(n.setResult(1, std::move(mask))))
    return failure();
  return n.forward(0, 0);
}

/// Up to opset 11 the op has no mode: it is dropout when a program trains.
/// Since opset 12 rate and mode are inputs.
static LogicalResult importDropout(NodeContext &n) {
  n.intAttribute("seed", 0);
  float rate = 0.5f;
  bool training = true;
  if (n.opset < 12) {
    rate = n.floatAttribute("ratio", 0.5f);
  } else {
    const ConstantTensor *ratio = n.constant(1), *mode = n.constant(2);
    if ((n.hasInput(1) && (!ratio || ratio->size() != 1)) ||
        (n.hasInput(2) && (!mode || mode->size() != 1)))
      return n.error() << "expects a constant ratio and training_mode";
    if (ratio)
      rate = ratio->convertTo(ElementKind::Float).floatAt(0);
    training = mode && mode->convertTo(ElementKind::Bool).boolAt(0);
  }
  if (!training && !n.graph.trainDropout) {
    if (rate > 0 && isNotedAsAttention(n.node))
      n.graph.fixedAttentions.push_back(moduleOf(n.node));
    else
      n.graph.inferenceDropouts += rate > 0;
    return keepAll(n);
  }
  ++n.graph.activeDropouts;
  if (rate == 0)
    return keepAll(n);
  if (n.isOutputRead(1))
    return n.error() << "output 1 ('" << n.outputName(1)
                     << "'), the mask, is used while the node drops elements, "
                        "which is not supported";
  return n.setResult(
      0, n.b.create<nn::DropoutOp>(
             n.value(0), {n.b.real("rate", rate),
                          n.b.integer("id", n.graph.nextDropoutId++)}));
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

static LogicalResult setNoise(NodeContext &n, Noise noise,
                              ArrayRef<int64_t> shape) {
  ImportedValue value;
  value.kind = ImportedValue::Random;
  value.noise = noise;
  value.shape = Shape(shape);
  value.element = ElementKind::Float;
  return n.setResult(0, std::move(value));
}

static LogicalResult importUniform(NodeContext &n, ArrayRef<int64_t> shape) {
  n.intAttribute("dtype", 1);
  n.floatAttribute("seed", 0);
  float low = n.floatAttribute("low", 0), high = n.floatAttribute("high", 1);
  if (!(high - low == 1))
    return n.error() << "expects numbers from low to low + 1, but got low="
                     << std::to_string(low)
                     << " and high=" << std::to_string(high);
  Noise noise;
  noise.least = low;
  noise.id = n.graph.nextDropoutId++;
  return setNoise(n, noise, shape);
}

static LogicalResult importRandomUniform(NodeContext &n) {
  std::optional<Shape> shape = n.intsAttribute("shape");
  if (!shape || llvm::any_of(*shape, [](int64_t d) { return d < 1; }))
    return n.error() << "expects a shape of dimensions of 1 or more";
  return importUniform(n, *shape);
}

static LogicalResult importRandomUniformLike(NodeContext &n) {
  return importUniform(n, n.shape(0));
}

static LogicalResult importBernoulli(NodeContext &n) {
  n.intAttribute("dtype", 1);
  n.floatAttribute("seed", 0);
  const ConstantTensor *probability = n.constant(0);
  if (!probability || probability->kind() != ElementKind::Float ||
      !probability->isUniform() || probability->size() == 0)
    return n.error() << "expects one constant probability for all elements";
  Noise noise;
  noise.kind = Noise::Mask;
  noise.keep = std::clamp(probability->floatAt(0), 0.0f, 1.0f);
  noise.id = n.graph.nextDropoutId++;
  return setNoise(n, noise, n.shape(0));
}

/// Input `i` where it is one constant number.
static std::optional<double> numberAt(NodeContext &n, unsigned i) {
  const ConstantTensor *constant = n.constant(i);
  if (!constant || constant->kind() == ElementKind::Bool ||
      constant->size() == 0 || !constant->isUniform())
    return std::nullopt;
  return constant->kind() == ElementKind::Float ? double(constant->floatAt(0))
                                                : double(constant->intAt(0));
}

/// Whether numbers are below `bound` (or not below), as a mask.
static LogicalResult compareNoise(NodeContext &n, Noise noise, double bound,
                                  bool isBelow, ArrayRef<int64_t> shape) {
  double below = std::clamp(bound - noise.least, 0.0, 1.0);
  noise.kind = Noise::Mask;
  noise.keep = isBelow ? below : 1 - below;
  return setNoise(n, noise, shape);
}

/// x times a mask.
static LogicalResult dropBy(NodeContext &n, const Noise &noise, Value x,
                            ArrayRef<int64_t> shape) {
  if (!(noise.keep > 0))
    return n.error() << "drops all elements";
  ++n.graph.activeDropouts;
  // 1 less the float 0.8 is no longer 0.2, which the model was written with.
  double exact = 1 - noise.keep, round = std::round(exact * 1e6) / 1e6;
  float rate = float(std::abs(exact - round) < 1e-7 ? round : exact);
  double factor = noise.factor * noise.keep;
  auto drop = [&](Value kept) {
    return n.b.create<nn::DropoutOp>(
        kept, {n.b.real("rate", rate), n.b.integer("id", noise.id)});
  };
  if (rate <= 0)
    factor = noise.factor;
  else if (x && shapeOf(x) == shape)
    x = drop(x);
  else if (x)
    x = n.b.create<nn::MulOp>({x, drop(n.b.splat(1, shape))});
  // The rate and what is divided by are rounded on their own.
  if (std::abs(factor - 1) > 1e-6)
    x = n.b.create<nn::MulOp>({x, n.b.splat(float(factor))});
  return n.setResult(0, x);
}

LogicalResult importOfRandom(NodeContext &n) {
  StringRef op = n.node.op_type();
  unsigned at = n.input(0).isRandom() ? 0 : 1;
  Noise noise = n.input(at).noise;
  ArrayRef<int64_t> shape = n.shape(at);
  std::optional<double> number;
  if (n.numInputs() == 2)
    number = numberAt(n, 1 - at);
  bool isUniform = noise.kind == Noise::Uniform;
  if (isUniform && number) {
    if (op == "Less" || op == "LessOrEqual")
      return compareNoise(n, noise, *number, at == 0, shape);
    if (op == "Greater" || op == "GreaterOrEqual")
      return compareNoise(n, noise, *number, at == 1, shape);
    if (op == "Add" || (op == "Sub" && at == 0)) {
      noise.least += op == "Add" ? *number : -*number;
      return setNoise(n, noise, shape);
    }
  }
  if (isUniform && op == "Floor" && noise.least >= 0 && noise.least <= 1)
    return compareNoise(n, noise, 1, /*isBelow=*/false, shape);
  if (op == "Cast" || (op == "CastLike" && at == 0)) {
    n.intAttribute("to", 0);
    n.intAttribute("saturate", 1);
    return setNoise(n, noise, shape);
  }
  if (!isUniform && number && (op == "Mul" || (op == "Div" && at == 0)) &&
      *number != 0) {
    noise.factor *= op == "Mul" ? *number : 1 / *number;
    return setNoise(n, noise, shape);
  }
  if (!isUniform && op == "Mul" && !n.input(1 - at).isRandom())
    return dropBy(n, noise, n.value(1 - at), shape);
  // Some ask for no more than a shape or a type; all else says what it lacks.
  const OpRow *row = findOp(op);
  if (row->import && (n.numInputs() == 1 || op == "CastLike"))
    return row->import(n);
  n.value(at);
  return failure();
}

ArrayRef<OpRow> randomOps() {
  static const OpRow rows[] = {
      {"Dropout", 7, between(1, 3), importDropout},
      {"RandomUniform", 7, exactly(0), importRandomUniform},
      {"RandomUniformLike", 7, exactly(1), importRandomUniformLike},
      {"Bernoulli", 15, exactly(1), importBernoulli},
  };
  return rows;
}

} // namespace pipewright::frontend
