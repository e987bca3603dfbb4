//===- KernelFiles.h - Kernels of a GPU program as files --------*- C++ -*-===//
//
// What `launch` of generated code needs: PTX for each architecture, an
// assembler file that puts it into the executable, and the table of kernels.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_TARGET_CUDA_KERNELFILES_H
#define PIPEWRIGHT_CODEGEN_TARGET_CUDA_KERNELFILES_H

#include "codegen/kernels/nvptx/GpuKernels.h"

#include <map>

namespace pipewright::codegen {

/// The architectures that PTX is made for; newer GPUs run the newest of them.
llvm::ArrayRef<int> gpuArchitectures();

/// `kernels.h`, `kernels.cpp`, `kernels.S` and `kernels.sm_<N>.ptx`, by name.
/// `kernels` are the functions that `compiled` was made from; `tf32` says how
/// the products of the runtime may round.
std::map<std::string, std::string>
kernelFiles(mlir::ModuleOp kernels, const GpuKernels &compiled, bool tf32);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_TARGET_CUDA_KERNELFILES_H
