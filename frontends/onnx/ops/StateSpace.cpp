//===- StateSpace.cpp - Causal convolution and linear attention
//------------===//
//
// CausalConvWithState is a convolution behind what was seen before.
// LinearAttention is unrolled: each step decays the state, writes to it and
// reads from it.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"

#include <cmath>

using namespace mlir;

namespace pipewright::frontend {

//===----------------------------------------------------------------------===//
// CausalConvWithState
//===----------------------------------------------------------------------===//

/// x [N, C, L] behind the last k - 1 elements of before, or zeros.
static Value withPast(NodeContext &n, int64_t before) {
  Value x = n.value(0);
  if (before == 0 || !x)
    return x;
  Value past = n.hasInput(3)
                   ? n.value(3)
                   : n.b.splat(0, {n.shape(0)[0], n.shape(0)[1], before});
  return n.b.create<nn::ConcatOp>({past, x}, n.b.integer("axis", 2));
}

static LogicalResult importCausalConv(NodeContext &n) {
  std::string activation = n.stringAttribute("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.error() << "activation=" << activation << " is not supported";
  if (n.rank(0) != 3 || n.rank(1) != 3 || elementCount(n.shape(0)) == 0 ||
      elementCount(n.shape(1)) == 0)
    return n.error() << "expects input and weight of rank 3, and elements";
  int64_t batch = n.shape(0)[0], channels = n.shape(0)[1],
          length = n.shape(0)[2], kernel = n.shape(1)[2], before = kernel - 1;
  if (failed(n.expectShape(1, "weight", {channels, 1, kernel})) ||
      failed(n.expectShape(2, "bias", {channels})) ||
      failed(n.expectShape(3, "past_state", {batch, channels, before})))
    return failure();
  Value all = withPast(n, before);
  SmallVector<Value> operands = {
      n.b.reshape(all, {batch, channels, 1, length + before}),
      n.b.reshape(n.weight(1), {channels, 1, 1, kernel})};
  if (n.hasInput(2))
    operands.push_back(n.weight(2));
  Value y = n.b.create<nn::ConvOp>(operands, {n.b.ints("strides", {1, 1}),
                                              n.b.ints("pads", {0, 0, 0, 0}),
                                              n.b.ints("dilations", {1, 1}),
                                              n.b.integer("groups", channels)});
  y = n.b.reshape(y, n.shape(0));
  if (activation != "none" && y)
    y = n.b.create<nn::MulOp>({y, n.b.create<nn::SigmoidOp>(y)});
  if (failed(n.setResult(0, y)))
    return failure();
  if (!n.isOutputRead(1))
    return success();
  if (before == 0)
    return n.setResult(
        1, ConstantTensor(ElementKind::Float, {batch, channels, 0}));
  return n.setResult(1, n.b.sliceAxis(all, 2, length, before));
}

//===----------------------------------------------------------------------===//
// LinearAttention
//===----------------------------------------------------------------------===//

namespace {
/// Sizes of query [N, steps, heads * group * keys], key [.., heads * keys] and
/// value [.., heads * values]: `group` query heads share one state.
struct Recurrence {
  int64_t batch, steps, heads, group, keys, values;
  bool decays, corrects;
  float scale;

  int64_t states() const { return batch * heads; }
};
} // namespace

/// A step is some ten ops, of which each becomes code.
static constexpr int64_t kMostSteps = 4096;

static LogicalResult checkOptional(NodeContext &n, unsigned i, StringRef what,
                                   bool isWanted, StringRef rule) {
  if (n.hasInput(i) == isWanted)
    return success();
  return n.error() << "expects " << (isWanted ? "" : "no ") << what
                   << " with update_rule=" << rule;
}

static FailureOr<Recurrence> readRecurrence(NodeContext &n) {
  n.intAttribute("chunk_size", 64);
  std::string rule = n.stringAttribute("update_rule", "gated_delta");
  int64_t queryHeads = n.intAttribute("q_num_heads", 0);
  Recurrence r;
  r.heads = n.intAttribute("kv_num_heads", 0);
  r.decays = StringRef(rule).starts_with("gated");
  r.corrects = StringRef(rule).ends_with("delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" &&
      rule != "gated_delta")
    return n.error() << "update_rule=" << rule << " is not supported";
  if (failed(checkOptional(n, 4, "decay", r.decays, rule)) ||
      failed(checkOptional(n, 5, "beta", r.corrects, rule)))
    return failure();
  if (r.heads < 1 || queryHeads < 1 || queryHeads % r.heads != 0)
    return n.error() << "expects q_num_heads in multiples of kv_num_heads, but "
                        "got "
                     << queryHeads << " and " << r.heads;
  r.group = queryHeads / r.heads;
  for (unsigned i = 0; i < 3; ++i)
    if (n.rank(i) != 3 || elementCount(n.shape(i)) == 0 ||
        n.shape(i)[2] % (i == 0 ? queryHeads : r.heads) != 0)
      return n.error() << "expects query, key and value [batch, steps, heads "
                          "times width]";
  r.batch = n.shape(0)[0];
  r.steps = n.shape(0)[1];
  r.keys = n.shape(0)[2] / queryHeads;
  r.values = n.shape(2)[2] / r.heads;
  if (r.steps > kMostSteps)
    return n.error() << "has " << r.steps << " steps, more than the "
                     << kMostSteps << " that are unrolled";
  if (failed(n.expectShape(1, "key", {r.batch, r.steps, r.heads * r.keys})) ||
      failed(
          n.expectShape(2, "value", {r.batch, r.steps, r.heads * r.values})) ||
      failed(
          n.expectShape(3, "past_state", {r.batch, r.heads, r.keys, r.values})))
    return failure();
  r.scale = n.floatAttribute("scale", 0);
  if (r.scale == 0)
    r.scale = 1 / std::sqrt(float(r.keys));
  return r;
}

/// Input i [batch, steps, heads * parts * width] as [steps, states, parts,
/// width], one behind the other in time.
static Value byTime(NodeContext &n, const Recurrence &r, unsigned i,
                    int64_t heads, int64_t parts, int64_t width) {
  Value x = n.b.reshape(n.value(i), {r.batch, r.steps, heads, parts, width});
  x = n.b.transpose(x, {1, 0, 2, 3, 4});
  x = n.b.broadcastTo(x, {r.steps, r.batch, r.heads, parts, width});
  return n.b.reshape(x, {r.steps, r.states(), parts, width});
}

static FailureOr<Value> readDecay(NodeContext &n, const Recurrence &r) {
  if (!r.decays)
    return Value();
  int64_t width = n.rank(4) == 3 && n.shape(4)[2] == r.heads ? 1 : r.keys;
  if (failed(n.expectShape(4, "decay", {r.batch, r.steps, r.heads * width})))
    return failure();
  // The same for all values of a key.
  Value decay = n.b.create<nn::ExpOp>(byTime(n, r, 4, r.heads, 1, width));
  return n.b.reshape(decay, {r.steps, r.states(), width, 1});
}

static FailureOr<Value> readBeta(NodeContext &n, const Recurrence &r) {
  if (!r.corrects)
    return Value();
  int64_t heads = n.rank(5) == 3 && n.shape(5)[2] == 1 ? 1 : r.heads;
  if (failed(n.expectShape(5, "beta", {r.batch, r.steps, heads})))
    return failure();
  return byTime(n, r, 5, heads, 1, 1);
}

static LogicalResult importLinearAttention(NodeContext &n) {
  FailureOr<Recurrence> read = readRecurrence(n);
  if (failed(read))
    return failure();
  const Recurrence &r = *read;
  FailureOr<Value> decay = readDecay(n, r);
  if (failed(decay))
    return failure();
  FailureOr<Value> beta = readBeta(n, r);
  if (failed(beta))
    return failure();
  Value queries = byTime(n, r, 0, r.heads, r.group, r.keys),
        keys = byTime(n, r, 1, r.heads, 1, r.keys),
        values = byTime(n, r, 2, r.heads, 1, r.values);
  queries = n.b.create<nn::MulOp>({queries, n.b.splat(r.scale)});
  auto at = [&](Value x, int64_t step) {
    Value part = n.b.sliceAxis(x, 0, step, 1);
    return part ? n.b.reshape(part, shapeOf(part).drop_front()) : part;
  };
  Value state = n.hasInput(3)
                    ? n.b.reshape(n.value(3), {r.states(), r.keys, r.values})
                    : Value();
  SmallVector<Value> outputs;
  for (int64_t i = 0; i < r.steps; ++i) {
    Value key = at(keys, i), update = at(values, i);
    if (state && r.decays)
      state = n.b.create<nn::MulOp>({state, at(*decay, i)});
    if (r.corrects) {
      if (state)
        update = n.b.create<nn::SubOp>(
            {update, n.b.create<nn::MatmulOp>({key, state})});
      update = n.b.create<nn::MulOp>({update, at(*beta, i)});
    }
    Value written = n.b.create<nn::MulOp>(
        {n.b.reshape(key, {r.states(), r.keys, 1}), update});
    state = state ? n.b.create<nn::AddOp>({state, written}) : written;
    if (!state)
      return failure();
    Value read = n.b.create<nn::MatmulOp>({at(queries, i), state});
    outputs.push_back(
        n.b.reshape(read, {r.batch, 1, r.heads * r.group * r.values}));
  }
  Value output =
      outputs.size() == 1
          ? outputs.front()
          : n.b.create<nn::ConcatOp>(outputs, n.b.integer("axis", 1));
  if (failed(n.setResult(0, output)))
    return failure();
  return n.setResult(1,
                     n.b.reshape(state, {r.batch, r.heads, r.keys, r.values}));
}

ArrayRef<OpRow> stateSpaceOps() {
  static const OpRow rows[] = {
      {"CausalConvWithState", 27, between(2, 4), importCausalConv},
      {"LinearAttention", 27, between(3, 6), importLinearAttention},
  };
  return rows;
}

} // namespace pipewright::frontend
