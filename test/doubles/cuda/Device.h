//===- Device.h - What library doubles ask of the driver double -*- C++ -*-===//
//
// The doubles of cuBLASLt, cuDNN and NCCL do their work as operations on the
// streams of the driver's double, on memory that only it can translate: what
// looks like a device address to a program is not one that the CPU can follow.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_CUDA_DEVICE_H
#define PIPEWRIGHT_TEST_DOUBLES_CUDA_DEVICE_H

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#define PIPEWRIGHT_DOUBLE_API __attribute__((visibility("default")))

namespace pipewright::doubles {

/// What goes wrong on the GPU. Thrown inside an operation, it becomes the
/// context's error, which every later call returns, as with a real GPU.
class PIPEWRIGHT_DOUBLE_API DeviceFault : public std::runtime_error {
public:
  DeviceFault(CUresult code, const std::string &message)
      : std::runtime_error(message), code(code) {}
  CUresult code;
};

/// Bytes that an operation reads or writes; for the race detector.
struct Access {
  const void *address = nullptr;
  size_t bytes = 0;
  bool write = false;
};

/// Work that a library puts on a stream. `run` may be called many times, when
/// it was captured into a graph; it runs on a thread of the stream.
struct Operation {
  std::string name;
  std::function<void()> run;
  std::vector<Access> accesses;
};

/// Enqueues on the stream, or adds to the graph that the stream is capturing.
PIPEWRIGHT_DOUBLE_API CUresult enqueue(CUstream stream, Operation operation);

/// The bytes behind a device address, or the address itself if it is pinned
/// host memory. To be called within an operation. Throws a DeviceFault unless
/// [address, address + bytes) lies in one allocation that the GPU of the
/// operation may use; `what` names the access in the message.
PIPEWRIGHT_DOUBLE_API void *map(const void *address, size_t bytes,
                                const char *what);

/// An operation keeps the GPU busy until another rank comes: what waits for an
/// idle GPU waits for that.
PIPEWRIGHT_DOUBLE_API void occupy(CUcontext context);
PIPEWRIGHT_DOUBLE_API void vacate(CUcontext context);
/// Null: all GPUs.
PIPEWRIGHT_DOUBLE_API void waitUntilVacant(CUcontext context);

template <class T>
T *mapElements(const void *address, size_t count, const char *what) {
  return static_cast<T *>(map(address, count * sizeof(T), what));
}

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_CUDA_DEVICE_H
