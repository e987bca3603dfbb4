//===- NNAttention.cpp - Scaled dot-product attention ---------------------===//
//
// Inference, cost, calls and gradients of attention.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"
#include "runtime/calls/Attention.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::nn;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

namespace {
/// The sizes of attention, whatever order its operands have them in.
struct Sizes {
  int64_t batch, heads, length, depth;

  RankedTensorType stats(MLIRContext *context) const {
    return f32TensorOf(context, {batch, heads, length, 2});
  }
};
} // namespace

/// Of a `q` of rank 4.
static Sizes sizesOf(RankedTensorType q, bool rowsFirst) {
  ArrayRef<int64_t> shape = q.getShape();
  return {shape[0], shape[rowsFirst ? 2 : 1], shape[rowsFirst ? 1 : 2],
          shape[3]};
}

/// Of a `qkv` of rank 5.
static Sizes packedSizesOf(RankedTensorType qkv) {
  ArrayRef<int64_t> shape = qkv.getShape();
  return {shape[0], shape[3], shape[1], shape[4]};
}

/// `[B, T, H, D]`, what packed attention gives.
static RankedTensorType outputOf(RankedTensorType qkv) {
  auto [batch, heads, length, depth] = packedSizesOf(qkv);
  return RankedTensorType::get({batch, length, heads, depth},
                               qkv.getElementType());
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// What all forms of attention check alike.
static LogicalResult checkScores(InferenceSite site, const Sizes &sizes,
                                 Value mask, const APFloat &dropoutRate) {
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

/// Every one of `values` is what `q` is.
template <class Adaptor>
static LogicalResult checkAttention(InferenceSite site, ValueRange values,
                                    Adaptor adaptor) {
  RankedTensorType q = tensorOf(values.front());
  // (C1)
  for (Value value : values)
    if (tensorOf(value) != q || q.getRank() != 4)
      return site.error("expects rank 4 and one type, but got ", q, " and ",
                        tensorOf(value));
  return checkScores(site, sizesOf(q, adaptor.getRowsFirst()),
                     adaptor.getMask(), adaptor.getDropoutRate());
}

template <class Adaptor>
static LogicalResult checkPackedAttention(InferenceSite site, Adaptor adaptor) {
  RankedTensorType qkv = tensorOf(adaptor.getQkv());
  // (C1)
  if (qkv.getRank() != 5 || qkv.getDimSize(2) != 3)
    return site.error("expects q, k and v as [B, T, 3, H, D], but got ", qkv);
  return checkScores(site, packedSizesOf(qkv), adaptor.getMask(),
                     adaptor.getDropoutRate());
}

static LogicalResult checkStats(InferenceSite site, Value stats,
                                RankedTensorType expected) {
  if (tensorOf(stats) == expected)
    return success();
  return site.error("expects stats of type ", expected, ", but got ",
                    tensorOf(stats));
}

//===----------------------------------------------------------------------===//
// Inference
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  if (failed(checkAttention({location, getOperationName()},
                            {adaptor.getQ(), adaptor.getK(), adaptor.getV()},
                            adaptor)))
    return failure();
  RankedTensorType q = tensorOf(adaptor.getQ());
  types.append({q, sizesOf(q, adaptor.getRowsFirst()).stats(context)});
  return success();
}

LogicalResult AttentionBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  RankedTensorType q = tensorOf(adaptor.getQ());
  if (failed(checkAttention(site,
                            {adaptor.getGrad(), adaptor.getQ(), adaptor.getK(),
                             adaptor.getV(), adaptor.getO()},
                            adaptor)) ||
      // (C4)
      failed(checkStats(site, adaptor.getStats(),
                        sizesOf(q, adaptor.getRowsFirst()).stats(context))))
    return failure();
  types.append({q, q, q});
  return success();
}

LogicalResult PackedAttentionOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  if (failed(checkPackedAttention({location, getOperationName()}, adaptor)))
    return failure();
  RankedTensorType qkv = tensorOf(adaptor.getQkv());
  types.append({outputOf(qkv), packedSizesOf(qkv).stats(context)});
  return success();
}

LogicalResult PackedAttentionBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  if (failed(checkPackedAttention(site, adaptor)))
    return failure();
  // (C4)
  RankedTensorType qkv = tensorOf(adaptor.getQkv());
  for (Value value : {adaptor.getGrad(), adaptor.getO()})
    if (tensorOf(value) != outputOf(qkv))
      return site.error("expects ", outputOf(qkv),
                        " for the result and its gradient, but got ",
                        tensorOf(value));
  if (failed(checkStats(site, adaptor.getStats(),
                        packedSizesOf(qkv).stats(context))))
    return failure();
  types.push_back(qkv);
  return success();
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// Multiply-adds, counted 2 each, of `products` products of T x T x D, and
/// 5 operations per element of the softmax.
static int64_t attentionFlops(const Sizes &sizes, bool causal,
                              int64_t products) {
  auto [batch, heads, length, depth] = sizes;
  int64_t scores = batch * heads * length * length;
  if (causal)
    scores = (scores + batch * heads * length) / 2;
  return scores * (2 * products * depth + 5);
}

static constexpr int64_t kForwardProducts = 2, kBackwardProducts = 5;

int64_t AttentionOp::getFlops() {
  return attentionFlops(sizesOf(getQ().getType(), getRowsFirst()), getCausal(),
                        kForwardProducts);
}

int64_t AttentionBackwardOp::getFlops() {
  return attentionFlops(sizesOf(getQ().getType(), getRowsFirst()), getCausal(),
                        kBackwardProducts);
}

int64_t PackedAttentionOp::getFlops() {
  return attentionFlops(packedSizesOf(getQkv().getType()), getCausal(),
                        kForwardProducts);
}

int64_t PackedAttentionBackwardOp::getFlops() {
  return attentionFlops(packedSizesOf(getQkv().getType()), getCausal(),
                        kBackwardProducts);
}

//===----------------------------------------------------------------------===//
// Precision
//===----------------------------------------------------------------------===//

Precision AttentionOp::getPrecision(OpOperand &operand) {
  return operand.get() == getMask() ? Precision::F32 : Precision::BF16;
}

Precision PackedAttentionOp::getPrecision(OpOperand &operand) {
  return operand.get() == getMask() ? Precision::F32 : Precision::BF16;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// A call on heads before rows, unless there are strides from one row of a head
/// to the next, in q, k and v and in o.
template <class AttentionOp>
static LibraryCall attentionCall(AttentionOp op, CallName function,
                                 const Sizes &sizes, int64_t inputStride,
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
  if (op.getMask()) {
    SmallVector<int64_t> mask(4, 1);
    ArrayRef<int64_t> dims = op.getMask().getType().getShape();
    llvm::copy(dims, mask.end() - dims.size());
    std::tie(shape.maskBatch, shape.maskHeads, shape.maskRows,
             shape.maskColumns) = std::tie(mask[0], mask[1], mask[2], mask[3]);
  }
  return {.function = function,
          .shape = fieldsOf(shape),
          .takesMicroBatch = true,
          .work = CallWork::Attention,
          .preparation = {.function = PIPEWRIGHT_CALL(prepareAttention)},
          .formOf = inputStride ? "nn-pack-attention" : ""};
}

template <class AttentionOp>
static LibraryCall plainCall(AttentionOp op, CallName function) {
  Sizes sizes = sizesOf(op.getQ().getType(), op.getRowsFirst());
  int64_t stride = op.getRowsFirst() ? sizes.heads * sizes.depth : 0;
  return attentionCall(op, function, sizes, stride, stride);
}

template <class PackedOp>
static LibraryCall packedCall(PackedOp op, CallName function) {
  Sizes sizes = packedSizesOf(op.getQkv().getType());
  int64_t row = sizes.heads * sizes.depth;
  return attentionCall(op, function, sizes, 3 * row, row);
}

LibraryCall AttentionOp::getCall(StringRef) {
  LibraryCall call = plainCall(*this, PIPEWRIGHT_CALL(attention));
  call.buffers = {getQ(), getK(), getV(), getMask(), getO(), getStats()};
  return call;
}

LibraryCall AttentionBackwardOp::getCall(StringRef) {
  LibraryCall call = plainCall(*this, PIPEWRIGHT_CALL(attentionBackward));
  call.buffers = {getGrad(),  getQ(),    getK(),  getV(),  getO(),
                  getStats(), getMask(), getDq(), getDk(), getDv()};
  return call;
}

LibraryCall PackedAttentionOp::getCall(StringRef) {
  LibraryCall call = packedCall(*this, PIPEWRIGHT_CALL(packedAttention));
  call.buffers = {getQkv(), getMask(), getO(), getStats()};
  return call;
}

LibraryCall PackedAttentionBackwardOp::getCall(StringRef) {
  LibraryCall call =
      packedCall(*this, PIPEWRIGHT_CALL(packedAttentionBackward));
  call.buffers = {getGrad(),  getQkv(),  getO(),
                  getStats(), getMask(), getDqkv()};
  return call;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                    SmallVectorImpl<Value> &operandGrads) {
  FailureOr<bool> flows = beginVjp(*this, resultGrads, operandGrads);
  if (failed(flows) || !*flows)
    return failure(failed(flows));
  auto backward = AttentionBackwardOp::create(
      builder, getLoc(), resultGrads[0], getQ(), getK(), getV(), getO(),
      getStats(), getMask(), getScale(), getCausal(), getRowsFirst(),
      getDropoutRate(), getDropoutId());
  for (auto [index, grad] : llvm::enumerate(backward->getResults()))
    operandGrads[index] = grad;
  return success();
}

LogicalResult
PackedAttentionOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                            SmallVectorImpl<Value> &operandGrads) {
  FailureOr<bool> flows = beginVjp(*this, resultGrads, operandGrads);
  if (failed(flows) || !*flows)
    return failure(failed(flows));
  operandGrads[0] = PackedAttentionBackwardOp::create(
      builder, getLoc(), resultGrads[0], getQkv(), getO(), getStats(),
      getMask(), getScale(), getCausal(), getDropoutRate(), getDropoutId());
  return success();
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

template <class AttentionOp>
static void buildWithoutDropout(AttentionOp attention, OpBuilder &builder,
                                SmallVectorImpl<Value> &results) {
  auto op = cast<AttentionOp>(builder.clone(*attention.getOperation()));
  op.setDropoutRate(APFloat(0.0f));
  llvm::append_range(results, op->getResults());
}

void AttentionOp::dropEffects() {
  // Its random numbers are counted, not consumed.
}
void PackedAttentionOp::dropEffects() {
  // As above.
}

LogicalResult AttentionOp::buildInference(OpBuilder &builder,
                                          SmallVectorImpl<Value> &results) {
  buildWithoutDropout(*this, builder, results);
  return success();
}

LogicalResult
PackedAttentionOp::buildInference(OpBuilder &builder,
                                  SmallVectorImpl<Value> &results) {
  buildWithoutDropout(*this, builder, results);
  return success();
}
