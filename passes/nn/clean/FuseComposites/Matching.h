//===- Matching.h - Look at values as exporters write them ------*- C++ -*-===//
//
// Small questions that the patterns of nn-fuse-composites ask of a value.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_CLEAN_FUSECOMPOSITES_MATCHING_H
#define PIPEWRIGHT_PASSES_NN_CLEAN_FUSECOMPOSITES_MATCHING_H

#include "dialects/nn/NNOps.h"

#include <cmath>
#include <optional>

namespace pipewright::nn {

/// The value of a float constant whose elements are all the same.
inline std::optional<double> scalarOf(mlir::Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || !constant.getValue().isSplat() ||
      !constant.getValue().getElementType().isF32())
    return std::nullopt;
  return constant.getValue().getSplatValue<llvm::APFloat>().convertToDouble();
}

/// Equal up to the digits that exporters round to.
inline bool isNear(double value, double expected) {
  return std::fabs(value - expected) <= 1e-4 * std::fabs(expected);
}

/// `value` as a product or quotient of another value and a constant: the other
/// value, with the constant multiplied into `factor`.
inline mlir::Value unscaled(mlir::Value value, double &factor) {
  mlir::Value inner;
  if (auto mul = value.getDefiningOp<MulOp>()) {
    if (std::optional<double> scalar = scalarOf(mul.getRhs())) {
      factor *= *scalar;
      inner = mul.getLhs();
    } else if (std::optional<double> scalar = scalarOf(mul.getLhs())) {
      factor *= *scalar;
      inner = mul.getRhs();
    }
  } else if (auto div = value.getDefiningOp<DivOp>()) {
    if (std::optional<double> scalar = scalarOf(div.getRhs())) {
      factor /= *scalar;
      inner = div.getLhs();
    }
  }
  // A constant that broadcasts the value is more than a factor.
  return inner && inner.getType() == value.getType() ? inner : mlir::Value();
}

/// The value without any constant factor: `unscaled` again and again.
inline mlir::Value fullyUnscaled(mlir::Value value, double &factor) {
  while (mlir::Value inner = unscaled(value, factor))
    value = inner;
  return value;
}

/// Whether a reduction goes over the last dimension only.
template <typename ReductionOp>
bool isOverLastDim(ReductionOp op) {
  int64_t rank = op.getX().getType().getRank();
  return op.getAxes().size() == 1 && op.getAxes()[0] == rank - 1;
}

/// The operands of a commutative op, in both orders.
template <typename OpTy>
llvm::SmallVector<std::pair<mlir::Value, mlir::Value>, 2>
operandOrders(mlir::Value value) {
  auto op = value.getDefiningOp<OpTy>();
  if (!op)
    return {};
  return {{op.getLhs(), op.getRhs()}, {op.getRhs(), op.getLhs()}};
}

/// All elements of `value` as a vector.
inline mlir::Value asVector(mlir::OpBuilder &builder, mlir::Value value) {
  auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
  if (type.getRank() == 1)
    return value;
  auto vector = mlir::RankedTensorType::get({type.getNumElements()},
                                            type.getElementType());
  return ReshapeOp::create(builder, value.getLoc(), vector, value);
}

/// Adders of the patterns, one per file.
/// Attention is recognised over vectors of at most `longestVector` elements.
void populateAttentionPatterns(mlir::RewritePatternSet &patterns,
                               int64_t longestVector);
void populateGeluPatterns(mlir::RewritePatternSet &patterns);
void populateGroupedHeadsPatterns(mlir::RewritePatternSet &patterns);
void populateGroupNormPatterns(mlir::RewritePatternSet &patterns);
void populateLayerNormPatterns(mlir::RewritePatternSet &patterns);
void populatePreciseFormPatterns(mlir::RewritePatternSet &patterns);
void populateSoftmaxPatterns(mlir::RewritePatternSet &patterns);
/// Attention over longer vectors than `longestVector` is spelled out.
void populateWideHeadsPatterns(mlir::RewritePatternSet &patterns,
                               int64_t longestVector);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_PASSES_NN_CLEAN_FUSECOMPOSITES_MATCHING_H
