//===- MappedFile.cpp - A file as read-only memory ------------------------===//

#include "runtime/io/MappedFile.h"
#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace pipewright::runtime;

MappedFile::MappedFile(const std::string &path) : name(path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    fail("cannot read '", path, "': ", strerror(errno));
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    fail("cannot read '", path, "': it is not a file");
  }
  size = status.st_size;
  if (size == 0) {
    close(descriptor);
    fail("'", path, "' is empty");
  }
  void *memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int reason = errno;
  close(descriptor);
  if (memory == MAP_FAILED)
    fail("cannot read '", path, "': ", strerror(reason));
  begin = static_cast<const unsigned char *>(memory);
}

MappedFile::~MappedFile() { munmap(const_cast<unsigned char *>(begin), size); }
