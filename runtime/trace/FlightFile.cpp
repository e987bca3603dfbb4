//===- FlightFile.cpp - A flight recorder's ring as a file ----------------===//

#include "runtime/trace/FlightFile.h"
#include "runtime/core/Error.h"
#include "runtime/io/DataFile.h"

#include <chrono>
#include <fcntl.h>
#include <new>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace pipewright::runtime;

static_assert(std::atomic<int64_t>::is_always_lock_free,
              "the file holds words, not locks");

FlightFile::~FlightFile() {
  if (mapped)
    munmap(mapped, sizeof(FlightRing));
  if (descriptor >= 0)
    close(descriptor);
}

static int64_t nanosecondsOf(auto time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             time.time_since_epoch())
      .count();
}

FlightRing *FlightFile::create(const std::string &name,
                               const FlightRing::Owner &owner) {
  descriptor =
      open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    return nullptr;
  // Blocks that are not there yet could not be had when they are written to,
  // which would end the process.
  void *memory = MAP_FAILED;
  if (posix_fallocate(descriptor, 0, sizeof(FlightRing)) == 0)
    memory = mmap(nullptr, sizeof(FlightRing), PROT_READ | PROT_WRITE,
                  MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    unlink(name.c_str());
    return nullptr;
  }
  path = name;
  mapped = memory;
  auto *const ring = new (mapped) FlightRing;
  ring->owner = owner;
  ring->process = getpid();
  ring->clockOffset = nanosecondsOf(std::chrono::system_clock::now()) -
                      nanosecondsOf(std::chrono::steady_clock::now());
  return ring;
}

void FlightFile::remove() {
  if (mapped)
    unlink(path.c_str());
}

FlightFile::Found FlightFile::read(const std::string &path) {
  DataFile file(path);
  auto ring = std::make_shared<FlightRing>();
  const bool isWhole = file.bytes() == sizeof(FlightRing);
  if (isWhole)
    file.read(0, sizeof(FlightRing), static_cast<void *>(ring.get()));
  if (!isWhole || ring->magic != FlightRing::expectedMagic)
    fail("'", path, "' is not what a flight recorder leaves");
  return {ring, file.isLockedByAnother()};
}
