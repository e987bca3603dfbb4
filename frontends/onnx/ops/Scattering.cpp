//===- Scattering.cpp - Rows written at listed places
//----------------------===//
//
// ScatterElements, ScatterND and MaxUnpool. Writing at constant places is
// reading from the data and the updates, one behind the other, or from the
// updates alone where they are joined with the data. Rows at computed places
// are added up as the gradient of a lookup is, in the order of the updates.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Rows.h"
#include "frontends/onnx/ops/Window.h"

#include "dialects/nn/NNLimits.h"

#include <limits>

using namespace mlir;

namespace pipewright::frontend {

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

/// Constant data of ScatterND gets the batch of the slices that are written.
static LogicalResult followSlices(NodeContext &n) {
  int64_t indexed = n.rank(1) > 0 ? n.shape(1).back() : 0;
  if (indexed < 0 || indexed > n.rank(0) || n.rank(0) - indexed > n.rank(2))
    return success();
  return n.followBatch(0, n.shape(2).take_back(n.rank(0) - indexed));
}

/// Which rows a scatter writes, and fails unless its updates have the shape of
/// those. The numbers are empty where the indices are computed.
static FailureOr<Rows> readScatter(NodeContext &n, bool byElements,
                                   Value *computed = nullptr) {
  bool isConstant = n.constant(1) != nullptr;
  Rows rows;
  Shape expected;
  if (byElements) {
    FailureOr<int64_t> axis = readElementsAxis(n);
    if (failed(axis))
      return failure();
    expected = Shape(n.shape(1));
    rows.rows = elementCount(n.shape(0));
    if (isConstant) {
      FailureOr<Rows> found = elementRows(n, *axis);
      if (failed(found))
        return failure();
      rows = std::move(*found);
    } else {
      *computed = computeElementNumbers(n, *axis);
    }
  } else {
    if (failed(followSlices(n)))
      return failure();
    FailureOr<NdForm> form = readNdForm(n, 0);
    if (failed(form))
      return failure();
    rows.rows = form->rows;
    rows.width = form->width;
    expected = form->result;
    if (isConstant) {
      FailureOr<std::vector<int64_t>> numbers = readNumbers(n, *form);
      if (failed(numbers))
        return failure();
      rows.numbers = std::move(*numbers);
    } else {
      *computed = computeNumbers(n, *form);
    }
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
  return lookUp(n, both, madeNumbers(n, source));
}

/// What leaves a number as it is.
static float neutralOf(Joining how) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  switch (how) {
  case Joining::Mul:
    return 1;
  case Joining::Max:
    return -infinity;
  case Joining::Min:
    return infinity;
  case Joining::Add:
  case Joining::Replace:
    return 0;
  }
  llvm_unreachable("covered switch");
}

static Value joinValues(NodeContext &n, Joining how, Value old, Value update) {
  switch (how) {
  case Joining::Mul:
    return n.b.create<nn::MulOp>({old, update});
  case Joining::Max:
    return n.b.create<nn::MaximumOp>({old, update});
  case Joining::Min:
    return n.b.create<nn::MinimumOp>({old, update});
  case Joining::Add:
  case Joining::Replace:
    return n.b.create<nn::AddOp>({old, update});
  }
  llvm_unreachable("covered switch");
}

/// Joins data and updates, those of one row one after the other.
static Value joinRows(NodeContext &n, Joining how, const Rows &rows, Value data,
                      Value updates) {
  constexpr int maxOfOneRow = 64;
  Value neutral = n.b.splat(neutralOf(how), {1, rows.width});
  Value both =
      n.b.create<nn::ConcatOp>({neutral, updates}, n.b.integer("axis", 0));
  std::vector<bool> isDone(rows.numbers.size());
  for (int round = 0; round < maxOfOneRow; ++round) {
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
      data = joinValues(n, how, data, lookUp(n, both, madeNumbers(n, source)));
    if (isLast)
      return data;
  }
  n.error() << "writes more than " << maxOfOneRow << " updates to one place";
  return Value();
}

/// Writes or adds updates [count, width] at computed numbers of rows. Updates
/// of one row add up, which is undefined where they replace the data.
static Value scatterComputed(NodeContext &n, Joining how, const Rows &rows,
                             Value data, Value updates, Value numbers) {
  if (!data || !updates || !numbers)
    return Value();
  int64_t count = shapeOf(updates)[0];
  numbers = n.b.reshape(numbers, {count});
  auto addUp = [&](Value values) {
    auto type = RankedTensorType::get({rows.rows, shapeOf(values)[1]},
                                      n.b.getBuilder().getF32Type());
    return n.b.create<nn::EmbeddingBackwardOp>({values, numbers}, {}, type);
  };
  // Rows that the data has not are refused by a lookup, and by it alone.
  Value ones =
      n.b.create<nn::EmbeddingOp>({n.b.splat(1, {rows.rows, 1}), numbers});
  if (!ones)
    return Value();
  Value sum = addUp(n.b.create<nn::MulOp>({updates, ones}));
  if (how == Joining::Add)
    return n.b.create<nn::AddOp>({data, sum});
  Value isWritten =
      n.b.compare(addUp(ones), n.b.splat(0), nn::ComparePredicate::Gt);
  return n.b.create<nn::WhereOp>({isWritten, sum, data});
}

template <bool byElements>
static LogicalResult importScatter(NodeContext &n) {
  FailureOr<Joining> how = readJoining(n);
  if (failed(how))
    return failure();
  bool isConstant = n.constant(1) != nullptr;
  if (!isConstant && *how != Joining::Replace && *how != Joining::Add)
    return n.error() << "expects constant indices with reduction="
                     << n.stringAttribute("reduction", "")
                     << ", but they depend on the model's inputs or weights";
  if ((!isConstant || *how != Joining::Replace) &&
      n.input(0).element != ElementKind::Float)
    return n.error() << "expects float data and updates where indices or "
                        "results are computed";
  Value computed;
  FailureOr<Rows> rows = readScatter(n, byElements, &computed);
  if (failed(rows))
    return failure();
  if (failed(n.expectListable(rows->rows, "places to write to")))
    return failure();
  int64_t count = elementCount(n.shape(2)) / std::max<int64_t>(rows->width, 1);
  Value data = n.b.reshape(n.value(0), {rows->rows, rows->width});
  Value updates = n.b.reshape(n.value(2), {count, rows->width});
  Value result =
      !isConstant ? scatterComputed(n, *how, *rows, data, updates, computed)
      : *how == Joining::Replace ? replaceRows(n, *rows, data, updates)
                                 : joinRows(n, *how, *rows, data, updates);
  return n.setResult(0, n.b.reshape(result, n.shape(0)));
}

//===----------------------------------------------------------------------===//
// MaxUnpool
//===----------------------------------------------------------------------===//

/// The size of the image that MaxPool made these windows of, without what its
/// last windows did not reach.
static FailureOr<Shape> unpooledShape(NodeContext &n) {
  FailureOr<Window> window = readGivenWindow(n, {});
  if (failed(window))
    return failure();
  size_t count = window->kernel.size();
  Shape shape(n.shape(0).take_front(2));
  for (size_t i = 0; i < count; ++i) {
    if (window->kernel[i] > window->strides[i])
      return n.error() << "expects kernel_shape of at most strides, as windows "
                          "that overlap may write to one place twice";
    int64_t size;
    if (llvm::MulOverflow(n.shape(0)[i + 2] - 1, window->strides[i], size) ||
        size > nn::kMaxTensorElements)
      return n.error() << "expects a result of at most "
                       << nn::kMaxTensorElements << " elements";
    size += window->kernel[i] - window->pads[i] - window->pads[i + count];
    if (size < 1)
      return n.error() << "gives dimension " << i + 2 << " the size " << size;
    shape.push_back(size);
  }
  return shape;
}

/// Zeros but for the elements of input 0, at the places of the whole tensor
/// that input 1 gives; zeros up to output_shape behind.
static LogicalResult importMaxUnpool(NodeContext &n) {
  FailureOr<Shape> inner = unpooledShape(n);
  if (failed(inner))
    return failure();
  if (n.input(0).element != ElementKind::Float ||
      n.input(1).element != ElementKind::Int || n.shape(0) != n.shape(1))
    return n.error() << "expects floats, and integer indices of their shape";
  Shape outer = *inner;
  if (n.hasInput(2)) {
    FailureOr<Shape> given = n.constantInts(2, "output_shape");
    if (failed(given))
      return failure();
    outer = *given;
  }
  if (outer.size() != inner->size() || outer[0] != (*inner)[0] ||
      outer[1] != (*inner)[1] ||
      llvm::any_of(llvm::zip(outer, *inner), [](auto sizes) {
        auto [wide, narrow] = sizes;
        return wide < narrow;
      }))
    return n.error() << "expects an output_shape of the input's samples and "
                        "channels, and no smaller than kernel_shape, strides "
                        "and pads give";
  Rows rows;
  rows.rows = elementCount(*inner);
  int64_t count = elementCount(n.shape(0));
  if (failed(
          n.expectListable(std::max(rows.rows, count), "places to write to")))
    return failure();
  Value zeros = n.b.splat(0, {rows.rows, 1});
  Value updates = n.b.reshape(n.value(0), {count, 1});
  Value image;
  if (const ConstantTensor *places = n.constant(1)) {
    for (int64_t i = 0; i < count; ++i) {
      FailureOr<int64_t> number =
          countFromStart(n, places->intAt(i), rows.rows);
      if (failed(number))
        return failure();
      rows.numbers.push_back(*number);
    }
    image = replaceRows(n, rows, zeros, updates);
  } else {
    image = scatterComputed(n, Joining::Add, rows, zeros, updates, n.value(1));
  }
  image = n.b.reshape(image, *inner);
  if (outer == *inner)
    return n.setResult(0, image);
  Shape low(outer.size(), 0), high;
  for (auto [wide, narrow] : llvm::zip(outer, *inner))
    high.push_back(wide - narrow);
  return n.setResult(0, n.b.create<nn::PadOp>(image, {n.b.ints("low", low),
                                                      n.b.ints("high", high)}));
}

ArrayRef<OpRow> scatteringOps() {
  static const OpRow rows[] = {
      {"Scatter", 9, exactly(3), importScatter<true>, foldScatter<true>},
      {"ScatterElements", 11, exactly(3), importScatter<true>,
       foldScatter<true>},
      {"ScatterND", 11, exactly(3), importScatter<false>, foldScatter<false>},
      {"MaxUnpool", 9, between(2, 3), importMaxUnpool},
  };
  return rows;
}

} // namespace pipewright::frontend
