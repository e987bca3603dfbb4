//===- Gathering.cpp - Elements and slices by lists of indices ------------===//
//
// GatherElements, GatherND, ScatterElements and ScatterND. Each index becomes
// the number of a row of a table, so reading is nn.embedding, whose gradient
// adds up in a fixed order. Writing at constant places is reading, too: from
// the data and the updates, one behind the other.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {
/// Which rows of a table a node reads or writes. The data of a node is a table
/// of `rows` rows of `width` elements; index `i` of the node is row
/// `numbers[i]`.
struct Rows {
  int64_t rows = 1, width = 1;
  std::vector<int64_t> numbers;
};
} // namespace

/// A constant index counted from 0; fails if it is out of range.
static FailureOr<int64_t> countFromStart(NodeContext &n, int64_t index,
                                         int64_t dim) {
  if (index < -dim || index >= dim)
    return n.error() << "index " << index
                     << " is out of range for a dimension of size " << dim;
  return index < 0 ? index + dim : index;
}

static Value materializeNumbers(NodeContext &n, ArrayRef<int64_t> numbers) {
  return n.made(ConstantTensor::ofInts(numbers), ".indices");
}

/// Whether all elements of a constant are whole numbers that a float holds.
static bool fitFloats(const ConstantTensor *data) {
  if (!data)
    return false;
  if (data->kind() != ElementKind::Int)
    return true;
  for (int64_t i = 0, e = data->storedSize(); i < e; ++i)
    if (data->intAt(i) > (1 << 24) || data->intAt(i) < -(1 << 24))
      return false;
  return true;
}

/// Rows of `table` [rows, width], which is the data under another shape, by
/// numbers of any shape. Whole numbers are looked up as floats.
static Value lookUp(NodeContext &n, Value table, Value numbers) {
  if (!table || kindOf(table) == ElementKind::Float)
    return n.b.create<nn::EmbeddingOp>({table, numbers});
  if (!fitFloats(n.constant(0))) {
    n.error() << "expects data of floats, or constant whole numbers of at most "
                 "2^24";
    return Value();
  }
  Value found = n.b.create<nn::EmbeddingOp>(
      {n.b.cast(table, ElementKind::Float), numbers});
  return n.b.cast(found, kindOf(table));
}

static LogicalResult expectIndices(NodeContext &n) {
  if (n.input(1).element != ElementKind::Int)
    return n.error() << "expects integer indices";
  if (elementCount(n.shape(0)) == 0 || elementCount(n.shape(1)) == 0)
    return n.error() << "expects at least one element and one index";
  return n.expectListable(elementCount(n.shape(1)), "indices");
}

//===----------------------------------------------------------------------===//
// GatherElements and ScatterElements
//===----------------------------------------------------------------------===//

/// The axis; fails unless indices have the rank of the data and reach no
/// further than it along the other axes.
static FailureOr<int64_t> readElementsAxis(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", 0), n.rank(0));
  if (failed(axis) || failed(expectIndices(n)))
    return failure();
  bool fits = n.rank(1) == n.rank(0);
  for (int64_t d = 0; fits && d < n.rank(0); ++d)
    fits = d == *axis || n.shape(1)[d] <= n.shape(0)[d];
  if (!fits)
    return n.error() << "the indices do not fit to the data";
  return *axis;
}

/// The row number of an index without its part along `axis`.
static int64_t offsetOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides,
                        int64_t index, int64_t axis, int64_t first = 0) {
  int64_t offset = 0;
  for (int64_t d = int64_t(shape.size()) - 1; d >= first; --d) {
    if (d != axis)
      offset += index % shape[d] * strides[d];
    index /= shape[d];
  }
  return offset;
}

/// Each element is a row; constant indices.
static FailureOr<Rows> elementRows(NodeContext &n, int64_t axis) {
  Rows result;
  result.rows = elementCount(n.shape(0));
  Shape strides = stridesOf(n.shape(0));
  const ConstantTensor &indices = *n.constant(1);
  for (int64_t i = 0, e = indices.size(); i < e; ++i) {
    FailureOr<int64_t> index =
        countFromStart(n, indices.intAt(i), n.shape(0)[axis]);
    if (failed(index))
      return failure();
    result.numbers.push_back(offsetOf(n.shape(1), strides, i, axis) +
                             *index * strides[axis]);
  }
  return result;
}

/// How many leading axes before `axis` the indices are the same along, and as
/// long as the data: those stay together, such as samples of a batch.
static int64_t countSharedAxes(NodeContext &n, int64_t axis) {
  const ConstantTensor &indices = *n.constant(1);
  int64_t shared = 0, rest = indices.size();
  for (; shared < axis && n.shape(1)[shared] == n.shape(0)[shared]; ++shared) {
    int64_t next = rest / n.shape(1)[shared];
    for (int64_t i = next, e = indices.size(); i < e; ++i)
      if (indices.intAt(i) != indices.intAt(i % next))
        return shared;
    rest = next;
  }
  return shared;
}

static LogicalResult foldGatherElements(NodeContext &n) {
  FailureOr<int64_t> axis = readElementsAxis(n);
  if (failed(axis))
    return failure();
  FailureOr<Rows> rows = elementRows(n, *axis);
  if (failed(rows))
    return failure();
  return n.setResult(0, n.constant(0)->remapped(n.shape(1), [&](int64_t i) {
    return rows->numbers[i];
  }));
}

/// Computed indices, with those that count from the end counted from 0.
static Value countFromStart(NodeContext &n, Value index, int64_t dim) {
  Value zero = materializeNumbers(n, {0}), size = materializeNumbers(n, {dim});
  Value isNegative = n.b.compare(index, zero, nn::ComparePredicate::Lt);
  Value moved = n.b.create<nn::AddOp>({index, size});
  return n.b.create<nn::WhereOp>({isNegative, moved, index});
}

static LogicalResult gatherComputedElements(NodeContext &n, int64_t axis) {
  Shape strides = stridesOf(n.shape(0));
  ConstantTensor offsets(ElementKind::Int, n.shape(1));
  for (int64_t i = 0, e = offsets.size(); i < e; ++i)
    offsets.setInt(i, offsetOf(n.shape(1), strides, i, axis));
  Value index = countFromStart(n, n.value(1), n.shape(0)[axis]);
  Value stride = materializeNumbers(n, {strides[axis]});
  Value numbers = n.b.create<nn::AddOp>(
      {n.b.create<nn::MulOp>({index, stride}), n.made(offsets, ".indices")});
  Value table = n.b.reshape(n.value(0), {elementCount(n.shape(0)), 1});
  return n.setResult(0, n.b.reshape(lookUp(n, table, numbers), n.shape(1)));
}

static LogicalResult importGatherElements(NodeContext &n) {
  FailureOr<int64_t> axis = readElementsAxis(n);
  if (failed(axis))
    return failure();
  if (!n.constant(1))
    return gatherComputedElements(n, *axis);
  FailureOr<Rows> all = elementRows(n, *axis);
  if (failed(all))
    return failure();
  // [shared, rest] is a table of `rest` rows as wide as what is shared.
  int64_t shared = countSharedAxes(n, *axis);
  int64_t width = elementCount(n.shape(0).take_front(shared));
  int64_t rows = all->rows / width;
  int64_t count = elementCount(n.shape(1)) / width;
  all->numbers.resize(count);
  Value table = n.b.reshape(n.value(0), {width, rows});
  table = n.b.transpose(table, {1, 0});
  Value found = lookUp(n, table, materializeNumbers(n, all->numbers));
  found = n.b.transpose(found, {1, 0});
  return n.setResult(0, n.b.reshape(found, n.shape(1)));
}

//===----------------------------------------------------------------------===//
// GatherND and ScatterND
//===----------------------------------------------------------------------===//

namespace {
/// The data of GatherND and ScatterND: `batchDims` dimensions that indices
/// share, `indexed` ones that they count, and slices.
struct NdForm {
  int64_t batchDims = 0, indexed = 0;
  Shape counted;
  int64_t batch = 1, rows = 1, width = 1;
  Shape result;
};
} // namespace

static FailureOr<NdForm> readNdForm(NodeContext &n, int64_t batchDims) {
  NdForm form;
  form.batchDims = batchDims;
  if (n.rank(0) == 0 || n.rank(1) == 0)
    return n.error() << "expects data and indices of rank 1 or more";
  if (failed(expectIndices(n)))
    return failure();
  form.indexed = n.shape(1).back();
  if (batchDims < 0 || batchDims >= std::min(n.rank(0), n.rank(1)) ||
      form.indexed > n.rank(0) - batchDims || form.indexed < 1)
    return n.error() << "expects indices of at most " << n.rank(0) - batchDims
                     << " dimensions, but got " << form.indexed
                     << " with batch_dims=" << batchDims;
  if (n.shape(0).take_front(batchDims) != n.shape(1).take_front(batchDims))
    return n.error() << "data and indices differ in the first " << batchDims
                     << " dimensions";
  ArrayRef<int64_t> data = n.shape(0).drop_front(batchDims);
  form.batch = elementCount(n.shape(0).take_front(batchDims));
  form.counted = Shape(data.take_front(form.indexed));
  form.rows = elementCount(form.counted);
  form.width = elementCount(data.drop_front(form.indexed));
  form.result = Shape(n.shape(1).drop_back());
  llvm::append_range(form.result, data.drop_front(form.indexed));
  return form;
}

/// Constant indices as numbers of rows within each batch.
static FailureOr<std::vector<int64_t>> readNumbers(NodeContext &n,
                                                   const NdForm &form) {
  const ConstantTensor &indices = *n.constant(1);
  Shape strides = stridesOf(form.counted);
  std::vector<int64_t> numbers;
  for (int64_t i = 0, e = indices.size(); i < e; i += form.indexed) {
    int64_t number = 0;
    for (int64_t j = 0; j < form.indexed; ++j) {
      FailureOr<int64_t> index =
          countFromStart(n, indices.intAt(i + j), form.counted[j]);
      if (failed(index))
        return failure();
      number += *index * strides[j];
    }
    numbers.push_back(number);
  }
  return numbers;
}

static LogicalResult foldGatherNd(NodeContext &n) {
  FailureOr<NdForm> form = readNdForm(n, n.intAttribute("batch_dims", 0));
  if (failed(form))
    return failure();
  FailureOr<std::vector<int64_t>> numbers = readNumbers(n, *form);
  if (failed(numbers) ||
      (!n.constant(0)->isSplat() && failed(n.expectComputable(form->result))))
    return failure();
  int64_t perBatch = int64_t(numbers->size()) / form->batch;
  return n.setResult(0, n.constant(0)->remapped(form->result, [&](int64_t i) {
    int64_t at = i / form->width;
    int64_t row = at / perBatch * form->rows + (*numbers)[at];
    return row * form->width + i % form->width;
  }));
}

/// Computed indices as numbers of rows of all batches.
static Value computeNumbers(NodeContext &n, const NdForm &form) {
  Value indices = n.value(1);
  Shape strides = stridesOf(form.counted), shape(n.shape(1).drop_back());
  Value numbers;
  for (int64_t j = 0; j < form.indexed; ++j) {
    Value index = n.b.sliceAxis(indices, n.rank(1) - 1, j, 1);
    index = countFromStart(n, n.b.reshape(index, shape), form.counted[j]);
    if (strides[j] != 1)
      index =
          n.b.create<nn::MulOp>({index, materializeNumbers(n, {strides[j]})});
    numbers = numbers ? n.b.create<nn::AddOp>({numbers, index}) : index;
  }
  if (form.batch == 1)
    return numbers;
  ConstantTensor offsets(ElementKind::Int, shape);
  int64_t perBatch = offsets.size() / form.batch;
  for (int64_t i = 0, e = offsets.size(); i < e; ++i)
    offsets.setInt(i, i / perBatch * form.rows);
  return n.b.create<nn::AddOp>({numbers, n.made(offsets, ".indices")});
}

static LogicalResult importGatherNd(NodeContext &n) {
  FailureOr<NdForm> form = readNdForm(n, n.intAttribute("batch_dims", 0));
  if (failed(form))
    return failure();
  Value table =
      n.b.reshape(n.value(0), {form->batch * form->rows, form->width});
  Value numbers;
  if (n.constant(1)) {
    FailureOr<std::vector<int64_t>> rows = readNumbers(n, *form);
    if (failed(rows))
      return failure();
    int64_t perBatch = int64_t(rows->size()) / form->batch;
    for (auto [i, number] : llvm::enumerate(*rows))
      number += int64_t(i) / perBatch * form->rows;
    numbers = materializeNumbers(n, *rows);
  } else {
    numbers = computeNumbers(n, *form);
  }
  return n.setResult(0, n.b.reshape(lookUp(n, table, numbers), form->result));
}

//===----------------------------------------------------------------------===//
// Scattering
//===----------------------------------------------------------------------===//

namespace {
enum class Joining { Replace, Add, Mul, Max, Min };
} // namespace

static FailureOr<Joining> readJoining(NodeContext &n) {
  std::string name = n.stringAttribute("reduction", "none");
  if (name == "none")
    return Joining::Replace;
  if (name == "add")
    return Joining::Add;
  if (name == "mul")
    return Joining::Mul;
  if (name == "max")
    return Joining::Max;
  if (name == "min")
    return Joining::Min;
  return n.error() << "reduction=" << name << " is not supported";
}

/// Sums and products of integers wrap.
template <typename T>
static T join(Joining how, T old, T update) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  switch (how) {
  case Joining::Replace:
    return update;
  case Joining::Add:
    return T(Wide(old) + Wide(update));
  case Joining::Mul:
    return T(Wide(old) * Wide(update));
  case Joining::Max:
    return std::max(old, update);
  case Joining::Min:
    return std::min(old, update);
  }
  llvm_unreachable("covered switch");
}

/// Which rows a scatter writes, and the shape that its updates must have.
static FailureOr<Rows> readScatter(NodeContext &n, bool byElements) {
  if (!n.constant(1))
    return n.error() << "expects constant indices, but they depend on the "
                        "model's inputs or weights";
  Rows rows;
  Shape expected(n.shape(1));
  if (byElements) {
    FailureOr<int64_t> axis = readElementsAxis(n);
    if (failed(axis))
      return failure();
    FailureOr<Rows> found = elementRows(n, *axis);
    if (failed(found))
      return failure();
    rows = std::move(*found);
  } else {
    FailureOr<NdForm> form = readNdForm(n, 0);
    if (failed(form))
      return failure();
    FailureOr<std::vector<int64_t>> numbers = readNumbers(n, *form);
    if (failed(numbers))
      return failure();
    rows = {form->rows, form->width, std::move(*numbers)};
    expected = form->result;
  }
  if (n.shape(2) != ArrayRef<int64_t>(expected) ||
      n.input(2).element != n.input(0).element)
    return n.error() << "the updates do not fit to data and indices";
  return rows;
}

template <bool byElements>
static LogicalResult foldScatter(NodeContext &n) {
  FailureOr<Joining> how = readJoining(n);
  if (failed(how) || failed(n.expectComputable(n.shape(0))))
    return failure();
  FailureOr<Rows> rows = readScatter(n, byElements);
  if (failed(rows))
    return failure();
  const ConstantTensor &data = *n.constant(0), &updates = *n.constant(2);
  ConstantTensor result(data.kind(), data.shape());
  for (int64_t i = 0, e = result.size(); i < e; ++i)
    result.copyElement(i, data, i);
  for (int64_t i = 0, e = updates.size(); i < e; ++i) {
    int64_t at = rows->numbers[i / rows->width] * rows->width + i % rows->width;
    if (data.kind() == ElementKind::Float)
      result.setFloat(at, join(*how, result.floatAt(at), updates.floatAt(i)));
    else if (data.kind() == ElementKind::Int)
      result.setInt(at, join(*how, result.intAt(at), updates.intAt(i)));
    else if (*how == Joining::Replace)
      result.setBool(at, updates.boolAt(i));
    else
      return n.error() << "expects numbers, but got bool";
  }
  return n.setResult(0, std::move(result));
}

/// Each row written once: it is read from the updates, behind the data.
static Value replaceRows(NodeContext &n, const Rows &rows, Value data,
                         Value updates) {
  std::vector<int64_t> source(rows.rows);
  for (int64_t i = 0; i < rows.rows; ++i)
    source[i] = i;
  for (auto [i, row] : llvm::enumerate(rows.numbers)) {
    if (source[row] >= rows.rows) {
      n.error() << "writes to one place twice";
      return Value();
    }
    source[row] = rows.rows + int64_t(i);
  }
  Value both =
      n.b.create<nn::ConcatOp>({data, updates}, n.b.integer("axis", 0));
  return lookUp(n, both, materializeNumbers(n, source));
}

/// Adds the updates, those of one row one after the other.
static Value addRows(NodeContext &n, Rows rows, Value data, Value updates) {
  constexpr int mostOfOneRow = 64;
  Value zero = n.b.splat(0, {1, rows.width});
  Value both =
      n.b.create<nn::ConcatOp>({zero, updates}, n.b.integer("axis", 0));
  std::vector<bool> isDone(rows.numbers.size());
  for (int round = 0; round < mostOfOneRow; ++round) {
    std::vector<int64_t> source(rows.rows, 0);
    bool isOver = true, isLast = true;
    for (auto [i, row] : llvm::enumerate(rows.numbers)) {
      if (isDone[i])
        continue;
      isOver = false;
      if (source[row] != 0) {
        isLast = false;
        continue;
      }
      source[row] = int64_t(i) + 1;
      isDone[i] = true;
    }
    if (!isOver)
      data = n.b.create<nn::AddOp>(
          {data, lookUp(n, both, materializeNumbers(n, source))});
    if (isLast)
      return data;
  }
  n.error() << "adds more than " << mostOfOneRow << " updates to one place";
  return Value();
}

template <bool byElements>
static LogicalResult importScatter(NodeContext &n) {
  FailureOr<Joining> how = readJoining(n);
  if (failed(how))
    return failure();
  FailureOr<Rows> rows = readScatter(n, byElements);
  if (failed(rows))
    return failure();
  if (failed(n.expectListable(rows->rows, "places to write to")))
    return failure();
  if (*how != Joining::Replace && *how != Joining::Add)
    return n.error() << "reduction=" << n.stringAttribute("reduction", "")
                     << " is not supported on computed values";
  Value data = n.b.reshape(n.value(0), {rows->rows, rows->width});
  Value updates =
      n.b.reshape(n.value(2), {int64_t(rows->numbers.size()), rows->width});
  Value result = *how == Joining::Replace
                     ? replaceRows(n, *rows, data, updates)
                     : addRows(n, std::move(*rows), data, updates);
  return n.setResult(0, n.b.reshape(result, n.shape(0)));
}

ArrayRef<OpRow> gatheringOps() {
  static const OpRow rows[] = {
      {"GatherElements", 11, exactly(2), importGatherElements,
       foldGatherElements},
      {"GatherND", 11, exactly(2), importGatherNd, foldGatherNd},
      {"Scatter", 9, exactly(3), importScatter<true>, foldScatter<true>},
      {"ScatterElements", 11, exactly(3), importScatter<true>,
       foldScatter<true>},
      {"ScatterND", 11, exactly(3), importScatter<false>, foldScatter<false>},
  };
  return rows;
}

} // namespace pipewright::frontend
