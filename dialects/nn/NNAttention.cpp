//===- NNAttention.cpp - Scaled dot-product attention ---------------------===//
//
// Inference, cost and gradients of attention.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"

using namespace mlir;
using namespace pipewright::nn;

/// What attention and its gradient check alike: every one of `values` is
/// `[B, H, T, D]`.
static LogicalResult checkAttention(InferenceSite site, ValueRange values,
                                    Value mask, const APFloat &dropoutRate) {
  RankedTensorType q = tensorOf(values.front());
  // (C1)
  for (Value value : values)
    if (tensorOf(value) != q || q.getRank() != 4)
      return site.error("expects rank 4 and one type, but got ", q, " and ",
                        tensorOf(value));
  // (C2)
  int64_t batch = q.getDimSize(0), heads = q.getDimSize(1),
          length = q.getDimSize(2);
  int64_t scores[] = {batch, heads, length, length};
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

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  if (failed(checkAttention({location, getOperationName()},
                            {adaptor.getQ(), adaptor.getK(), adaptor.getV()},
                            adaptor.getMask(), adaptor.getDropoutRate())))
    return failure();
  RankedTensorType q = tensorOf(adaptor.getQ());
  types.append({q, f32TensorOf(context, q.getShape().drop_back())});
  return success();
}

/// Multiply-adds, counted 2 each, of `products` products of T x T x D, and
/// 5 operations per element of the softmax.
static int64_t attentionFlops(RankedTensorType q, bool causal,
                              int64_t products) {
  int64_t length = q.getDimSize(2), depth = q.getDimSize(3);
  int64_t scores = q.getDimSize(0) * q.getDimSize(1) * length * length;
  if (causal)
    scores = (scores + q.getDimSize(0) * q.getDimSize(1) * length) / 2;
  return scores * (2 * products * depth + 5);
}

int64_t AttentionOp::getFlops() {
  return attentionFlops(getQ().getType(), getCausal(), /*products=*/2);
}

LogicalResult AttentionOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                    SmallVectorImpl<Value> &operandGrads) {
  FailureOr<bool> flows = beginVjp(*this, resultGrads, operandGrads);
  if (failed(flows) || !*flows)
    return failure(failed(flows));
  auto backward = AttentionBackwardOp::create(
      builder, getLoc(), resultGrads[0], getQ(), getK(), getV(), getO(),
      getLse(), getMask(), getScale(), getCausal(), getDropoutRate(),
      getDropoutId());
  for (auto [index, grad] : llvm::enumerate(backward->getResults()))
    operandGrads[index] = grad;
  return success();
}

void AttentionOp::dropEffects() {
  // Its random numbers are counted, not consumed.
}

LogicalResult AttentionOp::buildInference(OpBuilder &builder,
                                          SmallVectorImpl<Value> &results) {
  auto op = cast<AttentionOp>(builder.clone(*getOperation()));
  op.setDropoutRate(APFloat(0.0f));
  llvm::append_range(results, op->getResults());
  return success();
}

LogicalResult AttentionBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  if (failed(checkAttention(site,
                            {adaptor.getGrad(), adaptor.getQ(), adaptor.getK(),
                             adaptor.getV(), adaptor.getO()},
                            adaptor.getMask(), adaptor.getDropoutRate())))
    return failure();
  // (C4)
  RankedTensorType q = tensorOf(adaptor.getQ());
  RankedTensorType rows = f32TensorOf(context, q.getShape().drop_back());
  if (tensorOf(adaptor.getLse()) != rows)
    return site.error("expects lse of type ", rows, ", but got ",
                      tensorOf(adaptor.getLse()));
  types.append({q, q, q});
  return success();
}

int64_t AttentionBackwardOp::getFlops() {
  return attentionFlops(getQ().getType(), getCausal(), /*products=*/5);
}
