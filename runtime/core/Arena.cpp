//===- Arena.cpp - One planned block of memory per rank -------------------===//

#include "runtime/core/Arena.h"
#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

using namespace pipewright::runtime;

Arena::Arena(int64_t bytes) : size(bytes) {
  if (size == 0)
    return;
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    fail("cannot allocate the arena of ", size, " bytes: ", strerror(errno));
  madvise(memory, size, MADV_HUGEPAGE);
  base = static_cast<char *>(memory);
  // Touched here, by the thread that will use it: no page fault in a step.
  std::memset(base, 0, size);
}

Arena::~Arena() {
  if (base && owned)
    munmap(base, size);
}

void Arena::failOutside(Buffer buffer) const {
  fail("buffer [", buffer.offset, ", ", buffer.offset + buffer.bytes,
       ") is outside the arena of ", size, " bytes");
}
