//===- Passes.h - Passes of host code generation ----------------*- C++ -*-===//
//
// Declaration and registration of the pass in Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_PASSES_H
#define PIPEWRIGHT_CODEGEN_HOST_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace pipewright::codegen {

#define GEN_PASS_DECL
#include "codegen/host/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "codegen/host/Passes.h.inc"

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_PASSES_H
