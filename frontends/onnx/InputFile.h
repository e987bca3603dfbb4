//===- InputFile.h - Files that a model is read from -----------*- C++ -*-===//
//
// A model may come from anywhere, and with it the names of the files that it
// wants read. Only regular files are: a pipe or a device never ends.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_INPUTFILE_H
#define PIPEWRIGHT_FRONTENDS_ONNX_INPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace pipewright::frontend {

using FileBuffer = std::unique_ptr<llvm::MemoryBuffer>;

/// A whole regular file; errors go on after the name of the file.
llvm::Expected<FileBuffer> readRegularFile(const std::string &path);

/// Where `location`, a relative path from a model, really is. Fails where it,
/// or a link on its way, leads out of the folder.
llvm::Expected<std::string> findBeneath(const std::string &folder,
                                        llvm::StringRef location);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_INPUTFILE_H
