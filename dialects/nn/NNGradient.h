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
/// Arithmetic is f32, also on bf16 values: a gradient that takes several ops
/// is not rounded between them.
class GradientBuilder {
public:
  GradientBuilder(mlir::OpBuilder &builder, mlir::Location location)
      : b(location, builder) {}

  mlir::ImplicitLocOpBuilder &builder() { return b; }

  mlir::Value neg(mlir::Value x) { return NegOp::create(b, widen(x)); }
  mlir::Value exp(mlir::Value x) { return ExpOp::create(b, widen(x)); }
  mlir::Value log(mlir::Value x) { return LogOp::create(b, widen(x)); }
  mlir::Value add(mlir::Value x, mlir::Value y) { return binary<AddOp>(x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return binary<SubOp>(x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return binary<MulOp>(x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y) { return binary<DivOp>(x, y); }
  mlir::Value pow(mlir::Value x, mlir::Value y) { return binary<PowOp>(x, y); }
  mlir::Value compare(mlir::Value x, mlir::Value y,
                      ComparePredicate predicate) {
    mlir::Value wideX = widen(x), wideY = widen(y);
    return CompareOp::create(b, wideX, wideY, predicate);
  }
  mlir::Value where(mlir::Value cond, mlir::Value x, mlir::Value y) {
    mlir::Value wideX = widen(x), wideY = widen(y);
    return WhereOp::create(b, cond, wideX, wideY);
  }
  /// A rank-0 constant; broadcasts.
  mlir::Value scalar(double value) {
    return createScalar(b, b.getLoc(), value);
  }

  /// `x` as f32; `x` itself where it is that.
  mlir::Value widen(mlir::Value x);

  /// `x` in the element type of `like`.
  mlir::Value toElementTypeOf(mlir::Value like, mlir::Value x);

  /// `x` under another shape; `x` itself where that is its shape.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);

  /// Swaps the last two dimensions.
  mlir::Value transposeLast(mlir::Value x);

  /// Sums a gradient over the dimensions along which `type` was stretched; a
  /// sum is f32.
  mlir::Value unbroadcast(mlir::Value grad, mlir::RankedTensorType type);

  /// Gradients in the shape of the result of an op whose operands are
  /// broadcast, each summed to the shape of its operand.
  Gradients sumToOperands(mlir::Operation *op, Gradients grads);

  /// Puts the dimensions that a reduction took away back as 1.
  mlir::Value keepDims(mlir::Value reduced, mlir::RankedTensorType type,
                       llvm::ArrayRef<int64_t> axes);

private:
  template <typename OpTy>
  mlir::Value binary(mlir::Value x, mlir::Value y) {
    mlir::Value wideX = widen(x), wideY = widen(y);
    return OpTy::create(b, wideX, wideY);
  }

  mlir::ImplicitLocOpBuilder b;
};

/// Whether a value is the bf16 copy of a weight, perhaps transposed or
/// reshaped. Its gradient is f32: it goes to an f32 sum and is not rounded on
/// the way.
bool isWorkingCopy(mlir::Value value);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_DIALECTS_NN_NNGRADIENT_H
