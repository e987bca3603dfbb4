//===- GroupNorm.cpp - Recognise group normalization ----------------------===//
//
// A layer normalization of the rows that groups of channels are, scaled and
// shifted by channel behind it, as importers and exporters spell group and
// instance normalization. As one op it is scaled, shifted and followed by an
// activation where it is normalized, and keeps its statistics only.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/clean/FuseComposites/Matching.h"

using namespace mlir;

namespace pipewright::nn {

namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The value that `value` is a view of, if nothing else sees the views.
Value behindViews(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    if (!value.hasOneUse())
      return Value();
    value = reshape.getX();
  }
  return value;
}

/// Whether `value` broadcasts to `image` as a number for each channel.
bool isPerChannel(Value value, RankedTensorType image) {
  ArrayRef<int64_t> shape = typeOf(value).getShape();
  auto missing = image.getRank() - static_cast<int64_t>(shape.size());
  if (missing < 0 || missing > 1)
    return false;
  for (auto [i, size] : llvm::enumerate(shape))
    if (size !=
        (static_cast<int64_t>(i) + missing == 1 ? image.getDimSize(1) : 1))
      return false;
  return true;
}

/// The groups of channels that the rows of `rows` are in `image`, or 0.
int64_t groupsOf(RankedTensorType rows, RankedTensorType image) {
  int64_t samples = image.getDimSize(0), channels = image.getDimSize(1);
  int64_t count = rows.getNumElements() / rows.getShape().back();
  int64_t groups = count % samples == 0 ? count / samples : 0;
  return groups > 0 && channels % groups == 0 ? groups : 0;
}

/// Whether it does nothing but normalize, and nobody reads its statistics.
bool isPlain(LayerNormOp norm) {
  return scalarOf(norm.getScale()) == 1.0 && scalarOf(norm.getBias()) == 0.0 &&
         norm.getMean().use_empty() && norm.getRstd().use_empty();
}

LogicalResult fuseGroupNorm(AddOp op, PatternRewriter &rewriter) {
  RankedTensorType image = typeOf(op.getResult());
  if (image.getRank() < 3)
    return failure();
  for (auto [scaled, bias] : operandOrders<AddOp>(op.getResult()))
    for (auto [normalized, scale] : operandOrders<MulOp>(scaled)) {
      if (!scaled.hasOneUse() || normalized.getType() != image ||
          !isPerChannel(scale, image) || !isPerChannel(bias, image))
        continue;
      Value rows = behindViews(normalized);
      auto norm = rows ? rows.getDefiningOp<LayerNormOp>() : nullptr;
      if (!norm || !isPlain(norm) || !rows.hasOneUse())
        continue;
      int64_t groups = groupsOf(norm.getX().getType(), image);
      if (groups == 0)
        continue;
      Value x = norm.getX();
      if (auto view = x.getDefiningOp<ReshapeOp>())
        x = view.getX();
      if (x.getType() != image)
        x = ReshapeOp::create(rewriter, op.getLoc(), image, norm.getX());
      auto fused = GroupNormOp::create(
          rewriter, op.getLoc(), x, asVector(rewriter, scale),
          asVector(rewriter, bias), rewriter.getI64IntegerAttr(groups),
          norm.getEpsilonAttr());
      rewriter.replaceOp(op, fused.getY());
      return success();
    }
  return failure();
}

} // namespace

void populateGroupNormPatterns(RewritePatternSet &patterns) {
  patterns.add(fuseGroupNorm);
}

} // namespace pipewright::nn
