//===- SharedMemory.cpp - Memory of the host that processes share ---------===//

#include "runtime/cuda/SharedMemory.h"
#include "runtime/core/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace pipewright::runtime;

namespace {
struct File {
  explicit File(int number) : number(number) {}
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  ~File() {
    if (number >= 0)
      close(number);
  }
  const int number;
};
} // namespace

[[noreturn]] static void failShared(const char *what, int code) {
  fail("memory that processes share (/dev/shm) ", what, ": ",
       std::strerror(code));
}

static std::string makeName() {
  std::random_device random;
  char name[48];
  std::snprintf(name, sizeof name, "/pipewright-%08x%08x%08x%08x", random(),
                random(), random(), random());
  return name;
}

SharedMemory SharedMemory::create(size_t bytes) {
  SharedMemory memory;
  memory.text = makeName();
  const File file(
      shm_open(memory.text.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  if (file.number < 0)
    failShared("cannot be made", errno);
  memory.isOwner = true;
  // Taken now: where there is no room, a write would end the process.
  if (const int code = posix_fallocate(file.number, 0, bytes))
    failShared("has no room", code);
  memory.map(file.number, bytes);
  return memory;
}

SharedMemory SharedMemory::open(const std::string &name, size_t bytes) {
  const File file(shm_open(name.c_str(), O_RDWR, 0));
  if (file.number < 0)
    failShared("cannot be opened", errno);
  struct stat found = {};
  if (fstat(file.number, &found) || found.st_uid != geteuid() ||
      static_cast<size_t>(found.st_size) != bytes)
    fail("memory that processes share (/dev/shm) is not what its name says: it "
         "is another user's, or of another size");
  SharedMemory memory;
  memory.map(file.number, bytes);
  return memory;
}

void SharedMemory::map(int file, size_t bytes) {
  void *mapped =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED)
    failShared("cannot be mapped", errno);
  pointer = mapped;
  size = bytes;
}

SharedMemory &SharedMemory::operator=(SharedMemory &&other) noexcept {
  std::swap(pointer, other.pointer);
  std::swap(size, other.size);
  std::swap(text, other.text);
  std::swap(isOwner, other.isOwner);
  return *this;
}

void SharedMemory::forget() {
  if (isOwner)
    shm_unlink(text.c_str());
  isOwner = false;
}

SharedMemory::~SharedMemory() {
  forget();
  if (pointer)
    munmap(pointer, size);
}
