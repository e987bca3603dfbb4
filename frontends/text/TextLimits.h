//===- TextLimits.h - What MLIR's parser may be given -----------*- C++ -*-===//
//
// MLIR's parser is made for compilers' own text: it calls itself for each
// bracket and each operator of an affine expression, and what an alias of
// aliases stands for may be larger than any memory.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_TEXT_TEXTLIMITS_H
#define PIPEWRIGHT_FRONTENDS_TEXT_TEXTLIMITS_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace pipewright::frontend {

/// Why text of the import level is not given to MLIR's parser; empty if it may
/// be. Takes time linear in the text, and no more stack for deep text.
std::string problemOfText(llvm::StringRef text);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_TEXT_TEXTLIMITS_H
