//===- NNAttention.cpp - Scaled dot-product attention ---------------------===//
//
// Inference, cost, calls and gradients of attention, and what its forms in
// other layouts (dialects/call) share with it.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNAttention.h"
#include "dialects/nn/NNOps.h"
#include "runtime/calls/Attention.h"

#include <cmath>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::nn;

//===----------------------------------------------------------------------===//
// What all forms share
//===----------------------------------------------------------------------===//

RankedTensorType AttentionSizes::stats(MLIRContext *context) const {
  return f32TensorOf(context, {batch, heads, length, 2});
}

static unsigned headsDim(AttentionOrder order) {
  return order == AttentionOrder::RowsFirst ? 2 : 1;
}

AttentionSizes pipewright::nn::sizesOf(Value q, Value k, AttentionOrder order) {
  ArrayRef<int64_t> shape = tensorOf(q).getShape();
  unsigned heads = headsDim(order);
  return {shape[0], shape[heads], shape[3 - heads], shape[3],
          tensorOf(k).getDimSize(heads)};
}

/// Whether `k` has the type of `q` but for heads, of which `q` has a multiple.
static bool isKeyFor(RankedTensorType q, RankedTensorType k,
                     AttentionOrder order) {
  if (q.getRank() != 4 || k.getRank() != 4)
    return false;
  unsigned dim = headsDim(order);
  int64_t heads = k.getDimSize(dim);
  SmallVector<int64_t> shape(q.getShape());
  shape[dim] = heads;
  return k == q.clone(shape) && (heads == q.getDimSize(dim) ||
                                 (heads > 0 && q.getDimSize(dim) % heads == 0));
}

bool pipewright::nn::isMaskFor(ArrayRef<int64_t> mask,
                               ArrayRef<int64_t> scores) {
  SmallVector<int64_t> repeated(mask);
  if (mask.size() == 4 && mask[0] > 0 && scores[0] % mask[0] == 0)
    repeated[0] = scores[0];
  FailureOr<SmallVector<int64_t>> shape = broadcastShapes(repeated, scores);
  return succeeded(shape) && ArrayRef<int64_t>(*shape) == scores;
}

LogicalResult pipewright::nn::checkAttention(InferenceSite site,
                                             const AttentionSizes &sizes,
                                             const AttentionOptions &options) {
  Value mask = options.mask;
  // (C2)
  int64_t scores[] = {sizes.batch, sizes.heads, sizes.length, sizes.length};
  if (mask && !isMaskFor(tensorOf(mask).getShape(), scores))
    return site.error("expects a mask that broadcasts to ", formatList(scores),
                      ", but got ", tensorOf(mask));
  // (C3)
  double rate = options.dropoutRate.convertToDouble();
  if (!(rate >= 0.0 && rate < 1.0))
    return site.error("expects a dropout rate in [0, 1), but got ",
                      std::to_string(rate));
  // (C4)
  double softcap = options.softcap.convertToDouble();
  if (!(softcap >= 0.0 && std::isfinite(softcap)))
    return site.error("expects a softcap of at least 0, but got ",
                      std::to_string(softcap));
  // (C5)
  if (options.maskGradient &&
      (!mask || tensorOf(mask).getRank() < 2 ||
       tensorOf(mask).getShape().take_back(2) != ArrayRef(scores).take_back(2)))
    return site.error("expects a mask whose last dimensions are ",
                      formatList(ArrayRef(scores).take_back(2)),
                      ", because it has a gradient");
  return success();
}

LogicalResult pipewright::nn::checkAttention(InferenceSite site,
                                             ValueRange rows, ValueRange keys,
                                             AttentionOrder order,
                                             const AttentionOptions &options) {
  RankedTensorType q = tensorOf(rows.front());
  // (C1)
  for (Value value : rows)
    if (tensorOf(value) != q || q.getRank() != 4)
      return site.error("expects rank 4 and one type, but got ", q, " and ",
                        tensorOf(value));
  RankedTensorType k = tensorOf(keys.front());
  for (Value value : keys)
    if (tensorOf(value) != k || !isKeyFor(q, k, order))
      return site.error("expects k and v of one type, that of q but for heads, "
                        "of which q has a multiple, but got ",
                        q, ", ", k, " and ", tensorOf(value));
  return checkAttention(site, sizesOf(rows.front(), keys.front(), order),
                        options);
}

LogicalResult pipewright::nn::checkStats(InferenceSite site, Value stats,
                                         const AttentionSizes &sizes) {
  RankedTensorType expected = sizes.stats(stats.getContext());
  // (C6)
  if (tensorOf(stats) != expected)
    return site.error("expects stats of type ", expected, ", but got ",
                      tensorOf(stats));
  return success();
}

int64_t pipewright::nn::attentionFlops(AttentionOpInterface op,
                                       const AttentionSizes &sizes,
                                       bool isBackward) {
  runtime::AttentionShape shape = {.batch = sizes.batch,
                                   .heads = sizes.heads,
                                   .rows = sizes.length,
                                   .depth = sizes.depth,
                                   .causal = op.getCausal()};
  return shape.operations(isBackward);
}

PrecisionRule pipewright::nn::attentionPrecision(AttentionOpInterface op,
                                                 OpOperand &operand) {
  return operand.get() == op.getMask() ? PrecisionRule::F32
                                       : PrecisionRule::BF16;
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
  if (sizes.keyHeads != sizes.heads)
    shape.keyHeads = sizes.keyHeads;
  shape.softcap = op.getSoftcap().convertToFloat();
  shape.maskGradient = op.getMaskGradient();
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

static AttentionSizes headsFirst(Value q, Value k) {
  return sizesOf(q, k, AttentionOrder::HeadsFirst);
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  Value q = adaptor.getQ(), k = adaptor.getK();
  if (failed(checkAttention({location, getOperationName()}, q,
                            {k, adaptor.getV()}, AttentionOrder::HeadsFirst,
                            optionsOf(adaptor))))
    return failure();
  types.append({q.getType(), headsFirst(q, k).stats(context)});
  return success();
}

int64_t AttentionOp::getFlops() {
  return attentionFlops(*this, headsFirst(getQ(), getK()),
                        /*isBackward=*/false);
}

PrecisionRule AttentionOp::getPrecision(OpOperand &operand) {
  return attentionPrecision(*this, operand);
}

LibraryCall AttentionOp::getCall(StringRef) {
  LibraryCall call = attentionCall(*this, PIPEWRIGHT_CALL(attention),
                                   headsFirst(getQ(), getK()), 0, 0);
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
  Value q = adaptor.getQ(), k = adaptor.getK();
  if (failed(checkAttention(site, {q, adaptor.getGrad(), adaptor.getO()},
                            {k, adaptor.getV()}, AttentionOrder::HeadsFirst,
                            optionsOf(adaptor))) ||
      failed(checkStats(site, adaptor.getStats(), headsFirst(q, k))))
    return failure();
  types.append({q.getType(), k.getType(), k.getType()});
  if (adaptor.getMaskGradient())
    types.push_back(adaptor.getMask().getType());
  return success();
}

int64_t AttentionBackwardOp::getFlops() {
  return attentionFlops(*this, headsFirst(getQ(), getK()), /*isBackward=*/true);
}

LibraryCall AttentionBackwardOp::getCall(StringRef) {
  LibraryCall call = attentionCall(*this, PIPEWRIGHT_CALL(attentionBackward),
                                   headsFirst(getQ(), getK()), 0, 0);
  call.buffers = {getGrad(),  getQ(),    getK(),  getV(),  getO(),
                  getStats(), getMask(), getDq(), getDk(), getDv()};
  if (getMaskGradient())
    call.buffers.push_back(getDmask());
  return call;
}
