//===- KernelSignature.h - a kernel over flat buffers -----------*- C++ -*-===//
//
// What both targets make of a kernel function over tensors: flat memrefs, first
// the inputs, then the results that do not overwrite an input.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_KERNELSIGNATURE_H
#define PIPEWRIGHT_CODEGEN_KERNELS_KERNELSIGNATURE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace pipewright::codegen {

struct KernelSignature {
  explicit KernelSignature(mlir::func::FuncOp kernel);

  llvm::SmallVector<mlir::Type> parameters;
  /// The parameter that each result is written to.
  llvm::SmallVector<unsigned> resultParameters;

  bool isWritten(unsigned parameter) const {
    return llvm::is_contained(resultParameters, parameter);
  }
};

/// The kernels of a module: functions from tensors to tensors. Emits an error
/// when one of them cannot be fused.
mlir::FailureOr<llvm::SmallVector<mlir::func::FuncOp>>
findKernels(mlir::Operation *module);

/// Puts the constants of `kernel` that are no splats into globals of `symbols`
/// and their buffers, got by `builder`, into `buffers`. Globals that are there
/// already are used again.
void createConstantBuffers(mlir::func::FuncOp kernel, mlir::Operation *symbols,
                           mlir::OpBuilder &builder,
                           llvm::DenseMap<mlir::Value, mlir::Value> &buffers);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_KERNELSIGNATURE_H
