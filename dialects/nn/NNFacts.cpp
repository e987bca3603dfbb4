//===- NNFacts.cpp - How families of ops walk their rows ------------------===//

#include "dialects/nn/NNFacts.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright::nn;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

int64_t pipewright::nn::bytesOfElement(Type element) {
  const unsigned bits =
      element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return std::max<int64_t>(1, bits / 8);
}

int64_t pipewright::nn::elementsOf(Value tensor) {
  return llvm::product_of(shapeOf(tensor));
}

/// Row lengths at those cuts of `shape` that `fits(cut)` accepts.
static SmallVector<int64_t> cutsOf(ArrayRef<int64_t> shape,
                                   function_ref<bool(size_t)> fits) {
  SmallVector<int64_t> columns;
  int64_t behind = 1;
  for (size_t cut = shape.size(); cut-- > 0;) {
    behind *= shape[cut];
    if (fits(cut) && !llvm::is_contained(columns, behind))
      columns.push_back(behind);
  }
  if (shape.empty())
    columns.push_back(1);
  return columns;
}

/// True if behind the cut the operand is repeated either everywhere or nowhere.
static bool broadcastsEvenly(Value operand, ArrayRef<int64_t> shape,
                             size_t cut) {
  ArrayRef<int64_t> from = shapeOf(operand);
  size_t missing = shape.size() - from.size();
  bool repeated = false, walked = false;
  for (size_t i = cut; i < shape.size(); ++i) {
    if (shape[i] == 1)
      continue;
    (i < missing || from[i - missing] == 1 ? repeated : walked) = true;
  }
  return !(repeated && walked);
}

RowSpace pipewright::nn::elementwiseSpace(Operation *op, RowWalk walk) {
  Value result = op->getResult(0);
  ArrayRef<int64_t> shape = shapeOf(result);
  auto fits = [&](size_t cut) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return broadcastsEvenly(operand, shape, cut);
    });
  };
  return {walk, elementsOf(result), cutsOf(shape, fits), {ResultForm::Element}};
}

RowSpace pipewright::nn::movementSpace(Operation *op, RowWalk walk,
                                       function_ref<bool(size_t)> keeps) {
  Value result = op->getResult(0);
  ArrayRef<int64_t> shape = shapeOf(result);
  // The last dimension may be moved alone.
  auto fits = [&](size_t cut) {
    return cut + 1 == shape.size() ||
           llvm::all_of(llvm::seq(cut, shape.size()), keeps);
  };
  return {walk, elementsOf(result), cutsOf(shape, fits), {ResultForm::Element}};
}

RowSpace pipewright::nn::rowSpace(Value tensor, ArrayRef<ResultForm> results) {
  return {RowWalk::Rows,
          elementsOf(tensor),
          {shapeOf(tensor).back()},
          llvm::to_vector(results)};
}

RowSpace pipewright::nn::reductionSpace(Value x, ArrayRef<int64_t> axes) {
  ArrayRef<int64_t> shape = shapeOf(x);
  auto reduced = [&](size_t i) {
    return llvm::is_contained(axes, static_cast<int64_t>(i));
  };
  // The trailing dimensions that are reduced, and whether others are too.
  size_t first = shape.size();
  while (first > 0 && (shape[first - 1] == 1 || reduced(first - 1)))
    --first;
  bool outer = false, any = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1 || !reduced(i))
      continue;
    any = true;
    outer |= i < first;
  }
  if (any && !outer)
    return {RowWalk::Rows,
            elementsOf(x),
            {llvm::product_of(shape.drop_front(first))},
            {ResultForm::Row}};
  bool inner = first < shape.size();
  auto fits = [&](size_t cut) {
    return llvm::all_of(llvm::seq(cut, shape.size()), [&](size_t i) {
      return shape[i] == 1 || reduced(i) == inner;
    });
  };
  return {RowWalk::Columns,
          elementsOf(x),
          cutsOf(shape, fits),
          {ResultForm::Whole}};
}
