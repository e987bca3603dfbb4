//===- InputFile.h - Files that others have written ------------*- C++ -*-===//
//
// What we are given to read may be anything. Only regular files are read: a
// pipe or a device may never end.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_SUPPORT_INPUTFILE_H
#define PIPEWRIGHT_SUPPORT_INPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace pipewright {

using FileBuffer = std::unique_ptr<llvm::MemoryBuffer>;

/// A whole regular file; errors go on after the name of the file.
llvm::Expected<FileBuffer> readRegularFile(llvm::StringRef path);

} // namespace pipewright

#endif // PIPEWRIGHT_SUPPORT_INPUTFILE_H
