//===- Formula.h - short ways to write f32 arithmetic -----------*- C++ -*-===//
//
// What the approximations of math functions are written in, for all targets.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_FORMULA_H
#define PIPEWRIGHT_CODEGEN_KERNELS_FORMULA_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

namespace pipewright::codegen {

/// Builds f32 arithmetic, on scalars or vectors.
class Formula {
public:
  Formula(mlir::PatternRewriter &rewriter, mlir::Operation *op)
      : b(rewriter), loc(op->getLoc()), type(op->getResult(0).getType()) {}

  mlir::Value constant(float value) {
    mlir::TypedAttr attribute = b.getF32FloatAttr(value);
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
      attribute = mlir::DenseElementsAttr::get(vector, value);
    return mlir::arith::ConstantOp::create(b, loc, attribute);
  }
  mlir::Value integer(int32_t value) {
    mlir::TypedAttr attribute = b.getI32IntegerAttr(value);
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(integerType()))
      attribute = mlir::DenseElementsAttr::get(vector, value);
    return mlir::arith::ConstantOp::create(b, loc, attribute);
  }
  mlir::Type integerType() {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
      return vector.cloneWith(std::nullopt, b.getI32Type());
    return b.getI32Type();
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddFOp::create(b, loc, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubFOp::create(b, loc, x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return mlir::arith::MulFOp::create(b, loc, x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return mlir::arith::DivFOp::create(b, loc, x, y);
  }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) {
    return mlir::math::FmaOp::create(b, loc, x, y, z);
  }
  mlir::Value less(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::OLT,
                                       x, y);
  }
  mlir::Value equal(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::OEQ,
                                       x, y);
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, condition, x, y);
  }
  mlir::Value clamp(mlir::Value x, float low, float high) {
    x = select(less(x, constant(low)), constant(low), x);
    return select(less(constant(high), x), constant(high), x);
  }
  mlir::Value bits(mlir::Value x) {
    return mlir::arith::BitcastOp::create(b, loc, integerType(), x);
  }
  mlir::Value fromBits(mlir::Value x) {
    return mlir::arith::BitcastOp::create(b, loc, type, x);
  }
  mlir::Value addInt(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, loc, x, y);
  }
  /// The polynomial with the coefficients of falling powers of `x`.
  mlir::Value polynomial(mlir::Value x, llvm::ArrayRef<float> coefficients) {
    mlir::Value value = constant(coefficients.front());
    for (float coefficient : coefficients.drop_front())
      value = fma(value, x, constant(coefficient));
    return value;
  }

  mlir::PatternRewriter &b;
  mlir::Location loc;
  mlir::Type type;
};

/// True if the op computes f32, on scalars or vectors.
inline bool isF32(mlir::Operation *op) {
  return mlir::getElementTypeOrSelf(op->getResult(0).getType()).isF32();
}

/// Replaces a math op of f32 by what a formula makes of its operands.
template <class OpTy, mlir::Value (*formula)(Formula &, mlir::ValueRange)>
struct ByFormula : mlir::OpRewritePattern<OpTy> {
  using mlir::OpRewritePattern<OpTy>::OpRewritePattern;
  llvm::LogicalResult
  matchAndRewrite(OpTy op, mlir::PatternRewriter &rewriter) const override {
    if (!isF32(op))
      return llvm::failure();
    Formula f(rewriter, op);
    rewriter.replaceOp(op, formula(f, op->getOperands()));
    return llvm::success();
  }
};

/// exp after Cephes.
void populateExpPattern(mlir::RewritePatternSet &patterns);

/// The formulas that all targets share: log, log1p and expm1 after Cephes, erf
/// and tanh as ratios of polynomials.
void populateFormulaPatterns(mlir::RewritePatternSet &patterns);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_FORMULA_H
