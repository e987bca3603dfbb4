//===- ShapeToLinalg.cpp - constants, moves and reductions in linalg ------===//

#include "codegen/kernels/linalg/LinalgBuilder.h"

#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace pipewright::nn {

using Input = LinalgBuilder::Input;

static Value lower(SliceOp op, LinalgBuilder &builder) {
  ArrayRef<int64_t> starts = op.getStarts(), steps = op.getSteps();
  RankedTensorType type = tensorType(op.getResult());
  if (llvm::all_of(steps, [](int64_t step) { return step > 0; }))
    return tensor::ExtractSliceOp::create(
        builder.b, builder.loc, type, op.getX(), ValueRange(), ValueRange(),
        ValueRange(), starts, op.getSizes(), steps);
  // Views cannot walk backwards.
  return builder.pointwise(type, {}, [&](Scalars &s, ValueRange) -> Value {
    SmallVector<Value> position;
    for (auto [i, step] : llvm::enumerate(steps)) {
      Value moved = s.mul(s.loopIndex(i), s.index(step));
      position.push_back(s.add(moved, s.index(starts[i])));
    }
    return s.make<tensor::ExtractOp>(op.getX(), position);
  });
}

/// The position `at` if it lies in [0, size), else 0; `inside` is and-ed with
/// whether it does.
static Value clampInside(Scalars &s, Value at, int64_t size, Value &inside) {
  Value fits =
      s.make<arith::CmpIOp>(arith::CmpIPredicate::ult, at, s.index(size));
  inside = inside ? s.make<arith::AndIOp>(inside, fits) : fits;
  return s.select(fits, at, s.index(0));
}

static Value lower(PadOp op, LinalgBuilder &builder) {
  RankedTensorType type = tensorType(op.getResult());
  ArrayRef<int64_t> from = tensorType(op.getX()).getShape();
  return builder.pointwise(type, {}, [&](Scalars &s, ValueRange) -> Value {
    SmallVector<Value> position;
    Value inside;
    for (unsigned i = 0; i < from.size(); ++i) {
      Value at = s.loopIndex(i);
      if (from[i] != type.getDimSize(i)) {
        at = s.sub(at, s.index(op.getLow()[i]));
        at = clampInside(s, at, from[i], inside);
      }
      position.push_back(at);
    }
    Value value = s.make<tensor::ExtractOp>(op.getX(), position);
    if (!inside)
      return value;
    return s.select(inside, value, s.zero(value.getType()));
  });
}

/// Operands of one size: which of them is a loop of its own, so that no index
/// has to be clamped and whole rows come from one operand.
static Value lowerEvenConcat(ConcatOp op, LinalgBuilder &builder) {
  RankedTensorType type = tensorType(op.getResult());
  int64_t axis = op.getAxis();
  int64_t number = op.getInputs().size();
  SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
  shape[axis] = number;
  shape.insert(shape.begin() + axis + 1, type.getDimSize(axis) / number);
  Value joined = builder.pointwise(
      shape, type.getElementType(), {}, [&](Scalars &s, ValueRange) -> Value {
        SmallVector<Value> position;
        for (int64_t i = 0; i <= type.getRank(); ++i)
          if (i != axis)
            position.push_back(s.loopIndex(i));
        Value part = s.loopIndex(axis), result;
        for (auto [k, input] : llvm::enumerate(op.getInputs())) {
          Value value = s.make<tensor::ExtractOp>(input, position);
          Value here =
              s.make<arith::CmpIOp>(arith::CmpIPredicate::eq, part, s.index(k));
          result = result ? s.select(here, value, result) : value;
        }
        return result;
      });
  return builder.reshape(joined, type.getShape());
}

static Value lower(ConcatOp op, LinalgBuilder &builder) {
  RankedTensorType type = tensorType(op.getResult());
  int64_t axis = op.getAxis();
  if (llvm::all_equal(op.getInputs().getTypes()))
    return lowerEvenConcat(op, builder);
  return builder.pointwise(type, {}, [&](Scalars &s, ValueRange) -> Value {
    SmallVector<Value> position;
    for (int64_t i = 0; i < type.getRank(); ++i)
      position.push_back(s.loopIndex(i));
    Value along = position[axis], result;
    int64_t start = 0;
    for (Value input : op.getInputs()) {
      int64_t size = tensorType(input).getDimSize(axis);
      Value inside;
      position[axis] =
          clampInside(s, s.sub(along, s.index(start)), size, inside);
      Value value = s.make<tensor::ExtractOp>(input, position);
      result = result ? s.select(inside, value, result) : value;
      start += size;
    }
    return result;
  });
}

static Value lower(TransposeOp op, LinalgBuilder &builder) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  SmallVector<AffineExpr> exprs(permutation.size());
  for (auto [i, source] : llvm::enumerate(permutation))
    exprs[source] = builder.b.getAffineDimExpr(i);
  AffineMap map =
      AffineMap::get(exprs.size(), 0, exprs, builder.b.getContext());
  return builder.pointwise(tensorType(op.getResult()), Input{op.getX(), map},
                           identity);
}

static Value lower(CausalMaskOp op, LinalgBuilder &builder) {
  RankedTensorType type = tensorType(op.getResult());
  unsigned rank = type.getRank();
  return builder.pointwise(type, {}, [&](Scalars &s, ValueRange) -> Value {
    return s.make<arith::CmpIOp>(arith::CmpIPredicate::ule,
                                 s.loopIndex(rank - 1), s.loopIndex(rank - 2));
  });
}

static Value lowerReduction(Operation *op, Value x, ArrayRef<int64_t> axes,
                            LinalgBuilder &builder) {
  RankedTensorType type = tensorType(x);
  double scale = 1.0;
  if (isa<ReduceMeanOp>(op))
    for (int64_t axis : axes)
      scale /= type.getDimSize(axis);
  Value result = builder.reduce(
      isa<ReduceMaxOp>(op) ? Reduction::Max : Reduction::Sum, type.getShape(),
      axes, builder.same(x), [&](Scalars &s, ValueRange arguments) {
        return scale == 1.0 ? Value(arguments[0])
                            : s.mul(arguments[0], s.constant(scale));
      });
  RankedTensorType reduced = tensorType(op->getResult(0));
  if (reduced.getElementType() != tensorType(result).getElementType())
    result = builder.pointwise(tensorType(result).getShape(),
                               reduced.getElementType(), builder.same(result),
                               identity);
  return builder.reshape(result, reduced.getShape());
}

Lowered lowerShape(Operation *op, LinalgBuilder &builder) {
  Value result =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case([&](ConstantOp constant) -> Value {
            return arith::ConstantOp::create(builder.b, builder.loc,
                                             constant.getValue());
          })
          .Case([&](ReshapeOp reshape) {
            return builder.reshape(reshape.getX(),
                                   tensorType(reshape.getResult()).getShape());
          })
          .Case<CausalMaskOp, TransposeOp, SliceOp, PadOp, ConcatOp>(
              [&](auto mover) { return lower(mover, builder); })
          .Case<ReduceSumOp, ReduceMeanOp, ReduceMaxOp>([&](auto reduction) {
            return lowerReduction(op, reduction.getX(), reduction.getAxes(),
                                  builder);
          })
          .Default(Value());
  if (!result)
    return failure();
  return SmallVector<Value>{result};
}

} // namespace pipewright::nn
