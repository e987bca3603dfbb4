//===- NNAttention.cpp - Scaled dot-product attention ---------------------===//
//
// Inference, cost, calls and gradients of attention, and what its forms in
// other layouts (dialects/call) share with it.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNAttention.h"
#include "dialects/nn/NNOps.h"
#include "runtime/calls/Attention.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::nn;

//===----------------------------------------------------------------------===//
// What all forms share
//===----------------------------------------------------------------------===//

RankedTensorType AttentionSizes::stats(MLIRContext *context) const {
  return f32TensorOf(context, {batch, heads, length, 2});
}

AttentionSizes pipewright::nn::sizesOf(RankedTensorType q,
                                       AttentionOrder order) {
  ArrayRef<int64_t> shape = q.getShape();
  if (order == AttentionOrder::RowsFirst)
    return {shape[0], shape[2], shape[1], shape[3]};
  return {shape[0], shape[1], shape[2], shape[3]};
}

LogicalResult pipewright::nn::checkAttention(InferenceSite site,
                                             const AttentionSizes &sizes,
                                             Value mask,
                                             const APFloat &dropoutRate) {
  // (C2)
  int64_t scores[] = {sizes.batch, sizes.heads, sizes.length, sizes.length};
  if (mask) {
    FailureOr<SmallVector<int64_t>> shape =
        broadcastShapes(tensorOf(mask).getShape(), scores);
    if (failed(shape) || ArrayRef<int64_t>(*shape) != ArrayRef(scores))
      return site.error("expects a mask that broadcasts to ",
                        formatList(scores), ", but got ", tensorOf(mask));
  }
  // (C3)
  double rate = dropoutRate.convertToDouble();
  if (!(rate >= 0.0 && rate < 1.0))
    return site.error("expects a dropout rate in [0, 1), but got ",
                      std::to_string(rate));
  return success();
}

LogicalResult pipewright::nn::checkAttention(InferenceSite site,
                                             ValueRange values,
                                             AttentionOrder order, Value mask,
                                             const APFloat &dropoutRate) {
  RankedTensorType q = tensorOf(values.front());
  // (C1)
  for (Value value : values)
    if (tensorOf(value) != q || q.getRank() != 4)
      return site.error("expects rank 4 and one type, but got ", q, " and ",
                        tensorOf(value));
  return checkAttention(site, sizesOf(q, order), mask, dropoutRate);
}

LogicalResult pipewright::nn::checkStats(InferenceSite site, Value stats,
                                         const AttentionSizes &sizes) {
  RankedTensorType expected = sizes.stats(stats.getContext());
  // (C4)
  if (tensorOf(stats) != expected)
    return site.error("expects stats of type ", expected, ", but got ",
                      tensorOf(stats));
  return success();
}

/// Multiply-adds are counted 2 each, and each element of the softmax takes 5
/// operations.
int64_t pipewright::nn::attentionFlops(AttentionOpInterface op,
                                       const AttentionSizes &sizes,
                                       int64_t products) {
  auto [batch, heads, length, depth] = sizes;
  int64_t scores = batch * heads * length * length;
  if (op.getCausal())
    scores = (scores + batch * heads * length) / 2;
  return scores * (2 * products * depth + 5);
}

Precision pipewright::nn::attentionPrecision(AttentionOpInterface op,
                                             OpOperand &operand) {
  return operand.get() == op.getMask() ? Precision::F32 : Precision::BF16;
}

LibraryCall pipewright::nn::attentionCall(AttentionOpInterface op,
                                          CallName function,
                                          const AttentionSizes &sizes,
                                          int64_t inputStride,
                                          int64_t outputStride) {
  runtime::AttentionShape shape = {.batch = sizes.batch,
                                   .heads = sizes.heads,
                                   .rows = sizes.length,
                                   .depth = sizes.depth,
                                   .scale = op.getScale().convertToFloat(),
                                   .causal = op.getCausal(),
                                   .dropoutRate =
                                       op.getDropoutRate().convertToFloat(),
                                   .type = elementTypeOf(op->getOperand(0)),
                                   .inputStride = inputStride,
                                   .outputStride = outputStride};
  if (shape.dropoutRate != 0)
    shape.dropoutId = op.getDropoutId();
  if (Value mask = op.getMask()) {
    SmallVector<int64_t> sizes(4, 1);
    ArrayRef<int64_t> dims = tensorOf(mask).getShape();
    llvm::copy(dims, sizes.end() - dims.size());
    std::tie(shape.maskBatch, shape.maskHeads, shape.maskRows,
             shape.maskColumns) =
        std::tie(sizes[0], sizes[1], sizes[2], sizes[3]);
  }
  return {.function = function,
          .shape = fieldsOf(shape),
          .takesMicroBatch = true,
          .work = CallWork::Attention,
          .preparation = {.function = PIPEWRIGHT_CALL(prepareAttention)}};
}

void pipewright::nn::buildWithoutDropout(AttentionOpInterface op,
                                         OpBuilder &builder,
                                         SmallVectorImpl<Value> &results) {
  auto copy = cast<AttentionOpInterface>(builder.clone(*op));
  copy.setDropoutRate(APFloat(0.0f));
  llvm::append_range(results, copy->getResults());
}

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

static AttentionSizes headsFirst(Value q) {
  return sizesOf(tensorOf(q), AttentionOrder::HeadsFirst);
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  Value q = adaptor.getQ();
  if (failed(checkAttention({location, getOperationName()},
                            {q, adaptor.getK(), adaptor.getV()},
                            AttentionOrder::HeadsFirst, adaptor.getMask(),
                            adaptor.getDropoutRate())))
    return failure();
  types.append({q.getType(), headsFirst(q).stats(context)});
  return success();
}

int64_t AttentionOp::getFlops() {
  return attentionFlops(*this, headsFirst(getQ()), kForwardProducts);
}

Precision AttentionOp::getPrecision(OpOperand &operand) {
  return attentionPrecision(*this, operand);
}

LibraryCall AttentionOp::getCall(StringRef) {
  LibraryCall call = attentionCall(*this, PIPEWRIGHT_CALL(attention),
                                   headsFirst(getQ()), 0, 0);
  call.buffers = {getQ(), getK(), getV(), getMask(), getO(), getStats()};
  return call;
}

FailureOr<Gradients> AttentionOp::buildGradients(GradientBuilder &g, Value dy) {
  return attentionGradients<AttentionBackwardOp>(*this, g, dy);
}

void AttentionOp::dropEffects() {
  // There are none: random numbers follow from the place of an element.
}

LogicalResult AttentionOp::buildInference(OpBuilder &builder,
                                          SmallVectorImpl<Value> &results) {
  buildWithoutDropout(*this, builder, results);
  return success();
}

//===----------------------------------------------------------------------===//
// AttentionBackwardOp
//===----------------------------------------------------------------------===//

LogicalResult AttentionBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  Value q = adaptor.getQ();
  if (failed(checkAttention(site,
                            {adaptor.getGrad(), q, adaptor.getK(),
                             adaptor.getV(), adaptor.getO()},
                            AttentionOrder::HeadsFirst, adaptor.getMask(),
                            adaptor.getDropoutRate())) ||
      failed(checkStats(site, adaptor.getStats(), headsFirst(q))))
    return failure();
  types.append({q.getType(), q.getType(), q.getType()});
  return success();
}

int64_t AttentionBackwardOp::getFlops() {
  return attentionFlops(*this, headsFirst(getQ()), kBackwardProducts);
}

LibraryCall AttentionBackwardOp::getCall(StringRef) {
  LibraryCall call = attentionCall(*this, PIPEWRIGHT_CALL(attentionBackward),
                                   headsFirst(getQ()), 0, 0);
  call.buffers = {getGrad(),  getQ(),    getK(),  getV(),  getO(),
                  getStats(), getMask(), getDq(), getDk(), getDv()};
  return call;
}
