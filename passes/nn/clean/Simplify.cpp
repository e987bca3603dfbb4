//===- Simplify.cpp - nn-simplify -----------------------------------------===//
//
// Folds constants and removes what does nothing: the shape arithmetic and the
// conversions that exporters leave behind. Only rewrites that keep every number
// are here.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/nn/clean/ConstantFolding.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNSIMPLIFY
#include "passes/nn/Passes.h.inc"

namespace {

/// Masks are worth evaluating up to this size to see whether they are causal.
constexpr int64_t kMaxMaskElements = int64_t(1) << 24;

/// The value of a splat constant.
std::optional<double> splatValue(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || !constant.getValue().isSplat())
    return std::nullopt;
  DenseElementsAttr elements = constant.getValue();
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().convertToDouble();
  APInt integer = elements.getSplatValue<APInt>();
  return elements.getElementType().isInteger(1)
             ? static_cast<double>(integer.getBoolValue())
             : static_cast<double>(integer.getSExtValue());
}

/// Whether an i1 constant is true exactly on and below the diagonal
/// (`lower`), or exactly above it.
bool isTriangle(DenseElementsAttr elements, bool lower) {
  auto type = cast<RankedTensorType>(elements.getType());
  int64_t rank = type.getRank();
  if (!type.getElementType().isInteger(1) || rank < 2 || elements.isSplat())
    return false;
  int64_t size = type.getDimSize(rank - 1);
  if (type.getDimSize(rank - 2) != size)
    return false;
  int64_t place = 0;
  for (bool element : elements.getValues<bool>()) {
    int64_t row = place / size % size, column = place % size;
    if (element != ((column <= row) == lower))
      return false;
    ++place;
  }
  return true;
}

/// Replaces `op` by the mask that `elements` are; fails if they are none.
LogicalResult replaceByMask(Operation *op, DenseElementsAttr elements,
                            PatternRewriter &rewriter) {
  Type type = op->getResult(0).getType();
  if (isTriangle(elements, /*lower=*/true)) {
    rewriter.replaceOpWithNewOp<CausalMaskOp>(op, type);
    return success();
  }
  if (!isTriangle(elements, /*lower=*/false))
    return failure();
  Value mask = CausalMaskOp::create(rewriter, op->getLoc(), type);
  rewriter.replaceOpWithNewOp<LogicalNotOp>(op, mask);
  return success();
}

struct FoldConstants : RewritePattern {
  explicit FoldConstants(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (op->getNumOperands() == 0 || op->getNumResults() != 1 ||
        !isa<NNDialect>(op->getDialect()))
      return failure();
    SmallVector<DenseElementsAttr> operands;
    for (Value operand : op->getOperands()) {
      auto constant = operand.getDefiningOp<ConstantOp>();
      if (!constant)
        return failure();
      operands.push_back(constant.getValue());
    }
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    bool mayBeMask = type.getElementType().isInteger(1) && type.getRank() >= 2;
    DenseElementsAttr value = evaluateOnConstants(
        op, operands, mayBeMask ? kMaxMaskElements : ConstantOp::kMaxElements);
    if (!value)
      return rewriter.notifyMatchFailure(op, "cannot be evaluated");
    if (succeeded(replaceByMask(op, value, rewriter)))
      return success();
    if (!value.isSplat() && value.getNumElements() > ConstantOp::kMaxElements)
      return rewriter.notifyMatchFailure(op, "result is too large");
    rewriter.replaceOpWithNewOp<ConstantOp>(op, value);
    return success();
  }
};

LogicalResult recognizeCausalMask(ConstantOp op, PatternRewriter &rewriter) {
  return replaceByMask(op, op.getValue(), rewriter);
}

/// Replaces `op` by one of its operands if the types agree.
LogicalResult replaceByOperand(Operation *op, Value operand,
                               PatternRewriter &rewriter) {
  if (operand.getType() != op->getResult(0).getType())
    return rewriter.notifyMatchFailure(op, "the operand is broadcast");
  rewriter.replaceOp(op, operand);
  return success();
}

/// Removes `x + 0`, `x * 1` and the like; `neutral` is 0 or 1.
template <typename OpTy, bool isCommutative>
struct RemoveNeutral : OpRewritePattern<OpTy> {
  RemoveNeutral(MLIRContext *context, double neutral)
      : OpRewritePattern<OpTy>(context), neutral(neutral) {}
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (splatValue(op->getOperand(1)) == neutral)
      return replaceByOperand(op, op->getOperand(0), rewriter);
    if (isCommutative && splatValue(op->getOperand(0)) == neutral)
      return replaceByOperand(op, op->getOperand(1), rewriter);
    return failure();
  }
  double neutral;
};

/// `pow` with an exponent that has an op of its own.
LogicalResult expandPower(PowOp op, PatternRewriter &rewriter) {
  std::optional<double> exponent = splatValue(op.getRhs());
  Value base = op.getLhs();
  if (!exponent || base.getType() != op.getResult().getType())
    return failure();
  if (*exponent == 2.0) {
    rewriter.replaceOpWithNewOp<MulOp>(op, base, base);
    return success();
  }
  if (*exponent == 0.5) {
    rewriter.replaceOpWithNewOp<SqrtOp>(op, base);
    return success();
  }
  return failure();
}

LogicalResult simplifyWhere(WhereOp op, PatternRewriter &rewriter) {
  if (op.getA() == op.getB())
    return replaceByOperand(op, op.getA(), rewriter);
  if (std::optional<double> condition = splatValue(op.getCond()))
    return replaceByOperand(op, *condition ? op.getA() : op.getB(), rewriter);
  // where(not c, a, b) is where(c, b, a).
  auto negation = op.getCond().getDefiningOp<LogicalNotOp>();
  if (!negation)
    return failure();
  rewriter.replaceOpWithNewOp<WhereOp>(op, negation.getX(), op.getB(),
                                       op.getA());
  return success();
}

LogicalResult removeDoubleNot(LogicalNotOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<LogicalNotOp>();
  if (!inner)
    return failure();
  rewriter.replaceOp(op, inner.getX());
  return success();
}

/// Truth values that took a way round through numbers.
LogicalResult removeCastOfBool(CastOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<CastOp>();
  if (!inner || !inner.getX().getType().getElementType().isInteger(1))
    return failure();
  if (op.getResult().getType() == inner.getX().getType()) {
    rewriter.replaceOp(op, inner.getX());
    return success();
  }
  rewriter.replaceOpWithNewOp<CastOp>(op, op.getResult().getType(),
                                      inner.getX());
  return success();
}

/// A transposition of a matrix is a flag of the product.
struct TransposeIntoMatmul : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  static Value swapped(Value value) {
    auto transpose = value.getDefiningOp<TransposeOp>();
    if (!transpose)
      return Value();
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    int64_t rank = permutation.size();
    for (auto [dim, axis] : llvm::enumerate(permutation)) {
      int64_t expected = static_cast<int64_t>(dim);
      if (expected >= rank - 2)
        expected = 2 * rank - 3 - expected;
      if (axis != expected)
        return Value();
    }
    return transpose.getX();
  }

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    Value a = swapped(op.getA()), b = swapped(op.getB());
    if (!a && !b)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      if (a) {
        op.getAMutable().assign(a);
        op.setTransposeA(!op.getTransposeA());
      }
      if (b) {
        op.getBMutable().assign(b);
        op.setTransposeB(!op.getTransposeB());
      }
    });
    return success();
  }
};

/// Dimensions `from` of one shape hold the same elements as dimensions `to` of
/// another, in the same order.
struct SharedDims {
  SmallVector<int64_t> from, to;
};

/// Cuts two shapes of as many elements where their leading products agree.
SmallVector<SharedDims> cutReshape(ArrayRef<int64_t> from,
                                   ArrayRef<int64_t> to) {
  SmallVector<SharedDims> result;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    SharedDims &group = result.emplace_back();
    int64_t before = 1, after = 1;
    do {
      if (i < from.size() && (before <= after || j == to.size())) {
        before *= from[i];
        group.from.push_back(i++);
      } else {
        after *= to[j];
        group.to.push_back(j++);
      }
    } while (before != after);
  }
  return result;
}

/// What an inner transposition moved, an outer one moves back, behind a reshape
/// that cuts or joins no more than what both keep together.
struct CancelTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  /// The dimensions before the reshape in the order of `outer`; nothing if
  /// `outer` parts what one of them became.
  static std::optional<SmallVector<int64_t>> orderBefore(TransposeOp outer,
                                                         ReshapeOp reshape) {
    ArrayRef<int64_t> permutation = outer.getPermutation();
    SmallVector<int64_t> order;
    SmallVector<SharedDims> groups =
        cutReshape(reshape.getX().getType().getShape(),
                   reshape.getResult().getType().getShape());
    for (size_t i = 0; i < permutation.size();) {
      auto group = llvm::find_if(groups, [&](const SharedDims &each) {
        return !each.to.empty() && each.to.front() == permutation[i];
      });
      if (group == groups.end() || group->to.size() > permutation.size() - i ||
          permutation.slice(i, group->to.size()) != ArrayRef(group->to))
        return std::nullopt;
      llvm::append_range(order, group->from);
      i += group->to.size();
    }
    return order;
  }

  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto reshape = op.getX().getDefiningOp<ReshapeOp>();
    auto inner =
        reshape ? reshape.getX().getDefiningOp<TransposeOp>() : TransposeOp();
    if (!inner)
      return failure();
    std::optional<SmallVector<int64_t>> order = orderBefore(op, reshape);
    if (!order)
      return failure();
    // Dimensions of one element may be anywhere.
    SmallVector<int64_t> source;
    for (int64_t dim : *order)
      if (inner.getResult().getType().getDimSize(dim) != 1)
        source.push_back(inner.getPermutation()[dim]);
    if (!llvm::is_sorted(source))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getResult().getType(),
                                           inner.getX());
    return success();
  }
};

void removeDropout(func::FuncOp function) {
  function.walk([](Operation *op) {
    if (auto dropout = dyn_cast<DropoutOp>(op)) {
      dropout.getResult().replaceAllUsesWith(dropout.getX());
      dropout.erase();
    } else if (auto attention = dyn_cast<AttentionOpInterface>(op)) {
      attention.setDropoutRate(APFloat(0.0f));
    }
  });
}

struct Simplify : impl::NNSimplifyBase<Simplify> {
  using NNSimplifyBase::NNSimplifyBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns
        .add<FoldConstants, TransposeIntoMatmul, CancelTransposes>(
            &getContext())
        .add(recognizeCausalMask)
        .add(expandPower)
        .add(simplifyWhere)
        .add(removeDoubleNot)
        .add(removeCastOfBool);
    patterns.add<RemoveNeutral<AddOp, true>, RemoveNeutral<SubOp, false>>(
        &getContext(), 0.0);
    patterns
        .add<RemoveNeutral<MulOp, true>, RemoveNeutral<DivOp, false>,
             RemoveNeutral<PowOp, false>, RemoveNeutral<LogicalAndOp, true>>(
            &getContext(), 1.0);
    patterns.add<RemoveNeutral<LogicalOrOp, true>>(&getContext(), 0.0);
    FrozenRewritePatternSet frozen(std::move(patterns));
    // No pattern undoes what another does, so this ends by itself.
    GreedyRewriteConfig config;
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (noDropout)
        removeDropout(function);
      if (failed(applyPatternsGreedily(function, frozen, config)))
        return signalPassFailure();
      IRRewriter rewriter(&getContext());
      DominanceInfo dominance(function);
      eliminateCommonSubExpressions(rewriter, dominance, function);
    }
  }
};

} // namespace
} // namespace pipewright::nn
