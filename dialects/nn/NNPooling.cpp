//===- NNPooling.cpp - Pooling over windows -------------------------------===//
//
// Inference, gradients and calls of pooling.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNLimits.h"
#include "dialects/nn/NNOps.h"
#include "dialects/nn/NNWindows.h"
#include "runtime/calls/Pooling.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::nn;

/// The type of a pooled image.
static FailureOr<RankedTensorType>
inferPool(InferenceSite site, RankedTensorType images, bool isLast,
          ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
          ArrayRef<int64_t> pads, ArrayRef<int64_t> dilations) {
  // (C1)
  if (images.getRank() != 4)
    return site.error("expects images of rank 4, but got ", images);
  RankedTensorType x = channelsFirst(images, isLast);
  // (C2), (C3)
  ArrayRef<int64_t> image = x.getShape().drop_front(2);
  FailureOr<SmallVector<int64_t>> pooled =
      inferWindows(site, image, kernel, strides, pads, dilations);
  if (failed(pooled))
    return failure();
  // (C5) of max_pool, (C4) of average_pool
  for (size_t dim : {0, 1})
    if (hasEmptyWindow(image[dim], pads[dim], (*pooled)[dim], kernel[dim],
                       strides[dim], dilations[dim]))
      return site.error("expects an element that is not padding in every "
                        "window, but got pads ",
                        formatList(pads), " for a kernel of ",
                        formatList(kernel));
  return channelsLast(
      x.clone({x.getDimSize(0), x.getDimSize(1), (*pooled)[0], (*pooled)[1]}),
      isLast);
}

static constexpr int64_t kNoDilation[] = {1, 1};

//===----------------------------------------------------------------------===//
// MaxPoolOp, MaxPoolBackwardOp
//===----------------------------------------------------------------------===//

LogicalResult MaxPoolOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  // (C4)
  uint64_t positions = 1;
  for (int64_t size : adaptor.getKernel())
    positions = llvm::SaturatingMultiply<uint64_t>(positions,
                                                   std::max<int64_t>(size, 1));
  if (positions > 127)
    return site.error("expects at most 127 positions in a window, but got ",
                      positions);
  FailureOr<RankedTensorType> type =
      inferPool(site, tensorOf(adaptor.getX()), adaptor.getChannelsLast(),
                adaptor.getKernel(), adaptor.getStrides(), adaptor.getPads(),
                adaptor.getDilations());
  if (failed(type))
    return failure();
  types.append({*type, type->clone(IntegerType::get(context, 8))});
  return success();
}

int64_t MaxPoolOp::getFlops() {
  return getY().getType().getNumElements() *
         ShapedType::getNumElements(getKernel());
}

FailureOr<Gradients> MaxPoolOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{MaxPoolBackwardOp::create(
      g.builder(), getX().getType(), dy, getWindow(), getKernel(), getStrides(),
      getPads(), getDilations(), getChannelsLast())};
}

LogicalResult MaxPoolBackwardOp::verify() {
  // (C1)
  if (getDy().getType().getShape() != getWindow().getType().getShape())
    return emitOpError("expects a gradient and windows of one shape, but got ")
           << getDy().getType() << " and " << getWindow().getType();
  FailureOr<RankedTensorType> type = inferPool(
      {getLoc(), getOperationName()}, getResult().getType(), getChannelsLast(),
      getKernel(), getStrides(), getPads(), getDilations());
  if (failed(type))
    return failure();
  // (C2)
  if (*type != getDy().getType())
    return emitOpError("expects a gradient of type ")
           << *type << ", but got " << getDy().getType();
  return success();
}

int64_t MaxPoolBackwardOp::getFlops() {
  return getDy().getType().getNumElements();
}

//===----------------------------------------------------------------------===//
// AveragePoolOp, AveragePoolBackwardOp
//===----------------------------------------------------------------------===//

LogicalResult AveragePoolOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location> location,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  FailureOr<RankedTensorType> type =
      inferPool({location, getOperationName()}, tensorOf(adaptor.getX()),
                adaptor.getChannelsLast(), adaptor.getKernel(),
                adaptor.getStrides(), adaptor.getPads(), kNoDilation);
  if (failed(type))
    return failure();
  types.push_back(*type);
  return success();
}

int64_t AveragePoolOp::getFlops() {
  return getResult().getType().getNumElements() *
         (ShapedType::getNumElements(getKernel()) + 1);
}

FailureOr<Gradients> AveragePoolOp::buildGradients(GradientBuilder &g,
                                                   Value dy) {
  return Gradients{AveragePoolBackwardOp::create(
      g.builder(), getX().getType(), dy, getKernel(), getStrides(), getPads(),
      getCountIncludePad(), getChannelsLast())};
}

LogicalResult AveragePoolBackwardOp::verify() {
  FailureOr<RankedTensorType> type = inferPool(
      {getLoc(), getOperationName()}, getResult().getType(), getChannelsLast(),
      getKernel(), getStrides(), getPads(), kNoDilation);
  if (failed(type))
    return failure();
  // (C1)
  if (*type != getDy().getType())
    return emitOpError("expects a gradient of type ")
           << *type << ", but got " << getDy().getType();
  return success();
}

int64_t AveragePoolBackwardOp::getFlops() {
  return getDy().getType().getNumElements() *
         (ShapedType::getNumElements(getKernel()) + 1);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// The shape of a pooling but for its dilations and what it counts.
template <class PoolOp>
static runtime::PoolingShape poolingShape(PoolOp op, Value images,
                                          Value pooled) {
  auto shape = windowShape<runtime::PoolingShape>(op, images, op.getKernel());
  RankedTensorType y = channelsFirst(tensorOf(pooled), shape.channelsLast);
  shape.oh = y.getDimSize(2);
  shape.ow = y.getDimSize(3);
  return shape;
}

template <class PoolOp>
static SmallVector<ShapeField> maxPoolShape(PoolOp op, Value images,
                                            Value pooled) {
  runtime::PoolingShape shape = poolingShape(op, images, pooled);
  shape.dilationH = op.getDilations()[0];
  shape.dilationW = op.getDilations()[1];
  return fieldsOf(shape);
}

template <class PoolOp>
static SmallVector<ShapeField> averagePoolShape(PoolOp op, Value images,
                                                Value pooled) {
  runtime::PoolingShape shape = poolingShape(op, images, pooled);
  shape.countIncludePad = op.getCountIncludePad();
  return fieldsOf(shape);
}

LibraryCall MaxPoolOp::getCall(StringRef) {
  return {.function = PIPEWRIGHT_CALL(maxPool),
          .shape = maxPoolShape(*this, getX(), getY()),
          .buffers = {getX(), getY(), getWindow()}};
}

LibraryCall MaxPoolBackwardOp::getCall(StringRef) {
  return {.function = PIPEWRIGHT_CALL(maxPoolBackward),
          .shape = maxPoolShape(*this, getResult(), getDy()),
          .buffers = {getDy(), getWindow(), getResult()}};
}

LibraryCall AveragePoolOp::getCall(StringRef) {
  return {.function = PIPEWRIGHT_CALL(averagePool),
          .shape = averagePoolShape(*this, getX(), getResult()),
          .buffers = {getX(), getResult()}};
}

LibraryCall AveragePoolBackwardOp::getCall(StringRef) {
  return {.function = PIPEWRIGHT_CALL(averagePoolBackward),
          .shape = averagePoolShape(*this, getResult(), getDy()),
          .buffers = {getDy(), getResult()}};
}
