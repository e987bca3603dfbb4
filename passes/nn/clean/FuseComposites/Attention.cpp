//===- Attention.cpp - Recognise scaled dot-product attention -------------===//
//
// softmax(scale * q k^T + mask) v, found from the last product upwards. The
// scale may stand before or after the first product and in front of its
// operands; the mask may be added or chosen, causal or not. Below the mask
// scores may be bounded by c tanh(score / c). A mask may repeat after some
// samples, as that of windows does, and a factor of whole rows goes to q.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/clean/FuseComposites/Matching.h"

#include "dialects/nn/NNAttention.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace pipewright::nn {

namespace {

/// What is chosen instead of a masked score is at most this.
constexpr double kMaskedScore = -9e3;

/// Masks and scales between the softmax and the product are at most so many.
constexpr int kMaxDepth = 8;

/// A condition that a score is kept under: `value` must be `expected`.
struct Condition {
  Value value;
  bool expected;
  double otherwise;
};

/// The parts of the scores, collected from the softmax upwards.
struct Scores {
  MatmulOp product;
  double scale = 1, softcap = 0;
  bool causal = false;
  SmallVector<Value> masks;
  SmallVector<Condition> conditions;
  /// What each row of the products is multiplied by; null if by nothing.
  Value rowFactor;
};

/// A causal mask, whatever was done to its leading dimensions.
bool isCausalMask(Value value) {
  auto lastTwo = [](Value v) {
    return cast<RankedTensorType>(v.getType()).getShape().take_back(2);
  };
  while (Operation *op = value.getDefiningOp()) {
    if (isa<CausalMaskOp>(op))
      return true;
    if (!isa<BroadcastToOp, ReshapeOp>(op) ||
        lastTwo(op->getOperand(0)) != lastTwo(value))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

/// Splits "kept where `condition` is `expected`" into a causal part and others.
void addCondition(Value condition, bool expected, double otherwise,
                  Scores &scores) {
  if (auto negation = condition.getDefiningOp<LogicalNotOp>())
    return addCondition(negation.getX(), !expected, otherwise, scores);
  Operation *op = condition.getDefiningOp();
  if (op && ((expected && isa<LogicalAndOp>(op)) ||
             (!expected && isa<LogicalOrOp>(op)))) {
    addCondition(op->getOperand(0), expected, otherwise, scores);
    addCondition(op->getOperand(1), expected, otherwise, scores);
  } else if (expected && isCausalMask(condition)) {
    scores.causal = true;
  } else {
    scores.conditions.push_back({condition, expected, otherwise});
  }
}

/// Whether an additive mask is `where(causal, 0, -inf)` or made of others.
bool addChosenMask(Value mask, Scores &scores) {
  auto where = mask.getDefiningOp<WhereOp>();
  if (!where)
    return false;
  std::optional<double> a = scalarOf(where.getA()), b = scalarOf(where.getB());
  if (a && b && *a == 0 && *b <= kMaskedScore)
    addCondition(where.getCond(), true, *b, scores);
  else if (a && b && *b == 0 && *a <= kMaskedScore)
    addCondition(where.getCond(), false, *a, scores);
  else
    return false;
  return true;
}

/// The shape of a mask `[1, P, ...]` for scores `[B / P, P, H, T, T]`: without
/// its leading dimension.
SmallVector<int64_t> shapeForSamples(Value mask) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(mask.getType()).getShape();
  return llvm::to_vector(shape.take_back(4));
}

/// A value that is all of `type` again after a mask that repeats over samples
/// was added to it in another shape: the value before, and the mask.
std::pair<Value, Value> withoutRepeatedMask(Value value,
                                            RankedTensorType type) {
  auto back = value.getDefiningOp<ReshapeOp>();
  if (!back || type.getRank() != 4)
    return {};
  auto split = cast<RankedTensorType>(back.getX().getType());
  if (split.getRank() != 5 || !back.getX().hasOneUse() ||
      split.getShape().take_back(3) != type.getShape().take_back(3))
    return {};
  for (auto [inner, mask] : operandOrders<AddOp>(back.getX())) {
    auto forth = inner.getDefiningOp<ReshapeOp>();
    auto maskType = cast<RankedTensorType>(mask.getType());
    if (forth && forth.getX().getType() == type &&
        (maskType.getRank() < 5 || maskType.getDimSize(0) == 1) &&
        isMaskFor(shapeForSamples(mask), type.getShape()))
      return {forth.getX(), mask};
  }
  return {};
}

/// Takes masks and scales off `value` down to a product. The ops keep the
/// product's type, so masks only ever broadcast into it.
bool matchScores(Value value, Type type, Scores &scores, int depth = 0) {
  // Both operands of a sum are tried: deep sums are not attention anyway.
  if (value.getType() != type || depth++ > kMaxDepth)
    return false;
  if (auto product = value.getDefiningOp<MatmulOp>()) {
    scores.product = product;
    return true;
  }
  Scores saved = scores;
  // Whether what is under a value are no masks, which would be changed as well.
  auto hasNoMasks = [&](Value inner) {
    return matchScores(inner, type, scores, depth) &&
           scores.masks == saved.masks &&
           scores.conditions.size() == saved.conditions.size();
  };
  double cap = 1;
  if (auto tanh = fullyUnscaled(value, cap).getDefiningOp<TanhOp>()) {
    if (scores.softcap != 0 || !(cap > 0))
      return false;
    // c tanh(x), as x = (c x) / c.
    scores.softcap = cap;
    scores.scale *= cap;
    return hasNoMasks(tanh.getX());
  }
  double factor = 1;
  if (Value inner = unscaled(value, factor)) {
    scores.scale *= factor;
    return hasNoMasks(inner);
  }
  for (auto [inner, rows] : operandOrders<MulOp>(value)) {
    scores = saved;
    auto rowsType = cast<RankedTensorType>(rows.getType());
    if (!scores.rowFactor && rowsType.getRank() > 0 &&
        rowsType.getShape().back() == 1) {
      scores.rowFactor = rows;
      if (hasNoMasks(inner) && scores.softcap == saved.softcap)
        return true;
    }
  }
  if (auto [inner, mask] =
          withoutRepeatedMask(value, cast<RankedTensorType>(type));
      inner) {
    scores = saved;
    scores.masks.push_back(mask);
    return matchScores(inner, type, scores, depth);
  }
  for (auto [inner, mask] : operandOrders<AddOp>(value)) {
    scores = saved;
    if (!addChosenMask(mask, scores))
      scores.masks.push_back(mask);
    if (matchScores(inner, type, scores, depth))
      return true;
  }
  if (auto where = value.getDefiningOp<WhereOp>()) {
    scores = saved;
    std::optional<double> a = scalarOf(where.getA());
    std::optional<double> b = scalarOf(where.getB());
    if (b && *b <= kMaskedScore) {
      addCondition(where.getCond(), true, *b, scores);
      return matchScores(where.getA(), type, scores, depth);
    }
    if (a && *a <= kMaskedScore) {
      addCondition(where.getCond(), false, *a, scores);
      return matchScores(where.getB(), type, scores, depth);
    }
  }
  return false;
}

/// Whether a trained weight is among what `value` is made from.
bool isTrained(Value value) {
  llvm::SetVector<Value> slice;
  slice.insert(value);
  for (size_t i = 0; i < slice.size(); ++i) {
    Operation *op = slice[i].getDefiningOp();
    if (!op)
      continue;
    if (auto parameter = dyn_cast<ParameterOp>(op)) {
      auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
          op, parameter.getWeightAttr());
      if (!weight || weight.getRole() == WeightRole::Parameter)
        return true;
    }
    slice.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// `[..., M, N]` as `[..., N, M]`.
Value swapLastTwo(PatternRewriter &rewriter, Value value) {
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  SmallVector<int64_t> permutation;
  for (int64_t dim = 0; dim < rank; ++dim)
    permutation.push_back(dim);
  std::swap(permutation[rank - 2], permutation[rank - 1]);
  return TransposeOp::create(rewriter, value.getLoc(), value, permutation);
}

/// `[N, T, D]` as `[1, N, T, D]`.
Value withFourDims(PatternRewriter &rewriter, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == 4)
    return value;
  SmallVector<int64_t> shape{1};
  llvm::append_range(shape, type.getShape());
  return ReshapeOp::create(rewriter, value.getLoc(),
                           RankedTensorType::get(shape, type.getElementType()),
                           value);
}

/// The sum of all masks that are not causal; null if there is none.
Value buildMask(PatternRewriter &rewriter, Location location,
                const Scores &scores) {
  SmallVector<Value> masks;
  for (Value mask : scores.masks) {
    auto type = cast<RankedTensorType>(mask.getType());
    masks.push_back(type.getRank() < 5
                        ? mask
                        : ReshapeOp::create(rewriter, location,
                                            type.clone(shapeForSamples(mask)),
                                            mask));
  }
  for (const Condition &condition : scores.conditions) {
    Value zero = createScalar(rewriter, location, 0);
    Value low = createScalar(rewriter, location, condition.otherwise);
    masks.push_back(WhereOp::create(rewriter, location, condition.value,
                                    condition.expected ? zero : low,
                                    condition.expected ? low : zero));
  }
  Value sum;
  for (Value mask : masks)
    sum = sum ? AddOp::create(rewriter, location, sum, mask).getResult() : mask;
  return sum;
}

/// A mask with a gradient is wanted with all rows and columns.
Value withRowsAndColumns(PatternRewriter &rewriter, Value mask,
                         ArrayRef<int64_t> scores) {
  auto type = cast<RankedTensorType>(mask.getType());
  SmallVector<int64_t> shape(type.getShape().drop_back(2));
  llvm::append_range(shape, scores.take_back(2));
  if (type.getShape() == ArrayRef(shape))
    return mask;
  return BroadcastToOp::create(rewriter, mask.getLoc(), type.clone(shape),
                               mask);
}

struct FuseAttention : OpRewritePattern<MatmulOp> {
  FuseAttention(MLIRContext *context, int64_t longestVector)
      : OpRewritePattern(context), longestVector(longestVector) {}
  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override;

  int64_t longestVector;
};

LogicalResult FuseAttention::matchAndRewrite(MatmulOp op,
                                             PatternRewriter &rewriter) const {
  auto type = op.getResult().getType();
  if ((type.getRank() != 3 && type.getRank() != 4) || op.getTransposeA())
    return failure();
  Value probabilities = op.getA();
  auto dropout = probabilities.getDefiningOp<DropoutOp>();
  if (dropout) {
    if (!dropout.getResult().hasOneUse())
      return rewriter.notifyMatchFailure(op, "the weights are used elsewhere");
    probabilities = dropout.getX();
  }
  auto softmax = probabilities.getDefiningOp<SoftmaxOp>();
  if (!softmax || !softmax.getResult().hasOneUse())
    return failure();
  Scores scores;
  if (!matchScores(softmax.getX(), softmax.getResult().getType(), scores))
    return rewriter.notifyMatchFailure(op, "no scores under the softmax");
  if (scores.product.getTransposeA())
    return failure();
  bool hasGradient = llvm::any_of(scores.masks, isTrained);
  auto isOfRows = [](Value mask) {
    return cast<RankedTensorType>(mask.getType()).getRank() >= 2;
  };
  if (hasGradient && !llvm::any_of(scores.masks, isOfRows))
    return rewriter.notifyMatchFailure(op, "the trained mask has no rows");

  // k and v are wanted as [..., T, D]; the scale may stand on q and k.
  double scale = scores.scale;
  Value q = fullyUnscaled(scores.product.getA(), scale);
  Value k = fullyUnscaled(scores.product.getB(), scale);
  auto rowsOf = [](Value value, bool transposed) {
    auto shape =
        llvm::to_vector(cast<RankedTensorType>(value.getType()).getShape());
    if (transposed)
      std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    return shape;
  };
  bool swapsK = !scores.product.getTransposeB(), swapsV = op.getTransposeB();
  auto shape = rowsOf(q, false);
  if (rowsOf(k, swapsK) != shape || rowsOf(op.getB(), swapsV) != shape)
    return rewriter.notifyMatchFailure(op, "q, k and v differ in shape");
  if (shape.back() > longestVector)
    return rewriter.notifyMatchFailure(op, "the target has none so wide");

  Location location = op.getLoc();
  if (scores.rowFactor)
    q = MulOp::create(rewriter, location, q, scores.rowFactor);
  Value v = swapsV ? swapLastTwo(rewriter, op.getB()) : op.getB();
  if (swapsK)
    k = swapLastTwo(rewriter, k);
  Value mask = buildMask(rewriter, location, scores);
  if (hasGradient)
    mask = withRowsAndColumns(rewriter, mask,
                              softmax.getResult().getType().getShape());
  auto attention = AttentionOp::create(
      rewriter, location, withFourDims(rewriter, q), withFourDims(rewriter, k),
      withFourDims(rewriter, v), mask,
      rewriter.getF32FloatAttr(static_cast<float>(scale)),
      scores.causal ? rewriter.getUnitAttr() : UnitAttr(),
      dropout ? dropout.getRateAttr() : rewriter.getF32FloatAttr(0),
      dropout ? dropout.getIdAttr() : rewriter.getI64IntegerAttr(0),
      rewriter.getF32FloatAttr(static_cast<float>(scores.softcap)),
      hasGradient ? rewriter.getUnitAttr() : UnitAttr());
  Value o = attention.getO();
  if (type.getRank() == 3)
    o = ReshapeOp::create(rewriter, location, type, o);
  rewriter.replaceOp(op, o);
  return success();
}

/// A mask that nothing trained goes into needs no gradient.
LogicalResult dropMaskGradient(AttentionOp op, PatternRewriter &rewriter) {
  if (!op.getMaskGradient() || isTrained(op.getMask()))
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.setMaskGradient(false); });
  return success();
}

} // namespace

void populateAttentionPatterns(RewritePatternSet &patterns,
                               int64_t longestVector) {
  patterns.add<FuseAttention>(patterns.getContext(), longestVector);
  patterns.add(dropMaskGradient);
}

} // namespace pipewright::nn
