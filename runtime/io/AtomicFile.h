//===- AtomicFile.h - All of a file, or nothing ----------------*- C++ -*-===//
//
// Written under a temporary name beside the target and renamed at the end, so
// that nobody ever sees a half-written file, not even after a full disk.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_IO_ATOMICFILE_H
#define PIPEWRIGHT_RUNTIME_IO_ATOMICFILE_H

#include <cstddef>
#include <string>

namespace pipewright::runtime {

class AtomicFile {
public:
  /// Throws an Error when the folder cannot be written to.
  explicit AtomicFile(std::string path);
  /// Removes what was not committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(const void *data, size_t bytes);
  /// Makes the file durable and visible.
  void commit();

private:
  [[noreturn]] void failNow(const char *what);

  std::string target;
  /// Devices and pipes are written to directly.
  bool inPlace;
  std::string temporary;
  int descriptor = -1;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_ATOMICFILE_H
