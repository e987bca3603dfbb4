//===- Idle.cpp - Calls that wait until the GPU is idle -------------------===//
//
// The driver may wait for an idle GPU when it gives or takes memory, loads a
// kernel or makes a graph; and it takes only so much work for a stream. Where a
// transfer waits on the GPU for its peer, that is for ever if the peer waits
// for the host that calls. PIPEWRIGHT_DOUBLE_IDLE and _QUEUE make the double do
// so.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/cuda/Internal.h"

#include <cstdlib>
#include <cstring>

using namespace pipewright::doubles;

namespace {
/// How many operations of other libraries keep each GPU busy until a peer
/// comes.
struct Occupied {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<CUcontext, int> counts;
};
} // namespace

static Occupied &occupied() {
  static Occupied *all = new Occupied;
  return *all;
}

void pipewright::doubles::occupy(CUcontext context) {
  std::lock_guard<std::mutex> lock(occupied().mutex);
  ++occupied().counts[context];
}

void pipewright::doubles::vacate(CUcontext context) {
  std::lock_guard<std::mutex> lock(occupied().mutex);
  --occupied().counts[context];
  occupied().changed.notify_all();
}

void pipewright::doubles::waitUntilVacant(CUcontext context) {
  std::unique_lock<std::mutex> lock(occupied().mutex);
  occupied().changed.wait(lock, [&] {
    for (const auto &[other, count] : occupied().counts)
      if (count && (!context || other == context))
        return false;
    return true;
  });
}

void pipewright::doubles::mayWaitForGpu(Context *context) {
  if (state().settings.idle)
    waitUntilVacant(reinterpret_cast<CUcontext>(context));
}

void pipewright::doubles::mayLoadKernel(Context *context, const void *kernel) {
  if (!state().settings.idle)
    return;
  static std::mutex mutex;
  static auto *loaded = new std::set<const void *>;
  const char *loading = std::getenv("CUDA_MODULE_LOADING");
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!loaded->insert(kernel).second)
      return;
  }
  if (!loading || std::strcmp(loading, "EAGER"))
    mayWaitForGpu(context);
}

void pipewright::doubles::waitForRoom(Stream *stream) {
  const uint64_t most = state().settings.queue;
  if (!most)
    return;
  std::unique_lock<std::mutex> lock(stream->mutex);
  stream->changed.wait(lock, [&] { return stream->queue.size() < most; });
}
