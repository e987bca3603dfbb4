//===- Passes.h - lowering kernels to LLVM ----------------------*- C++ -*-===//
//
// The passes in Passes.td and the pipeline that they are part of.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_PASSES_H
#define PIPEWRIGHT_CODEGEN_KERNELS_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace pipewright::codegen {

#define GEN_PASS_DECL
#include "codegen/kernels/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "codegen/kernels/Passes.h.inc"

/// Lowers kernel functions of nn ops to the LLVM dialect. Runs on the module
/// that holds the functions.
void buildKernelLoweringPipeline(mlir::OpPassManager &pm);

/// The same for a GPU, whose kernels end in gpu.modules in the LLVM dialect.
void buildGpuKernelLoweringPipeline(mlir::OpPassManager &pm,
                                    bool widePositions = false);

/// Registers the pipelines as `pipewright-kernel-pipeline` and
/// `pipewright-gpu-kernel-pipeline`.
void registerKernelPipelines();

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_PASSES_H
