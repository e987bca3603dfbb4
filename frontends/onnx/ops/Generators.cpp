//===- Generators.cpp - Ops that make constants ---------------------------===//
//
// Constant, Shape, Range and the like: what they give is known at import,
// because all shapes are.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Limits.h"
#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"

#include <cmath>

using namespace mlir;

namespace pipewright::frontend {

static LogicalResult importConstant(NodeContext &n) {
  if (const auto *value = n.attribute("value")) {
    FailureOr<ConstantTensor> tensor = n.graph.reader.readConstant(
        value->t(), "constant '" + n.outputName(0).str() + "'");
    if (failed(tensor))
      return failure();
    return n.setResult(0, std::move(*tensor));
  }
  if (n.hasAttribute("value_int"))
    return n.setResult(0,
                       ConstantTensor::scalar(n.intAttribute("value_int", 0)));
  if (n.hasAttribute("value_float"))
    return n.setResult(
        0, ConstantTensor::scalar(n.floatAttribute("value_float", 0)));
  if (std::optional<Shape> values = n.intsAttribute("value_ints"))
    return n.setResult(0, ConstantTensor::ofInts(*values));
  if (const auto *floats = n.attribute("value_floats")) {
    ConstantTensor result(ElementKind::Float, {floats->floats_size()});
    for (auto [i, value] : llvm::enumerate(floats->floats()))
      result.setFloat(i, value);
    return n.setResult(0, std::move(result));
  }
  return n.error() << "expects a tensor, integers or floats";
}

/// Uniform, so it is one element in memory whatever the size. The ONNX
/// project's light models write their weights this way.
static LogicalResult importConstantOfShape(NodeContext &n) {
  FailureOr<Shape> shape = n.constantInts(0, "shape");
  if (failed(shape))
    return failure();
  if (llvm::any_of(*shape, [](int64_t d) { return d < 0; }))
    return n.error() << "expects dimensions of 0 or more";
  ConstantTensor value = ConstantTensor::scalar(0.0f);
  if (const auto *attribute = n.attribute("value")) {
    FailureOr<ConstantTensor> given =
        n.graph.reader.readConstant(attribute->t(), "attribute 'value'");
    if (failed(given))
      return failure();
    if (given->size() != 1)
      return n.error() << "expects a value of one element, but got "
                       << given->size();
    value = std::move(*given);
  }
  ConstantTensor result(value.kind(), *shape, /*splat=*/true);
  result.copyElement(0, value, 0);
  result.weightLike = result.kind() == ElementKind::Float;
  return n.setResult(0, std::move(result));
}

static LogicalResult importShape(NodeContext &n) {
  int64_t rank = n.rank(0);
  auto clamp = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  int64_t start = clamp(n.intAttribute("start", 0));
  int64_t end = clamp(n.intAttribute("end", rank));
  ArrayRef<int64_t> shape = n.shape(0);
  return n.setResult(0, ConstantTensor::ofInts(shape.slice(
                            start, std::max<int64_t>(end - start, 0))));
}

static LogicalResult importSize(NodeContext &n) {
  return n.setResult(0, ConstantTensor::scalar(elementCount(n.shape(0))));
}

static LogicalResult foldRange(NodeContext &n) {
  // 16-bit numbers are computed in f32 anyway.
  n.intAttribute("stash_type", 1);
  const ConstantTensor &start = *n.constant(0), &limit = *n.constant(1),
                       &delta = *n.constant(2);
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1)
    return n.error() << "expects scalars";
  if (start.kind() == ElementKind::Int && limit.kind() == ElementKind::Int &&
      delta.kind() == ElementKind::Int) {
    int64_t first = start.intAt(0), last = limit.intAt(0),
            step = delta.intAt(0);
    if (step == 0)
      return n.error() << "expects a step other than 0";
    double count = std::ceil((double(last) - double(first)) / double(step));
    if (count > double(kMaxComputedElements))
      return n.error() << "the range is too long";
    ConstantTensor result(ElementKind::Int, {int64_t(std::max(count, 0.0))});
    for (int64_t i = 0, e = result.size(); i < e; ++i)
      result.setInt(i, first + i * step);
    return n.setResult(0, std::move(result));
  }
  if (start.kind() != ElementKind::Float ||
      limit.kind() != ElementKind::Float || delta.kind() != ElementKind::Float)
    return n.error() << "expects numbers of one element type";
  float first = start.floatAt(0), step = delta.floatAt(0);
  float count = std::ceil((limit.floatAt(0) - first) / step);
  if (!(count <= float(kMaxComputedElements)))
    return n.error() << "the range is too long";
  ConstantTensor result(ElementKind::Float, {int64_t(std::max(count, 0.0f))});
  for (int64_t i = 0, e = result.size(); i < e; ++i)
    result.setFloat(i, first + float(i) * step);
  return n.setResult(0, std::move(result));
}

/// Keeps the lower or upper triangle of the last two dimensions.
static LogicalResult importTrilu(NodeContext &n) {
  bool upper = n.intAttribute("upper", 1);
  int64_t k = 0;
  if (n.hasInput(1)) {
    FailureOr<Shape> given = n.constantInts(1, "diagonal");
    if (failed(given))
      return failure();
    k = given->empty() ? 0 : given->front();
  }
  int64_t rank = n.rank(0);
  if (rank < 2)
    return n.error() << "expects rank 2 or more, but got " << rank;
  int64_t rows = n.shape(0)[rank - 2], columns = n.shape(0)[rank - 1];
  // Beyond the matrix one diagonal is as good as another.
  k = std::clamp(k, -rows - 1, columns + 1);
  const ConstantTensor *constant = n.constant(0);
  if (constant) {
    if (failed(n.expectComputable(n.shape(0))))
      return failure();
    ConstantTensor result(constant->kind(), n.shape(0));
    for (int64_t i = 0, e = result.size(); i < e; ++i) {
      int64_t column = i % columns, row = i / columns % rows;
      if (upper ? column >= row + k : column <= row + k)
        result.copyElement(i, *constant, i);
    }
    return n.setResult(0, std::move(result));
  }
  if (upper || k != 0 || rows != columns)
    return n.error() << "only the lower triangle of a square matrix is "
                        "supported on computed values";
  auto type =
      RankedTensorType::get({rows, columns}, n.b.getBuilder().getI1Type());
  Value mask = n.b.create<nn::CausalMaskOp>({}, {}, type);
  return n.setResult(0,
                     n.b.create<nn::WhereOp>({mask, n.value(0), n.b.splat(0)}));
}

static LogicalResult importEyeLike(NodeContext &n) {
  int64_t k = n.intAttribute("k", 0);
  int64_t type = n.intAttribute("dtype", 0);
  if (n.rank(0) != 2)
    return n.error() << "expects rank 2, but got " << n.rank(0);
  ElementKind kind = n.input(0).element;
  if (type)
    kind = elementKindOf(int32_t(type)).value_or(kind);
  int64_t rows = n.shape(0)[0], columns = n.shape(0)[1];
  if (failed(n.expectComputable({rows, columns})))
    return failure();
  k = std::clamp(k, -rows - 1, columns + 1);
  ConstantTensor result(ElementKind::Int, {rows, columns});
  for (int64_t row = 0; row < rows; ++row)
    if (row + k >= 0 && row + k < columns)
      result.setInt(row * columns + row + k, 1);
  return n.setResult(0, result.convertTo(kind));
}

ArrayRef<OpRow> generatorOps() {
  static const OpRow rows[] = {
      {"Constant", 7, exactly(0), importConstant},
      {"ConstantOfShape", 9, exactly(1), importConstantOfShape},
      {"Shape", 7, exactly(1), importShape},
      {"Size", 7, exactly(1), importSize},
      {"Range", 11, exactly(3), nullptr, foldRange},
      {"Trilu", 14, between(1, 2), importTrilu, importTrilu},
      {"EyeLike", 9, exactly(1), importEyeLike},
  };
  return rows;
}

} // namespace pipewright::frontend
