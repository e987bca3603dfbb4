//===- Rows.cpp - Elements and slices as rows of tables
//--------------------===//

#include "frontends/onnx/ops/Rows.h"

#include "frontends/onnx/ops/Broadcasting.h"

using namespace mlir;

namespace pipewright::frontend {

FailureOr<int64_t> countFromStart(NodeContext &n, int64_t index, int64_t dim) {
  if (index < -dim || index >= dim)
    return n.error() << "index " << index
                     << " is out of range for a dimension of size " << dim;
  return index < 0 ? index + dim : index;
}

Value countFromStart(NodeContext &n, Value index, int64_t dim) {
  Value zero = madeNumbers(n, {0}), size = madeNumbers(n, {dim});
  Value isNegative = n.b.compare(index, zero, nn::ComparePredicate::Lt);
  Value moved = n.b.create<nn::AddOp>({index, size});
  return n.b.create<nn::WhereOp>({isNegative, moved, index});
}

Value madeNumbers(NodeContext &n, ArrayRef<int64_t> numbers) {
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

Value lookUp(NodeContext &n, Value table, Value numbers) {
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
// Elements
//===----------------------------------------------------------------------===//

/// Constants among the inputs get the batch of those that are computed.
static LogicalResult followBatch(NodeContext &n, int64_t axis) {
  for (unsigned k = 0; k < n.numInputs(); ++k) {
    if (!n.input(k).value || n.rank(k) != n.rank(0))
      continue;
    Shape shape(n.shape(k));
    shape[axis] = 0;
    for (unsigned i = 0; i < n.numInputs(); ++i)
      if (failed(n.followBatch(i, shape)))
        return failure();
  }
  return success();
}

/// Whether indices reach over the data along an axis in the file, but no longer
/// with another batch size.
static bool staysBehind(NodeContext &n, int64_t axis) {
  const OriginalValue *data = n.originalInput(0), *indices = n.originalInput(1);
  return data && indices && axis < int64_t(indices->shape.size()) &&
         data->shape[axis] == indices->shape[axis] &&
         n.shape(0)[axis] != n.shape(1)[axis];
}

FailureOr<int64_t> readElementsAxis(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", 0), n.rank(0));
  if (failed(axis) || failed(followBatch(n, *axis)) || failed(expectIndices(n)))
    return failure();
  bool fits = n.rank(1) == n.rank(0);
  for (int64_t d = 0; fits && d < n.rank(0); ++d)
    fits = d == *axis || (n.shape(1)[d] <= n.shape(0)[d] && !staysBehind(n, d));
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

FailureOr<Rows> elementRows(NodeContext &n, int64_t axis) {
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

Value computeElementNumbers(NodeContext &n, int64_t axis) {
  Shape strides = stridesOf(n.shape(0));
  ConstantTensor offsets(ElementKind::Int, n.shape(1));
  for (int64_t i = 0, e = offsets.size(); i < e; ++i)
    offsets.setInt(i, offsetOf(n.shape(1), strides, i, axis));
  Value index = countFromStart(n, n.value(1), n.shape(0)[axis]);
  Value stride = madeNumbers(n, {strides[axis]});
  return n.b.create<nn::AddOp>(
      {n.b.create<nn::MulOp>({index, stride}), n.made(offsets, ".indices")});
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

FailureOr<NdForm> readNdForm(NodeContext &n, int64_t batchDims) {
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

FailureOr<std::vector<int64_t>> readNumbers(NodeContext &n,
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

Value computeNumbers(NodeContext &n, const NdForm &form) {
  Value indices = n.value(1);
  Shape strides = stridesOf(form.counted), shape(n.shape(1).drop_back());
  Value numbers;
  for (int64_t j = 0; j < form.indexed; ++j) {
    Value index = n.b.sliceAxis(indices, n.rank(1) - 1, j, 1);
    index = countFromStart(n, n.b.reshape(index, shape), form.counted[j]);
    if (strides[j] != 1)
      index = n.b.create<nn::MulOp>({index, madeNumbers(n, {strides[j]})});
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

} // namespace pipewright::frontend
