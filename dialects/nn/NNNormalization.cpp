//===- NNNormalization.cpp - Normalizations and softmax -------------------===//
//
// Inference, gradients, and what batch normalization leaves behind.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNGradient.h"
#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"
#include "dialects/nn/NNWeights.h"

using namespace mlir;
using namespace pipewright::nn;

/// Checks that each of the named values is one number per channel (or column).
static LogicalResult
checkVectors(InferenceSite site, int64_t size,
             ArrayRef<std::pair<StringRef, Value>> vectors) {
  for (auto [name, value] : vectors)
    if (tensorOf(value).getShape() != ArrayRef<int64_t>{size})
      return site.error("expects a ", name, " of ", size, " elements, but got ",
                        tensorOf(value));
  return success();
}

//===----------------------------------------------------------------------===//
// LayerNormOp, LayerNormBackwardOp
//===----------------------------------------------------------------------===//

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  RankedTensorType x = tensorOf(adaptor.getX());
  // (C1)
  if (x.getRank() == 0)
    return site.error("expects rank 1 or more, but got rank 0");
  // (C2)
  if (failed(checkVectors(
          site, x.getShape().back(),
          {{"scale", adaptor.getScale()}, {"bias", adaptor.getBias()}})))
    return failure();
  RankedTensorType rows = f32TensorOf(context, x.getShape().drop_back());
  types.append({x, rows, rows});
  return success();
}

RowSpace LayerNormOp::getRowSpace() {
  return rowSpace(getY(),
                  {ResultForm::Element, ResultForm::Row, ResultForm::Row});
}

int64_t LayerNormOp::getFlops() {
  return 8 * getX().getType().getNumElements();
}

FailureOr<Gradients> LayerNormOp::buildGradients(GradientBuilder &g, Value dy) {
  auto backward = LayerNormBackwardOp::create(g.builder(), dy, getX(),
                                              getScale(), getMean(), getRstd());
  return Gradients(backward->result_begin(), backward->result_end());
}

LogicalResult LayerNormBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  RankedTensorType x = tensorOf(adaptor.getX());
  // (C1)
  if (x.getRank() == 0 || tensorOf(adaptor.getDy()) != x)
    return site.error("expects a gradient of the type of x and rank 1 or more, "
                      "but got ",
                      tensorOf(adaptor.getDy()), " and ", x);
  // (C2)
  if (failed(checkVectors(site, x.getShape().back(),
                          {{"scale", adaptor.getScale()}})))
    return failure();
  // (C3)
  RankedTensorType rows = f32TensorOf(context, x.getShape().drop_back());
  for (Value statistic : {adaptor.getMean(), adaptor.getRstd()})
    if (tensorOf(statistic) != rows)
      return site.error("expects mean and rstd of type ", rows, ", but got ",
                        tensorOf(statistic));
  Type column = f32TensorOf(context, x.getShape().back());
  types.append({x, column, column});
  return success();
}

RowSpace LayerNormBackwardOp::getRowSpace() {
  return rowSpace(getDx(),
                  {ResultForm::Element, ResultForm::Whole, ResultForm::Whole});
}

int64_t LayerNormBackwardOp::getFlops() {
  return 12 * getX().getType().getNumElements();
}

//===----------------------------------------------------------------------===//
// BatchNormOp, BatchNormBackwardOp
//===----------------------------------------------------------------------===//

LogicalResult BatchNormOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  RankedTensorType x = tensorOf(adaptor.getX());
  // (C1)
  if (x.getRank() < 2)
    return site.error("expects rank 2 or more, but got ", x);
  // (C2)
  int64_t size =
      x.getDimSize(channelDim(x.getRank(), adaptor.getChannelsLast()));
  if (failed(checkVectors(
          site, size,
          {{"scale", adaptor.getScale()}, {"bias", adaptor.getBias()}})))
    return failure();
  Type channels = f32TensorOf(context, size);
  types.append({x, channels, channels});
  return success();
}

LogicalResult BatchNormOp::verify() {
  // (C3)
  if (getRunningMeanAttr() && !getRunningVarianceAttr())
    return emitOpError("expects both running statistics or none, but got "
                       "running_mean only");
  if (!getRunningMeanAttr() && getRunningVarianceAttr())
    return emitOpError("expects both running statistics or none, but got "
                       "running_variance only");
  // (C5)
  if (getSampleVariance() && !getRunningVarianceAttr())
    return emitOpError("expects sample_variance beside running statistics");
  if (getSampleVariance() &&
      getX().getType().getNumElements() == getMean().getType().getNumElements())
    return emitOpError("expects more than one value per channel for a sample "
                       "variance, but got ")
           << getX().getType();
  return success();
}

LogicalResult
BatchNormOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  // (C4)
  for (FlatSymbolRefAttr name :
       {getRunningMeanAttr(), getRunningVarianceAttr()})
    if (name && failed(verifyWeightUse(*this, name, getMean().getType(),
                                       WeightRole::State, symbolTables)))
      return failure();
  return success();
}

void BatchNormOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (!getRunningMeanAttr())
    return;
  effects.emplace_back(MemoryEffects::Read::get(), StateResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), StateResource::get());
}

/// The rows of images are what follows the channel, or the channels.
static RowSpace batchNormSpace(Value image, bool channelsLast) {
  ArrayRef<int64_t> shape = tensorOf(image).getShape();
  size_t cut = channelsLast ? shape.size() - 1 : shape.size() > 2 ? 2 : 1;
  return {RowWalk::Several,
          elementsOf(image),
          {llvm::product_of(shape.drop_front(cut))},
          {ResultForm::Element, ResultForm::WholeInMemory,
           ResultForm::WholeInMemory}};
}

RowSpace BatchNormOp::getRowSpace() {
  return batchNormSpace(getY(), getChannelsLast());
}

RowSpace BatchNormBackwardOp::getRowSpace() {
  return batchNormSpace(getDx(), getChannelsLast());
}

int64_t BatchNormOp::getFlops() {
  return 8 * getX().getType().getNumElements();
}

FailureOr<Gradients> BatchNormOp::buildGradients(GradientBuilder &g, Value dy) {
  auto backward = BatchNormBackwardOp::create(
      g.builder(), dy, getX(), getScale(), getMean(), getVariance(),
      getEpsilon(), getChannelsLast());
  return Gradients(backward->result_begin(), backward->result_end());
}

void BatchNormOp::dropEffects() {
  removeRunningMeanAttr();
  removeRunningVarianceAttr();
  setSampleVariance(false);
}

LogicalResult BatchNormOp::buildInference(OpBuilder &builder,
                                          SmallVectorImpl<Value> &results) {
  // Nothing was remembered: evaluation has only the batch's own statistics.
  if (!getRunningMeanAttr()) {
    llvm::append_range(results, builder.clone(*getOperation())->getResults());
    return success();
  }
  GradientBuilder g(builder, getLoc());
  Type type = getMean().getType();
  Value mean =
      ParameterOp::create(g.builder(), type, getRunningMeanAttr().getValue());
  Value variance = ParameterOp::create(g.builder(), type,
                                       getRunningVarianceAttr().getValue());
  SmallVector<int64_t> perChannel(getX().getType().getRank(), 1);
  perChannel[channelDim(perChannel.size(), getChannelsLast())] =
      getMean().getType().getNumElements();
  Value epsilon = g.scalar(getEpsilon().convertToDouble());
  Value rstd = RsqrtOp::create(g.builder(), g.add(variance, epsilon));
  // One multiplication per element: the channel's factors come first.
  Value factor = g.reshape(g.mul(rstd, getScale()), perChannel);
  Value centered = g.sub(getX(), g.reshape(mean, perChannel));
  Value y = g.add(g.mul(centered, factor), g.reshape(getBias(), perChannel));
  results.assign({g.toElementTypeOf(getX(), y), mean, variance});
  return success();
}

LogicalResult BatchNormBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  RankedTensorType x = tensorOf(adaptor.getX());
  // (C1)
  if (x.getRank() < 2 || tensorOf(adaptor.getDy()) != x)
    return site.error("expects a gradient of the type of x and rank 2 or more, "
                      "but got ",
                      tensorOf(adaptor.getDy()), " and ", x);
  // (C2)
  int64_t size =
      x.getDimSize(channelDim(x.getRank(), adaptor.getChannelsLast()));
  if (failed(checkVectors(site, size,
                          {{"scale", adaptor.getScale()},
                           {"mean", adaptor.getMean()},
                           {"variance", adaptor.getVariance()}})))
    return failure();
  Type channels = f32TensorOf(context, size);
  types.append({x, channels, channels});
  return success();
}

int64_t BatchNormBackwardOp::getFlops() {
  return 10 * getX().getType().getNumElements();
}

//===----------------------------------------------------------------------===//
// GroupNormOp, GroupNormBackwardOp
//===----------------------------------------------------------------------===//

LogicalResult GroupNormOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  RankedTensorType x = tensorOf(adaptor.getX());
  // (C1)
  if (x.getRank() < 3)
    return site.error("expects rank 3 or more, but got ", x);
  // (C2)
  int64_t channels = x.getDimSize(1);
  auto groups = static_cast<int64_t>(adaptor.getGroups());
  if (groups < 1 || channels % groups != 0)
    return site.error("expects groups that divide ", channels,
                      " channels, but got ", groups);
  // (C3)
  if (failed(checkVectors(
          site, channels,
          {{"scale", adaptor.getScale()}, {"bias", adaptor.getBias()}})))
    return failure();
  Type statistics = f32TensorOf(context, {x.getDimSize(0), groups});
  types.append({x, statistics, statistics});
  return success();
}

/// The rows are what follows the channel.
static RowSpace groupNormSpace(Value image, ArrayRef<ResultForm> results) {
  ArrayRef<int64_t> shape = tensorOf(image).getShape();
  return {RowWalk::Several,
          elementsOf(image),
          {llvm::product_of(shape.drop_front(2))},
          llvm::to_vector(results)};
}

RowSpace GroupNormOp::getRowSpace() {
  return groupNormSpace(getY(), {ResultForm::Element, ResultForm::WholeInMemory,
                                 ResultForm::WholeInMemory});
}

int64_t GroupNormOp::getFlops() {
  return 8 * getX().getType().getNumElements();
}

FailureOr<Gradients> GroupNormOp::buildGradients(GradientBuilder &g, Value dy) {
  auto backward =
      GroupNormBackwardOp::create(g.builder(), dy, getX(), getScale(),
                                  getMean(), getVariance(), getEpsilon());
  return Gradients{backward.getDx(), backward.getDscale(), backward.getDbias()};
}

LogicalResult GroupNormBackwardOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  RankedTensorType x = tensorOf(adaptor.getX());
  // (C1)
  if (x.getRank() < 3 || tensorOf(adaptor.getDy()) != x)
    return site.error("expects a gradient of the type of x and rank 3 or more, "
                      "but got ",
                      tensorOf(adaptor.getDy()), " and ", x);
  // (C2)
  int64_t channels = x.getDimSize(1);
  if (failed(checkVectors(site, channels, {{"scale", adaptor.getScale()}})))
    return failure();
  // (C3)
  RankedTensorType mean = tensorOf(adaptor.getMean());
  RankedTensorType variance = tensorOf(adaptor.getVariance());
  if (mean != variance || mean.getRank() != 2 ||
      mean.getDimSize(0) != x.getDimSize(0) || mean.getDimSize(1) < 1 ||
      channels % mean.getDimSize(1) != 0)
    return site.error("expects mean and variance of ", x.getDimSize(0),
                      " samples and of groups that divide ", channels,
                      " channels, but got ", mean, " and ", variance);
  Type vector = f32TensorOf(context, channels);
  types.append({x, vector, vector, mean, mean});
  return success();
}

RowSpace GroupNormBackwardOp::getRowSpace() {
  return groupNormSpace(getDx(), {ResultForm::Element, ResultForm::Whole,
                                  ResultForm::Whole, ResultForm::WholeInMemory,
                                  ResultForm::WholeInMemory});
}

int64_t GroupNormBackwardOp::getFlops() {
  return 13 * getX().getType().getNumElements();
}

//===----------------------------------------------------------------------===//
// SoftmaxOp, LogSoftmaxOp
//===----------------------------------------------------------------------===//

FailureOr<Gradients> SoftmaxOp::buildGradients(GradientBuilder &g, Value dy) {
  return Gradients{SoftmaxBackwardOp::create(g.builder(), dy, getResult())};
}

FailureOr<Gradients> LogSoftmaxOp::buildGradients(GradientBuilder &g,
                                                  Value dy) {
  return Gradients{LogSoftmaxBackwardOp::create(g.builder(), dy, getResult())};
}
