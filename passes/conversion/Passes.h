//===- Passes.h - conversions out of the nn dialect -------------*- C++ -*-===//
//
// Declarations of the passes in Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_CONVERSION_PASSES_H
#define PIPEWRIGHT_PASSES_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace pipewright::nn {

#define GEN_PASS_DECL
#include "passes/conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/conversion/Passes.h.inc"

} // namespace pipewright::nn

#endif // PIPEWRIGHT_PASSES_CONVERSION_PASSES_H
