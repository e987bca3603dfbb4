//===- Rotary.cpp - The RotaryEmbedding operator of opset 23 --------------===//
//
// Turns pairs of elements by angles whose cosines and sines are tables. Other
// exporters spell it out.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {
/// What a node turns: the first 2 * `pairs` elements of each head.
struct Rotation {
  bool interleaved, flat;
  int64_t batch, rows, heads, size, pairs;
  /// [batch, rows] or [1, rows]; missing where the tables are by position.
  ImportedValue positions;

  /// Rank 3 has heads behind positions, rank 4 before them.
  Shape byHeads() const {
    return flat ? Shape{batch, rows, heads, size}
                : Shape{batch, heads, rows, size};
  }
};

/// The two elements of each pair, each [..., pairs].
struct Pairs {
  Value first, second;
};
} // namespace

/// The positions, one row of them where they are constants and all samples
/// have the same, whatever the file's batch is; none if they are not given.
static ImportedValue readPositions(NodeContext &n) {
  if (!n.hasInput(3) || !n.constant(3) || n.rank(3) != 2 || n.shape(3)[0] < 2)
    return n.hasInput(3) ? n.input(3) : ImportedValue();
  const ConstantTensor &ids = *n.constant(3);
  int64_t columns = n.shape(3)[1];
  for (int64_t i = columns, e = ids.size(); i < e; ++i)
    if (ids.kind() != ElementKind::Int ||
        ids.intAt(i) != ids.intAt(i % columns))
      return n.input(3);
  return constantValue(
      ids.remapped({1, columns}, [](int64_t index) { return index; }));
}

static LogicalResult checkPositions(NodeContext &n, const Rotation &r,
                                    ArrayRef<int64_t> tables) {
  const ImportedValue &given = r.positions;
  if (tables.size() != 2 || given.element != ElementKind::Int)
    return n.error() << "expects caches of rank 2 and integer position_ids";
  const ConstantTensor *ids = given.constant.get();
  for (int64_t i = 0, e = ids ? ids->storedSize() : 0; i < e; ++i)
    if (ids->intAt(i) < 0 || ids->intAt(i) >= tables[0])
      return n.error() << "position " << ids->intAt(i)
                       << " is out of range for caches of " << tables[0]
                       << " rows";
  if (given.shape == Shape{1, r.rows})
    return success();
  return n.expectShape(3, "position_ids", {r.batch, r.rows});
}

static LogicalResult checkTables(NodeContext &n, const Rotation &r) {
  Shape shape = {r.batch, r.rows, r.pairs};
  if (r.positions && n.rank(1) == 2)
    shape = {n.shape(1)[0], r.pairs};
  if (failed(n.expectShape(1, "cos_cache", shape)) ||
      failed(n.expectShape(2, "sin_cache", shape)))
    return failure();
  return r.positions ? checkPositions(n, r, shape) : success();
}

static FailureOr<Rotation> readRotation(NodeContext &n) {
  Rotation r;
  r.interleaved = n.intAttribute("interleaved", 0) != 0;
  int64_t heads = n.intAttribute("num_heads", 0);
  int64_t turned = n.intAttribute("rotary_embedding_dim", 0);
  r.flat = n.rank(0) == 3;
  if (!r.flat && n.rank(0) != 4)
    return n.error() << "expects rank 3 or 4, but got " << n.rank(0);
  ArrayRef<int64_t> shape = n.shape(0);
  if (r.flat && (heads < 1 || shape[2] % heads != 0))
    return n.error() << "expects num_heads to divide the width " << shape[2]
                     << ", but got " << heads;
  r.batch = shape[0];
  r.rows = shape[r.flat ? 1 : 2];
  r.heads = r.flat ? heads : shape[1];
  r.size = r.flat ? shape[2] / heads : shape[3];
  turned = turned == 0 ? r.size : turned;
  if (turned < 2 || turned > r.size || turned % 2 != 0)
    return n.error() << "expects an even number of at most " << r.size
                     << " elements of each head to turn, but got " << turned;
  r.pairs = turned / 2;
  r.positions = readPositions(n);
  if (failed(checkTables(n, r)))
    return failure();
  return r;
}

/// The cosines (1) or sines (2) that each position turns by. They are tables
/// that nobody learns.
static Value turnTable(NodeContext &n, const Rotation &r, unsigned i) {
  if (n.input(i).isWeight())
    n.graph.untrainedTables[n.input(i).weight] = "a table of rotations";
  Value table = n.value(i);
  if (table && r.positions)
    table = n.b.create<nn::EmbeddingOp>(
        {table, n.graph.materialize(
                    r.positions, n.graph.unusedName(
                                     (n.outputName(0) + ".positions").str()))});
  if (!table)
    return table;
  int64_t batch = shapeOf(table)[0];
  return n.b.reshape(table, r.flat ? Shape{batch, r.rows, 1, r.pairs}
                                   : Shape{batch, 1, r.rows, r.pairs});
}

static Pairs splitPairs(NodeContext &n, const Rotation &r, Value x) {
  if (!r.interleaved)
    return {n.b.sliceAxis(x, 3, 0, r.pairs),
            n.b.sliceAxis(x, 3, r.pairs, r.pairs)};
  Shape shape = r.byHeads();
  shape.back() = r.pairs;
  Shape paired = shape;
  paired.push_back(2);
  x = n.b.reshape(n.b.sliceAxis(x, 3, 0, 2 * r.pairs), paired);
  return {n.b.reshape(n.b.sliceAxis(x, 4, 0, 1), shape),
          n.b.reshape(n.b.sliceAxis(x, 4, 1, 1), shape)};
}

/// The reverse of splitPairs, before the elements that stay as they are.
static Value joinPairs(NodeContext &n, const Rotation &r, Pairs pairs,
                       Value x) {
  if (r.interleaved) {
    Shape shape = r.byHeads();
    shape.back() = r.pairs;
    shape.push_back(1);
    pairs = {n.b.reshape(pairs.first, shape), n.b.reshape(pairs.second, shape)};
  }
  Value turned = n.b.create<nn::ConcatOp>(
      {pairs.first, pairs.second}, n.b.integer("axis", r.interleaved ? 4 : 3));
  Shape shape = r.byHeads();
  shape.back() = 2 * r.pairs;
  turned = n.b.reshape(turned, shape);
  int64_t rest = r.size - 2 * r.pairs;
  return rest == 0 ? turned
                   : n.b.create<nn::ConcatOp>(
                         {turned, n.b.sliceAxis(x, 3, 2 * r.pairs, rest)},
                         n.b.integer("axis", 3));
}

static LogicalResult importRotaryEmbedding(NodeContext &n) {
  FailureOr<Rotation> r = readRotation(n);
  if (failed(r))
    return failure();
  Value x = n.b.reshape(n.value(0), r->byHeads());
  Value cos = x ? turnTable(n, *r, 1) : Value();
  Value sin = cos ? turnTable(n, *r, 2) : Value();
  if (!sin)
    return failure();
  auto product = [&](Value a, Value b) {
    return n.b.create<nn::MulOp>({a, b});
  };
  auto [a, b] = splitPairs(n, *r, x);
  Pairs turned = {n.b.create<nn::SubOp>({product(a, cos), product(b, sin)}),
                  n.b.create<nn::AddOp>({product(a, sin), product(b, cos)})};
  return n.setResult(0, n.b.reshape(joinPairs(n, *r, turned, x), n.shape(0)));
}

ArrayRef<OpRow> rotaryOps() {
  static const OpRow rows[] = {
      {"RotaryEmbedding", 23, between(3, 4), importRotaryEmbedding},
  };
  return rows;
}

} // namespace pipewright::frontend
