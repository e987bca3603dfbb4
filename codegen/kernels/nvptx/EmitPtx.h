//===- EmitPtx.h - LLVM dialect to PTX --------------------------*- C++ -*-===//
//
// The last step of compiling kernels for GPUs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_NVPTX_EMITPTX_H
#define PIPEWRIGHT_CODEGEN_KERNELS_NVPTX_EMITPTX_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace pipewright::codegen {

/// The PTX of all gpu.modules in `module`, which are in the LLVM dialect; 80 is
/// sm_80. Reports a diagnostic on failure.
mlir::FailureOr<std::string> emitPtx(mlir::ModuleOp module, int architecture);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_NVPTX_EMITPTX_H
