//===- Attention.cpp - The Attention operator, since opset 23 -------------===//
//
// Attention is nn.attention where it computes the same: q, k and v of one shape
// once the heads of k and v are repeated. All else is products, masks and a
// softmax. Other exporters spell attention out, which fusion recognises later.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"

#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;

namespace pipewright::frontend {

static constexpr float kMasked = -std::numeric_limits<float>::infinity();

namespace {
/// What the node's inputs are.
enum Input { Q, K, V, Mask, PastKey, PastValue, Lengths };

/// A node's attributes and the sizes that follow from them: q is
/// [batch, heads, rows, depth], k and v with what is cached before them are
/// [batch, kvHeads, columns, depth or width].
struct Attention {
  bool causal, flat;
  int64_t left, right, outputMode;
  float scale, softcap;
  int64_t batch, heads, kvHeads, rows, past, columns, depth, width;

  Shape scores() const { return {batch, heads, rows, columns}; }
  /// Whether a row's own position decides which columns it sees.
  bool hasPositions() const { return causal || left >= 0 || right >= 0; }
};

/// What takes part, either of which may be null: scores are added to `bias`
/// where `visible`, and minus infinity elsewhere. `triangular`: also only on
/// and below the diagonal.
struct Masks {
  Value bias, visible;
  bool triangular = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Attributes and sizes
//===----------------------------------------------------------------------===//

/// The sizes of heads, which rank 3 has in attributes.
static LogicalResult readHeads(NodeContext &n, Attention &a) {
  int64_t heads = n.intAttribute("q_num_heads", 0);
  int64_t kvHeads = n.intAttribute("kv_num_heads", 0);
  a.flat = n.rank(Q) == 3;
  for (unsigned i : {Q, K, V})
    if (n.rank(i) != (a.flat ? 3 : 4))
      return n.error() << "expects q, k and v of one rank, 3 or 4";
  a.heads = a.flat ? heads : n.shape(Q)[1];
  a.kvHeads = a.flat ? kvHeads : n.shape(K)[1];
  if (a.heads < 1 || a.kvHeads < 1 || a.heads % a.kvHeads != 0)
    return n.error() << "expects heads of q that are a multiple of those of k "
                        "and v, but got "
                     << a.heads << " and " << a.kvHeads;
  for (unsigned i : {Q, K, V})
    if (int64_t count = i == Q ? a.heads : a.kvHeads;
        a.flat && n.shape(i)[2] % count != 0)
      return n.error() << "cannot split a width of " << n.shape(i)[2]
                       << " into " << count << " heads";
  return success();
}

/// [batch, heads, positions, elements] of q, k or v.
static Shape shapeByHeads(NodeContext &n, const Attention &a, unsigned i) {
  ArrayRef<int64_t> shape = n.shape(i);
  int64_t heads = i == Q ? a.heads : a.kvHeads;
  return a.flat ? Shape{shape[0], heads, shape[1], shape[2] / heads}
                : Shape(shape);
}

static LogicalResult readSizes(NodeContext &n, Attention &a) {
  Shape q = shapeByHeads(n, a, Q), k = shapeByHeads(n, a, K),
        v = shapeByHeads(n, a, V);
  a.batch = q[0], a.rows = q[2], a.depth = q[3], a.width = v[3];
  if (k != Shape{a.batch, a.kvHeads, k[2], a.depth} ||
      v != Shape{a.batch, a.kvHeads, k[2], a.width})
    return n.error() << "expects k and v of q's batch and head size, and of "
                        "one length";
  if (n.hasInput(PastKey) != n.hasInput(PastValue) ||
      (n.hasInput(PastKey) && n.hasInput(Lengths)))
    return n.error() << "expects past_key and past_value together, and not "
                        "beside nonpad_kv_seqlen";
  a.past =
      n.hasInput(PastKey) && n.rank(PastKey) == 4 ? n.shape(PastKey)[2] : 0;
  a.columns = a.past + k[2];
  if (n.hasInput(PastKey))
    for (unsigned i : {PastKey, PastValue})
      if (failed(n.expectShape(
              i, i == PastKey ? "past_key" : "past_value",
              {a.batch, a.kvHeads, a.past, i == PastKey ? a.depth : a.width})))
        return failure();
  if (!n.hasInput(Lengths))
    return success();
  if (n.input(Lengths).element != ElementKind::Int)
    return n.error() << "expects integers in nonpad_kv_seqlen";
  return n.expectShape(Lengths, "nonpad_kv_seqlen", {a.batch});
}

/// Fails unless the mask, filled up along the columns, broadcasts to scores.
static LogicalResult checkMask(NodeContext &n, const Attention &a) {
  if (!n.hasInput(Mask))
    return success();
  if (n.input(Mask).element == ElementKind::Int)
    return n.error() << "expects a mask of booleans or floats";
  Shape shape(n.shape(Mask));
  if (!shape.empty() && shape.back() >= 1 && shape.back() <= a.columns) {
    shape.back() = a.columns;
    if (broadcastShape(shape, a.scores()) == a.scores())
      return success();
  }
  auto diag = n.error() << "expects a mask that broadcasts to [";
  llvm::interleaveComma(a.scores(), diag);
  diag << "], but got [";
  llvm::interleaveComma(n.shape(Mask), diag);
  return diag << "]";
}

static FailureOr<Attention> readAttention(NodeContext &n) {
  Attention a;
  a.causal = n.intAttribute("is_causal", 0) != 0;
  a.left = n.intAttribute("left_window_size", -1);
  a.right = n.intAttribute("right_window_size", -1);
  a.outputMode = n.intAttribute("qk_matmul_output_mode", 0);
  a.scale = n.floatAttribute("scale", 0);
  a.softcap = n.floatAttribute("softcap", 0);
  // Scores are f32 whatever is asked for.
  n.intAttribute("softmax_precision", 0);
  if (failed(readHeads(n, a)) || failed(readSizes(n, a)) ||
      failed(checkMask(n, a)))
    return failure();
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  if (std::min(a.left, a.right) < -1 || std::max(a.left, a.right) > limit)
    return n.error() << "expects windows of -1 to " << limit << ", but got "
                     << a.left << " and " << a.right;
  if (a.outputMode < 0 || a.outputMode > 3)
    return n.error() << "expects qk_matmul_output_mode of 0 to 3, but got "
                     << a.outputMode;
  if (!n.hasAttribute("scale"))
    a.scale = 1.0f / std::sqrt(float(a.depth));
  return a;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// first, first + 1, ... along dimension `dim` of four.
static Value positions(NodeContext &n, int64_t dim, int64_t count,
                       int64_t first) {
  Shape numbers(count), shape(4, 1);
  std::iota(numbers.begin(), numbers.end(), first);
  shape[dim] = count;
  return n.made(ConstantTensor::ofInts(numbers).reshaped(shape),
                dim == 2 ? ".rows" : ".columns");
}

static Value both(NodeContext &n, Value a, Value b) {
  return a && b ? n.b.create<nn::LogicalAndOp>({a, b}) : a ? a : b;
}

/// `value` plus a whole number.
static Value shifted(NodeContext &n, Value value, int64_t by) {
  Value number = n.made(ConstantTensor::scalar(by), ".window");
  return n.b.create<nn::AddOp>({value, number});
}

/// The mask, filled up with what does not take part.
static Value filledMask(NodeContext &n, const Attention &a) {
  Value mask = n.value(Mask);
  if (!mask || shapeOf(mask).back() == a.columns)
    return mask;
  Shape rest(shapeOf(mask));
  rest.back() = a.columns - rest.back();
  Value fill = n.b.splat(kMasked, rest);
  if (kindOf(mask) == ElementKind::Bool)
    fill = n.b.compare(fill, n.b.splat(0), nn::ComparePredicate::Gt);
  return n.b.create<nn::ConcatOp>(
      {mask, fill}, n.b.integer("axis", int64_t(rest.size()) - 1));
}

/// Which columns a row sees by its position: the row's is how many columns
/// stand before it. With `lengths` [batch, 1, 1, 1] the last row is that of the
/// last column that holds something.
static Value seenByPosition(NodeContext &n, const Attention &a, Value lengths) {
  Value columns = positions(n, 3, a.columns, 0);
  Value rows = positions(n, 2, a.rows, lengths ? -a.rows : a.past);
  if (lengths)
    rows = n.b.create<nn::AddOp>({rows, lengths});
  Value seen;
  if (a.causal)
    seen = n.b.compare(columns, rows, nn::ComparePredicate::Le);
  if (a.left >= 0)
    seen = both(n, seen,
                n.b.compare(columns, shifted(n, rows, -a.left),
                            nn::ComparePredicate::Ge));
  if (a.right >= 0)
    seen = both(n, seen,
                n.b.compare(columns, shifted(n, rows, a.right),
                            nn::ComparePredicate::Le));
  return seen;
}

/// Fails after an error.
static FailureOr<Masks> buildMasks(NodeContext &n, const Attention &a) {
  if ((a.hasPositions() || n.hasInput(Lengths)) &&
      (failed(n.expectComputable({a.rows})) ||
       failed(n.expectComputable({a.columns}))))
    return failure();
  Masks masks;
  if (n.hasInput(Mask)) {
    Value mask = filledMask(n, a);
    if (!mask)
      return failure();
    (kindOf(mask) == ElementKind::Bool ? masks.visible : masks.bias) = mask;
  }
  Value lengths;
  if (n.hasInput(Lengths)) {
    lengths = n.b.reshape(n.value(Lengths), {a.batch, 1, 1, 1});
    Value isHeld = n.b.compare(positions(n, 3, a.columns, 0), lengths,
                               nn::ComparePredicate::Lt);
    if (!isHeld)
      return failure();
    masks.visible = both(n, masks.visible, isHeld);
  }
  masks.triangular = a.causal && a.left < 0 && a.right < 0 && !lengths &&
                     a.past == 0 && a.rows == a.columns;
  if (a.hasPositions() && !masks.triangular)
    masks.visible = both(n, masks.visible, seenByPosition(n, a, lengths));
  return masks;
}

/// `value`, a tensor or a number, where columns are visible.
static Value masked(NodeContext &n, Value visible, Value value) {
  return visible ? n.b.create<nn::WhereOp>({visible, value, n.b.splat(kMasked)})
                 : value;
}

//===----------------------------------------------------------------------===//
// The two forms
//===----------------------------------------------------------------------===//

/// q, k or v as [batch, heads, positions, elements]; null after an error.
static Value splitHeads(NodeContext &n, const Attention &a, unsigned i) {
  Value x = n.value(i);
  if (!x || !a.flat)
    return x;
  Shape shape = shapeByHeads(n, a, i);
  std::swap(shape[1], shape[2]);
  return n.b.transpose(n.b.reshape(x, shape), {0, 2, 1, 3});
}

/// Input `past` and what comes now, one behind the other.
static Value withPast(NodeContext &n, const Attention &a, unsigned past,
                      Value now) {
  if (!now || a.past == 0)
    return now;
  Value before = n.value(past);
  return n.b.create<nn::ConcatOp>({before, now}, n.b.integer("axis", 2));
}

/// Whether the mask may train; fusion knows whether it does.
static bool mayTrain(const Masks &masks) {
  return masks.bias && !isa<BlockArgument>(masks.bias) &&
         !masks.bias.getDefiningOp<nn::ConstantOp>();
}

/// nn.attention gives only masks of all rows and columns a gradient.
static bool canFuse(NodeContext &n, const Attention &a, const Masks &masks) {
  return a.rows == a.columns && a.width == a.depth && !n.isOutputRead(3) &&
         (!mayTrain(masks) || (shapeOf(masks.bias).size() >= 2 &&
                               shapeOf(masks.bias).take_back(2) ==
                                   ArrayRef(a.scores()).take_back(2)));
}

static Value fusedAttention(NodeContext &n, const Attention &a, Value q,
                            Value k, Value v, const Masks &masks) {
  SmallVector<Value> operands = {q, k, v};
  Value bias = masks.bias;
  if (masks.visible)
    bias = masked(n, masks.visible, bias ? bias : n.b.splat(0));
  if (masks.visible || bias)
    operands.push_back(bias);
  SmallVector<NamedAttribute> attrs = {n.b.real("scale", a.scale),
                                       n.b.real("dropout_rate", 0),
                                       n.b.integer("dropout_id", 0)};
  if (masks.triangular)
    attrs.push_back(n.b.unit("causal"));
  if (a.softcap > 0)
    attrs.push_back(n.b.real("softcap", a.softcap));
  if (mayTrain(masks))
    attrs.push_back(n.b.unit("mask_gradient"));
  return n.b.create<nn::AttentionOp>(operands, attrs);
}

static Value capped(NodeContext &n, const Attention &a, Value scores) {
  if (!(a.softcap > 0))
    return scores;
  Value cap = n.b.splat(a.softcap);
  Value part = n.b.create<nn::DivOp>({scores, cap});
  return n.b.create<nn::MulOp>({n.b.create<nn::TanhOp>(part), cap});
}

static Value addMasks(NodeContext &n, const Attention &a, Value scores,
                      const Masks &masks) {
  if (masks.bias)
    scores = n.b.create<nn::AddOp>({scores, masks.bias});
  scores = masked(n, masks.visible, scores);
  if (!masks.triangular)
    return scores;
  auto type = RankedTensorType::get({1, 1, a.rows, a.columns},
                                    n.b.getBuilder().getI1Type());
  return masked(n, n.b.create<nn::CausalMaskOp>({}, {}, type), scores);
}

/// Heads of q that read one head of k and v are rows of one product.
static Value spelledAttention(NodeContext &n, const Attention &a, Value q,
                              Value k, Value v, const Masks &masks) {
  int64_t groupRows = a.heads / a.kvHeads * a.rows;
  q = n.b.reshape(q, {a.batch, a.kvHeads, groupRows, a.depth});
  Value product = n.b.create<nn::MatmulOp>({q, k}, n.b.unit("transpose_b"));
  Value stages[4];
  stages[0] = n.b.create<nn::MulOp>(
      {n.b.reshape(product, a.scores()), n.b.splat(a.scale)});
  stages[1] = capped(n, a, stages[0]);
  stages[2] = addMasks(n, a, stages[1], masks);
  stages[3] = n.b.create<nn::SoftmaxOp>(stages[2], n.b.unit("safe"));
  if (n.isOutputRead(3) && failed(n.setResult(3, stages[a.outputMode])))
    return Value();
  Value weights =
      n.b.reshape(stages[3], {a.batch, a.kvHeads, groupRows, a.columns});
  return n.b.reshape(n.b.create<nn::MatmulOp>({weights, v}),
                     {a.batch, a.heads, a.rows, a.width});
}

static LogicalResult importAttention(NodeContext &n) {
  FailureOr<Attention> a = readAttention(n);
  if (failed(a))
    return failure();
  Value q = splitHeads(n, *a, Q);
  Value k = q ? withPast(n, *a, PastKey, splitHeads(n, *a, K)) : Value();
  Value v = k ? withPast(n, *a, PastValue, splitHeads(n, *a, V)) : Value();
  if (!v || failed(n.setResult(1, k)) || failed(n.setResult(2, v)))
    return failure();
  FailureOr<Masks> masks = buildMasks(n, *a);
  if (failed(masks))
    return failure();
  Value y = canFuse(n, *a, *masks) ? fusedAttention(n, *a, q, k, v, *masks)
                                   : spelledAttention(n, *a, q, k, v, *masks);
  if (a->flat && y)
    y = n.b.reshape(n.b.transpose(y, {0, 2, 1, 3}),
                    {a->batch, a->rows, a->heads * a->width});
  return n.setResult(0, y);
}

ArrayRef<OpRow> attentionOps() {
  static const OpRow rows[] = {
      {"Attention", 23, between(3, 7), importAttention},
  };
  return rows;
}

} // namespace pipewright::frontend
