//===- RowIndex.h - positions in tensors, kept factored ---------*- C++ -*-===//
//
// A fused kernel walks rows and columns, while its tensors have any rank. An
// Index remembers that it is one digit of a larger number, so that a load of
// all digits needs no division: the digits are put together again.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_PLAN_ROWINDEX_H
#define PIPEWRIGHT_CODEGEN_KERNELS_PLAN_ROWINDEX_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace pipewright::codegen {

/// A position along one dimension. Expressions are over d0 = row, d1 = column
/// and symbols for numbers that are only known at run time.
struct Index {
  mlir::AffineExpr whole;
  /// Empty: `whole` is the position. Otherwise the position is digit `part` of
  /// `whole` in the mixed radix `sizes` (all greater than one).
  llvm::SmallVector<int64_t, 4> sizes;
  unsigned part = 0;

  /// The position as an expression, with divisions where it is a digit.
  mlir::AffineExpr expr() const;
};

/// The digits of `whole` in the radix `shape`.
llvm::SmallVector<Index> split(mlir::AffineExpr whole,
                               llvm::ArrayRef<int64_t> shape);

/// The row-major offset of `indices` in a tensor of `shape`.
mlir::AffineExpr linearize(llvm::ArrayRef<Index> indices,
                           llvm::ArrayRef<int64_t> shape,
                           mlir::MLIRContext *context);

/// The indices into shape `to` of the element that has `indices` in `from`;
/// both shapes hold the same number of elements.
llvm::SmallVector<Index> reshape(llvm::ArrayRef<Index> indices,
                                 llvm::ArrayRef<int64_t> from,
                                 llvm::ArrayRef<int64_t> to,
                                 mlir::MLIRContext *context);

/// True if `expr` divides something that depends on the column.
bool dividesColumn(mlir::AffineExpr expr);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_PLAN_ROWINDEX_H
