//===- Chaos.cpp - Random delays that show missing events -----------------===//

#include "runtime/cuda/Chaos.h"
#include "runtime/core/Philox.h"

#include <chrono>
#include <thread>

using namespace pipewright::runtime;

static void sleepMicroseconds(uint32_t microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

/// Runs on a thread of the driver, between two pieces of a stream's work.
static void CUDA_CB delayStream(void *microseconds) {
  sleepMicroseconds(
      static_cast<uint32_t>(reinterpret_cast<uintptr_t>(microseconds)));
}

void Chaos::strike(CUstream stream) {
  if (!seed)
    return;
  const auto random =
      philox(seed, strikes++, static_cast<uint32_t>(rank), 0, 0);
  // One in four; up to two milliseconds, more often short than long.
  if (random[0] % 4 == 0)
    sleepMicroseconds(random[1] % 500);
  if (random[2] % 4 == 0) {
    const uintptr_t microseconds = random[3] % (2000u >> (random[2] >> 4) % 4);
    PIPEWRIGHT_CUDA(cuLaunchHostFunc(stream, delayStream,
                                     reinterpret_cast<void *>(microseconds)));
  }
}
