//===- InputFile.cpp - Files that a model is read from --------------------===//
//
// What a file is, is asked of the open file, not of its path. Opening does not
// wait: a pipe without a writer would let us wait for ever.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/InputFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pipewright::frontend {

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

static llvm::Expected<FileBuffer> readOpenFile(int file,
                                               const std::string &path) {
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

llvm::Expected<FileBuffer> readRegularFile(const std::string &path) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return cannotRead(errno);
  llvm::Expected<FileBuffer> buffer = readOpenFile(file, path);
  close(file);
  return buffer;
}

llvm::Expected<std::string> findBeneath(const std::string &folder,
                                        llvm::StringRef location) {
  namespace path = llvm::sys::path;
  auto leaves = [&](const char *how) {
    return failure(llvm::Twine("leads out of the model's folder") + how);
  };
  bool isOutside = path::is_absolute(location) || location.contains('\\') ||
                   location.contains('\0') ||
                   llvm::is_contained(llvm::make_range(path::begin(location),
                                                       path::end(location)),
                                      llvm::StringRef(".."));
  if (isOutside)
    return leaves("");
  llvm::SmallString<128> full(folder), realFolder, real;
  path::append(full, location);
  std::error_code error = llvm::sys::fs::real_path(
      folder.empty() ? llvm::StringRef(".") : llvm::StringRef(folder),
      realFolder);
  if (!error)
    error = llvm::sys::fs::real_path(full, real);
  if (error)
    return failure("cannot be read: " + error.message());
  llvm::StringRef rest(real);
  bool isInside = rest.consume_front(realFolder) &&
                  (rest.starts_with("/") || llvm::StringRef(realFolder) == "/");
  if (!isInside)
    return leaves(" through a link; copy the file into the folder");
  return real.str().str();
}

} // namespace pipewright::frontend
