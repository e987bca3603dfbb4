//===- Message.h - What the compiler tells on the terminal ------*- C++ -*-===//
//
// Messages have names of files, tensors and nodes in them that somebody else
// chose. No other place prints errors and warnings.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_SUPPORT_MESSAGE_H
#define PIPEWRIGHT_SUPPORT_MESSAGE_H

#include "llvm/ADT/Twine.h"

#include <string>

namespace pipewright {

/// The text as a terminal may get it: printable, of bounded length, and one
/// line but for lines that begin with two blanks, as those of a tool's log do.
std::string messageText(llvm::StringRef text);

/// Prints "KIND: TEXT" to the standard error stream. The kind is "error",
/// "warning" or "remark".
void printMessage(llvm::StringRef kind, const llvm::Twine &text);

/// Replaces the line that was shown last, which an empty text erases; where the
/// standard error stream is a terminal.
void showProgress(const llvm::Twine &text);

} // namespace pipewright

#endif // PIPEWRIGHT_SUPPORT_MESSAGE_H
