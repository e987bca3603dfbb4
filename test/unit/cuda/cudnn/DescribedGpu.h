//===- DescribedGpu.h - GPUs that are described to cuDNN -------*- C++ -*-===//
//
// The library makes plans for a GPU that it is told about: it compiles their
// kernels, and says what workspace they want. Tests of it are skipped where
// there is no cuDNN, or only its double.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_CUDA_CUDNN_DESCRIBEDGPU_H
#define PIPEWRIGHT_TEST_UNIT_CUDA_CUDNN_DESCRIBEDGPU_H

#include "runtime/cuda/CudnnGraph.h"

#include <cstdio>
#include <dlfcn.h>
#include <gtest/gtest.h>

#if CUDNN_VERSION >= 90800

namespace pipewright::runtime {

struct Gpu {
  int64_t architecture, multiprocessors, sharedMemory, bytes;
};

constexpr Gpu h100 = {90, 132, 232448, 85000000000};
constexpr Gpu a100 = {80, 108, 166912, 42000000000};

class DescribedGpuTest : public ::testing::Test {
protected:
  void SetUp() override {
    // Found by its name when cuDNN asks for the driver.
    ASSERT_TRUE(dlopen(PIPEWRIGHT_AGREEING_DRIVER, RTLD_NOW | RTLD_GLOBAL))
        << dlerror();
    void *library = dlopen("libcudnn.so.9", RTLD_NOW);
    if (!library || !dlsym(library, "cudnnGetCudartVersion"))
      GTEST_SKIP() << "no cuDNN here";
    if (!dlopen("libnvrtc.so.13", RTLD_NOW) &&
        !dlopen("libnvrtc.so.12", RTLD_NOW))
      GTEST_SKIP() << "no NVRTC here, which compiles cuDNN's kernels";
    if (cudnn().cudnnGetVersion() < 91600)
      GTEST_SKIP() << "cuDNN is older than what attention wants";
  }

  static CudnnDescriptor describe(const Gpu &gpu);
};

inline CudnnDescriptor DescribedGpuTest::describe(const Gpu &gpu) {
  char json[2000];
  const int length = std::snprintf(
      json, sizeof json,
      R"({"deviceVer":%d,"driverVer":13000,"cudaDeviceId":0,)"
      R"("totalGlobalMem":%lld,"maxGridSize":[2147483647,65535,65535],)"
      R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
      R"("multiProcessorCount":%d,"warpSize":32,)"
      R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":%d,)"
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
      R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,)"
      R"("pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,)"
      R"("smClockRateKHz":1410000,"memClockRateKHz":1215000,)"
      R"("l2CacheSize":41943040,"deviceName":"GPU","finalized":true})",
      static_cast<int>(gpu.architecture * 10),
      static_cast<long long>(gpu.bytes), static_cast<int>(gpu.multiprocessors),
      static_cast<int>(gpu.sharedMemory));
  CudnnDescriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length,
             json);
  device.finalize();
  return device;
}

} // namespace pipewright::runtime

#endif // CUDNN_VERSION >= 90800
#endif // PIPEWRIGHT_TEST_UNIT_CUDA_CUDNN_DESCRIBEDGPU_H
