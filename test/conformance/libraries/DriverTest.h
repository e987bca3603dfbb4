//===- DriverTest.h - What tests of a CUDA driver begin with ---*- C++ -*-===//
//
// Every test begins with a fresh context on the first GPU. The double has two
// GPUs with a megabyte each, and looks for races.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_CONFORMANCE_LIBRARIES_DRIVERTEST_H
#define PIPEWRIGHT_TEST_CONFORMANCE_LIBRARIES_DRIVERTEST_H

#include "runtime/cuda/Driver.h"
#include "runtime/cuda/SharedLibrary.h"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#define SUCCEED_CUDA(call) ASSERT_EQ(call, CUDA_SUCCESS)

namespace pipewright::runtime {

/// Functions that tests call beside those of the runtime.
// clang-format off
#define PIPEWRIGHT_TESTED_FUNCTIONS(F)                                         \
  F(cuCtxDisablePeerAccess) F(cuDevicePrimaryCtxReset) F(cuGraphGetNodes)      \
  F(cuMemGetAddressRange) F(cuMemcpyDtoD) F(cuModuleGetGlobal)                 \
  F(cuModuleLoadData) F(cuStreamWaitValue32) F(cuStreamWriteValue32)
// clang-format on

struct TestedDriver : Driver {
#define PIPEWRIGHT_TESTED_POINTER(name) decltype(&::name) name = nullptr;
  PIPEWRIGHT_TESTED_FUNCTIONS(PIPEWRIGHT_TESTED_POINTER)
#undef PIPEWRIGHT_TESTED_POINTER
};

/// The driver that Chosen.cpp chose.
inline const TestedDriver &driver() {
  static const TestedDriver tested = [] {
    TestedDriver driver = {cudaDriver()};
    const SharedLibrary library("CUDA driver", "libcuda.so.1", "none");
#define PIPEWRIGHT_TEXT(name) #name
#define PIPEWRIGHT_TESTED_LOAD(name)                                           \
  library.get(driver.name, PIPEWRIGHT_TEXT(name), "a newer one");
    PIPEWRIGHT_TESTED_FUNCTIONS(PIPEWRIGHT_TESTED_LOAD)
#undef PIPEWRIGHT_TESTED_LOAD
#undef PIPEWRIGHT_TEXT
    return driver;
  }();
  return tested;
}

inline constexpr char driverTestKernels[] = R"(
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 counter = 5;
// x[i] = x[i] * factor + 1
.visible .entry scale(.param .u64 scale_x, .param .f32 scale_factor,
                      .param .u32 scale_n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [scale_x];
  ld.param.f32 %r1, [scale_factor];
  ld.param.u32 %r2, [scale_n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r2;
  @%p1 ret;
  mul.wide.u32 %rd2, %r6, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %r7, [%rd3];
  fma.rn.f32 %r8, %r7, %r1, 0f3F800000;
  st.global.f32 [%rd3], %r8;
  ret;
}
)";

class DriverTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    setenv("PIPEWRIGHT_DOUBLE_GPUS", "2", 1);
    setenv("PIPEWRIGHT_DOUBLE_MEMORY", "1000000", 1);
    setenv("PIPEWRIGHT_DOUBLE_RACES", "1", 1);
  }
  void SetUp() override {
    SUCCEED_CUDA(driver().cuDevicePrimaryCtxRetain(&context, 0));
    SUCCEED_CUDA(driver().cuCtxSetCurrent(context));
    SUCCEED_CUDA(driver().cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    SUCCEED_CUDA(driver().cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    SUCCEED_CUDA(driver().cuEventCreate(&event, CU_EVENT_DEFAULT));
  }
  void TearDown() override { driver().cuDevicePrimaryCtxReset(0); }

  CUdeviceptr allocate(const std::vector<float> &values) {
    CUdeviceptr address = 0;
    EXPECT_EQ(driver().cuMemAlloc(&address, values.size() * 4), CUDA_SUCCESS);
    EXPECT_EQ(driver().cuMemcpyHtoD(address, values.data(), values.size() * 4),
              CUDA_SUCCESS);
    return address;
  }
  std::vector<float> read(CUdeviceptr address, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(driver().cuMemcpyDtoH(values.data(), address, count * 4),
              CUDA_SUCCESS);
    return values;
  }
  /// x[i] = x[i] * factor + 1, for i < n.
  CUfunction scale() {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(driver().cuModuleLoadData(&module, driverTestKernels),
              CUDA_SUCCESS);
    EXPECT_EQ(driver().cuModuleGetFunction(&function, module, "scale"),
              CUDA_SUCCESS);
    return function;
  }
  static CUresult launch(CUfunction function, CUdeviceptr x, float factor,
                         unsigned n, CUstream stream) {
    void *parameters[] = {&x, &factor, &n};
    return driver().cuLaunchKernel(function, (n + 63) / 64, 1, 1, 64, 1, 1, 0,
                                   stream, parameters, nullptr);
  }
  /// Holds a stream up until it is opened.
  struct Gate {
    std::atomic<bool> open{false};
    static void CUDA_CB wait(void *gate) {
      while (!static_cast<Gate *>(gate)->open)
        std::this_thread::yield();
    }
  };

  CUcontext context = nullptr;
  CUstream first = nullptr, second = nullptr;
  CUevent event = nullptr;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_TEST_CONFORMANCE_LIBRARIES_DRIVERTEST_H
