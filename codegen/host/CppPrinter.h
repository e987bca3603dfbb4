//===- CppPrinter.h - Generated functions as text ---------------*- C++ -*-===//
//
// Lines of 80 columns, broken after commas, and comments behind statements in
// one column.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_HOST_CPPPRINTER_H
#define PIPEWRIGHT_CODEGEN_HOST_CPPPRINTER_H

#include "codegen/host/Statements.h"

#include "llvm/Support/raw_ostream.h"

namespace pipewright::codegen {

/// Prints a line that is a comment.
void printComment(llvm::raw_ostream &os, llvm::StringRef text);

/// Prints the definition of a function, behind a blank line and a comment.
void printFunction(llvm::raw_ostream &os, llvm::StringRef comment,
                   const Function &function);

/// Prints the declaration of a function; of the body nothing is read.
void printDeclaration(llvm::raw_ostream &os, const Function &function);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_HOST_CPPPRINTER_H
