//===- OpSpaces.cpp - how single ops walk their rows ----------------------===//

#include "passes/nn/kernels/KernelGroups.h"

#include "dialects/nn/NNOps.h"

using namespace mlir;

namespace pipewright::nn {

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

int64_t elementsOf(Value value) { return llvm::product_of(shapeOf(value)); }

bool isLeaf(Operation *op) { return isa<ConstantOp, CausalMaskOp>(op); }

bool isCompiled(Operation *op) {
  return isa_and_present<NNDialect>(op->getDialect()) &&
         op->getNumResults() > 0 &&
         !isa<LibraryOpInterface, ViewOpInterface>(op) &&
         !isa<ParameterOp, LaunchOp>(op);
}

Value stripReshapes(Value value) {
  while (auto view = value.getDefiningOp<ViewOpInterface>())
    value = view->getOperand(0);
  return value;
}

/// Row lengths at those cuts of `shape` that `fits(cut)` accepts.
template <typename Fits>
static SmallVector<int64_t> cutsOf(ArrayRef<int64_t> shape, Fits fits) {
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

static SmallVector<int64_t> pointwiseCuts(Operation *op) {
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  return cutsOf(shape, [&](size_t cut) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return broadcastsEvenly(operand, shape, cut);
    });
  });
}

static OpSpace reductionSpace(Value x, ArrayRef<int64_t> axes) {
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
  if (any && !outer) {
    int64_t columns = llvm::product_of(shape.drop_front(first));
    return {OpShape::Rows, elementsOf(x), {columns}};
  }
  bool inner = first < shape.size();
  return {OpShape::Columns, elementsOf(x), cutsOf(shape, [&](size_t cut) {
            for (size_t i = cut; i < shape.size(); ++i)
              if (shape[i] != 1 && reduced(i) != inner)
                return false;
            return true;
          })};
}

/// Row lengths that leave a move's last dimensions in one piece.
static SmallVector<int64_t> movementCuts(Operation *op) {
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  size_t last = shape.empty() ? 0 : shape.size() - 1;
  return cutsOf(shape, [&](size_t cut) {
    if (cut == last)
      return true;
    for (size_t i = cut; i < shape.size(); ++i) {
      if (auto transpose = dyn_cast<TransposeOp>(op)) {
        if (transpose.getPermutation()[i] != static_cast<int64_t>(i))
          return false;
      } else if (shapeOf(op->getOperand(0))[i] != shape[i] ||
                 (isa<SliceOp>(op) && cast<SliceOp>(op).getSteps()[i] != 1)) {
        return false;
      }
    }
    return true;
  });
}

OpSpace spaceOf(Operation *op) {
  Value result = op->getResult(0);
  int64_t elements = elementsOf(result);
  return llvm::TypeSwitch<Operation *, OpSpace>(op)
      .Case<ReduceSumOp, ReduceMeanOp, ReduceMaxOp>([](auto reduction) {
        return reductionSpace(reduction.getX(), reduction.getAxes());
      })
      .Case<SoftmaxOp, LogSoftmaxOp, SoftmaxBackwardOp, LogSoftmaxBackwardOp,
            LayerNormOp, LayerNormBackwardOp>([&](auto) {
        return OpSpace{OpShape::Rows, elements, {shapeOf(result).back()}};
      })
      .Case<BatchNormOp, BatchNormBackwardOp>([&](auto norm) {
        ArrayRef<int64_t> shape = shapeOf(result);
        size_t cut = norm.getChannelsLast() ? shape.size() - 1
                     : shape.size() > 2     ? 2
                                            : 1;
        return OpSpace{OpShape::Several,
                       elements,
                       {llvm::product_of(shape.drop_front(cut))}};
      })
      .Case([&](SoftmaxCrossEntropyOp loss) {
        return OpSpace{OpShape::Several,
                       elementsOf(loss.getLogits()),
                       {shapeOf(loss.getLogits()).back()}};
      })
      .Case([&](SoftmaxCrossEntropyBackwardOp) {
        return OpSpace{OpShape::Several, elements, {shapeOf(result).back()}};
      })
      .Case<TransposeOp, SliceOp, PadOp, ConcatOp>([&](auto) {
        return OpSpace{OpShape::Movement, elements, movementCuts(op)};
      })
      .Default([&](Operation *) {
        return OpSpace{OpShape::Pointwise, elements, pointwiseCuts(op)};
      });
}

ResultShape resultShapeOf(OpResult result) {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  if (isa<LayerNormOp>(op))
    return number == 0 ? ResultShape::Element : ResultShape::Row;
  if (isa<SoftmaxCrossEntropyOp>(op))
    return ResultShape::Final;
  if (number > 0)
    return ResultShape::Final;
  OpSpace space = spaceOf(op);
  if (space.shape == OpShape::Columns)
    return ResultShape::Final;
  if (isa<ReduceSumOp, ReduceMeanOp, ReduceMaxOp>(op))
    return ResultShape::Row;
  return ResultShape::Element;
}

bool isCheap(Operation *op) {
  return isa<CastOp, CompareOp, LogicalNotOp, LogicalAndOp, LogicalOrOp,
             WhereOp, NegOp, AddOp, SubOp, MulOp, BroadcastToOp>(op);
}

bool movesWholeRows(Operation *op) {
  auto transpose = dyn_cast<TransposeOp>(op);
  if (!transpose)
    return true;
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  return permutation.empty() ||
         permutation.back() == static_cast<int64_t>(permutation.size()) - 1;
}

} // namespace pipewright::nn
