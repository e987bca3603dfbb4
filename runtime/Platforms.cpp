//===- Platforms.cpp - The list of platforms ------------------------------===//
//
// The one place that knows them all, and what a program says of its own.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/core/Platform.h"
#include "runtime/cpu/CpuPlatform.h"

#ifdef PIPEWRIGHT_HAS_CUDA
#include "runtime/cuda/CudaPlatform.h"
#endif

using namespace pipewright::runtime;

const std::vector<const Platform *> &pipewright::runtime::allPlatforms() {
  static const std::vector<const Platform *> all = {
      &cpuPlatform(),
#ifdef PIPEWRIGHT_HAS_CUDA
      &cudaPlatform(),
#endif
  };
  return all;
}

const Platform &pipewright::runtime::platformOf(const Program &program) {
  if (!program.device)
    return cpuPlatform();
#ifdef PIPEWRIGHT_HAS_CUDA
  return cudaPlatform();
#else
  fail("the program was compiled for GPUs, but its runtime without: build it "
       "where CUDA's headers (cuda.h, nccl.h, cublasLt.h, cudnn.h) are found");
#endif
}
