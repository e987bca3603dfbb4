//===- SplitGradients.cpp - Join the gradients of a split value -----------===//

#include "passes/pipe/staged/SplitGradients.h"

#include "dialects/nn/NNOps.h"

using namespace mlir;

namespace pipewright::pipe {

/// The parts of a sum of `nn.pad`s.
static bool collectPads(Value sum, SmallVectorImpl<nn::PadOp> &pads) {
  if (auto pad = sum.getDefiningOp<nn::PadOp>()) {
    pads.push_back(pad);
    return true;
  }
  auto add = sum.getDefiningOp<nn::AddOp>();
  return add && add.getResult().hasOneUse() &&
         collectPads(add.getLhs(), pads) && collectPads(add.getRhs(), pads);
}

namespace {

/// The gradients of the parts of a split are zero outside of their part, and
/// added they are the parts beside each other. No rounding is involved.
struct ConcatenatePads : OpRewritePattern<nn::AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::AddOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<nn::PadOp> pads;
    if (!collectPads(op.getLhs(), pads) || !collectPads(op.getRhs(), pads))
      return failure();
    auto type = op.getResult().getType();
    int64_t axis = -1;
    for (nn::PadOp pad : pads)
      for (int64_t dim = 0; dim < type.getRank(); ++dim) {
        if (pad.getLow()[dim] == 0 && pad.getHigh()[dim] == 0)
          continue;
        if (axis >= 0 && axis != dim)
          return rewriter.notifyMatchFailure(op, "the parts are not in a row");
        axis = dim;
      }
    if (axis < 0)
      return failure();
    llvm::sort(pads, [&](nn::PadOp a, nn::PadOp b) {
      return a.getLow()[axis] < b.getLow()[axis];
    });
    int64_t end = 0;
    SmallVector<Value> parts;
    for (nn::PadOp pad : pads) {
      if (pad.getResult().getType() != type || pad.getLow()[axis] != end)
        return rewriter.notifyMatchFailure(op, "the parts do not join");
      end += pad.getX().getType().getDimSize(axis);
      parts.push_back(pad.getX());
    }
    if (end != type.getDimSize(axis))
      return rewriter.notifyMatchFailure(op, "the parts do not fill the sum");
    rewriter.replaceOpWithNewOp<nn::ConcatOp>(op, parts, axis);
    return success();
  }
};

} // namespace

void populateSplitGradientPatterns(RewritePatternSet &patterns) {
  patterns.add<ConcatenatePads>(patterns.getContext());
}

} // namespace pipewright::pipe
