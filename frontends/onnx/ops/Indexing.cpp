//===- Indexing.cpp - Slices, lookups and concatenation -------------------===//
//
// Ops that pick or join parts of tensors. Bounds are constants, so each is a
// static slice; only a lookup by computed indices stays one.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"
#include "frontends/onnx/ops/Parts.h"
#include "frontends/onnx/ops/Reshaping.h"

using namespace mlir;

namespace pipewright::frontend {

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

namespace {
struct SliceBounds {
  Shape starts, ends, axes, steps;
};
} // namespace

/// Bounds are attributes up to opset 9 and inputs after.
static FailureOr<SliceBounds> readBounds(NodeContext &n) {
  SliceBounds bounds;
  auto read = [&](unsigned i, StringRef name, Shape &into) -> LogicalResult {
    if (n.opset < 10) {
      into = n.intsAttribute(name).value_or(Shape());
      return success();
    }
    if (!n.hasInput(i))
      return success();
    FailureOr<Shape> given = n.constantInts(i, name);
    if (failed(given))
      return failure();
    into = *given;
    return success();
  };
  if (failed(read(1, "starts", bounds.starts)) ||
      failed(read(2, "ends", bounds.ends)) ||
      failed(read(3, "axes", bounds.axes)) ||
      (n.opset >= 10 && failed(read(4, "steps", bounds.steps))))
    return failure();
  size_t count = bounds.starts.size();
  if (bounds.axes.empty())
    bounds.axes = llvm::to_vector<4>(llvm::seq<int64_t>(0, count));
  if (bounds.steps.empty())
    bounds.steps.assign(count, 1);
  if (bounds.ends.size() != count || bounds.axes.size() != count ||
      bounds.steps.size() != count)
    return n.error() << "expects starts, ends, axes and steps of one length";
  FailureOr<Shape> axes = n.normalizeAxes(bounds.axes, n.rank(0));
  if (failed(axes))
    return failure();
  bounds.axes = *axes;
  return bounds;
}

static LogicalResult importSlice(NodeContext &n) {
  if (failed(n.expectInputs({n.opset < 10 ? 1u : 3u, 5})))
    return failure();
  FailureOr<SliceBounds> bounds = readBounds(n);
  if (failed(bounds))
    return failure();
  int64_t rank = n.rank(0);
  Shape starts(rank, 0), sizes(n.shape(0)), steps(rank, 1);
  for (size_t i = 0; i < bounds->axes.size(); ++i) {
    int64_t axis = bounds->axes[i], dim = n.shape(0)[axis];
    int64_t step = bounds->steps[i];
    if (step == 0)
      return n.error() << "expects steps other than 0";
    auto clamp = [&](int64_t at) {
      if (at < 0)
        at = std::max(at, -dim - 1) + dim;
      return step > 0 ? std::clamp<int64_t>(at, 0, dim)
                      : std::clamp<int64_t>(at, -1, dim - 1);
    };
    int64_t start = clamp(bounds->starts[i]), end = clamp(bounds->ends[i]);
    int64_t span = step > 0 ? end - start : start - end;
    // Longer steps than the dimension lead nowhere either.
    int64_t stride =
        step > 0 ? std::min(step, dim + 1) : -std::max(step, -dim - 1);
    starts[axis] = start;
    sizes[axis] = span > 0 ? (span + stride - 1) / stride : 0;
    steps[axis] = step;
  }
  if (const ConstantTensor *constant = n.constant(0)) {
    ConstantTensor result = *constant;
    for (int64_t axis = 0; axis < rank; ++axis)
      if (sizes[axis] != result.shape()[axis] || steps[axis] != 1)
        result =
            sliceConstant(result, axis, starts[axis], sizes[axis], steps[axis]);
    return n.setResult(0, std::move(result));
  }
  // Concat leaves empty tensors out.
  if (elementCount(sizes) == 0)
    return n.setResult(0, ConstantTensor(n.input(0).element, sizes));
  if (ArrayRef<int64_t>(sizes) == n.shape(0) &&
      llvm::all_of(steps, [](int64_t s) { return s == 1; }))
    return n.forward(0, 0);
  return n.setResult(
      0, n.b.create<nn::SliceOp>(n.value(0), {n.b.ints("starts", starts),
                                              n.b.ints("sizes", sizes),
                                              n.b.ints("steps", steps)}));
}

//===----------------------------------------------------------------------===//
// Split and Concat
//===----------------------------------------------------------------------===//

static LogicalResult importSplit(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", 0), n.rank(0));
  int64_t parts = n.intAttribute("num_outputs", n.numOutputs());
  if (failed(axis))
    return failure();
  int64_t dim = n.shape(0)[*axis];
  Shape sizes;
  if (n.opset < 13) {
    sizes = n.intsAttribute("split").value_or(Shape());
  } else if (n.hasInput(1)) {
    FailureOr<Shape> given = n.constantInts(1, "sizes");
    if (failed(given))
      return failure();
    sizes = *given;
  }
  // Since opset 18 the last part may be smaller.
  if (sizes.empty() && parts == int64_t(n.numOutputs()))
    sizes = evenParts(dim, (dim + parts - 1) / parts, parts);
  if (failed(checkParts(n, sizes, *axis, n.numOutputs())))
    return failure();
  int64_t start = 0;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    FailureOr<ImportedValue> part = partOf(n, n.input(0), *axis, start, size);
    if (failed(part) || failed(n.setResult(i, std::move(*part))))
      return failure();
    start += size;
  }
  return success();
}

/// Constants among the operands get the batch of those that are computed.
static LogicalResult followBatch(NodeContext &n, int64_t axis) {
  for (unsigned k = 0; k < n.numInputs(); ++k) {
    Shape shape(n.shape(k));
    if (!n.input(k).value || axis >= n.rank(k))
      continue;
    shape[axis] = 0;
    for (unsigned i = 0; i < n.numInputs(); ++i)
      if (failed(n.followBatch(i, shape)))
        return failure();
    break;
  }
  return success();
}

static LogicalResult importConcat(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", 1), n.rank(0));
  if (failed(axis) || failed(followBatch(n, *axis)))
    return failure();
  SmallVector<Value> operands;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    // Exporters concatenate with empty tensors; those have no value here.
    if (elementCount(n.shape(i)) == 0 && n.numInputs() > 1)
      continue;
    operands.push_back(n.value(i));
  }
  return n.setResult(
      0, n.b.create<nn::ConcatOp>(operands, n.b.integer("axis", *axis)));
}

static LogicalResult foldConcat(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", 1), n.rank(0));
  if (failed(axis))
    return failure();
  SmallVector<ImportedValue> tensors;
  for (unsigned i = 0; i < n.numInputs(); ++i)
    tensors.push_back(n.input(i));
  FailureOr<ImportedValue> result = joined(n, tensors, *axis);
  if (failed(result))
    return failure();
  return n.setResult(0, std::move(*result));
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

/// Constant indices, counted from 0; fails if one is out of range.
static FailureOr<Shape> readIndices(NodeContext &n, int64_t dim) {
  const ConstantTensor &indices = *n.constant(1);
  if (indices.kind() != ElementKind::Int)
    return n.error() << "expects integer indices";
  if (failed(n.expectComputable(indices.shape())))
    return failure();
  Shape result;
  for (int64_t i = 0, e = indices.size(); i < e; ++i) {
    int64_t index = indices.intAt(i);
    if (index < -dim || index >= dim)
      return n.error() << "index " << index
                       << " is out of range for a dimension of size " << dim;
    result.push_back(index < 0 ? index + dim : index);
  }
  return result;
}

static Shape gatheredShape(NodeContext &n, int64_t axis) {
  Shape shape(n.shape(0).take_front(axis));
  llvm::append_range(shape, n.shape(1));
  llvm::append_range(shape, n.shape(0).drop_front(axis + 1));
  return shape;
}

static LogicalResult foldGather(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", 0), n.rank(0));
  if (failed(axis))
    return failure();
  int64_t dim = n.shape(0)[*axis];
  FailureOr<Shape> indices = readIndices(n, dim);
  if (failed(indices))
    return failure();
  Shape shape = gatheredShape(n, *axis);
  if (!n.constant(0)->isSplat() && failed(n.expectComputable(shape)))
    return failure();
  int64_t inner = elementCount(n.shape(0).drop_front(*axis + 1));
  int64_t count = indices->size();
  return n.setResult(0, n.constant(0)->remapped(shape, [&](int64_t index) {
    int64_t outer = index / (inner * count);
    int64_t row = (*indices)[index / inner % count];
    return (outer * dim + row) * inner + index % inner;
  }));
}

/// Constant indices for a lookup, which counts from 0 alone.
static Value materializeIndices(NodeContext &n, ArrayRef<int64_t> indices) {
  const ConstantTensor &given = *n.constant(1);
  bool isNormal = true;
  for (int64_t i = 0, e = given.storedSize(); i < e; ++i)
    isNormal &= given.intAt(i) >= 0;
  if (isNormal)
    return n.value(1);
  if (given.size() > nn::ConstantOp::kMaxElements) {
    n.error() << "has negative indices among " << given.size()
              << " constant ones, but only " << nn::ConstantOp::kMaxElements
              << " are counted from the end";
    return Value();
  }
  ConstantTensor normal(ElementKind::Int, given.shape());
  for (auto [i, index] : llvm::enumerate(indices))
    normal.setInt(i, index);
  OpBuilder &builder = n.b.getBuilder();
  DenseElementsAttr value = normal.toAttr(builder.getContext());
  return n.b.create<nn::ConstantOp>({}, builder.getNamedAttr("value", value),
                                    value.getType());
}

/// Rows of a table by indices that stay a tensor; a table of higher rank is
/// looked up as one of rank 2. Computed indices of ONNX may be negative; those
/// are refused when they come, as all that the table has not.
static Value lookUp(NodeContext &n, Value indices, ArrayRef<int64_t> shape) {
  Value table = n.weight(0);
  if (!table)
    return Value();
  int64_t rows = n.shape(0)[0];
  if (n.rank(0) != 2)
    table = n.b.reshape(table, {rows, elementCount(n.shape(0).drop_front())});
  const LookupNotes notes = lookupNotesOf(n.node, n.graph.metadata);
  if (notes.dividesByCount) {
    n.error() << "scale_grad_by_freq=True is not supported";
    return Value();
  }
  SmallVector<NamedAttribute> attributes;
  if (notes.paddingRow) {
    if (*notes.paddingRow >= rows) {
      n.error() << "notes say that row " << *notes.paddingRow
                << " is for padding, but the table has " << rows;
      return Value();
    }
    attributes.push_back(n.b.integer("padding_row", *notes.paddingRow));
  }
  Value found = n.b.create<nn::EmbeddingOp>({table, indices}, attributes);
  return n.b.reshape(found, shape);
}

/// Where the batch size is not the file's: constant indices that are the same
/// for all samples are looked up once, and the rows repeated. What follows the
/// batch finds them so.
static Value lookUpOnce(NodeContext &n, ArrayRef<int64_t> indices) {
  const std::optional<BatchChange> &batch = n.graph.batchChange;
  if (!batch || batch->original == 1 || n.rank(1) < 2 ||
      n.shape(1).front() != batch->original)
    return Value();
  size_t count = indices.size() / batch->original;
  for (size_t i = count; i < indices.size(); ++i)
    if (indices[i] != indices[i - count])
      return Value();
  ConstantTensor once(ElementKind::Int, n.shape(1).drop_front());
  for (size_t i = 0; i < count; ++i)
    once.setInt(i, indices[i]);
  Shape shape = gatheredShape(n, 0);
  Value rows = lookUp(n, n.made(std::move(once), ".indices"),
                      ArrayRef(shape).drop_front());
  return n.b.broadcastTo(rows, shape);
}

/// Whether constant indices are those of all elements of input 0, in order.
static bool listsAllElements(NodeContext &n) {
  const ConstantTensor *indices = n.constant(1);
  const OriginalValue *original = n.originalInput(0);
  if (!indices || indices->kind() != ElementKind::Int || n.rank(0) != 1 ||
      indices->size() !=
          (original ? ArrayRef(original->shape) : n.shape(0)).front())
    return false;
  for (int64_t i = 0, e = indices->size(); i < e; ++i)
    if (indices->intAt(i) != i)
      return false;
  return true;
}

/// Whether computed indices of samples count over samples as well, of which
/// the file has but one.
static bool picksFromBatchOfOne(NodeContext &n) {
  const OriginalValue *data = n.originalInput(0), *indices = n.originalInput(1);
  if (!data || !indices || n.graph.batchChange->original != 1)
    return false;
  auto place = n.graph.findBatch(n.input(0), *data);
  return place && place->dim == 0 && ArrayRef(indices->shape) != n.shape(1);
}

static LogicalResult importGather(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", 0), n.rank(0));
  if (failed(axis))
    return failure();
  // PyTorch's as_strided of what is contiguous.
  if (listsAllElements(n))
    return setReshapedTo(n, Shape(n.shape(1)), /*allowZero=*/true);
  if (!n.constant(1)) {
    if (*axis != 0)
      return n.error() << "axis=" << *axis
                       << " with computed indices is not supported, only 0 is";
    if (picksFromBatchOfOne(n))
      return n.error() << "picks of a batch of 1 sample by indices that do not "
                          "tell of which sample: export the model with 2 or "
                          "more";
    return n.setResult(0, lookUp(n, n.value(1), gatheredShape(n, 0)));
  }
  FailureOr<Shape> indices = readIndices(n, n.shape(0)[*axis]);
  if (failed(indices))
    return failure();
  if (indices->empty())
    return n.error() << "expects at least one index";
  if (*axis == 0)
    if (Value rows = lookUpOnce(n, *indices))
      return n.setResult(0, rows);
  // A row for padding gets no gradient, which a slice would give it.
  std::optional<int64_t> padding =
      lookupNotesOf(n.node, n.graph.metadata).paddingRow;
  if (*axis == 0 && padding && llvm::is_contained(*indices, *padding))
    return n.setResult(
        0, lookUp(n, materializeIndices(n, *indices), gatheredShape(n, 0)));
  // Runs of consecutive indices are slices: positions, the first token.
  SmallVector<Value> runs;
  for (size_t i = 0; i < indices->size();) {
    size_t begin = i++;
    while (i < indices->size() && (*indices)[i] == (*indices)[i - 1] + 1)
      ++i;
    runs.push_back(n.b.sliceAxis(n.weight(0), *axis, (*indices)[begin],
                                 int64_t(i - begin)));
    if (runs.size() > 64)
      break;
  }
  Value result;
  if (runs.size() > 64) {
    if (*axis != 0)
      return n.error() << "too many separate indices along axis " << *axis;
    return n.setResult(
        0, lookUp(n, materializeIndices(n, *indices), gatheredShape(n, 0)));
  }
  result = runs.size() == 1
               ? runs.front()
               : n.b.create<nn::ConcatOp>(runs, n.b.integer("axis", *axis));
  return n.setResult(0, n.b.reshape(result, gatheredShape(n, *axis)));
}

ArrayRef<OpRow> indexingOps() {
  static const OpRow rows[] = {
      {"Slice", 7, between(1, 5), importSlice, importSlice},
      {"Split", 7, between(1, 2), importSplit, importSplit},
      {"Concat", 7, atLeast(1), importConcat, foldConcat},
      {"Gather", 7, exactly(2), importGather, foldGather},
  };
  return rows;
}

} // namespace pipewright::frontend
