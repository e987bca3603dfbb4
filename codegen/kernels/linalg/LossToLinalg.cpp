//===- LossToLinalg.cpp - cross entropy in linalg -------------------------===//
//
// The maximum of a row is taken off its logits before anything is added to
// them: in f32 a logarithm of a few units vanishes beside a maximum of 1e9.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/linalg/LinalgBuilder.h"

#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;

namespace pipewright::nn {

using Input = LinalgBuilder::Input;

static Value counts(Scalars &s, Value label, int64_t ignored) {
  return s.make<arith::CmpIOp>(arith::CmpIPredicate::ne, label,
                               s.integer(ignored));
}

/// Whether the element of two loops is in a column that counts.
static Value isClass(Scalars &s, int64_t classes) {
  Value bound = s.index(classes);
  return s.make<arith::CmpIOp>(arith::CmpIPredicate::slt, s.loopIndex(1),
                               bound);
}

/// How many labels are not ignored, at least one: no row divides by zero.
static Value countLabels(Value labels, int64_t ignored,
                         LinalgBuilder &builder) {
  Value count =
      builder.reduce(Reduction::Sum, tensorType(labels).getShape(), 0,
                     builder.same(labels), [&](Scalars &s, ValueRange a) {
                       return s.select(counts(s, a[0], ignored),
                                       s.constant(1.0), s.constant(0.0));
                     });
  return builder.pointwise(
      {}, builder.b.getF32Type(), builder.same(count),
      [](Scalars &s, ValueRange a) { return s.max(a[0], s.constant(1.0)); });
}

/// What the sum over the rows is divided by.
template <class LossOp>
static Value divisorOf(LossOp op, LinalgBuilder &builder) {
  if (Value divisor = op.getDivisor())
    return divisor;
  return countLabels(op.getLabels(), op.getIgnoreIndex(), builder);
}

static SmallVector<Value> lowerForward(SoftmaxCrossEntropyOp op,
                                       LinalgBuilder &builder) {
  ArrayRef<int64_t> shape = tensorType(op.getLogits()).getShape();
  int64_t ignored = op.getIgnoreIndex();
  Type f32 = builder.b.getF32Type();
  // First: a gradient in the same kernel needs it on every row.
  Value count = divisorOf(op, builder);
  Input logits = builder.same(op.getLogits());
  int64_t classes = op.countClasses();
  bool isPadded = classes < shape[1];
  Value largest = builder.reduce(
      Reduction::Max, shape, 1, logits, [&](Scalars &s, ValueRange a) {
        if (!isPadded)
          return a[0];
        Value least = s.constant(-std::numeric_limits<float>::infinity());
        return s.select(isClass(s, classes), a[0], least);
      });
  Value sum = builder.reduce(
      Reduction::Sum, shape, 1, {logits, builder.rows(largest, 2)},
      [&](Scalars &s, ValueRange a) {
        Value term = s.expOfNonpositive(s.sub(a[0], a[1]));
        return isPadded ? s.select(isClass(s, classes), term, s.constant(0.0))
                        : term;
      });
  Value total = builder.reduce(
      Reduction::Sum, shape.take_front(), 0,
      {builder.same(largest), builder.same(sum), builder.same(op.getLabels())},
      [&](Scalars &s, ValueRange a) {
        Value valid = counts(s, a[2], ignored);
        // Whatever the data: nothing is read outside of the logits.
        Value inside = s.make<arith::CmpIOp>(arith::CmpIPredicate::ult, a[2],
                                             s.integer(classes));
        Value label = s.select(inside, a[2], s.integer(0));
        Value column = s.make<arith::IndexCastOp>(s.b.getIndexType(), label);
        Value row = s.loopIndex(0);
        Value picked = s.widen(
            s.make<tensor::ExtractOp>(op.getLogits(), ValueRange{row, column}));
        Value term = s.sub(s.log(a[1]), s.sub(picked, a[0]));
        return s.select(valid, term, s.constant(0.0));
      });
  Value loss = builder.pointwise(
      {}, f32, {builder.same(total), builder.same(count)},
      [](Scalars &s, ValueRange a) { return s.div(a[0], a[1]); });
  return {loss, largest, sum};
}

static Value lowerBackward(SoftmaxCrossEntropyBackwardOp op,
                           LinalgBuilder &builder) {
  RankedTensorType type = tensorType(op.getLogits());
  int64_t ignored = op.getIgnoreIndex();
  Value count = divisorOf(op, builder);
  Value inverse = builder.pointwise(
      type.getShape().take_front(), builder.b.getF32Type(),
      builder.same(op.getSum()),
      [](Scalars &s, ValueRange a) { return s.div(s.constant(1.0), a[0]); });
  return builder.pointwise(
      type,
      {builder.same(op.getLogits()), builder.rows(op.getLabels(), 2),
       builder.rows(op.getLargest(), 2), builder.rows(inverse, 2),
       builder.at(op.getDloss(), 2, {}), builder.at(count, 2, {})},
      [&](Scalars &s, ValueRange a) {
        // Labels that are neither a class nor ignored end a run with an error.
        Type narrow = s.b.getI32Type();
        Value hit = s.make<arith::CmpIOp>(
            arith::CmpIPredicate::eq,
            s.make<arith::IndexCastOp>(narrow, s.loopIndex(1)),
            s.make<arith::TruncIOp>(narrow, a[1]));
        Value softmax = s.mul(s.expOfNonpositive(s.sub(a[0], a[2])), a[3]);
        Value onehot = s.select(hit, s.constant(1.0), s.constant(0.0));
        Value zero = s.constant(0.0);
        Value factor =
            s.select(counts(s, a[1], ignored), s.div(a[4], a[5]), zero);
        Value gradient = s.mul(s.sub(softmax, onehot), factor);
        return op.countClasses() < type.getDimSize(1)
                   ? s.select(isClass(s, op.countClasses()), gradient, zero)
                   : gradient;
      });
}

Lowered lowerLoss(Operation *op, LinalgBuilder &builder) {
  if (auto loss = dyn_cast<SoftmaxCrossEntropyOp>(op))
    return lowerForward(loss, builder);
  if (auto loss = dyn_cast<SoftmaxCrossEntropyBackwardOp>(op))
    return SmallVector<Value>{lowerBackward(loss, builder)};
  return failure();
}

} // namespace pipewright::nn
