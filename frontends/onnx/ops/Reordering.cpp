//===- Reordering.cpp - Slices in another order or place
//-------------------===//
//
// Compress, ReverseSequence and TensorScatter: the number of the row that each
// row of the result is, looked up.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Rows.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace pipewright::frontend {

//===----------------------------------------------------------------------===//
// Compress
//===----------------------------------------------------------------------===//

namespace {
/// Places along `axis` of the input, which has this shape (flat without axis).
struct Selection {
  Shape shape;
  int64_t axis = 0;
  Shape places;
};
} // namespace

static FailureOr<Selection> readSelection(NodeContext &n) {
  Selection selection;
  selection.shape = {elementCount(n.shape(0))};
  if (n.hasAttribute("axis")) {
    FailureOr<int64_t> axis =
        n.normalizeAxis(n.intAttribute("axis", 0), n.rank(0));
    if (failed(axis))
      return failure();
    selection.axis = *axis;
    selection.shape = Shape(n.shape(0));
  }
  const ConstantTensor *condition = n.constant(1);
  if (!condition)
    return n.error() << "expects a constant condition, as the result's shape "
                        "follows from it";
  int64_t size = selection.shape[selection.axis];
  if (condition->kind() != ElementKind::Bool || condition->rank() != 1 ||
      condition->size() > size)
    return n.error() << "expects a list of at most " << size << " truth values";
  if (failed(n.expectListable(condition->size(), "truth values")))
    return failure();
  for (int64_t i = 0, e = condition->size(); i < e; ++i)
    if (condition->boolAt(i))
      selection.places.push_back(i);
  return selection;
}

static LogicalResult foldCompress(NodeContext &n) {
  FailureOr<Selection> selection = readSelection(n);
  if (failed(selection))
    return failure();
  int64_t size = selection->shape[selection->axis],
          count = selection->places.size();
  int64_t inner =
      elementCount(ArrayRef(selection->shape).drop_front(selection->axis + 1));
  Shape shape = selection->shape;
  shape[selection->axis] = count;
  if (!n.constant(0)->isSplat() && failed(n.expectComputable(shape)))
    return failure();
  return n.setResult(0, n.constant(0)->remapped(shape, [&](int64_t i) {
    int64_t slice = i / inner;
    return (slice / count * size + selection->places[slice % count]) * inner +
           i % inner;
  }));
}

static LogicalResult importCompress(NodeContext &n) {
  FailureOr<Selection> selection = readSelection(n);
  if (failed(selection))
    return failure();
  if (selection->places.empty())
    return n.error() << "selects nothing";
  Shape front = llvm::to_vector<4>(
      llvm::seq<int64_t>(0, int64_t(selection->shape.size())));
  std::swap(front[0], front[selection->axis]);
  Value x = n.b.transpose(n.b.reshape(n.value(0), selection->shape), front);
  if (!x)
    return failure();
  Shape shape(shapeOf(x));
  x = n.b.reshape(x, {shape[0], elementCount(ArrayRef(shape).drop_front())});
  shape[0] = selection->places.size();
  Value found = lookUp(n, x, madeNumbers(n, selection->places));
  return n.setResult(0, n.b.transpose(n.b.reshape(found, shape), front));
}

//===----------------------------------------------------------------------===//
// ReverseSequence
//===----------------------------------------------------------------------===//

static Value wholeNumber(NodeContext &n, int64_t number) {
  return n.made(ConstantTensor::scalar(number), ".number");
}

/// 0, 1, 2, ... along one axis of a shape of ones elsewhere, times `step`.
static Value countAlong(NodeContext &n, int64_t rank, int64_t axis,
                        int64_t size, int64_t step = 1) {
  Shape shape(rank, 1);
  shape[axis] = size;
  ConstantTensor numbers(ElementKind::Int, shape);
  for (int64_t i = 0; i < size; ++i)
    numbers.setInt(i, i * step);
  return n.made(std::move(numbers), ".numbers");
}

static Value sum(NodeContext &n, Value a, Value b) {
  return n.b.create<nn::AddOp>({a, b});
}

/// `number` where the condition holds, else one that no table has, which the
/// program refuses.
static Value orRefused(NodeContext &n, Value condition, Value number) {
  return n.b.create<nn::WhereOp>({condition, number, wholeNumber(n, -1)});
}

/// Turns the first elements along time around, as many as the sample has.
static LogicalResult importReverseSequence(NodeContext &n) {
  int64_t batchAxis = n.intAttribute("batch_axis", 1),
          timeAxis = n.intAttribute("time_axis", 0);
  if (n.rank(0) < 2 || batchAxis + timeAxis != 1 || batchAxis * timeAxis != 0)
    return n.error() << "expects batch_axis and time_axis to be 0 and 1, in "
                        "any order, and an input of rank 2 or more";
  int64_t samples = n.shape(0)[batchAxis], steps = n.shape(0)[timeAxis];
  if (failed(n.expectShape(1, "sequence_lens", {samples})))
    return failure();
  if (n.input(1).element != ElementKind::Int || elementCount(n.shape(0)) == 0)
    return n.error() << "expects integer sequence_lens, and elements";
  if (failed(n.expectListable(elementCount({samples, steps}), "places")))
    return failure();
  if (const ConstantTensor *lengths = n.constant(1))
    for (int64_t i = 0; i < samples; ++i)
      if (int64_t length = lengths->intAt(i); length < 0 || length > steps)
        return n.error() << "expects sequence_lens of 0 to " << steps
                         << ", but got " << length;
  Shape swap = llvm::to_vector<4>(llvm::seq<int64_t>(0, n.rank(0)));
  if (timeAxis == 0)
    std::swap(swap[0], swap[1]);
  Value x = n.b.transpose(n.value(0), swap);
  Value lengths = n.b.reshape(n.value(1), {samples, 1});
  Value time = countAlong(n, 2, 1, steps);
  Value isTurned = n.b.compare(time, lengths, nn::ComparePredicate::Lt);
  Value turned =
      n.b.create<nn::SubOp>({sum(n, lengths, wholeNumber(n, -1)), time});
  Value number = sum(n, n.b.create<nn::WhereOp>({isTurned, turned, time}),
                     countAlong(n, 2, 0, samples, steps));
  number = orRefused(
      n, n.b.compare(lengths, wholeNumber(n, steps), nn::ComparePredicate::Le),
      number);
  if (!x || !number)
    return failure();
  Shape shape(shapeOf(x));
  Value table = n.b.reshape(
      x, {samples * steps, elementCount(ArrayRef(shape).drop_front(2))});
  Value found = n.b.reshape(lookUp(n, table, number), shape);
  return n.setResult(0, n.b.transpose(found, swap));
}

//===----------------------------------------------------------------------===//
// TensorScatter
//===----------------------------------------------------------------------===//

namespace {
/// A cache [samples, outer, size, inner] and an update of `count` elements of
/// its third dimension.
struct CacheForm {
  int64_t samples, outer, size, inner, count;
  bool isCircular;
};
} // namespace

static FailureOr<CacheForm> readCache(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", -2), n.rank(0));
  std::string mode = n.stringAttribute("mode", "linear");
  if (failed(axis))
    return failure();
  if (mode != "linear" && mode != "circular")
    return n.error() << "mode=" << mode << " is not supported";
  Shape expected(n.shape(0));
  if (*axis == 0 || n.rank(1) != n.rank(0))
    return n.error() << "expects an update of the cache's rank, and an axis "
                        "behind the first";
  int64_t size = expected[*axis], count = n.shape(1)[*axis];
  expected[*axis] = count;
  if (failed(n.expectShape(1, "an update", expected)))
    return failure();
  if (count < 1 || count > size || n.input(0).element != ElementKind::Float ||
      n.input(1).element != ElementKind::Float || elementCount(n.shape(0)) == 0)
    return n.error() << "expects floats, and an update of 1 to " << size
                     << " elements along axis " << *axis << ", but got "
                     << count;
  CacheForm form;
  form.samples = n.shape(0)[0];
  form.outer = elementCount(n.shape(0).take_front(*axis).drop_front());
  form.size = size;
  form.inner = elementCount(n.shape(0).drop_front(*axis + 1));
  form.count = count;
  form.isCircular = mode == "circular";
  if (failed(n.expectListable(elementCount({form.samples, form.outer, size}),
                              "places")))
    return failure();
  return form;
}

/// Where each sample's update begins [samples, 1]; constant ones are checked
/// here, computed ones by the caller.
static FailureOr<Value> readStarts(NodeContext &n, const CacheForm &form) {
  if (!n.hasInput(2))
    return n.made(ConstantTensor(ElementKind::Int, {form.samples, 1}),
                  ".starts");
  if (failed(n.expectShape(2, "write_indices", {form.samples})))
    return failure();
  if (n.input(2).element != ElementKind::Int)
    return n.error() << "expects integer write_indices";
  if (!n.constant(2))
    return n.b.reshape(n.value(2), {form.samples, 1});
  ConstantTensor starts(ElementKind::Int, {form.samples, 1});
  for (int64_t i = 0; i < form.samples; ++i) {
    int64_t start = n.constant(2)->intAt(i);
    if (start < 0 || (!form.isCircular && start > form.size - form.count))
      return n.error() << "expects write_indices of 0 to "
                       << form.size - form.count << ", but got " << start;
    starts.setInt(i, start % form.size);
  }
  return n.made(std::move(starts), ".starts");
}

/// The update's elements from each sample's start on, the cache's elsewhere;
/// a circular cache goes on at its start.
static LogicalResult importTensorScatter(NodeContext &n) {
  FailureOr<CacheForm> form = readCache(n);
  if (failed(form))
    return failure();
  FailureOr<Value> starts = readStarts(n, *form);
  if (failed(starts))
    return failure();
  auto [samples, outer, size, inner, count, isCircular] = *form;
  Value both = n.b.create<nn::ConcatOp>(
      {n.b.reshape(n.value(0), {samples * outer, size, inner}),
       n.b.reshape(n.value(1), {samples * outer, count, inner})},
      n.b.integer("axis", 1));
  using P = nn::ComparePredicate;
  Value zero = wholeNumber(n, 0), place = countAlong(n, 2, 1, size);
  // How far behind the start a place is; a circular one counts on.
  Value far = n.b.create<nn::SubOp>({place, *starts});
  Value isBefore = n.b.compare(far, zero, P::Lt);
  if (isCircular)
    far = n.b.create<nn::WhereOp>(
        {isBefore, sum(n, far, wholeNumber(n, size)), far});
  Value isWritten = n.b.create<nn::LogicalAndOp>(
      {n.b.compare(far, zero, P::Ge),
       n.b.compare(far, wholeNumber(n, count), P::Lt)});
  Value row = n.b.create<nn::WhereOp>(
      {isWritten, sum(n, far, wholeNumber(n, size)), place});
  Value row3 =
      sum(n, n.b.reshape(row, {samples, 1, size}),
          n.b.reshape(countAlong(n, 1, 0, samples * outer, size + count),
                      {samples, outer, 1}));
  // Starts that are computed may be wrong.
  Value isKnown = n.b.create<nn::LogicalAndOp>(
      {n.b.compare(*starts, zero, P::Ge),
       n.b.compare(*starts,
                   wholeNumber(n, isCircular ? size - 1 : size - count),
                   P::Le)});
  Value number = orRefused(n, n.b.reshape(isKnown, {samples, 1, 1}), row3);
  Value table = n.b.reshape(both, {samples * outer * (size + count), inner});
  return n.setResult(0, n.b.reshape(lookUp(n, table, number), n.shape(0)));
}

ArrayRef<OpRow> reorderingOps() {
  static const OpRow rows[] = {
      {"Compress", 9, exactly(2), importCompress, foldCompress},
      {"ReverseSequence", 10, exactly(2), importReverseSequence},
      {"TensorScatter", 24, between(2, 3), importTensorScatter},
  };
  return rows;
}

} // namespace pipewright::frontend
