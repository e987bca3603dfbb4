//===- ConstantFolding.h - Compute ops on constants -------------*- C++ -*-===//
//
// Evaluates pointwise ops and ops that move elements on constant operands, in
// the arithmetic that the compiled program uses (f32 in f32).
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_CLEAN_CONSTANTFOLDING_H
#define PIPEWRIGHT_PASSES_NN_CLEAN_CONSTANTFOLDING_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace pipewright::nn {

/// The op's only result, or null if the op is none that is known here, if it
/// is undefined for these operands, or if the result is neither a splat nor has
/// at most `maxElements` elements.
mlir::DenseElementsAttr
evaluateOnConstants(mlir::Operation *op,
                    llvm::ArrayRef<mlir::DenseElementsAttr> operands,
                    int64_t maxElements);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_PASSES_NN_CLEAN_CONSTANTFOLDING_H
