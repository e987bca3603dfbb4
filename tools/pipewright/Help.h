//===- Help.h - What --help prints ------------------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_HELP_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_HELP_H

#include "tools/pipewright/CommandWords.h"

#include "llvm/Support/raw_ostream.h"

namespace pipewright::tool {

/// Two columns of at most 100 characters together.
void printRow(llvm::raw_ostream &os, llvm::StringRef left,
              llvm::StringRef text);

/// The commands, and the plain case.
void printHelp(llvm::raw_ostream &os);

/// The options of a command under their headings, each with the value that
/// holds unless it is given. Those for experts are only counted, unless all are
/// asked for.
void printHelp(llvm::raw_ostream &os, const Command &command,
               llvm::ArrayRef<OptionSpelling> options, bool isAll);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_HELP_H
