//===- NNInterfaces.h - Interfaces of nn ops --------------------*- C++ -*-===//
//
// What passes may ask of an nn op without knowing which op it is.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNINTERFACES_H
#define PIPEWRIGHT_DIALECTS_NN_NNINTERFACES_H

#include "dialects/nn/NNLibraryCall.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/LogicalResult.h"

#include "dialects/nn/NNInterfaces.h.inc"

#endif // PIPEWRIGHT_DIALECTS_NN_NNINTERFACES_H
