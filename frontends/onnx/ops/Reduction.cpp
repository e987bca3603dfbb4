//===- Reduction.cpp - Reductions -----------------------------------------===//
//
// Axes moved from an attribute to an input at opset 13 (ReduceSum) and 18 (the
// others). Products and minima of constants occur in shape arithmetic.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"
#include "frontends/onnx/ops/LpNorms.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace pipewright::frontend {

namespace {
struct ReductionForm {
  Shape axes;
  bool keepDims;
};
} // namespace

static FailureOr<ReductionForm> readForm(NodeContext &n, int64_t axesInput) {
  ReductionForm form;
  form.keepDims = n.intAttribute("keepdims", 1);
  bool noop = n.intAttribute("noop_with_empty_axes", 0);
  std::optional<Shape> axes;
  if (n.opset < axesInput) {
    axes = n.intsAttribute("axes");
  } else if (n.hasInput(1)) {
    FailureOr<Shape> given = n.constantInts(1, "axes");
    if (failed(given))
      return failure();
    axes = *given;
  }
  if (!axes || axes->empty()) {
    // Over all axes, or over none: then each element is reduced by itself.
    axes = Shape();
    if (!noop)
      axes = llvm::to_vector<4>(llvm::seq<int64_t>(0, n.rank(0)));
  }
  FailureOr<Shape> normal = n.normalizeAxes(*axes, n.rank(0));
  if (failed(normal))
    return failure();
  form.axes = *normal;
  llvm::sort(form.axes);
  return form;
}

namespace {
enum class Reduction {
  Sum,
  Mean,
  Max,
  Min,
  Prod,
  SumSquare,
  L1,
  L2,
  LogSum,
  LogSumExp
};
} // namespace

static int64_t axesInputSince(Reduction kind) {
  return kind == Reduction::Sum ? 13 : 18;
}

/// log(sum e^x) with e of what is at most 0; a row of -inf has that result.
static Value logSumExp(NodeContext &n, Value x, const ReductionForm &form) {
  Value largest = n.b.reduce<nn::ReduceMaxOp>(x, form.axes, true);
  Value isFinite =
      n.b.compare(n.b.create<nn::AbsOp>(largest),
                  n.b.splat(std::numeric_limits<float>::infinity()),
                  nn::ComparePredicate::Lt);
  Value shift = n.b.create<nn::WhereOp>({isFinite, largest, n.b.splat(0)});
  Value terms = n.b.create<nn::ExpOp>(n.b.create<nn::SubOp>({x, shift}));
  Value sum = n.b.reduce<nn::ReduceSumOp>(terms, form.axes, true);
  Value result = n.b.create<nn::AddOp>({n.b.create<nn::LogOp>(sum), shift});
  return result && !form.keepDims
             ? n.b.reduce<nn::ReduceSumOp>(result, form.axes, false)
             : result;
}

/// Products of halves: the gradient of each factor is the product of all
/// others, also where some are 0.
static Value product(NodeContext &n, Value x, const ReductionForm &form) {
  Shape order, shape;
  int64_t count = 1;
  for (int64_t i = 0; i < n.rank(0); ++i)
    if (llvm::is_contained(form.axes, i)) {
      count *= n.shape(0)[i];
      if (form.keepDims)
        shape.push_back(1);
    } else {
      order.push_back(i);
      shape.push_back(n.shape(0)[i]);
    }
  llvm::append_range(order, form.axes);
  if (count == 0)
    return n.b.splat(1, shape);
  x = n.b.transpose(x, order);
  x = x ? n.b.reshape(x, {elementCount(shape), count}) : x;
  while (count > 1 && x) {
    int64_t rest = count / 2, half = count - rest;
    Value both = n.b.create<nn::MulOp>(
        {n.b.sliceAxis(x, 1, 0, rest), n.b.sliceAxis(x, 1, half, rest)});
    x = half == rest
            ? both
            : n.b.create<nn::ConcatOp>({both, n.b.sliceAxis(x, 1, rest, 1)},
                                       n.b.integer("axis", 1));
    count = half;
  }
  return x ? n.b.reshape(x, shape) : x;
}

static Value reduceValue(NodeContext &n, Reduction kind, Value x,
                         const ReductionForm &form) {
  auto negated = [&](Value v) { return n.b.create<nn::NegOp>(v); };
  auto square = [&](Value v) { return n.b.create<nn::MulOp>({v, v}); };
  switch (kind) {
  case Reduction::Sum:
    return n.b.reduce<nn::ReduceSumOp>(x, form.axes, form.keepDims);
  case Reduction::Mean:
    return n.b.reduce<nn::ReduceMeanOp>(x, form.axes, form.keepDims);
  case Reduction::Max:
    return n.b.reduce<nn::ReduceMaxOp>(x, form.axes, form.keepDims);
  case Reduction::Min:
    return negated(
        n.b.reduce<nn::ReduceMaxOp>(negated(x), form.axes, form.keepDims));
  case Reduction::SumSquare:
    return n.b.reduce<nn::ReduceSumOp>(square(x), form.axes, form.keepDims);
  case Reduction::L2:
    // The root of one square is the size of it, which does not overflow.
    if (form.axes.empty())
      return n.b.create<nn::AbsOp>(x);
    return rootOrZero(
        n, n.b.reduce<nn::ReduceSumOp>(square(x), form.axes, form.keepDims));
  case Reduction::Prod:
    return product(n, x, form);
  case Reduction::L1:
    return n.b.reduce<nn::ReduceSumOp>(n.b.create<nn::AbsOp>(x), form.axes,
                                       form.keepDims);
  case Reduction::LogSum:
    return n.b.create<nn::LogOp>(
        n.b.reduce<nn::ReduceSumOp>(x, form.axes, form.keepDims));
  case Reduction::LogSumExp:
    return logSumExp(n, x, form);
  }
  llvm_unreachable("covered switch");
}

template <Reduction kind>
static LogicalResult importReduction(NodeContext &n) {
  FailureOr<ReductionForm> form = readForm(n, axesInputSince(kind));
  if (failed(form))
    return failure();
  // Over nothing some still are a function of each element.
  if (form->axes.empty())
    switch (kind) {
    case Reduction::L1:
      return n.setResult(0, n.b.create<nn::AbsOp>(n.value(0)));
    case Reduction::LogSum:
      return n.setResult(0, n.b.create<nn::LogOp>(n.value(0)));
    case Reduction::SumSquare:
    case Reduction::L2:
      break;
    default:
      return n.forward(0, 0);
    }
  return n.setResult(0, reduceValue(n, kind, n.value(0), *form));
}

/// What a reduction starts with, joins an element with, and ends with. T is
/// int64_t, which wraps, or double.
template <typename T>
struct Folding {
  static T start(Reduction kind) {
    switch (kind) {
    case Reduction::Prod:
      return 1;
    case Reduction::Max:
      return std::numeric_limits<T>::has_infinity
                 ? -std::numeric_limits<T>::infinity()
                 : std::numeric_limits<T>::lowest();
    case Reduction::Min:
      return std::numeric_limits<T>::has_infinity
                 ? std::numeric_limits<T>::infinity()
                 : std::numeric_limits<T>::max();
    default:
      return 0;
    }
  }
  static T sizeOf(T a) {
    if constexpr (std::is_integral_v<T>)
      return a < 0 ? T(-uint64_t(a)) : a;
    else
      return a < 0 ? -a : a;
  }
  static T multiply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return T(uint64_t(a) * uint64_t(b));
    else
      return a * b;
  }
  static T add(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return T(uint64_t(a) + uint64_t(b));
    else
      return a + b;
  }
  static T join(Reduction kind, T a, T b) {
    switch (kind) {
    case Reduction::Prod:
      return multiply(a, b);
    case Reduction::Max:
      return std::max(a, b);
    case Reduction::Min:
      return std::min(a, b);
    case Reduction::SumSquare:
    case Reduction::L2:
      return add(a, multiply(b, b));
    case Reduction::L1:
      return add(a, sizeOf(b));
    case Reduction::LogSumExp:
      return add(a, T(std::exp(double(b))));
    case Reduction::Sum:
    case Reduction::LogSum:
    case Reduction::Mean:
      return add(a, b);
    }
    llvm_unreachable("covered switch");
  }
  static T finish(Reduction kind, T sum, int64_t count) {
    if (kind == Reduction::Mean && count > 0)
      return sum / T(count);
    if (kind == Reduction::LogSum || kind == Reduction::LogSumExp)
      return T(std::log(double(sum)));
    return kind == Reduction::L2 ? T(std::sqrt(double(sum))) : sum;
  }
};

template <typename T>
static void reduceInto(ConstantTensor &result, const ConstantTensor &x,
                       Reduction kind) {
  Shape strides = stridesOf(x.shape()), keptStrides = stridesOf(result.shape());
  std::vector<T> sums(result.size(), Folding<T>::start(kind));
  for (int64_t i = 0, e = x.size(); i < e; ++i) {
    int64_t at = 0;
    for (int64_t d = 0, rest = i; d < x.rank(); rest %= strides[d], ++d)
      if (result.shape()[d] != 1)
        at += rest / strides[d] * keptStrides[d];
    T element = x.kind() == ElementKind::Int ? T(x.intAt(i)) : T(x.floatAt(i));
    sums[at] = Folding<T>::join(kind, sums[at], element);
  }
  int64_t count = result.size() ? x.size() / result.size() : 0;
  for (auto [i, sum] : llvm::enumerate(sums)) {
    T value = Folding<T>::finish(kind, sum, count);
    if (x.kind() == ElementKind::Int)
      result.setInt(i, int64_t(value));
    else
      result.setFloat(i, float(value));
  }
}

template <Reduction kind>
static LogicalResult foldReduction(NodeContext &n) {
  const ConstantTensor &x = *n.constant(0);
  if (x.kind() == ElementKind::Bool)
    return n.error() << "expects numbers, but got bool";
  // Roots and logarithms of whole numbers are none.
  if (x.kind() == ElementKind::Int &&
      (kind == Reduction::L2 || kind == Reduction::LogSum ||
       kind == Reduction::LogSumExp))
    return n.error() << "expects floats, but got integers";
  FailureOr<ReductionForm> form = readForm(n, axesInputSince(kind));
  if (failed(form))
    return failure();
  if (failed(n.expectComputable(x.shape())))
    return failure();
  Shape kept(x.shape()), shape;
  for (int64_t axis : form->axes)
    kept[axis] = 1;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (form->keepDims || !llvm::is_contained(form->axes, i))
      shape.push_back(kept[i]);
  ConstantTensor result(x.kind(), kept);
  if (x.kind() == ElementKind::Int)
    reduceInto<int64_t>(result, x, kind);
  else
    reduceInto<double>(result, x, kind);
  return n.setResult(0, result.reshaped(shape));
}

template <Reduction kind>
static OpRow rowOf(StringRef name) {
  return {name, 7, between(1, 2), importReduction<kind>, foldReduction<kind>};
}

ArrayRef<OpRow> reductionOps() {
  using R = Reduction;
  static const OpRow rows[] = {
      rowOf<R::Sum>("ReduceSum"),       rowOf<R::Mean>("ReduceMean"),
      rowOf<R::Max>("ReduceMax"),       rowOf<R::Min>("ReduceMin"),
      rowOf<R::Prod>("ReduceProd"),     rowOf<R::SumSquare>("ReduceSumSquare"),
      rowOf<R::L2>("ReduceL2"),         rowOf<R::L1>("ReduceL1"),
      rowOf<R::LogSum>("ReduceLogSum"), rowOf<R::LogSumExp>("ReduceLogSumExp"),
  };
  return rows;
}

} // namespace pipewright::frontend
