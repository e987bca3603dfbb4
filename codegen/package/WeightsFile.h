//===- WeightsFile.h - Initial weights as safetensors -----------*- C++ -*-===//
//
// The format that the runtime loads and saves: a length, a JSON header, and
// the bytes of all tensors.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_PACKAGE_WEIGHTSFILE_H
#define PIPEWRIGHT_CODEGEN_PACKAGE_WEIGHTSFILE_H

#include "dialects/nn/WeightStore.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace pipewright::codegen {

/// Writes every `nn.weight` of the module. Fails, before anything is written,
/// on a weight without bytes or with another number of them than its type has.
llvm::Error writeWeights(mlir::ModuleOp module, const nn::WeightStore &weights,
                         llvm::raw_ostream &os);

/// Fails unless a file has every `nn.weight` of the module, in its type and
/// shape: a program of the module could not load it.
llvm::Error checkWeightsFit(mlir::ModuleOp module, llvm::StringRef path);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_PACKAGE_WEIGHTSFILE_H
