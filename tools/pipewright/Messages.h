//===- Messages.h - How errors reach the terminal ---------------*- C++ -*-===//
//
// One line for each, in the same form whether it comes from an option or from
// MLIR's diagnostics.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_MESSAGES_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_MESSAGES_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace pipewright::tool {

/// Prints a diagnostic with the node or the place in text that it is at. Notes
/// are left out.
void printDiagnostic(mlir::Diagnostic &diagnostic);

/// Prints an error; returns the exit code.
int fail(const llvm::Twine &message);
/// The same; an error without words has been printed already
/// (`codegen::diagnosed`).
int fail(llvm::Error error);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_MESSAGES_H
