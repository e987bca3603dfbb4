//===- Passes.h - passes over pipe ops --------------------------*- C++ -*-===//
//
// Declarations of the passes in Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_PASSES_H
#define PIPEWRIGHT_PASSES_PIPE_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <string>

namespace pipewright::pipe {

#define GEN_PASS_DECL
#include "passes/pipe/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/pipe/Passes.h.inc"

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_PASSES_H
