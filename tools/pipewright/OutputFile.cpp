//===- OutputFile.cpp - Files that commands write -------------------------===//
//
// See OutputFile.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/OutputFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace pipewright;

static llvm::Error failToWrite(llvm::StringRef path, std::error_code error) {
  return llvm::createStringError("cannot write '" + path +
                                 "': " + error.message());
}

llvm::Error tool::checkOutput(llvm::StringRef path) {
  namespace fs = llvm::sys::fs;
  if (path.empty() || path == "-")
    return llvm::Error::success();
  if (fs::is_directory(path))
    return failToWrite(path, std::make_error_code(std::errc::is_a_directory));
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (folder.empty())
    folder = ".";
  if (std::error_code error =
          fs::access(fs::exists(path) ? path : folder, fs::AccessMode::Write))
    return failToWrite(path, error);
  return llvm::Error::success();
}

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
    return failToWrite(path, error);
  file.keep();
  return llvm::Error::success();
}
