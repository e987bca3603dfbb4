//===- Package.h - The folder that a compilation writes ---------*- C++ -*-===//
//
// The last step of `pipewright compile`: from an allocated module to a folder
// with sources, kernels, weights, plan and the executable.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PACKAGE_PACKAGE_H
#define PIPEWRIGHT_CODEGEN_PACKAGE_PACKAGE_H

#include "codegen/package/OutputFolder.h"
#include "codegen/plan/Plan.h"
#include "dialects/nn/WeightStore.h"

#include "mlir/IR/BuiltinOps.h"

namespace pipewright::codegen {

/// Writes all files of the folder, builds its executable if `build`, and lets
/// it take its place; an error is reported through the module's context.
mlir::LogicalResult writePackage(mlir::ModuleOp allocated,
                                 const nn::WeightStore &weights,
                                 const Plan &plan, OutputFolder &folder,
                                 bool build);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PACKAGE_PACKAGE_H
