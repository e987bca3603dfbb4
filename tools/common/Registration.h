//===- Registration.h - Dialects and passes by name -------------*- C++ -*-===//
//
// What all tools know that read IR or names of passes: the dialects that the
// compiler uses and no others, so that a pass which forgets to declare one is
// found out.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_COMMON_REGISTRATION_H
#define PIPEWRIGHT_TOOLS_COMMON_REGISTRATION_H

#include "mlir/IR/DialectRegistry.h"

namespace pipewright::tool {

/// The dialects that some level of the compiler is made of.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Our passes and pipelines, and the upstream ones that tests lean on. A second
/// call does nothing.
void registerAllPasses();

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_COMMON_REGISTRATION_H
