//===- DataFile.cpp - A file that is read in pieces -----------------------===//

#include "runtime/io/DataFile.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace pipewright::runtime;

/// Reads of this size or more gain nothing from reading ahead.
static constexpr int64_t windowBytes = 64 << 10;

DataFile::DataFile(const std::string &path) : name(path) {
  // Never waits for somebody to write into a pipe.
  descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    fail("cannot read '", path, "': ", strerror(errno));
  struct stat status;
  const bool isKnown = fstat(descriptor, &status) == 0;
  size = isKnown ? status.st_size : 0;
  if (isKnown && S_ISREG(status.st_mode) && size > 0)
    return;
  close(descriptor);
  if (isKnown && S_ISREG(status.st_mode))
    fail("'", path, "' is empty");
  fail("cannot read '", path, "': it is not a file but a ",
       isKnown && S_ISDIR(status.st_mode) ? "folder" : "pipe or a device");
}

DataFile::~DataFile() { close(descriptor); }

void DataFile::failShorter(int64_t found) const {
  fail("'", name, "' has become shorter while it was in use: it had ", size,
       " bytes, now it has ", found);
}

void DataFile::checkSize() const {
  struct stat status;
  if (fstat(descriptor, &status) == 0 && status.st_size < size)
    failShorter(status.st_size);
}

bool DataFile::isLockedByAnother() const {
  if (flock(descriptor, LOCK_SH | LOCK_NB) != 0)
    return errno == EWOULDBLOCK;
  flock(descriptor, LOCK_UN);
  return false;
}

void DataFile::readNow(int64_t offset, int64_t bytes, void *destination) const {
  char *to = static_cast<char *>(destination);
  while (bytes) {
    const ssize_t got = pread(descriptor, to, bytes, offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      fail("cannot read '", name, "': ", strerror(errno));
    if (got == 0) {
      checkSize();
      failShorter(offset);
    }
    to += got;
    offset += got;
    bytes -= got;
  }
}

void DataFile::read(int64_t offset, int64_t bytes, void *destination) {
  if (bytes >= windowBytes) {
    next = offset + bytes;
    return readNow(offset, bytes, destination);
  }
  if (bytes)
    std::memcpy(destination, view(offset, bytes), bytes);
}

const unsigned char *DataFile::view(int64_t offset, int64_t bytes) {
  const bool follows = offset == std::exchange(next, offset + bytes);
  const int64_t windowEnd = windowBegin + static_cast<int64_t>(window.size());
  if (offset < windowBegin || offset + bytes > windowEnd) {
    const int64_t wanted =
        follows ? std::max(bytes, std::min(windowBytes, size - offset)) : bytes;
    // If reading fails, the window is empty, not half new.
    window.resize(0);
    std::vector<unsigned char> fresh = std::move(window);
    fresh.resize(wanted);
    readNow(offset, wanted, fresh.data());
    window = std::move(fresh);
    windowBegin = offset;
  }
  return window.data() + (offset - windowBegin);
}
