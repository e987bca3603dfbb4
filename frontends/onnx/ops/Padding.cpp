//===- Padding.cpp - Pad in all its modes ---------------------------------===//
//
// Zeros are nn.pad; what is cut off is a slice; all else is put before and
// behind the tensor, one dimension after the other.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Limits.h"
#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {
enum class Padding { Constant, Reflect, Edge, Wrap };

/// How much is put before and after each dimension; less than 0 is cut off.
struct Pads {
  Padding mode;
  Shape low, high;
};
} // namespace

static std::optional<Padding> paddingOf(StringRef name) {
  if (name == "constant")
    return Padding::Constant;
  if (name == "reflect")
    return Padding::Reflect;
  if (name == "edge")
    return Padding::Edge;
  if (name == "wrap")
    return Padding::Wrap;
  return std::nullopt;
}

/// Fails unless `low` and `high` fit to a dimension: what is cut off leaves an
/// element, and what is repeated is there.
static LogicalResult checkPads(NodeContext &n, Padding mode, int64_t axis,
                               int64_t low, int64_t high) {
  int64_t dim = n.shape(0)[axis];
  int64_t most = mode == Padding::Reflect ? dim - 1
                 : mode == Padding::Wrap  ? dim
                                          : kMaxMadeElements;
  int64_t cut = 0;
  for (int64_t pad : {low, high}) {
    if (pad > most || pad < -dim)
      return n.error() << "expects pads of " << -dim << " to " << most
                       << " for dimension " << axis << " of size " << dim
                       << ", but got " << pad;
    cut += std::min<int64_t>(pad, 0);
  }
  if (dim + cut < 1)
    return n.error() << "nothing is left of dimension " << axis;
  if (mode != Padding::Constant && cut != 0)
    return n.error() << "expects pads of 0 or more in this mode";
  return success();
}

/// Pads are an attribute up to opset 10 and an input after.
static FailureOr<Pads> readPads(NodeContext &n) {
  std::string mode = n.stringAttribute("mode", "constant");
  std::optional<Padding> padding = paddingOf(mode);
  if (!padding)
    return n.error() << "mode=" << mode << " is not supported";
  if (failed(n.expectInputs({n.opset < 11 ? 1u : 2u, 4})))
    return failure();
  Shape pads;
  if (n.opset < 11) {
    pads = n.intsAttribute("pads").value_or(Shape());
  } else {
    FailureOr<Shape> given = n.constantInts(1, "pads");
    if (failed(given))
      return failure();
    pads = *given;
  }
  Shape axes = llvm::to_vector<4>(llvm::seq<int64_t>(0, n.rank(0)));
  if (n.hasInput(3)) {
    FailureOr<Shape> given = n.constantInts(3, "axes");
    FailureOr<Shape> normal =
        failed(given) ? given : n.normalizeAxes(*given, n.rank(0));
    if (failed(normal))
      return failure();
    axes = *normal;
  }
  if (pads.size() != 2 * axes.size())
    return n.error() << "expects two pads per dimension";
  Pads result{*padding, Shape(n.rank(0), 0), Shape(n.rank(0), 0)};
  for (auto [i, axis] : llvm::enumerate(axes)) {
    result.low[axis] = pads[i];
    result.high[axis] = pads[i + axes.size()];
    if (failed(
            checkPads(n, *padding, axis, result.low[axis], result.high[axis])))
      return failure();
  }
  return result;
}

/// What constant mode pads with, of the input's element type.
static FailureOr<ConstantTensor> readPadValue(NodeContext &n) {
  ElementKind kind = n.input(0).element;
  if (n.opset < 11)
    return ConstantTensor::scalar(n.floatAttribute("value", 0)).convertTo(kind);
  if (!n.hasInput(2))
    return ConstantTensor(kind, {});
  if (!n.constant(2) || n.constant(2)->size() != 1)
    return n.error() << "expects one constant padding value";
  return n.constant(2)->convertTo(kind).reshaped({});
}

/// Which element of a dimension is at a place before or behind it; none in
/// constant mode.
static std::optional<int64_t> sourceOf(Padding mode, int64_t at, int64_t dim) {
  if (at >= 0 && at < dim)
    return at;
  switch (mode) {
  case Padding::Constant:
    return std::nullopt;
  case Padding::Reflect:
    return at < 0 ? -at : 2 * (dim - 1) - at;
  case Padding::Edge:
    return at < 0 ? 0 : dim - 1;
  case Padding::Wrap:
    return at < 0 ? at + dim : at - dim;
  }
  llvm_unreachable("covered switch");
}

static LogicalResult foldPad(NodeContext &n) {
  FailureOr<Pads> pads = readPads(n);
  if (failed(pads))
    return failure();
  FailureOr<ConstantTensor> value = readPadValue(n);
  Shape shape(n.shape(0));
  for (auto [i, dim] : llvm::enumerate(shape))
    dim += pads->low[i] + pads->high[i];
  if (failed(value) || failed(n.expectComputable(shape)))
    return failure();
  const ConstantTensor &x = *n.constant(0);
  Shape strides = stridesOf(shape), sourceStrides = stridesOf(x.shape());
  ConstantTensor result(x.kind(), shape);
  for (int64_t i = 0, e = result.size(); i < e; ++i) {
    std::optional<int64_t> from = 0;
    for (int64_t d = 0, rest = i; from && d < x.rank(); rest %= strides[d], ++d)
      if (auto source = sourceOf(pads->mode, rest / strides[d] - pads->low[d],
                                 x.shape()[d]))
        *from += *source * sourceStrides[d];
      else
        from.reset();
    result.copyElement(i, from ? x : *value, from.value_or(0));
  }
  return n.setResult(0, std::move(result));
}

/// `count` elements before or behind a dimension of `x`.
static Value padPart(NodeContext &n, Padding mode, Value x, int64_t axis,
                     int64_t count, bool isBefore,
                     const ConstantTensor &value) {
  int64_t dim = shapeOf(x)[axis];
  Shape shape(shapeOf(x));
  shape[axis] = count;
  switch (mode) {
  case Padding::Constant: {
    ConstantTensor filled(value.kind(), shape, /*splat=*/true);
    filled.copyElement(0, value, 0);
    return n.graph.materialize(constantValue(std::move(filled)),
                               n.outputName(0));
  }
  case Padding::Reflect:
    return n.b.sliceAxis(x, axis, isBefore ? count : dim - 2, count, -1);
  case Padding::Edge:
    return n.b.broadcastTo(n.b.sliceAxis(x, axis, isBefore ? 0 : dim - 1, 1),
                           shape);
  case Padding::Wrap:
    return n.b.sliceAxis(x, axis, isBefore ? dim - count : 0, count);
  }
  llvm_unreachable("covered switch");
}

static bool isZero(const ConstantTensor &scalar) {
  return scalar.kind() == ElementKind::Float ? scalar.floatAt(0) == 0
         : scalar.kind() == ElementKind::Int ? scalar.intAt(0) == 0
                                             : !scalar.boolAt(0);
}

static LogicalResult importPad(NodeContext &n) {
  FailureOr<Pads> pads = readPads(n);
  if (failed(pads))
    return failure();
  FailureOr<ConstantTensor> value = readPadValue(n);
  Value x = n.value(0);
  if (failed(value) || !x)
    return failure();
  for (int64_t axis = 0; axis < n.rank(0) && x; ++axis) {
    int64_t before = std::min<int64_t>(pads->low[axis], 0),
            behind = std::min<int64_t>(pads->high[axis], 0);
    if (before || behind)
      x = n.b.sliceAxis(x, axis, -before, n.shape(0)[axis] + before + behind);
  }
  auto added = [](ArrayRef<int64_t> given) {
    return llvm::map_to_vector(
        given, [](int64_t pad) { return std::max<int64_t>(pad, 0); });
  };
  SmallVector<int64_t> low = added(pads->low), high = added(pads->high);
  if (llvm::all_of(low, [](int64_t p) { return p == 0; }) &&
      llvm::all_of(high, [](int64_t p) { return p == 0; }))
    return x == n.value(0) ? n.forward(0, 0) : n.setResult(0, x);
  if (pads->mode == Padding::Constant && isZero(*value))
    return n.setResult(0, n.b.create<nn::PadOp>(x, {n.b.ints("low", low),
                                                    n.b.ints("high", high)}));
  for (int64_t axis = 0; axis < n.rank(0) && x; ++axis) {
    SmallVector<Value> parts;
    if (low[axis])
      parts.push_back(padPart(n, pads->mode, x, axis, low[axis], true, *value));
    parts.push_back(x);
    if (high[axis])
      parts.push_back(
          padPart(n, pads->mode, x, axis, high[axis], false, *value));
    if (parts.size() > 1)
      x = n.b.create<nn::ConcatOp>(parts, n.b.integer("axis", axis));
  }
  return n.setResult(0, x);
}

/// Cuts or fills dimensions alike on both sides; the odd element is at the end.
static LogicalResult importCenterCropPad(NodeContext &n) {
  FailureOr<Shape> target = n.constantInts(1, "shape");
  if (failed(target))
    return failure();
  Shape given = n.intsAttribute("axes").value_or(
      llvm::to_vector<4>(llvm::seq<int64_t>(0, n.rank(0))));
  FailureOr<Shape> axes = n.normalizeAxes(given, n.rank(0));
  if (failed(axes))
    return failure();
  if (axes->size() != target->size() ||
      llvm::any_of(*target, [](int64_t d) { return d < 1; }))
    return n.error() << "expects a dimension of 1 or more for each axis";
  Value x = n.value(0);
  Shape low(n.rank(0), 0), high(n.rank(0), 0);
  for (auto [axis, size] : llvm::zip(*axes, *target)) {
    int64_t dim = n.shape(0)[axis];
    if (size > kMaxMadeElements)
      return n.error() << "expects dimensions of at most " << kMaxMadeElements;
    if (size < dim) {
      x = n.b.sliceAxis(x, axis, (dim - size) / 2, size);
    } else {
      low[axis] = (size - dim) / 2;
      high[axis] = size - dim - low[axis];
    }
  }
  if (llvm::all_of(high, [](int64_t p) { return p == 0; }))
    return n.setResult(0, x);
  return n.setResult(0, n.b.create<nn::PadOp>(
                            x, {n.b.ints("low", low), n.b.ints("high", high)}));
}

ArrayRef<OpRow> paddingOps() {
  static const OpRow rows[] = {
      {"Pad", 7, between(1, 4), importPad, foldPad},
      {"CenterCropPad", 18, exactly(2), importCenterCropPad},
  };
  return rows;
}

} // namespace pipewright::frontend
