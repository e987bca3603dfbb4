//===- Selection.cpp - Running sums, positions and choices ----------------===//
//
// CumSum, ArgMax, TopK and the like. Of constants, such as the masks of
// attention and the positions that are counted from them, all are computed
// here.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Selection.h"
#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"
#include "frontends/onnx/ops/Rows.h"

#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;

namespace pipewright::frontend {

namespace {
/// A tensor as [outer, size, inner] around one of its axes.
struct AroundAxis {
  int64_t outer, size, inner;

  AroundAxis(ArrayRef<int64_t> shape, int64_t axis)
      : outer(elementCount(shape.take_front(axis))), size(shape[axis]),
        inner(elementCount(shape.drop_front(axis + 1))) {}

  int64_t at(int64_t o, int64_t k, int64_t i) const {
    return (o * size + k) * inner + i;
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// CumSum
//===----------------------------------------------------------------------===//

namespace {
struct RunningSum {
  int64_t axis;
  bool exclusive, reverse;
};
} // namespace

static FailureOr<RunningSum> readRunningSum(NodeContext &n) {
  FailureOr<Shape> given = n.constantInts(1, "axis");
  if (failed(given))
    return failure();
  if (given->size() != 1)
    return n.error() << "expects one axis";
  FailureOr<int64_t> axis = n.normalizeAxis(given->front(), n.rank(0));
  if (failed(axis))
    return failure();
  return RunningSum{*axis, n.intAttribute("exclusive", 0) != 0,
                    n.intAttribute("reverse", 0) != 0};
}

static LogicalResult foldCumSum(NodeContext &n) {
  FailureOr<RunningSum> sum = readRunningSum(n);
  const ConstantTensor &x = *n.constant(0);
  if (failed(sum) || failed(n.expectComputable(x.shape())))
    return failure();
  if (x.kind() == ElementKind::Bool)
    return n.error() << "expects numbers, but got bool";
  AroundAxis around(x.shape(), sum->axis);
  ConstantTensor result(x.kind(), x.shape());
  for (int64_t o = 0; o < around.outer; ++o)
    for (int64_t i = 0; i < around.inner; ++i) {
      double real = 0;
      uint64_t whole = 0;
      for (int64_t k = 0; k < around.size; ++k) {
        int64_t at = around.at(o, sum->reverse ? around.size - 1 - k : k, i);
        double realBefore = real;
        uint64_t wholeBefore = whole;
        if (x.kind() == ElementKind::Float) {
          real += x.floatAt(at);
          result.setFloat(at, float(sum->exclusive ? realBefore : real));
        } else {
          whole += uint64_t(x.intAt(at));
          result.setInt(at, int64_t(sum->exclusive ? wholeBefore : whole));
        }
      }
    }
  return n.setResult(0, std::move(result));
}

/// `x` moved by `distance` places along an axis, zeros where it was.
static Value shifted(NodeContext &n, Value x, int64_t axis, int64_t distance,
                     bool toFront) {
  Shape shape(shapeOf(x));
  int64_t size = shape[axis];
  shape[axis] = distance;
  Value zeros =
      n.made(ConstantTensor(kindOf(x), shape, /*splat=*/true), ".table");
  Value kept = n.b.sliceAxis(x, axis, toFront ? distance : 0, size - distance);
  SmallVector<Value> parts = {zeros, kept};
  if (toFront)
    std::swap(parts[0], parts[1]);
  return n.b.create<nn::ConcatOp>(parts, n.b.integer("axis", axis));
}

/// Sums over 1, 2, 4, ... neighbours, which are exact for integers; of floats
/// a product with a triangle of ones, which the library sums.
static LogicalResult importCumSum(NodeContext &n) {
  constexpr int64_t maxInProduct = 1024;
  FailureOr<RunningSum> sum = readRunningSum(n);
  Value x = n.value(0);
  if (failed(sum) || !x)
    return failure();
  int64_t size = n.shape(0)[sum->axis];
  if (sum->exclusive)
    x = size == 1 ? n.b.create<nn::SubOp>({x, x})
                  : shifted(n, x, sum->axis, 1, sum->reverse);
  if (n.input(0).element == ElementKind::Float && size > 1 &&
      size <= maxInProduct) {
    ConstantTensor ones(ElementKind::Float, {size, size});
    for (int64_t from = 0; from < size; ++from)
      for (int64_t to = 0; to < size; ++to)
        if (sum->reverse ? from >= to : from <= to)
          ones.setFloat(from * size + to, 1);
    Shape swap = llvm::to_vector<4>(llvm::seq<int64_t>(0, n.rank(0)));
    std::swap(swap[sum->axis], swap.back());
    Value last = n.b.transpose(x, swap);
    Shape shape(shapeOf(last));
    last = n.b.reshape(last, {elementCount(shape) / size, size});
    last = n.b.create<nn::MatmulOp>({last, n.made(ones, ".table")});
    return n.setResult(0, n.b.transpose(n.b.reshape(last, shape), swap));
  }
  for (int64_t distance = 1; distance < size && x; distance *= 2)
    x = n.b.create<nn::AddOp>(
        {x, shifted(n, x, sum->axis, distance, sum->reverse)});
  return n.setResult(0, x);
}

//===----------------------------------------------------------------------===//
// ArgMax and ArgMin
//===----------------------------------------------------------------------===//

namespace {
struct Choice {
  int64_t axis;
  bool keepDims, takesLast, isLargest;
};
} // namespace

static FailureOr<Choice> readChoice(NodeContext &n, bool isLargest) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", 0), n.rank(0));
  if (failed(axis))
    return failure();
  if (n.shape(0)[*axis] == 0)
    return n.error() << "expects at least one element along axis " << *axis;
  if (failed(n.expectListable(n.shape(0)[*axis], "places along the axis")))
    return failure();
  return Choice{*axis, n.intAttribute("keepdims", 1) != 0,
                n.intAttribute("select_last_index", 0) != 0, isLargest};
}

static Shape chosenShape(NodeContext &n, const Choice &choice) {
  Shape shape(n.shape(0));
  shape[choice.axis] = 1;
  if (!choice.keepDims)
    shape.erase(shape.begin() + choice.axis);
  return shape;
}

/// Whether element `b` comes before element `a`; NaN before all numbers.
static bool isBefore(const ConstantTensor &x, int64_t b, int64_t a,
                     bool isLargest) {
  if (x.kind() == ElementKind::Float) {
    float p = x.floatAt(b), q = x.floatAt(a);
    if (std::isnan(p) || std::isnan(q))
      return std::isnan(p) && !std::isnan(q);
    return isLargest ? p > q : p < q;
  }
  if (x.kind() == ElementKind::Int)
    return isLargest ? x.intAt(b) > x.intAt(a) : x.intAt(b) < x.intAt(a);
  return isLargest ? x.boolAt(b) > x.boolAt(a) : x.boolAt(b) < x.boolAt(a);
}

template <bool isLargest>
static LogicalResult foldArg(NodeContext &n) {
  FailureOr<Choice> choice = readChoice(n, isLargest);
  const ConstantTensor &x = *n.constant(0);
  if (failed(choice) || failed(n.expectComputable(x.shape())))
    return failure();
  AroundAxis around(x.shape(), choice->axis);
  ConstantTensor result(ElementKind::Int, chosenShape(n, *choice));
  for (int64_t o = 0; o < around.outer; ++o)
    for (int64_t i = 0; i < around.inner; ++i) {
      int64_t best = 0;
      for (int64_t k = 1; k < around.size; ++k) {
        int64_t a = around.at(o, best, i), b = around.at(o, k, i);
        if (choice->takesLast ? !isBefore(x, a, b, isLargest)
                              : isBefore(x, b, a, isLargest))
          best = k;
      }
      result.setInt(o * around.inner + i, best);
    }
  return n.setResult(0, std::move(result));
}

/// Numbers 0, 1, 2, ... along an axis of a shape of ones elsewhere.
static Value placesAlong(NodeContext &n, ArrayRef<int64_t> shape,
                         int64_t axis) {
  SmallVector<int64_t> numbers(shape[axis]);
  std::iota(numbers.begin(), numbers.end(), 0);
  Shape along(shape.size(), 1);
  along[axis] = shape[axis];
  return n.made(ConstantTensor::ofInts(numbers).reshaped(along), ".table");
}

namespace {
/// The largest or smallest along an axis, which stays as 1, and its place.
struct Winner {
  Value value, place;
};
} // namespace

/// A knockout of halves: the winner of each pair and its place go on. On equal
/// terms the earlier one wins, which is in the first half.
static Winner knockOut(NodeContext &n, Value x, const Choice &choice,
                       Value places = Value()) {
  if (!x)
    return {};
  int64_t axis = choice.axis, size = shapeOf(x)[axis];
  Value place = n.b.broadcastTo(
      places ? places : placesAlong(n, shapeOf(x), axis), shapeOf(x));
  nn::ComparePredicate wins =
      choice.takesLast ? (choice.isLargest ? nn::ComparePredicate::Ge
                                           : nn::ComparePredicate::Le)
                       : (choice.isLargest ? nn::ComparePredicate::Gt
                                           : nn::ComparePredicate::Lt);
  while (size > 1 && x && place) {
    int64_t half = (size + 1) / 2, rest = size - half;
    auto part = [&](Value v, int64_t start, int64_t length) {
      return n.b.sliceAxis(v, axis, start, length);
    };
    Value isSecond = n.b.compare(part(x, half, rest), part(x, 0, rest), wins);
    auto winner = [&](Value v) {
      Value won = n.b.create<nn::WhereOp>(
          {isSecond, part(v, half, rest), part(v, 0, rest)});
      if (half == rest)
        return won;
      return n.b.create<nn::ConcatOp>({won, part(v, rest, 1)},
                                      n.b.integer("axis", axis));
    };
    Value nextPlace = winner(place);
    x = winner(x);
    place = nextPlace;
    size = half;
  }
  return {x, place};
}

Value placeOfLargest(NodeContext &n, Value x, int64_t axis, Value places) {
  return knockOut(n, x, {axis, true, false, true}, places).place;
}

template <bool isLargest>
static LogicalResult importArg(NodeContext &n) {
  FailureOr<Choice> choice = readChoice(n, isLargest);
  if (failed(choice))
    return failure();
  Value place = knockOut(n, n.value(0), *choice).place;
  return n.setResult(0, place ? n.b.reshape(place, chosenShape(n, *choice))
                              : place);
}

/// 1 at the first of the largest along an axis, 0 elsewhere; up to opset 12 the
/// tensor is a matrix of what is before the axis, and the rest.
static LogicalResult importHardmax(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", n.opset < 13 ? 1 : -1), n.rank(0));
  if (failed(axis))
    return failure();
  if (n.input(0).element != ElementKind::Float || elementCount(n.shape(0)) == 0)
    return n.error() << "expects a float operand with at least one element";
  if (failed(n.expectListable(n.opset < 13 ? elementCount(n.shape(0))
                                           : n.shape(0)[*axis],
                              "places along the axis")))
    return failure();
  Value x = n.value(0);
  if (n.opset < 13) {
    x = n.b.reshape(x, {elementCount(n.shape(0).take_front(*axis)),
                        elementCount(n.shape(0).drop_front(*axis))});
    axis = 1;
  }
  Value place = knockOut(n, x, {*axis, true, false, true}).place;
  if (!place)
    return failure();
  Value isIt = n.b.compare(placesAlong(n, shapeOf(x), *axis), place,
                           nn::ComparePredicate::Eq);
  Value result = n.b.create<nn::WhereOp>({isIt, n.b.splat(1), n.b.splat(0)});
  return n.setResult(0, result ? n.b.reshape(result, n.shape(0)) : result);
}

//===----------------------------------------------------------------------===//
// TopK, NonZero and OneHot
//===----------------------------------------------------------------------===//

namespace {
struct TopKForm {
  int64_t axis, count;
  bool isLargest;
};
} // namespace

static FailureOr<TopKForm> readTopK(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", -1), n.rank(0));
  bool isLargest = n.intAttribute("largest", 1);
  n.intAttribute("sorted", 1);
  if (failed(axis))
    return failure();
  FailureOr<Shape> given = n.constantInts(1, "k");
  if (failed(given))
    return failure();
  int64_t size = n.shape(0)[*axis];
  if (given->size() != 1 || given->front() < 0 || given->front() > size)
    return n.error() << "expects one k of 0 to " << size;
  return TopKForm{*axis, given->front(), isLargest};
}

static LogicalResult foldTopK(NodeContext &n) {
  FailureOr<TopKForm> form = readTopK(n);
  const ConstantTensor &x = *n.constant(0);
  if (failed(form) || failed(n.expectComputable(x.shape())))
    return failure();
  AroundAxis around(x.shape(), form->axis);
  int64_t k = form->count;
  Shape shape(x.shape());
  shape[form->axis] = k;
  ConstantTensor values(x.kind(), shape), places(ElementKind::Int, shape);
  SmallVector<int64_t> order(around.size);
  for (int64_t o = 0; o < around.outer; ++o)
    for (int64_t i = 0; i < around.inner; ++i) {
      std::iota(order.begin(), order.end(), 0);
      llvm::sort(order, [&](int64_t a, int64_t b) {
        int64_t p = around.at(o, a, i), q = around.at(o, b, i);
        bool isFirst = isBefore(x, p, q, form->isLargest);
        // The lower index first on equal terms.
        return isFirst || (a < b && !isBefore(x, q, p, form->isLargest));
      });
      for (int64_t j = 0; j < k; ++j) {
        int64_t to = (o * k + j) * around.inner + i;
        values.copyElement(to, x, around.at(o, order[j], i));
        places.setInt(to, order[j]);
      }
    }
  if (failed(n.setResult(0, std::move(values))))
    return failure();
  return n.setResult(1, std::move(places));
}

/// As many knockouts as elements are wanted; who has won takes no more part.
static LogicalResult importTopK(NodeContext &n) {
  constexpr int64_t most = 64;
  FailureOr<TopKForm> form = readTopK(n);
  if (failed(form))
    return failure();
  if (failed(n.expectListable(n.shape(0)[form->axis], "places along the axis")))
    return failure();
  if (form->count < 1 || form->count > most ||
      n.input(0).element != ElementKind::Float)
    return n.error() << "expects floats and a k of 1 to " << most
                     << " where they are computed, but got " << form->count;
  float last = form->isLargest ? -std::numeric_limits<float>::infinity()
                               : std::numeric_limits<float>::infinity();
  Value x = n.value(0);
  SmallVector<Value> values, places;
  for (int64_t i = 0; i < form->count && x; ++i) {
    Winner winner = knockOut(n, x, {form->axis, true, false, form->isLargest});
    if (!winner.value || !winner.place)
      return failure();
    values.push_back(winner.value);
    places.push_back(winner.place);
    Value isIt = n.b.compare(placesAlong(n, shapeOf(x), form->axis),
                             winner.place, nn::ComparePredicate::Eq);
    x = n.b.create<nn::WhereOp>({isIt, n.b.splat(last), x});
  }
  auto joined = [&](ArrayRef<Value> parts) {
    return n.b.create<nn::ConcatOp>(parts, n.b.integer("axis", form->axis));
  };
  if (failed(n.setResult(0, joined(values))))
    return failure();
  return n.isOutputRead(1) ? n.setResult(1, joined(places)) : success();
}

/// [rank, count]: the places of all elements that are not zero.
static LogicalResult foldNonZero(NodeContext &n) {
  const ConstantTensor &x = *n.constant(0);
  if (failed(n.expectComputable(x.shape())))
    return failure();
  ConstantTensor isTrue = x.convertTo(ElementKind::Bool);
  SmallVector<int64_t> found;
  for (int64_t i = 0, e = x.size(); i < e; ++i)
    if (isTrue.boolAt(i))
      found.push_back(i);
  Shape strides = stridesOf(x.shape());
  int64_t count = found.size();
  if (failed(n.expectComputable({std::max<int64_t>(x.rank(), 1), count})))
    return failure();
  ConstantTensor result(ElementKind::Int, {x.rank(), count});
  for (int64_t d = 0; d < x.rank(); ++d)
    for (auto [i, index] : llvm::enumerate(found))
      result.setInt(d * count + int64_t(i), index / strides[d] % x.shape()[d]);
  return n.setResult(0, std::move(result));
}

/// Compares each index with all of a new axis.
static LogicalResult importOneHot(NodeContext &n) {
  FailureOr<int64_t> axis =
      n.normalizeAxis(n.intAttribute("axis", -1), n.rank(0) + 1);
  const ConstantTensor *depth = n.constant(1);
  if (failed(axis))
    return failure();
  if (!depth || depth->size() != 1 || depth->kind() == ElementKind::Bool)
    return n.error() << "expects one constant depth";
  int64_t size = depth->convertTo(ElementKind::Int).intAt(0);
  if (n.rank(2) != 1 || n.shape(2)[0] != 2 || size < 1 ||
      n.input(0).element == ElementKind::Bool)
    return n.error() << "expects indices, a depth of 1 or more and two values";
  Shape apart(n.shape(0)), along(n.rank(0) + 1, 1);
  apart.insert(apart.begin() + *axis, 1);
  along[*axis] = size;
  if (failed(n.expectListable(size, "places of the new axis")))
    return failure();
  SmallVector<int64_t> numbers(size);
  std::iota(numbers.begin(), numbers.end(), 0);
  Value index = n.b.reshape(n.b.cast(n.value(0), ElementKind::Int), apart);
  index = countFromStart(n, index, size);
  Value isHot = n.b.compare(
      index, n.made(ConstantTensor::ofInts(numbers).reshaped(along), ".table"),
      nn::ComparePredicate::Eq);
  Value values = n.value(2);
  return n.setResult(
      0, n.b.create<nn::WhereOp>({isHot, n.b.sliceAxis(values, 0, 1, 1),
                                  n.b.sliceAxis(values, 0, 0, 1)}));
}

ArrayRef<OpRow> selectionOps() {
  static const OpRow rows[] = {
      {"CumSum", 11, exactly(2), importCumSum, foldCumSum},
      {"ArgMax", 7, exactly(1), importArg<true>, foldArg<true>},
      {"ArgMin", 7, exactly(1), importArg<false>, foldArg<false>},
      {"TopK", 10, exactly(2), importTopK, foldTopK},
      {"Hardmax", 7, exactly(1), importHardmax},
      {"NonZero", 9, exactly(1), nullptr, foldNonZero},
      {"OneHot", 9, exactly(3), importOneHot},
  };
  return rows;
}

} // namespace pipewright::frontend
