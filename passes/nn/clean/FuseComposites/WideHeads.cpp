//===- WideHeads.cpp - Spell out attention over long vectors --------------===//
//
// A target's attention may end at some length of vectors. What is longer
// becomes the products and the softmax that attention stands for.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/clean/FuseComposites/Matching.h"

using namespace mlir;

namespace pipewright::nn {

namespace {

/// Builds the scores and what they are multiplied with, op by op.
class Speller {
public:
  Speller(OpBuilder &builder, AttentionOp op)
      : b(builder), op(op), loc(op.getLoc()),
        shape(op.getQ().getType().getShape()),
        keyHeads(op.getK().getType().getDimSize(1)) {}

  Value build();

private:
  Value reshaped(Value value, ArrayRef<int64_t> sizes) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getShape() == sizes
               ? value
               : ReshapeOp::create(b, loc, type.clone(sizes), value);
  }
  Value times(Value value, double factor) {
    return MulOp::create(b, loc, value, createScalar(b, loc, factor));
  }
  Value masked(Value scores);
  Value visible(Value scores);

  OpBuilder &b;
  AttentionOp op;
  Location loc;
  ArrayRef<int64_t> shape;
  int64_t keyHeads;
};

/// Adds the mask, whose samples may repeat.
Value Speller::masked(Value scores) {
  Value mask = op.getMask();
  if (!mask)
    return scores;
  auto type = cast<RankedTensorType>(mask.getType());
  int64_t samples = type.getRank() == 4 ? type.getDimSize(0) : 1;
  if (samples == 1 || samples == shape[0])
    return AddOp::create(b, loc, scores, mask);
  ArrayRef<int64_t> whole = cast<RankedTensorType>(scores.getType()).getShape();
  SmallVector<int64_t> parted = {shape[0] / samples, samples};
  llvm::append_range(parted, whole.drop_front());
  Value sum = AddOp::create(b, loc, reshaped(scores, parted), mask);
  return reshaped(sum, whole);
}

/// Hides what comes later, where the op is causal.
Value Speller::visible(Value scores) {
  if (!op.getCausal())
    return scores;
  auto type = RankedTensorType::get({1, 1, shape[2], shape[2]}, b.getI1Type());
  return WhereOp::create(b, loc, CausalMaskOp::create(b, loc, type), scores,
                         createScalar(b, loc, -INFINITY));
}

/// Heads of q that read one head of k and v are rows of one product.
Value Speller::build() {
  int64_t rows = shape[1] / keyHeads * shape[2];
  Value q = reshaped(op.getQ(), {shape[0], keyHeads, rows, shape[3]});
  Value product = MatmulOp::create(b, loc, q, op.getK(), /*transpose_a=*/false,
                                   /*transpose_b=*/true, /*f32_result=*/false);
  Value scores = reshaped(product, {shape[0], shape[1], shape[2], shape[2]});
  double scale = op.getScale().convertToDouble();
  double cap = op.getSoftcap().convertToDouble();
  if (cap > 0)
    scores = times(TanhOp::create(b, loc, times(scores, scale / cap)), cap);
  else
    scores = times(scores, scale);
  Value weights =
      SoftmaxOp::create(b, loc, visible(masked(scores)), b.getUnitAttr());
  if (!op.getDropoutRate().isZero())
    weights = DropoutOp::create(b, loc, weights, op.getDropoutRateAttr(),
                                op.getDropoutIdAttr());
  weights = reshaped(weights, {shape[0], keyHeads, rows, shape[2]});
  Value o = MatmulOp::create(b, loc, weights, op.getV(), /*transpose_a=*/false,
                             /*transpose_b=*/false, /*f32_result=*/false);
  return reshaped(o, shape);
}

struct SpellOutWideHeads : OpRewritePattern<AttentionOp> {
  SpellOutWideHeads(MLIRContext *context, int64_t longest)
      : OpRewritePattern(context), longest(longest) {}

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getQ().getType().getDimSize(3) <= longest)
      return failure();
    if (!op.getStats().use_empty())
      return rewriter.notifyMatchFailure(op, "its statistics are used");
    rewriter.replaceAllUsesWith(op.getO(), Speller(rewriter, op).build());
    rewriter.eraseOp(op);
    return success();
  }

  int64_t longest;
};

} // namespace

void populateWideHeadsPatterns(RewritePatternSet &patterns,
                               int64_t longestVector) {
  patterns.add<SpellOutWideHeads>(patterns.getContext(), longestVector);
}

} // namespace pipewright::nn
