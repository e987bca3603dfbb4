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

/// What is wrong with an open file; success if nothing is.
static llvm::Error check(const struct stat &status, const InputRules &rules) {
  if (!S_ISREG(status.st_mode))
    return failure("expects a regular file, but got " +
                   llvm::Twine(kindOf(status.st_mode)));
  auto bytes = static_cast<uint64_t>(status.st_size);
  if (bytes > rules.maxBytes)
    return failure("expects at most " + llvm::Twine(rules.maxBytes) +
                   " bytes, but it has " + llvm::Twine(bytes));
  bool isOurs =
      status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH));
  if (rules.isOurs && !isOurs)
    return failure("expects a file that only this user can write to");
  return llvm::Error::success();
}

static llvm::Expected<FileBuffer> readOpenFile(int file, llvm::StringRef path,
                                               const InputRules &rules,
                                               bool isText) {
  struct stat status;
  if (fstat(file, &status) != 0)
    return cannotRead(errno);
  if (llvm::Error error = check(status, rules))
    return std::move(error);
  auto buffer = llvm::MemoryBuffer::getOpenFile(
      file, path, status.st_size, /*RequiresNullTerminator=*/isText,
      /*IsVolatile=*/isText);
  if (!buffer)
    return failure("cannot be read: " + buffer.getError().message());
  return std::move(*buffer);
}

static llvm::Expected<FileBuffer> read(llvm::StringRef path,
                                       const InputRules &rules, bool isText) {
  if (path.contains('\0'))
    return failure("expects a name without a zero byte");
  int file =
      open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
                                   (rules.followsLinks ? 0 : O_NOFOLLOW));
  if (file < 0)
    return cannotRead(errno);
  llvm::Expected<FileBuffer> buffer = readOpenFile(file, path, rules, isText);
  close(file);
  return buffer;
}

llvm::Expected<FileBuffer> readRegularFile(llvm::StringRef path,
                                           const InputRules &rules) {
  return read(path, rules, /*isText=*/false);
}

llvm::Expected<FileBuffer> readTextFile(llvm::StringRef path,
                                        bool followsLinks) {
  return read(path, {kMaxTextBytes, followsLinks}, /*isText=*/true);
}

} // namespace pipewright
