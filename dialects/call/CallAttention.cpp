//===- CallAttention.cpp - Attention by strides ---------------------------===//
//
// Inference, cost, calls and gradients of attention whose rows come before its
// heads, in tensors of their own or in one.
//
//===----------------------------------------------------------------------===//

#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNAttention.h"
#include "runtime/calls/Attention.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::call;

int64_t call::longestAttention() { return runtime::longestDeviceVector; }

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

static nn::AttentionSizes rowsFirst(Value q, Value k) {
  return nn::sizesOf(q, k, nn::AttentionOrder::RowsFirst);
}

/// The call of a function of the runtime on tensors `[B, T, H, D]`.
static nn::LibraryCall rowsFirstCall(nn::AttentionOpInterface op,
                                     nn::CallName function,
                                     nn::AttentionSizes sizes) {
  int64_t row = sizes.heads * sizes.depth;
  return nn::attentionCall(op, function, sizes, row, row);
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  Value q = adaptor.getQ(), k = adaptor.getK();
  // (C1), (C2), (C3), (C4), (C5)
  if (failed(nn::checkAttention(
          {location, getOperationName()}, q, {k, adaptor.getV()},
          nn::AttentionOrder::RowsFirst, nn::optionsOf(adaptor))))
    return failure();
  types.append({q.getType(), rowsFirst(q, k).stats(context)});
  return success();
}

int64_t AttentionOp::getFlops() {
  return nn::attentionFlops(*this, rowsFirst(getQ(), getK()),
                            /*isBackward=*/false);
}

nn::PrecisionRule AttentionOp::getPrecision(OpOperand &operand) {
  return nn::attentionPrecision(*this, operand);
}

nn::LibraryCall AttentionOp::getCall(StringRef) {
  nn::LibraryCall call = rowsFirstCall(*this, PIPEWRIGHT_CALL(attention),
                                       rowsFirst(getQ(), getK()));
  call.buffers = {getQ(), getK(), getV(), getMask(), getO(), getStats()};
  return call;
}

FailureOr<nn::Gradients> AttentionOp::buildGradients(nn::GradientBuilder &g,
                                                     Value dy) {
  return nn::attentionGradients<AttentionBackwardOp>(*this, g, dy);
}

void AttentionOp::dropEffects() {
  // There are none: random numbers follow from the place of an element.
}

LogicalResult AttentionOp::buildInference(OpBuilder &builder,
                                          SmallVectorImpl<Value> &results) {
  nn::buildWithoutDropout(*this, builder, results);
  return success();
}

//===----------------------------------------------------------------------===//
// AttentionBackwardOp
//===----------------------------------------------------------------------===//

LogicalResult AttentionBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  nn::InferenceSite site{location, getOperationName()};
  Value q = adaptor.getQ(), k = adaptor.getK();
  // (C1), (C2), (C3), (C4), (C5)
  if (failed(nn::checkAttention(
          site, {q, adaptor.getGrad(), adaptor.getO()}, {k, adaptor.getV()},
          nn::AttentionOrder::RowsFirst, nn::optionsOf(adaptor))))
    return failure();
  // (C6)
  if (failed(nn::checkStats(site, adaptor.getStats(), rowsFirst(q, k))))
    return failure();
  types.append({q.getType(), k.getType(), k.getType()});
  if (adaptor.getMaskGradient())
    types.push_back(adaptor.getMask().getType());
  return success();
}

int64_t AttentionBackwardOp::getFlops() {
  return nn::attentionFlops(*this, rowsFirst(getQ(), getK()),
                            /*isBackward=*/true);
}

nn::LibraryCall AttentionBackwardOp::getCall(StringRef) {
  nn::LibraryCall call = rowsFirstCall(
      *this, PIPEWRIGHT_CALL(attentionBackward), rowsFirst(getQ(), getK()));
  call.buffers = {getGrad(),  getQ(),    getK(),  getV(),  getO(),
                  getStats(), getMask(), getDq(), getDk(), getDv()};
  if (getMaskGradient())
    call.buffers.push_back(getDmask());
  return call;
}

//===----------------------------------------------------------------------===//
// What the packed ops share
//===----------------------------------------------------------------------===//

static nn::AttentionSizes packedSizes(Value qkv) {
  ArrayRef<int64_t> shape = nn::tensorOf(qkv).getShape();
  return {shape[0], shape[3], shape[1], shape[4], shape[3]};
}

/// The type of `o`.
static RankedTensorType outputOf(Value qkv) {
  auto [batch, heads, length, depth, keyHeads] = packedSizes(qkv);
  return nn::tensorOf(qkv).clone({batch, length, heads, depth});
}

template <class Adaptor>
static LogicalResult checkPacked(nn::InferenceSite site, Adaptor adaptor) {
  RankedTensorType qkv = nn::tensorOf(adaptor.getQkv());
  // (C1)
  if (qkv.getRank() != 5 || qkv.getDimSize(2) != 3)
    return site.error("expects q, k and v as [B, T, 3, H, D], but got ", qkv);
  // (C2), (C3), (C4), (C5)
  return nn::checkAttention(site, packedSizes(adaptor.getQkv()),
                            nn::optionsOf(adaptor));
}

static nn::LibraryCall packedCall(nn::AttentionOpInterface op,
                                  nn::CallName function, Value qkv) {
  nn::AttentionSizes sizes = packedSizes(qkv);
  int64_t row = sizes.heads * sizes.depth;
  return nn::attentionCall(op, function, sizes, 3 * row, row);
}

//===----------------------------------------------------------------------===//
// PackedAttentionOp
//===----------------------------------------------------------------------===//

LogicalResult PackedAttentionOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  if (failed(checkPacked({location, getOperationName()}, adaptor)))
    return failure();
  Value qkv = adaptor.getQkv();
  types.append({outputOf(qkv), packedSizes(qkv).stats(context)});
  return success();
}

int64_t PackedAttentionOp::getFlops() {
  return nn::attentionFlops(*this, packedSizes(getQkv()), /*isBackward=*/false);
}

nn::PrecisionRule PackedAttentionOp::getPrecision(OpOperand &operand) {
  return nn::attentionPrecision(*this, operand);
}

nn::LibraryCall PackedAttentionOp::getCall(StringRef) {
  nn::LibraryCall call =
      packedCall(*this, PIPEWRIGHT_CALL(packedAttention), getQkv());
  call.buffers = {getQkv(), getMask(), getO(), getStats()};
  return call;
}

FailureOr<nn::Gradients>
PackedAttentionOp::buildGradients(nn::GradientBuilder &g, Value dy) {
  auto backward = PackedAttentionBackwardOp::create(
      g.builder(), dy, getQkv(), getO(), getStats(), getMask(), getScale(),
      getCausal(), getDropoutRate(), getDropoutId(), getSoftcap(),
      getMaskGradient());
  return nn::Gradients(backward->result_begin(), backward->result_end());
}

void PackedAttentionOp::dropEffects() {
  // There are none: random numbers follow from the place of an element.
}

LogicalResult
PackedAttentionOp::buildInference(OpBuilder &builder,
                                  SmallVectorImpl<Value> &results) {
  nn::buildWithoutDropout(*this, builder, results);
  return success();
}

//===----------------------------------------------------------------------===//
// PackedAttentionBackwardOp
//===----------------------------------------------------------------------===//

LogicalResult PackedAttentionBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  nn::InferenceSite site{location, getOperationName()};
  if (failed(checkPacked(site, adaptor)))
    return failure();
  // (C6)
  Value qkv = adaptor.getQkv();
  for (Value value : {adaptor.getGrad(), adaptor.getO()})
    if (nn::tensorOf(value) != outputOf(qkv))
      return site.error("expects ", outputOf(qkv),
                        " for the result and its gradient, but got ",
                        nn::tensorOf(value));
  if (failed(nn::checkStats(site, adaptor.getStats(), packedSizes(qkv))))
    return failure();
  types.push_back(qkv.getType());
  if (adaptor.getMaskGradient())
    types.push_back(adaptor.getMask().getType());
  return success();
}

int64_t PackedAttentionBackwardOp::getFlops() {
  return nn::attentionFlops(*this, packedSizes(getQkv()),
                            /*isBackward=*/true);
}

nn::LibraryCall PackedAttentionBackwardOp::getCall(StringRef) {
  nn::LibraryCall call =
      packedCall(*this, PIPEWRIGHT_CALL(packedAttentionBackward), getQkv());
  call.buffers = {getGrad(),  getQkv(),  getO(),
                  getStats(), getMask(), getDqkv()};
  if (getMaskGradient())
    call.buffers.push_back(getDmask());
  return call;
}
