//===- InputFile.cpp - Files that others have written ---------------------===//
//
// What a file is, is asked of the open file, not of its path. Opening does not
// wait: a pipe without a writer would let us wait for ever.
//
//===----------------------------------------------------------------------===//

#include "support/InputFile.h"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace pipewright {

static llvm::Error failure(const llvm::Twine &message) {
  return llvm::createStringError(message.str());
}

static llvm::Error cannotRead(int number) {
  return failure("cannot be read: " +
                 std::error_code(number, std::generic_category()).message());
}

static const char *kindOf(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

static llvm::Expected<FileBuffer> readOpenFile(int file, llvm::StringRef path) {
  struct stat status;
  if (fstat(file, &status) != 0)
    return cannotRead(errno);
  if (!S_ISREG(status.st_mode))
    return failure("expects a regular file, but got " +
                   llvm::Twine(kindOf(status.st_mode)));
  auto buffer = llvm::MemoryBuffer::getOpenFile(
      file, path, status.st_size, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return failure("cannot be read: " + buffer.getError().message());
  return std::move(*buffer);
}

llvm::Expected<FileBuffer> readRegularFile(llvm::StringRef path) {
  int file = open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return cannotRead(errno);
  llvm::Expected<FileBuffer> buffer = readOpenFile(file, path);
  close(file);
  return buffer;
}

} // namespace pipewright
