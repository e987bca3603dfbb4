//===- Passes.h - Passes of host code generation ----------------*- C++ -*-===//
//
// Declarations and registration of the passes in Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_PASSES_H
#define PIPEWRIGHT_CODEGEN_HOST_PASSES_H

#include "dialects/nn/NNDialect.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace pipewright::codegen {

#define GEN_PASS_DECL
#include "codegen/host/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "codegen/host/Passes.h.inc"

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_PASSES_H
