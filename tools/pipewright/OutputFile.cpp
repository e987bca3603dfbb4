//===- OutputFile.cpp - Files that commands write -------------------------===//
//
// See OutputFile.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/OutputFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace pipewright;

llvm::Error
tool::writeOutput(llvm::StringRef path,
                  llvm::function_ref<void(llvm::raw_ostream &)> write) {
  std::error_code error;
  llvm::ToolOutputFile file(path.empty() ? "-" : path, error,
                            llvm::sys::fs::OF_None);
  if (!error) {
    write(file.os());
    file.os().flush();
    error = file.os().error();
    file.os().clear_error();
  }
  if (error)
    return llvm::createStringError("cannot write '" + path +
                                   "': " + error.message());
  file.keep();
  return llvm::Error::success();
}
