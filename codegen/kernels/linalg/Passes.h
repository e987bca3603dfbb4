//===- Passes.h - conversions out of the nn dialect -------------*- C++ -*-===//
//
// Declarations of the passes in Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_LINALG_PASSES_H
#define PIPEWRIGHT_CODEGEN_KERNELS_LINALG_PASSES_H

#include "mlir/Pass/Pass.h"

namespace pipewright::nn {

#define GEN_PASS_DECL
#include "codegen/kernels/linalg/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "codegen/kernels/linalg/Passes.h.inc"

} // namespace pipewright::nn

#endif // PIPEWRIGHT_CODEGEN_KERNELS_LINALG_PASSES_H
