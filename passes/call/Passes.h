//===- Passes.h - what the libraries of targets like ------------*- C++ -*-===//
//
// Declarations of the passes in Passes.td. They give ops the forms that the
// libraries of a target compute fastest.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_CALL_PASSES_H
#define PIPEWRIGHT_PASSES_CALL_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace pipewright::call {

#define GEN_PASS_DECL
#include "passes/call/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/call/Passes.h.inc"

/// Whether call-fuse-epilogues with these options may put a GELU by tanh into
/// the product before it.
bool mayFuseGelu(llvm::StringRef epilogues, int64_t architecture);

} // namespace pipewright::call

#endif // PIPEWRIGHT_PASSES_CALL_PASSES_H
