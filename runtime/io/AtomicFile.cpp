//===- AtomicFile.cpp - All of a file, or nothing -------------------------===//

#include "runtime/io/AtomicFile.h"
#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace pipewright::runtime;

/// A device or a pipe: renaming a file over it would destroy it.
static bool isSpecial(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) &&
         !S_ISDIR(status.st_mode);
}

AtomicFile::AtomicFile(std::string path)
    : target(std::move(path)), inPlace(isSpecial(target)),
      temporary(inPlace ? target : target + ".tmp" + std::to_string(getpid())) {
  descriptor =
      open(temporary.c_str(),
           O_WRONLY | O_CLOEXEC | (inPlace ? 0 : O_CREAT | O_TRUNC), 0666);
  if (descriptor < 0)
    fail("cannot write '", target, "': ", strerror(errno));
}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  close(descriptor);
  if (!inPlace)
    unlink(temporary.c_str());
}

void AtomicFile::failNow(const char *what) {
  fail(what, " '", target, "': ", strerror(errno));
}

void AtomicFile::write(const void *data, size_t bytes) {
  const char *at = static_cast<const char *>(data);
  while (bytes) {
    const ssize_t written = ::write(descriptor, at, bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      failNow("cannot write");
    at += written;
    bytes -= written;
  }
}

void AtomicFile::commit() {
  // Some file systems tell of a full disk only here.
  if (fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS)
    failNow("cannot write");
  if (close(std::exchange(descriptor, -1)) != 0 ||
      (!inPlace && rename(temporary.c_str(), target.c_str()) != 0)) {
    const int reason = errno;
    if (!inPlace)
      unlink(temporary.c_str());
    errno = reason;
    failNow("cannot write");
  }
}
