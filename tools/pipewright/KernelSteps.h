//===- KernelSteps.h - Kernels on their way to code -------------*- C++ -*-===//
//
// What the generation of kernels works on, step by step, for people.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_KERNELSTEPS_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_KERNELSTEPS_H

#include "tools/pipewright/Compilation.h"

namespace pipewright::tool {

/// A copy of the kernels of an allocated module; of none where it has none.
mlir::OwningOpRef<mlir::ModuleOp> kernelsOf(mlir::ModuleOp module);

/// Brings them to the step that `options.emission` names: as they are, as
/// linalg on tensors, or in the LLVM dialect.
mlir::LogicalResult lowerKernels(Compilation &compilation,
                                 mlir::ModuleOp kernels,
                                 const CompileOptions &options);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_KERNELSTEPS_H
