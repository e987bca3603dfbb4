//===- DeviceRank.h - One worker of the pipeline, on a GPU -----*- C++ -*-===//
//
// What the generated GPU code of a rank talks to. README.md of this folder has
// the contract of streams, events and graphs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_DEVICE_DEVICERANK_H
#define PIPEWRIGHT_RUNTIME_DEVICE_DEVICERANK_H

#include "runtime/core/Rank.h"
#include "runtime/device/DeviceKernel.h"
#include "runtime/device/Stream.h"

#include <functional>
#include <initializer_list>

struct CUstream_st;

namespace pipewright::runtime {

class DeviceRank : public Rank {
public:
  // --- What generated code calls -------------------------------------------

  /// Runs one task; its body enqueues on `compute`, and is replayed as a CUDA
  /// graph from its third run on. Kinds as in Rank::task.
  void task(const char *kind, int64_t stage, int64_t microBatch,
            const std::function<void()> &body);

  /// Never block. `event` is recorded when the transfer is over.
  void postSend(int64_t peer, Buffer buffer, int64_t event);
  void postReceive(int64_t peer, Buffer buffer, int64_t event);

  /// Records the event behind what the stream has got so far.
  void record(Stream stream, int64_t event);
  /// Makes the stream wait for the event.
  void wait(Stream stream, int64_t event);

  // --- What kernels call ---------------------------------------------------

  /// The stream that kernels and libraries enqueue on.
  CUstream_st *computeStream();
  /// Address on the GPU; null for an absent buffer.
  template <class T>
  T *device(Buffer buffer);
  /// Memory that every call on `compute` may overwrite; at least `bytes` must
  /// have been asked for in setUp.
  void reserveWorkspace(int64_t bytes);
  void *workspace(int64_t bytes);
  /// Device memory that holds {uint64 seed, uint64 step} of the running step.
  const uint64_t *randomState() const;
};

/// Enqueues a compiled kernel.
void launch(DeviceRank &rank, const DeviceKernel &kernel,
            std::initializer_list<Buffer> arguments);
/// In setUp, once for each kernel: finds its functions, reserves scratch.
void prepare(DeviceRank &rank, const DeviceKernel &kernel);

/// Makes a RankProgram's function of a generated one.
template <void (*function)(DeviceRank &)>
void onDevice(Rank &rank) {
  function(static_cast<DeviceRank &>(rank));
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_DEVICE_DEVICERANK_H
