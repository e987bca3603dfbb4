//===- NNLoss.cpp - Losses ------------------------------------------------===//
//
// Inference, cost, gradient and labels of softmax cross entropy.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNLoss.h"

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"
#include "runtime/calls/Labels.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::nn;

/// What the loss and its gradient check alike.
static LogicalResult checkLoss(InferenceSite site, Value logits, Value labels,
                               Value divisor, std::optional<uint64_t> classes) {
  RankedTensorType type = tensorOf(logits);
  // (C1)
  if (type.getRank() != 2)
    return site.error("expects logits of rank 2, but got ", type);
  // (C2)
  if (tensorOf(labels).getShape() != type.getShape().take_front())
    return site.error("expects ", type.getDimSize(0), " labels, but got ",
                      tensorOf(labels));
  // (C3)
  int64_t columns = type.getDimSize(1);
  if (classes && (*classes < 1 || *classes > static_cast<uint64_t>(columns)))
    return site.error("expects 1 to ", columns, " classes, but got ", *classes);
  // (C4)
  if (divisor && tensorOf(divisor).getRank() != 0)
    return site.error("expects a scalar divisor, but got ", tensorOf(divisor));
  return success();
}

LogicalResult SoftmaxCrossEntropyOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  if (failed(checkLoss({location, getOperationName()}, adaptor.getLogits(),
                       adaptor.getLabels(), adaptor.getDivisor(),
                       adaptor.getClasses())))
    return failure();
  RankedTensorType logits = tensorOf(adaptor.getLogits());
  RankedTensorType rows = f32TensorOf(context, logits.getShape().take_front());
  types.append({f32TensorOf(context, {}), rows, rows});
  return success();
}

template <class LossOp>
static IndexRange labelsOf(LossOp loss) {
  return {.limit = loss.countClasses(),
          .ignored = static_cast<int64_t>(loss.getIgnoreIndex())};
}

IntegerUse SoftmaxCrossEntropyOp::getIntegerUse(OpOperand &) {
  return IntegerUse::Index;
}

IndexRange SoftmaxCrossEntropyOp::getIndexRange() { return labelsOf(*this); }

IntegerUse SoftmaxCrossEntropyBackwardOp::getIntegerUse(OpOperand &) {
  return IntegerUse::Index;
}

IndexRange SoftmaxCrossEntropyBackwardOp::getIndexRange() {
  return labelsOf(*this);
}

LibraryCall pipewright::nn::checkOfLabels(SoftmaxCrossEntropyOp loss,
                                          Value labels) {
  IndexRange range = loss.getIndexRange();
  runtime::LabelShape shape = {.count = tensorOf(labels).getNumElements(),
                               .classes = range.limit,
                               .ignored = *range.ignored};
  return {.function = PIPEWRIGHT_CALL(checkLabels),
          .shape = fieldsOf(shape),
          .buffers = {labels}};
}

/// A row is a sample's logits.
static RowSpace lossSpace(Value logits, ArrayRef<ResultForm> results) {
  RowSpace space = rowSpace(logits, results);
  space.walk = RowWalk::Several;
  return space;
}

RowSpace SoftmaxCrossEntropyOp::getRowSpace() {
  return lossSpace(getLogits(),
                   SmallVector<ResultForm>(3, ResultForm::WholeInMemory));
}

int64_t SoftmaxCrossEntropyOp::getFlops() {
  return 5 * getLogits().getType().getNumElements();
}

FailureOr<Gradients> SoftmaxCrossEntropyOp::buildGradients(GradientBuilder &g,
                                                           Value dy) {
  return Gradients{SoftmaxCrossEntropyBackwardOp::create(
      g.builder(), dy, getLogits(), getLabels(), getLargest(), getSum(),
      getDivisor(), getIgnoreIndexAttr(), getClassesAttr())};
}

LogicalResult SoftmaxCrossEntropyBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  if (failed(checkLoss(site, adaptor.getLogits(), adaptor.getLabels(),
                       adaptor.getDivisor(), adaptor.getClasses())))
    return failure();
  // (C5)
  RankedTensorType logits = tensorOf(adaptor.getLogits());
  RankedTensorType dloss = tensorOf(adaptor.getDloss());
  for (Value row : {adaptor.getLargest(), adaptor.getSum()})
    if (tensorOf(row).getShape() != logits.getShape().take_front() ||
        dloss.getRank() != 0)
      return site.error("expects a scalar gradient and a largest logit and a "
                        "sum for each of ",
                        logits.getDimSize(0), " rows, but got ", dloss, " and ",
                        tensorOf(row));
  types.push_back(logits);
  return success();
}

RowSpace SoftmaxCrossEntropyBackwardOp::getRowSpace() {
  return lossSpace(getResult(), ResultForm::Element);
}

int64_t SoftmaxCrossEntropyBackwardOp::getFlops() {
  return 4 * getLogits().getType().getNumElements();
}
