//===- Recurrent.cpp - LSTM, GRU and RNN ----------------------------------===//
//
// A recurrent layer is unrolled: the inputs of all steps meet their weights in
// one product, and each step has one product with the state that the step
// before it left.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/GateOrder.h"
#include "support/Text.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {
enum class Cell { Lstm, Gru, Rnn };

/// A function of a gate.
struct Activation {
  std::string name;
  float alpha = 0, beta = 0;
};

/// What a node says about itself, with the sizes of its operands.
struct Layer {
  Cell cell;
  /// Gates that have weights, and activations, of a step.
  int64_t gates, functions;
  int64_t steps, batch, inputs, hidden, directions;
  bool reversesFirst, batchFirst, inputForget, linearBeforeReset;
  float clip;
  std::vector<Activation> activations;
};

/// What one direction computes with; null where it is left out.
struct Direction {
  Value weights, recurrent, inputBias, stateBias, peepholes;
  Value hidden, cell;
  /// Where weights and biases have the gates, in ONNX's order.
  SmallVector<int64_t> places;
  bool isReversed;
  ArrayRef<Activation> functions;
  /// Of each step, in the order of time; and the states at the end.
  SmallVector<Value> outputs;
};
} // namespace

/// A step is some twenty ops, of which each becomes code.
static constexpr int64_t kMostSteps = 4096;

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// The default alpha and beta of an activation; none if there is no such one.
static std::optional<Activation> activationOf(StringRef name) {
  struct Row {
    StringRef name;
    float alpha, beta;
  };
  static constexpr Row rows[] = {
      {"Sigmoid", 0, 0},       {"Tanh", 0, 0},
      {"Relu", 0, 0},          {"Affine", 1, 0},
      {"LeakyRelu", 0.01f, 0}, {"ThresholdedRelu", 1, 0},
      {"ScaledTanh", 1, 1},    {"HardSigmoid", 0.2f, 0.5f},
      {"Elu", 1, 0},           {"Softsign", 0, 0},
      {"Softplus", 0, 0}};
  for (const Row &row : rows)
    if (row.name.equals_insensitive(name))
      return Activation{row.name.str(), row.alpha, row.beta};
  return std::nullopt;
}

static Value activate(NodeContext &n, const Activation &function, Value x) {
  StringRef name = function.name;
  auto number = [&](float value) { return n.b.splat(value); };
  auto mul = [&](Value a, float b) {
    return n.b.create<nn::MulOp>({a, number(b)});
  };
  auto below = [&](float bound) {
    return n.b.compare(x, number(bound), nn::ComparePredicate::Le);
  };
  auto where = [&](Value condition, Value a, Value b) {
    return n.b.create<nn::WhereOp>({condition, a, b});
  };
  if (name == "Sigmoid")
    return n.b.create<nn::SigmoidOp>(x);
  if (name == "Tanh")
    return n.b.create<nn::TanhOp>(x);
  if (name == "Relu")
    return n.b.create<nn::ReluOp>(x);
  if (name == "Affine")
    return n.b.create<nn::AddOp>(
        {mul(x, function.alpha), number(function.beta)});
  if (name == "LeakyRelu")
    return where(below(0), mul(x, function.alpha), x);
  if (name == "ThresholdedRelu")
    return where(below(function.alpha), number(0), x);
  if (name == "ScaledTanh")
    return mul(n.b.create<nn::TanhOp>(mul(x, function.beta)), function.alpha);
  if (name == "HardSigmoid") {
    Value line =
        n.b.create<nn::AddOp>({mul(x, function.alpha), number(function.beta)});
    line = n.b.create<nn::MaximumOp>({line, number(0)});
    return n.b.create<nn::MinimumOp>({line, number(1)});
  }
  if (name == "Elu") {
    // Where x is above 0 the exponential sees 0, so that it is finite.
    Value isBelow = below(0);
    Value exponential = n.b.create<nn::Expm1Op>(where(isBelow, x, number(0)));
    return where(isBelow, mul(exponential, function.alpha), x);
  }
  if (name == "Softsign")
    return n.b.create<nn::DivOp>(
        {x, n.b.create<nn::AddOp>({n.b.create<nn::AbsOp>(x), number(1)})});
  return n.b.create<nn::SoftplusOp>(x);
}

//===----------------------------------------------------------------------===//
// Attributes and operands
//===----------------------------------------------------------------------===//

static FailureOr<SmallVector<float>> floatsAttribute(NodeContext &n,
                                                     StringRef name) {
  SmallVector<float> values;
  const onnx::AttributeProto *attribute = n.attribute(name);
  if (!attribute)
    return values;
  if (attribute->type() != onnx::AttributeProto::FLOATS)
    return n.error() << "attribute " << name << " is not a list of floats";
  values.append(attribute->floats().begin(), attribute->floats().end());
  return values;
}

/// The activations of all directions, with their alphas and betas.
static FailureOr<std::vector<Activation>>
readActivations(NodeContext &n, const Layer &layer,
                ArrayRef<StringRef> defaults) {
  SmallVector<std::string> names;
  if (const onnx::AttributeProto *given = n.attribute("activations")) {
    names.append(given->strings().begin(), given->strings().end());
    if (int64_t(names.size()) != layer.directions * layer.functions)
      return n.error() << "expects " << layer.directions * layer.functions
                       << " activations, but got " << names.size();
  } else {
    for (int64_t d = 0; d < layer.directions; ++d)
      for (StringRef name : defaults)
        names.push_back(name.str());
  }
  auto alphas = floatsAttribute(n, "activation_alpha");
  if (failed(alphas))
    return failure();
  auto betas = floatsAttribute(n, "activation_beta");
  if (failed(betas))
    return failure();
  std::vector<Activation> result;
  // Each list has entries for those activations that have such a number.
  size_t nextAlpha = 0, nextBeta = 0;
  for (const std::string &name : names) {
    std::optional<Activation> activation = activationOf(name);
    if (!activation)
      return n.error() << "activation '" << text::printable(name)
                       << "' is not supported";
    if (activation->alpha != 0 && nextAlpha < alphas->size())
      activation->alpha = (*alphas)[nextAlpha++];
    if (activation->beta != 0 && nextBeta < betas->size())
      activation->beta = (*betas)[nextBeta++];
    else if (activation->name == "Affine" && nextBeta < betas->size())
      activation->beta = (*betas)[nextBeta++];
    result.push_back(*activation);
  }
  return result;
}

static FailureOr<Layer> readLayer(NodeContext &n, Cell cell) {
  Layer layer;
  layer.cell = cell;
  layer.gates = cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1;
  layer.functions = cell == Cell::Lstm ? 3 : cell == Cell::Gru ? 2 : 1;
  std::string direction = n.stringAttribute("direction", "forward");
  if (direction != "forward" && direction != "reverse" &&
      direction != "bidirectional")
    return n.error() << "direction=" << text::printable(direction)
                     << " is not supported";
  layer.reversesFirst = direction == "reverse";
  layer.directions = direction == "bidirectional" ? 2 : 1;
  layer.batchFirst = n.opset >= 14 && n.intAttribute("layout", 0) != 0;
  layer.inputForget =
      cell == Cell::Lstm && n.intAttribute("input_forget", 0) != 0;
  layer.linearBeforeReset =
      cell == Cell::Gru && n.intAttribute("linear_before_reset", 0) != 0;
  layer.clip = n.floatAttribute("clip", 0);
  for (unsigned i = 0; i < 3; ++i)
    if (n.rank(i) != 3)
      return n.error() << "expects X, W and R of rank 3, but input " << i
                       << " has rank " << n.rank(i);
  layer.steps = n.shape(0)[layer.batchFirst ? 1 : 0];
  layer.batch = n.shape(0)[layer.batchFirst ? 0 : 1];
  layer.inputs = n.shape(0)[2];
  layer.hidden = n.shape(2)[2];
  if (int64_t given = n.intAttribute("hidden_size", layer.hidden);
      given != layer.hidden)
    return n.error() << "hidden_size=" << given << ", but R has "
                     << layer.hidden << " columns";
  int64_t d = layer.directions, h = layer.hidden, g = layer.gates * h;
  if (layer.steps < 1 || layer.batch < 1 || h < 1)
    return n.error() << "expects at least one step, sample and unit";
  if (layer.steps > kMostSteps)
    return n.error() << "has " << layer.steps << " steps, but at most "
                     << kMostSteps << " are unrolled";
  Shape state =
      layer.batchFirst ? Shape{layer.batch, d, h} : Shape{d, layer.batch, h};
  if (failed(n.expectShape(1, "W", {d, g, layer.inputs})) ||
      failed(n.expectShape(2, "R", {d, g, h})) ||
      (n.numInputs() > 3 && failed(n.expectShape(3, "B", {d, 2 * g}))) ||
      (n.numInputs() > 4 &&
       failed(n.expectShape(4, "sequence_lens", {layer.batch}))) ||
      (n.numInputs() > 5 && failed(n.expectShape(5, "initial_h", state))) ||
      (n.numInputs() > 6 && failed(n.expectShape(6, "initial_c", state))) ||
      (n.numInputs() > 7 && failed(n.expectShape(7, "P", {d, 3 * h}))))
    return failure();
  static constexpr StringRef lstm[] = {"Sigmoid", "Tanh", "Tanh"};
  static constexpr StringRef gru[] = {"Sigmoid", "Tanh"};
  static constexpr StringRef rnn[] = {"Tanh"};
  auto activations = readActivations(n, layer,
                                     cell == Cell::Lstm  ? ArrayRef(lstm)
                                     : cell == Cell::Gru ? ArrayRef(gru)
                                                         : ArrayRef(rnn));
  if (failed(activations))
    return failure();
  layer.activations = std::move(*activations);
  return layer;
}

/// Row `d` of an operand of all directions; null where it is left out.
static Value ofDirection(NodeContext &n, unsigned input, int64_t d,
                         int64_t axis = 0) {
  if (!n.hasInput(input))
    return Value();
  // Zeros that a run begins with are no weight.
  bool isState = input == 5 || input == 6;
  Value x =
      n.b.sliceAxis(isState ? n.value(input) : n.weight(input), axis, d, 1);
  Shape shape(n.shape(input));
  shape.erase(shape.begin() + axis);
  return x ? n.b.reshape(x, shape) : Value();
}

static Value columns(NodeContext &n, Value x, int64_t start, int64_t count) {
  return n.b.sliceAxis(x, shapeOf(x).size() - 1, start, count);
}

/// Takes weights and biases with their gates as they are stored, if all have
/// one order.
static void takeStoredGates(NodeContext &n, const Layer &layer,
                            Direction &direction) {
  direction.places = llvm::to_vector(llvm::seq(layer.gates));
  // Its steps read two gates of three by one slice.
  if (layer.cell == Cell::Gru && !layer.linearBeforeReset)
    return;
  SmallVector<std::pair<Value *, StoredGates>> all;
  for (Value *each : {&direction.weights, &direction.recurrent,
                      &direction.inputBias, &direction.stateBias})
    if (*each)
      all.push_back({each, findStoredGates(*each, layer.gates)});
  for (auto &[each, stored] : all)
    if (stored.places != all.front().second.places)
      return;
  for (auto &[each, stored] : all)
    *each = n.b.reshape(stored.tensor, shapeOf(*each));
  direction.places = all.front().second.places;
}

static Direction readDirection(NodeContext &n, const Layer &layer, int64_t d) {
  Direction result;
  int64_t width = layer.gates * layer.hidden;
  result.isReversed = layer.reversesFirst || d == 1;
  result.functions =
      ArrayRef(layer.activations).slice(d * layer.functions, layer.functions);
  result.weights = ofDirection(n, 1, d);
  result.recurrent = ofDirection(n, 2, d);
  if (Value bias = ofDirection(n, 3, d)) {
    result.inputBias = columns(n, bias, 0, width);
    result.stateBias = columns(n, bias, width, width);
  }
  int64_t axis = layer.batchFirst ? 1 : 0;
  result.hidden = ofDirection(n, 5, d, axis);
  result.cell = ofDirection(n, 6, d, axis);
  result.peepholes = ofDirection(n, 7, d);
  Shape state = {layer.batch, layer.hidden};
  if (!result.hidden)
    result.hidden = n.b.splat(0, state);
  if (!result.cell && layer.cell == Cell::Lstm)
    result.cell = n.b.splat(0, state);
  takeStoredGates(n, layer, result);
  return result;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {
/// One step of one direction, on [batch, ...].
class Step {
public:
  Step(NodeContext &n, const Layer &layer, const Direction &direction)
      : n(n), layer(layer), direction(direction) {}

  /// The next state from the inputs' product [batch, gates * hidden].
  void run(Value inputs, Value &hidden, Value &cell) {
    switch (layer.cell) {
    case Cell::Lstm:
      return runLstm(inputs, hidden, cell);
    case Cell::Gru:
      return runGru(inputs, hidden);
    case Cell::Rnn: {
      Value sum = add(inputs, times(hidden, direction.recurrent));
      hidden = apply(0, sum);
      return;
    }
    }
  }

private:
  Value add(Value a, Value b) { return n.b.create<nn::AddOp>({a, b}); }
  Value mul(Value a, Value b) { return n.b.create<nn::MulOp>({a, b}); }
  Value times(Value state, Value weights) {
    return n.b.create<nn::MatmulOp>({state, weights}, n.b.unit("transpose_b"));
  }
  Value gate(Value all, int64_t i) {
    return columns(n, all, direction.places[i] * layer.hidden, layer.hidden);
  }
  Value rows(Value weights, int64_t first, int64_t count) {
    return n.b.sliceAxis(weights, 0, first * layer.hidden,
                         count * layer.hidden);
  }
  Value apply(int64_t function, Value x) {
    if (layer.clip > 0) {
      x = n.b.create<nn::MaximumOp>({x, n.b.splat(-layer.clip)});
      x = n.b.create<nn::MinimumOp>({x, n.b.splat(layer.clip)});
    }
    return activate(n, direction.functions[function], x);
  }
  /// What a gate sees of the cell: peephole `i` times it.
  Value withPeephole(Value x, int64_t i, Value cell) {
    if (!direction.peepholes)
      return x;
    Value peephole =
        columns(n, direction.peepholes, i * layer.hidden, layer.hidden);
    return add(x, mul(peephole, cell));
  }

  /// Gates in ONNX's order: input, output, forget, cell.
  void runLstm(Value inputs, Value &hidden, Value &cell) {
    Value all = add(inputs, times(hidden, direction.recurrent));
    Value input = apply(0, withPeephole(gate(all, 0), 0, cell));
    Value forget = layer.inputForget
                       ? n.b.create<nn::SubOp>({n.b.splat(1), input})
                       : apply(0, withPeephole(gate(all, 2), 2, cell));
    Value candidate = apply(1, gate(all, 3));
    cell = add(mul(forget, cell), mul(input, candidate));
    Value output = apply(0, withPeephole(gate(all, 1), 1, cell));
    hidden = mul(output, activate(n, direction.functions[2], cell));
  }

  /// Gates in ONNX's order: update, reset, hidden.
  void runGru(Value inputs, Value &hidden) {
    Value update, reset, candidate;
    if (layer.linearBeforeReset) {
      Value state = times(hidden, direction.recurrent);
      if (direction.stateBias)
        state = add(state, direction.stateBias);
      update = apply(0, add(gate(inputs, 0), gate(state, 0)));
      reset = apply(0, add(gate(inputs, 1), gate(state, 1)));
      candidate = apply(1, add(gate(inputs, 2), mul(reset, gate(state, 2))));
    } else {
      Value state = times(hidden, rows(direction.recurrent, 0, 2));
      update = apply(0, add(gate(inputs, 0), gate(state, 0)));
      reset = apply(0, add(gate(inputs, 1), gate(state, 1)));
      candidate = apply(
          1, add(gate(inputs, 2),
                 times(mul(reset, hidden), rows(direction.recurrent, 2, 1))));
    }
    Value kept = n.b.create<nn::SubOp>({n.b.splat(1), update});
    hidden = add(mul(kept, candidate), mul(update, hidden));
  }

  NodeContext &n;
  const Layer &layer;
  const Direction &direction;
};
} // namespace

/// The product of all steps' inputs, [steps, batch, gates * hidden], with the
/// biases that are added whatever the state.
static Value multiplyInputs(NodeContext &n, const Layer &layer,
                            const Direction &direction, Value x) {
  int64_t width = layer.gates * layer.hidden;
  x = n.b.reshape(x, {layer.steps * layer.batch, layer.inputs});
  x = n.b.create<nn::MatmulOp>({x, direction.weights}, n.b.unit("transpose_b"));
  if (direction.inputBias)
    x = n.b.create<nn::AddOp>({x, direction.inputBias});
  if (direction.stateBias && !layer.linearBeforeReset)
    x = n.b.create<nn::AddOp>({x, direction.stateBias});
  return n.b.reshape(x, {layer.steps, layer.batch, width});
}

/// Which samples have a step `t`, [batch, 1]; null where all have all.
static Value samplesWithStep(NodeContext &n, const Layer &layer, int64_t t) {
  if (!n.hasInput(4))
    return Value();
  if (const ConstantTensor *lengths = n.constant(4)) {
    bool haveAll = true;
    for (int64_t i = 0, e = lengths->size(); i < e; ++i)
      haveAll &= lengths->intAt(i) >= layer.steps;
    if (haveAll)
      return Value();
  }
  Value lengths = n.b.reshape(n.value(4), {layer.batch, 1});
  Value step = n.graph.materialize(constantValue(ConstantTensor::ofInts({t})),
                                   n.outputName(0));
  return n.b.compare(step, lengths, nn::ComparePredicate::Lt);
}

static void runDirection(NodeContext &n, const Layer &layer, Value x,
                         Direction &direction) {
  Value products = multiplyInputs(n, layer, direction, x);
  Step step(n, layer, direction);
  direction.outputs.resize(layer.steps);
  for (int64_t i = 0; i < layer.steps && products; ++i) {
    int64_t t = direction.isReversed ? layer.steps - 1 - i : i;
    Value inputs = n.b.reshape(n.b.sliceAxis(products, 0, t, 1),
                               {layer.batch, layer.gates * layer.hidden});
    Value hidden = direction.hidden, cell = direction.cell;
    step.run(inputs, hidden, cell);
    Value output = hidden;
    // A sample that is over keeps its state, and gives 0.
    if (Value isThere = samplesWithStep(n, layer, t)) {
      output = n.b.create<nn::WhereOp>({isThere, hidden, n.b.splat(0)});
      hidden = n.b.create<nn::WhereOp>({isThere, hidden, direction.hidden});
      if (cell)
        cell = n.b.create<nn::WhereOp>({isThere, cell, direction.cell});
    }
    direction.hidden = hidden;
    direction.cell = cell;
    direction.outputs[t] = output;
  }
}

/// [batch, hidden] of each direction as [directions, batch, hidden], or with
/// the batch first.
static Value stackStates(NodeContext &n, const Layer &layer,
                         ArrayRef<Value> states) {
  int64_t axis = layer.batchFirst ? 1 : 0;
  Shape shape = {layer.batch, layer.hidden};
  shape.insert(shape.begin() + axis, 1);
  SmallVector<Value> parts;
  for (Value state : states)
    parts.push_back(n.b.reshape(state, shape));
  return n.b.create<nn::ConcatOp>(parts, n.b.integer("axis", axis));
}

/// [steps, directions, batch, hidden], or [batch, steps, directions, hidden].
static Value stackOutputs(NodeContext &n, const Layer &layer,
                          ArrayRef<Direction> directions) {
  SmallVector<Value> all;
  for (const Direction &direction : directions) {
    SmallVector<Value> parts;
    for (Value output : direction.outputs)
      parts.push_back(n.b.reshape(output, {1, 1, layer.batch, layer.hidden}));
    all.push_back(n.b.create<nn::ConcatOp>(parts, n.b.integer("axis", 0)));
  }
  Value result = n.b.create<nn::ConcatOp>(all, n.b.integer("axis", 1));
  return layer.batchFirst ? n.b.transpose(result, {2, 0, 1, 3}) : result;
}

template <Cell cell>
static LogicalResult importRecurrent(NodeContext &n) {
  FailureOr<Layer> layer = readLayer(n, cell);
  Value x = n.value(0);
  if (failed(layer) || !x)
    return failure();
  if (layer->batchFirst)
    x = n.b.transpose(x, {1, 0, 2});
  SmallVector<Direction> directions;
  SmallVector<Value> hidden, cells;
  for (int64_t d = 0; d < layer->directions; ++d) {
    Direction &direction = directions.emplace_back(readDirection(n, *layer, d));
    runDirection(n, *layer, x, direction);
    hidden.push_back(direction.hidden);
    cells.push_back(direction.cell);
  }
  if (n.isOutputRead(0) &&
      failed(n.setResult(0, stackOutputs(n, *layer, directions))))
    return failure();
  if (n.isOutputRead(1) &&
      failed(n.setResult(1, stackStates(n, *layer, hidden))))
    return failure();
  if (cell == Cell::Lstm && n.isOutputRead(2))
    return n.setResult(2, stackStates(n, *layer, cells));
  return success();
}

ArrayRef<OpRow> recurrentOps() {
  static const OpRow rows[] = {
      {"LSTM", 7, between(3, 8), importRecurrent<Cell::Lstm>},
      {"GRU", 7, between(3, 6), importRecurrent<Cell::Gru>},
      {"RNN", 7, between(3, 6), importRecurrent<Cell::Rnn>},
  };
  return rows;
}

} // namespace pipewright::frontend
