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
enum class Reduction { Sum, Mean, Max, Min, Prod, SumSquare, L2 };
} // namespace

static int64_t axesInputSince(Reduction kind) {
  return kind == Reduction::Sum ? 13 : 18;
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
    n.error() << "this operator is not supported on computed values";
    return Value();
  }
  llvm_unreachable("covered switch");
}

template <Reduction kind>
static LogicalResult importReduction(NodeContext &n) {
  FailureOr<ReductionForm> form = readForm(n, axesInputSince(kind));
  if (failed(form))
    return failure();
  // Over nothing these two still are a function of each element.
  if (form->axes.empty() && kind != Reduction::SumSquare &&
      kind != Reduction::L2)
    return n.forward(0, 0);
  return n.setResult(0, reduceValue(n, kind, n.value(0), *form));
}

/// Folds Sum, Max, Min and Prod of integers, which shape arithmetic has.
template <Reduction kind>
static LogicalResult foldReduction(NodeContext &n) {
  const ConstantTensor &x = *n.constant(0);
  if (x.kind() != ElementKind::Int)
    return importReduction<kind>(n);
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
  ConstantTensor result(ElementKind::Int, kept);
  int64_t start = kind == Reduction::Prod  ? 1
                  : kind == Reduction::Max ? std::numeric_limits<int64_t>::min()
                  : kind == Reduction::Min ? std::numeric_limits<int64_t>::max()
                                           : 0;
  for (int64_t i = 0, e = result.size(); i < e; ++i)
    result.setInt(i, start);
  Shape strides = stridesOf(x.shape()), keptStrides = stridesOf(kept);
  for (int64_t i = 0, e = x.size(); i < e; ++i) {
    int64_t at = 0;
    for (int64_t d = 0, rest = i; d < x.rank(); rest %= strides[d], ++d)
      if (kept[d] != 1)
        at += rest / strides[d] * keptStrides[d];
    int64_t a = result.intAt(at), b = x.intAt(i);
    result.setInt(
        at, kind == Reduction::Prod  ? int64_t(uint64_t(a) * uint64_t(b))
            : kind == Reduction::Max ? std::max(a, b)
            : kind == Reduction::Min ? std::min(a, b)
                                     : int64_t(uint64_t(a) + uint64_t(b)));
  }
  return n.setResult(0, result.reshaped(shape));
}

ArrayRef<OpRow> reductionOps() {
  using R = Reduction;
  static const OpRow rows[] = {
      {"ReduceSum", 7, between(1, 2), importReduction<R::Sum>,
       foldReduction<R::Sum>},
      {"ReduceMean", 7, between(1, 2), importReduction<R::Mean>},
      {"ReduceMax", 7, between(1, 2), importReduction<R::Max>,
       foldReduction<R::Max>},
      {"ReduceMin", 7, between(1, 2), importReduction<R::Min>,
       foldReduction<R::Min>},
      {"ReduceProd", 7, between(1, 2), importReduction<R::Prod>,
       foldReduction<R::Prod>},
      {"ReduceSumSquare", 7, between(1, 2), importReduction<R::SumSquare>},
      {"ReduceL2", 7, between(1, 2), importReduction<R::L2>},
  };
  return rows;
}

} // namespace pipewright::frontend
