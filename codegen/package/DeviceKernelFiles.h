//===- DeviceKernelFiles.h - Kernels of a GPU program as files --*- C++ -*-===//
//
// What `launch` of generated code needs: PTX for each architecture, an
// assembler file that puts it into the executable, and the table of kernels.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PACKAGE_DEVICEKERNELFILES_H
#define PIPEWRIGHT_CODEGEN_PACKAGE_DEVICEKERNELFILES_H

#include "codegen/kernels/nvptx/GpuKernels.h"
#include "passes/planning/CostModel.h"

#include <map>

namespace pipewright::codegen {

/// The architectures that PTX is made for; newer GPUs run the newest of them.
llvm::ArrayRef<int> gpuArchitectures();

/// `kernels.h`, `kernels.cpp`, `kernels.S` and `kernels.sm_<N>.ptx`, by name.
/// `kernels` are the functions that `compiled` was made from.
std::map<std::string, std::string> deviceKernelFiles(mlir::ModuleOp kernels,
                                                     const GpuKernels &compiled,
                                                     Precision precision);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PACKAGE_DEVICEKERNELFILES_H
