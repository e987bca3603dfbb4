//===- OptimizerKernels.h - kernels that update in place --------*- C++ -*-===//
//
// The kernels of update tasks. README.md of codegen/ has the calling
// convention.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_KERNELS_OPTIMIZERKERNELS_H
#define PIPEWRIGHT_PASSES_NN_KERNELS_OPTIMIZERKERNELS_H

#include "dialects/nn/NNDialect.h"

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

/// Adds the kernel `round_<size>`: (const weights, rounded), weights as bf16.
mlir::func::FuncOp buildRoundingKernel(mlir::ModuleOp kernels, int64_t size);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_PASSES_NN_KERNELS_OPTIMIZERKERNELS_H
