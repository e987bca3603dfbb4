//===- LocalLinks.h - Transfers between threads with GPUs ------*- C++ -*-===//
//
// Transport `cuda-local`: all ranks are threads of one process, on one GPU or
// several. Of the two ends of a transfer, whoever comes second enqueues the
// copy on its own stream:
//
//   first:   record(ready)                  behind what its stream has got
//   second:  wait(ready), copy, record(done of both)
//
// Nothing is ever enqueued that waits for an event that has not been recorded:
// all work of all streams, in the order in which hosts enqueued it, could run
// one after the other. So no schedule of the hardware's queues can deadlock,
// however many streams share one. The price is that the host must know that
// the peer has come before a stream may wait for `done`: see settle.
//
// The stream of the first does not wait for the copy; until settleAll, only
// `done` tells. Copies of one link run in order, so `done` of a transfer means
// that all earlier ones of the link are over too.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_LOCALLINKS_H
#define PIPEWRIGHT_RUNTIME_CUDA_LOCALLINKS_H

#include "runtime/cuda/DeviceLinks.h"
#include "runtime/net/Transport.h"

#include <memory>

namespace pipewright::runtime {

struct LocalPlaces;

/// What the threads share. Outlives all their links.
class LocalWorld {
public:
  explicit LocalWorld(int64_t ranks);
  ~LocalWorld();

  LocalPlaces &places() { return *shared; }

private:
  std::unique_ptr<LocalPlaces> shared;
};

/// The calling thread is the rank's, and its GPU's context is current.
/// `control` must outlive it.
std::unique_ptr<DeviceLinks> createLocalLinks(LocalWorld &world,
                                              Transport &control);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_LOCALLINKS_H
