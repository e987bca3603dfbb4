//===- Passes.h - passes over nn ops ----------------------------*- C++ -*-===//
//
// Declarations of the passes in Passes.td and of the functions that other
// passes call directly.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_PASSES_H
#define PIPEWRIGHT_PASSES_NN_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace pipewright::nn {

#define GEN_PASS_DECL
#include "passes/nn/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/nn/Passes.h.inc"

} // namespace pipewright::nn

#endif // PIPEWRIGHT_PASSES_NN_PASSES_H
