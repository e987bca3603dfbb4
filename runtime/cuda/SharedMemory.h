//===- SharedMemory.h - Memory of the host that processes share -*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_SHAREDMEMORY_H
#define PIPEWRIGHT_RUNTIME_CUDA_SHAREDMEMORY_H

#include <cstddef>
#include <string>
#include <utility>

namespace pipewright::runtime {

/// POSIX shared memory, zero at first. Its name goes with `forget`, once all
/// have opened it, so that it does not outlive the processes.
class SharedMemory {
public:
  SharedMemory() = default;
  /// Under a name that nobody can guess, for this user alone. Throws an Error.
  static SharedMemory create(size_t bytes);
  /// What another process of this user has created. Throws an Error unless it
  /// has this size.
  static SharedMemory open(const std::string &name, size_t bytes);
  SharedMemory(SharedMemory &&other) noexcept { *this = std::move(other); }
  SharedMemory &operator=(SharedMemory &&other) noexcept;
  ~SharedMemory();

  void *data() const { return pointer; }
  /// "/pipewright-..." and 32 digits: 44 characters.
  const std::string &name() const { return text; }
  void forget();

private:
  void map(int file, size_t bytes);

  void *pointer = nullptr;
  size_t size = 0;
  std::string text;
  bool isOwner = false;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_SHAREDMEMORY_H
