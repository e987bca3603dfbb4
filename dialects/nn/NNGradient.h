//===- NNGradient.h - What VJPs are built from ------------------*- C++ -*-===//
//
// Short names for the ops that gradients are made of, and the ways back from
// broadcasting and reduction.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNGRADIENT_H
#define PIPEWRIGHT_DIALECTS_NN_NNGRADIENT_H

#include "dialects/nn/NNOps.h"
#include "mlir/IR/Builders.h"

namespace pipewright::nn {

/// Builds gradients at one location; every function appends one op or a few.
class GradientBuilder {
public:
  GradientBuilder(mlir::OpBuilder &builder, mlir::Location location)
      : b(location, builder) {}

  mlir::ImplicitLocOpBuilder &builder() { return b; }

  mlir::Value neg(mlir::Value x) { return NegOp::create(b, x); }
  mlir::Value exp(mlir::Value x) { return ExpOp::create(b, x); }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return AddOp::create(b, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return SubOp::create(b, x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return MulOp::create(b, x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return DivOp::create(b, x, y);
  }
  mlir::Value pow(mlir::Value x, mlir::Value y) {
    return PowOp::create(b, x, y);
  }
  mlir::Value compare(mlir::Value x, mlir::Value y,
                      ComparePredicate predicate) {
    return CompareOp::create(b, x, y, predicate);
  }
  mlir::Value where(mlir::Value cond, mlir::Value x, mlir::Value y) {
    return WhereOp::create(b, cond, x, y);
  }
  /// A rank-0 constant; broadcasts.
  mlir::Value scalar(double value) {
    return createScalar(b, b.getLoc(), value);
  }

  /// `x` under another shape; `x` itself where that is its shape.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);

  /// Swaps the last two dimensions.
  mlir::Value transposeLast(mlir::Value x);

  /// Sums a gradient over the dimensions along which `type` was stretched.
  mlir::Value unbroadcast(mlir::Value grad, mlir::RankedTensorType type);

  /// Puts the dimensions that a reduction took away back as 1.
  mlir::Value keepDims(mlir::Value reduced, mlir::RankedTensorType type,
                       llvm::ArrayRef<int64_t> axes);

private:
  mlir::ImplicitLocOpBuilder b;
};

/// Clears `operandGrads` to one null per operand, and says whether a gradient
/// flows into the first result. Results after the first are by-products
/// (statistics, window positions): a gradient of one of them is an error.
mlir::FailureOr<bool>
beginVjp(mlir::Operation *op, mlir::ValueRange resultGrads,
         llvm::SmallVectorImpl<mlir::Value> &operandGrads);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNGRADIENT_H
