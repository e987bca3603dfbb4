//===- OutputFile.h - Files that commands write -----------------*- C++ -*-===//
//
// A file is there only if all of it could be written.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_OUTPUTFILE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_OUTPUTFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace pipewright::tool {

/// Fails as `writeOutput` would: before something that takes long.
llvm::Error checkOutput(llvm::StringRef path);

/// Writes to a file, or to the standard output where `path` is empty; the error
/// names the file.
llvm::Error writeOutput(llvm::StringRef path,
                        llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_OUTPUTFILE_H
