//===- LinalgBuilder.h - short ways to write linalg.generic -----*- C++ -*-===//
//
// What the lowerings of nn ops share: scalar arithmetic that keeps infinities,
// NaNs and every bit, and generics with one result.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_LINALG_LINALGBUILDER_H
#define PIPEWRIGHT_CODEGEN_KERNELS_LINALG_LINALGBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace pipewright::nn {

/// Scalar f32 arithmetic inside a generic; bf16 operands are widened first, and
/// what is stored as bf16 is rounded once, at the end. No flag lets a result
/// depend on what an op is fused with: recomputed values must be the same bits.
/// Only a maximum does not care for the sign of zero, which makes it cheap.
/// Sums, products and such are integers where their operands are.
class Scalars {
public:
  Scalars(mlir::OpBuilder &builder, mlir::Location loc)
      : b(builder), loc(loc) {}

  template <class OpTy, class... Arguments>
  mlir::Value make(Arguments &&...arguments) {
    return OpTy::create(b, loc, std::forward<Arguments>(arguments)...);
  }

  mlir::Value constant(double value) {
    return make<mlir::arith::ConstantOp>(b.getF32FloatAttr(value));
  }
  mlir::Value integer(int64_t value) {
    return make<mlir::arith::ConstantOp>(b.getI64IntegerAttr(value));
  }
  mlir::Value zero(mlir::Type type) {
    return make<mlir::arith::ConstantOp>(b.getZeroAttr(type));
  }
  mlir::Value index(int64_t value) {
    return make<mlir::arith::ConstantIndexOp>(value);
  }
  /// Where one of the generic's loops is.
  mlir::Value loopIndex(unsigned loop) {
    return make<mlir::linalg::IndexOp>(loop);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return either<mlir::arith::AddFOp, mlir::arith::AddIOp>(x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return either<mlir::arith::SubFOp, mlir::arith::SubIOp>(x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return either<mlir::arith::MulFOp, mlir::arith::MulIOp>(x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return either<mlir::arith::DivFOp, mlir::arith::DivSIOp>(x, y);
  }
  mlir::Value min(mlir::Value x, mlir::Value y) {
    return either<mlir::arith::MinimumFOp, mlir::arith::MinSIOp>(x, y);
  }
  mlir::Value max(mlir::Value x, mlir::Value y);
  mlir::Value neg(mlir::Value x);
  mlir::Value abs(mlir::Value x) {
    return either<mlir::math::AbsFOp, mlir::math::AbsIOp>(x);
  }
  mlir::Value exp(mlir::Value x) { return make<mlir::math::ExpOp>(x); }
  /// Of what is at most 0, as an addend of numbers of which one is 1: what the
  /// exponent's rounding makes of it is less than 3e-8 of the largest.
  mlir::Value expOfNonpositive(mlir::Value x) {
    return make<mlir::math::ExpOp>(x, mlir::arith::FastMathFlags::afn);
  }
  mlir::Value log(mlir::Value x) { return make<mlir::math::LogOp>(x); }
  mlir::Value log1p(mlir::Value x) { return make<mlir::math::Log1pOp>(x); }
  mlir::Value erf(mlir::Value x) { return make<mlir::math::ErfOp>(x); }
  mlir::Value tanh(mlir::Value x) { return make<mlir::math::TanhOp>(x); }
  mlir::Value sqrt(mlir::Value x) { return make<mlir::math::SqrtOp>(x); }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return make<mlir::arith::SelectOp>(condition, x, y);
  }
  /// `x` as f32 if it is bf16, else itself.
  mlir::Value widen(mlir::Value x);

  static bool isFloat(mlir::Value x) {
    return mlir::isa<mlir::FloatType>(x.getType());
  }

  mlir::OpBuilder &b;
  mlir::Location loc;

private:
  template <class OfFloats, class OfIntegers, class... Others>
  mlir::Value either(mlir::Value x, Others... others) {
    return isFloat(x) ? make<OfFloats>(x, others...)
                      : make<OfIntegers>(x, others...);
  }
};

/// The body of a generic that moves, or sums, its first input.
inline mlir::Value identity(Scalars &, mlir::ValueRange inputs) {
  return inputs[0];
}

enum class Reduction { Sum, Max };

class LinalgBuilder {
public:
  struct Input {
    mlir::Value tensor;
    /// Maps the loops to the tensor's dimensions.
    mlir::AffineMap map;
  };
  using Body = llvm::function_ref<mlir::Value(Scalars &, mlir::ValueRange)>;

  LinalgBuilder(mlir::OpBuilder &builder, mlir::Location loc)
      : b(builder), loc(loc) {}

  /// One value per element of `shape`. The body gets bf16 elements as f32 and
  /// may return f32 for bf16.
  mlir::Value pointwise(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                        llvm::ArrayRef<Input> inputs, Body body);
  mlir::Value pointwise(mlir::RankedTensorType type,
                        llvm::ArrayRef<Input> inputs, Body body) {
    return pointwise(type.getShape(), type.getElementType(), inputs, body);
  }

  /// Reduces the f32 values of `body` over the loops `axes` of `domain`, in
  /// f32. The reduced dimensions vanish.
  mlir::Value reduce(Reduction kind, llvm::ArrayRef<int64_t> domain,
                     llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<Input> inputs,
                     Body body);

  /// The tensor as it broadcasts to loops over `shape`, as in NumPy.
  Input broadcast(mlir::Value tensor, llvm::ArrayRef<int64_t> shape);
  /// The tensor at its own loops.
  Input same(mlir::Value tensor);
  /// A tensor over the given loops of `rank` loops.
  Input at(mlir::Value tensor, unsigned rank, llvm::ArrayRef<unsigned> loops);
  /// A tensor over all of `rank` loops but the last.
  Input rows(mlir::Value tensor, unsigned rank);
  /// Element `position` of a one-dimensional tensor.
  Input element(mlir::Value tensor, unsigned rank, int64_t position);

  /// Sees a tensor under another shape by collapsing and expanding.
  mlir::Value reshape(mlir::Value tensor, llvm::ArrayRef<int64_t> shape);

  mlir::OpBuilder &b;
  mlir::Location loc;
};

/// Lowerings by family; each returns the values that replace the op's results,
/// or failure when the op is not of the family.
using Lowered = mlir::FailureOr<llvm::SmallVector<mlir::Value>>;
Lowered lowerElementwise(mlir::Operation *op, LinalgBuilder &builder);
Lowered lowerShape(mlir::Operation *op, LinalgBuilder &builder);
Lowered lowerNormalization(mlir::Operation *op, LinalgBuilder &builder);
Lowered lowerLoss(mlir::Operation *op, LinalgBuilder &builder);
Lowered lowerOptimizer(mlir::Operation *op, LinalgBuilder &builder);

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

} // namespace pipewright::nn

#endif // PIPEWRIGHT_CODEGEN_KERNELS_LINALG_LINALGBUILDER_H
