//===- Rehearsal.cpp - Runs before the first step -------------------------===//
//
// A receive of NCCL is a kernel that waits on the GPU for its peer. Whatever
// makes the driver wait until the GPU is idle then waits for the peer as well,
// and the peer may wait for what this host has yet to enqueue: a deadlock. The
// driver does so when a library loads a kernel at its first use, when a kernel
// needs more stack than all before, when memory is pinned; perhaps when a graph
// is instantiated or launched for the first time. So all that happens in runs
// that transfer nothing, before the first transfer.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/DeviceParts.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/kernels/MatmulAlgorithms.h"

#include <cstring>

using namespace pipewright::runtime;

namespace {
/// Zeros are in the range of every input.
class ZeroIo : public BatchIo {
public:
  void load(int64_t, int64_t, void *destination, int64_t bytes) override {
    std::memset(destination, 0, bytes);
  }
  void store(int64_t, int64_t, const void *, int64_t) override {}
  bool wants(int64_t, int64_t) override { return wantsAll; }

  bool wantsAll = true;
};
} // namespace

void DeviceRank::rehearse() {
  Parts &p = *parts;
  if (p.settings.algorithms)
    p.settings.algorithms->endSetUp();
  if (!p.links->occupiesGpu() || p.streams.size() == 1)
    return;
  ZeroIo zeros;
  setBatchIo(&zeros);
  p.rehearsing = true;
  beginStep(0, std::vector<float>(wholeProgram().updates));
  // The second time, tasks become graphs, which compute nothing for outputs
  // alone: the first time these kernels run, too.
  for (int run = 0; run < (p.settings.graphs ? 2 : 1); ++run) {
    zeros.wantsAll = run == 0;
    if (p.settings.steps && program().step)
      runStep();
    if (p.settings.evaluations && program().evaluate)
      runEvaluation();
  }
  p.rehearsing = false;
  setBatchIo(nullptr);
  // The rehearsal has written to the arena; make it zeros again.
  PIPEWRIGHT_CUDA(
      cuMemsetD8Async(p.memory.address(), 0, p.memory.bytes(), p.computing));
  PIPEWRIGHT_CUDA(cuStreamSynchronize(p.computing));
}
