//===- AtomicFile.h - All of a file, or nothing ----------------*- C++ -*-===//
//
// Written under a temporary name beside the target (TARGET.saving- and six
// random characters) and renamed at the end, so that nobody ever sees a
// half-written file, not even after a full disk or a kill. What a killed
// process has left goes with the next file of the same name.
//
// A target that is a link stands for the file that it leads to, which may not
// be there yet; the link stays. Where the user has not said the target, nothing
// but a regular file is replaced.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_IO_ATOMICFILE_H
#define PIPEWRIGHT_RUNTIME_IO_ATOMICFILE_H

#include <cstddef>
#include <string>

namespace pipewright::runtime {

class AtomicFile {
public:
  enum class Target { Any, RegularFile };

  /// Throws an Error when the folder cannot be written to, or when there is
  /// something at the path that is no target.
  explicit AtomicFile(std::string path, Target target = Target::Any);
  /// Removes what was not committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(const void *data, size_t bytes);
  /// Makes the file durable and visible.
  void commit();

private:
  [[noreturn]] void failNow(const char *what);
  void openInPlace();
  void openTemporary();

  /// The path that the user gave, for messages.
  const std::string given;
  /// Devices and pipes are written to directly.
  const bool inPlace;
  const std::string target;
  std::string temporary;
  int descriptor = -1;
  /// Bytes that the disk was not yet told of.
  size_t waiting = 0;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_IO_ATOMICFILE_H
