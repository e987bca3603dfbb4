//===- OptimizerKernels.h - kernels that update in place --------*- C++ -*-===//
//
// The kernels of update tasks. README.md of codegen/ has the calling
// convention.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_KERNELS_OPTIMIZERKERNELS_H
#define PIPEWRIGHT_PASSES_NN_KERNELS_OPTIMIZERKERNELS_H

#include "dialects/nn/NNOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace pipewright::nn {

/// Adds the kernel `<optimizer>_<shape>` that updates weights of a shape in
/// place and zeroes the gradient: (weights, gradient, states..., const hyper).
/// The kernel `<optimizer>_bf16_<shape>`, where it `rounds`, also writes the
/// new weights as bf16: (..., const hyper, rounded). `maySkip` is nn.update's
/// `may_skip`, the same for all kernels of a module. A kernel that is there
/// already is returned instead.
mlir::func::FuncOp buildUpdateKernel(mlir::ModuleOp kernels,
                                     OptimizerAttr optimizer,
                                     llvm::ArrayRef<int64_t> shape,
                                     bool rounds = false, bool maySkip = false);

/// The two kernels of a matrix that the optimizer takes as a whole. The first,
/// `<optimizer>_direction_<shape>` (m, const gradient, const hyper, direction),
/// updates the state and writes a matrix whose norm is 1, or 0 where there is
/// none. The second, `<optimizer>_finish_<shape>[_columns]` (weights, gradient,
/// const direction, const hyper[, rounded]), goes in that direction, as far as
/// the shape says, and zeroes the gradient.
mlir::func::FuncOp buildDirectionKernel(mlir::ModuleOp kernels,
                                        OptimizerAttr optimizer,
                                        WeightOp matrix, bool maySkip);
mlir::func::FuncOp buildFinishKernel(mlir::ModuleOp kernels,
                                     OptimizerAttr optimizer, WeightOp matrix,
                                     bool rounds, bool maySkip);

/// Adds the kernel `round_<size>`: (const weights, rounded), weights as bf16.
mlir::func::FuncOp buildRoundingKernel(mlir::ModuleOp kernels, int64_t size);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_PASSES_NN_KERNELS_OPTIMIZERKERNELS_H
