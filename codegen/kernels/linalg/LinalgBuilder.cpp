//===- LinalgBuilder.cpp - short ways to write linalg.generic -------------===//

#include "codegen/kernels/linalg/LinalgBuilder.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;

namespace pipewright::nn {

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value Scalars::max(Value x, Value y) {
  if (!isFloat(x))
    return make<arith::MaxSIOp>(x, y);
  return make<arith::MaximumFOp>(
      x, y,
      arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::nsz));
}

Value Scalars::neg(Value x) {
  return isFloat(x) ? make<arith::NegFOp>(x) : sub(zero(x.getType()), x);
}

Value Scalars::widen(Value x) {
  return x.getType().isBF16() ? make<arith::ExtFOp>(b.getF32Type(), x) : x;
}

//===----------------------------------------------------------------------===//
// Generics
//===----------------------------------------------------------------------===//

using Input = LinalgBuilder::Input;

static SmallVector<AffineMap> mapsOf(ArrayRef<Input> inputs, AffineMap output) {
  SmallVector<AffineMap> maps;
  for (const Input &input : inputs)
    maps.push_back(input.map);
  maps.push_back(output);
  return maps;
}

static SmallVector<Value> tensorsOf(ArrayRef<Input> inputs) {
  return llvm::map_to_vector(inputs,
                             [](const Input &input) { return input.tensor; });
}

/// What the body of a generic computes from its inputs, as f32 where they are
/// bf16.
static Value computeWide(Scalars &scalars, ValueRange inputs,
                         LinalgBuilder::Body body) {
  SmallVector<Value> wide = llvm::map_to_vector(
      inputs, [&](Value input) { return scalars.widen(input); });
  Value value = body(scalars, wide);
  for (auto [input, wider] : llvm::zip(inputs, wide))
    if (input != wider && wider != value && wider.use_empty())
      wider.getDefiningOp()->erase();
  return value;
}

/// `value` as it is stored.
static Value narrow(Scalars &scalars, Value value, Type element) {
  if (value.getType() == element || !element.isBF16())
    return value;
  // Moved, not computed.
  if (auto widened = value.getDefiningOp<arith::ExtFOp>();
      widened && isa<BlockArgument>(widened.getIn())) {
    Value moved = widened.getIn();
    if (widened->use_empty())
      widened.erase();
    return moved;
  }
  return scalars.make<arith::TruncFOp>(element, value);
}

Value LinalgBuilder::pointwise(ArrayRef<int64_t> shape, Type element,
                               ArrayRef<Input> inputs, Body body) {
  Value init = tensor::EmptyOp::create(b, loc, shape, element);
  AffineMap output = b.getMultiDimIdentityMap(shape.size());
  SmallVector<utils::IteratorType> loops(shape.size(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, init.getType(), tensorsOf(inputs), init,
             mapsOf(inputs, output), loops,
             [&](OpBuilder &inner, Location at, ValueRange arguments) {
               Scalars scalars(inner, at);
               Value value = computeWide(scalars, arguments.drop_back(), body);
               linalg::YieldOp::create(inner, at,
                                       narrow(scalars, value, element));
             })
      .getResult(0);
}

Value LinalgBuilder::reduce(Reduction kind, ArrayRef<int64_t> domain,
                            ArrayRef<int64_t> axes, ArrayRef<Input> inputs,
                            Body body) {
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> kept;
  SmallVector<utils::IteratorType> loops;
  for (auto [i, size] : llvm::enumerate(domain)) {
    bool reduced = llvm::is_contained(axes, static_cast<int64_t>(i));
    loops.push_back(reduced ? utils::IteratorType::reduction
                            : utils::IteratorType::parallel);
    if (reduced)
      continue;
    shape.push_back(size);
    kept.push_back(b.getAffineDimExpr(i));
  }
  bool sum = kind == Reduction::Sum;
  Value start = arith::ConstantOp::create(
      b, loc,
      b.getF32FloatAttr(sum ? 0.0f : -std::numeric_limits<float>::infinity()));
  Value empty = tensor::EmptyOp::create(b, loc, shape, b.getF32Type());
  Value init = linalg::FillOp::create(b, loc, start, empty).getResult(0);
  AffineMap output = AffineMap::get(domain.size(), 0, kept, b.getContext());
  return linalg::GenericOp::create(
             b, loc, init.getType(), tensorsOf(inputs), init,
             mapsOf(inputs, output), loops,
             [&](OpBuilder &inner, Location at, ValueRange arguments) {
               Scalars scalars(inner, at);
               Value value = computeWide(scalars, arguments.drop_back(), body);
               Value total = arguments.back();
               total =
                   sum ? scalars.add(total, value) : scalars.max(total, value);
               linalg::YieldOp::create(inner, at, total);
             })
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

Input LinalgBuilder::broadcast(Value tensor, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> from = tensorType(tensor).getShape();
  size_t missing = shape.size() - from.size();
  SmallVector<AffineExpr> exprs;
  for (auto [i, size] : llvm::enumerate(from)) {
    bool stretched = size == 1 && shape[missing + i] != 1;
    exprs.push_back(stretched ? b.getAffineConstantExpr(0)
                              : b.getAffineDimExpr(missing + i));
  }
  return {tensor, AffineMap::get(shape.size(), 0, exprs, b.getContext())};
}

Input LinalgBuilder::same(Value tensor) {
  return {tensor, b.getMultiDimIdentityMap(tensorType(tensor).getRank())};
}

Input LinalgBuilder::at(Value tensor, unsigned rank, ArrayRef<unsigned> loops) {
  SmallVector<AffineExpr> exprs = llvm::map_to_vector(
      loops, [&](unsigned loop) { return b.getAffineDimExpr(loop); });
  return {tensor, AffineMap::get(rank, 0, exprs, b.getContext())};
}

Input LinalgBuilder::rows(Value tensor, unsigned rank) {
  return at(tensor, rank, llvm::to_vector(llvm::seq<unsigned>(0, rank - 1)));
}

Input LinalgBuilder::element(Value tensor, unsigned rank, int64_t position) {
  return {tensor, AffineMap::get(rank, 0, b.getAffineConstantExpr(position),
                                 b.getContext())};
}

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

Value LinalgBuilder::reshape(Value tensor, ArrayRef<int64_t> to) {
  ArrayRef<int64_t> from = tensorType(tensor).getShape();
  if (from == to)
    return tensor;
  // Cut both shapes where their leading products agree: what lies between two
  // cuts is collapsed to one dimension, then expanded.
  SmallVector<ReassociationIndices> collapse, expand;
  SmallVector<int64_t> middle;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    ReassociationIndices source{static_cast<int64_t>(i)};
    ReassociationIndices target{static_cast<int64_t>(j)};
    int64_t sourceSize = from[i++], targetSize = to[j++];
    while (sourceSize != targetSize) {
      if (sourceSize < targetSize) {
        source.push_back(i);
        sourceSize *= from[i++];
      } else {
        target.push_back(j);
        targetSize *= to[j++];
      }
    }
    middle.push_back(sourceSize);
    collapse.push_back(source);
    expand.push_back(target);
  }
  // What is left are ones; they join the last group, if there is any.
  for (; i < from.size() && !collapse.empty(); ++i)
    collapse.back().push_back(i);
  for (; j < to.size() && !expand.empty(); ++j)
    expand.back().push_back(j);
  Type element = tensorType(tensor).getElementType();
  if (middle.size() != from.size())
    tensor = tensor::CollapseShapeOp::create(
        b, loc, RankedTensorType::get(middle, element), tensor, collapse);
  if (middle.size() != to.size())
    tensor = tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get(to, element), tensor, expand);
  return tensor;
}

} // namespace pipewright::nn
