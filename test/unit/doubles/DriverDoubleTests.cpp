//===- DriverDoubleTests.cpp - The double of the CUDA driver --------------===//
//
// What programs may count on, and what a real driver would refuse. Every test
// begins with fresh contexts on two GPUs.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/cuda/Device.h"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

using namespace pipewright::doubles;

#define SUCCEED_CUDA(call) ASSERT_EQ(call, CUDA_SUCCESS)

static const char kernels[] = R"(
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

class DriverDouble : public testing::Test {
protected:
  static void SetUpTestSuite() {
    setenv("PIPEWRIGHT_DOUBLE_GPUS", "2", 1);
    setenv("PIPEWRIGHT_DOUBLE_MEMORY", "1000000", 1);
    setenv("PIPEWRIGHT_DOUBLE_RACES", "1", 1);
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  }
  void SetUp() override {
    SUCCEED_CUDA(cuDevicePrimaryCtxRetain(&context, 0));
    SUCCEED_CUDA(cuCtxSetCurrent(context));
    SUCCEED_CUDA(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    SUCCEED_CUDA(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    SUCCEED_CUDA(cuEventCreate(&event, CU_EVENT_DEFAULT));
  }
  void TearDown() override { cuDevicePrimaryCtxReset(0); }

  CUdeviceptr allocate(const std::vector<float> &values) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, values.size() * 4), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(address, values.data(), values.size() * 4),
              CUDA_SUCCESS);
    return address;
  }
  std::vector<float> read(CUdeviceptr address, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(cuMemcpyDtoH(values.data(), address, count * 4), CUDA_SUCCESS);
    return values;
  }
  CUfunction scale() {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, kernels), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "scale"), CUDA_SUCCESS);
    return function;
  }
  static CUresult launch(CUfunction function, CUdeviceptr x, float factor,
                         unsigned n, CUstream stream) {
    void *parameters[] = {&x, &factor, &n};
    return cuLaunchKernel(function, (n + 63) / 64, 1, 1, 64, 1, 1, 0, stream,
                          parameters, nullptr);
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

//===----------------------------------------------------------------------===//
// Devices and memory
//===----------------------------------------------------------------------===//

TEST_F(DriverDouble, Devices) {
  int count = 0, major = 0, can = 0;
  size_t bytes = 0, free = 0;
  CUdevice device = 0;
  SUCCEED_CUDA(cuDeviceGetCount(&count));
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
  SUCCEED_CUDA(cuDeviceGetAttribute(
      &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(major, 9);
  SUCCEED_CUDA(cuDeviceTotalMem(&bytes, 0));
  EXPECT_EQ(bytes, 1000000u);
  SUCCEED_CUDA(cuDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  CUdeviceptr address = 0;
  SUCCEED_CUDA(cuMemAlloc(&address, 600000));
  SUCCEED_CUDA(cuMemGetInfo(&free, &bytes));
  EXPECT_EQ(free, 400000u);
  EXPECT_EQ(cuMemAlloc(&address, 600000), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(DriverDouble, MemoryIsNotCleared) {
  CUdeviceptr address = 0;
  SUCCEED_CUDA(cuMemAlloc(&address, 16));
  const std::vector<float> values = read(address, 4);
  EXPECT_NE(values[0], values[0]);
}

TEST_F(DriverDouble, CopiesAndFills) {
  const CUdeviceptr a = allocate({1, 2, 3, 4});
  const CUdeviceptr b = allocate({0, 0, 0, 0});
  SUCCEED_CUDA(cuMemcpyDtoDAsync(b + 4, a, 8, first));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(read(b, 4), (std::vector<float>{0, 1, 2, 0}));
  SUCCEED_CUDA(cuMemsetD32Async(b, 0x40400000, 3, first));
  SUCCEED_CUDA(cuMemsetD8Async(b + 12, 0, 4, first));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(read(b, 4), (std::vector<float>{3, 3, 3, 0}));
  EXPECT_EQ(cuMemcpyDtoDAsync(b + 4, a, 16, first), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32Async(b + 2, 0, 1, first), CUDA_ERROR_INVALID_VALUE);
  float onHost = 0;
  EXPECT_EQ(cuMemcpyDtoD(b, reinterpret_cast<CUdeviceptr>(&onHost), 4),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverDouble, PageableMemoryIsReadAtOnce) {
  const CUdeviceptr a = allocate({0});
  Gate gate;
  SUCCEED_CUDA(cuLaunchHostFunc(first, Gate::wait, &gate));
  float value = 7;
  SUCCEED_CUDA(cuMemcpyHtoDAsync(a, &value, 4, first));
  value = 8;
  gate.open = true;
  SUCCEED_CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 1)[0], 7);
}

TEST_F(DriverDouble, PinnedMemoryIsReadWhenItsTurnComes) {
  const CUdeviceptr a = allocate({0});
  void *pinned = nullptr;
  SUCCEED_CUDA(cuMemAllocHost(&pinned, 4));
  *static_cast<float *>(pinned) = 7;
  Gate gate;
  SUCCEED_CUDA(cuLaunchHostFunc(first, Gate::wait, &gate));
  SUCCEED_CUDA(cuMemcpyHtoDAsync(a, pinned, 4, first));
  *static_cast<float *>(pinned) = 8;
  gate.open = true;
  SUCCEED_CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 1)[0], 8);
  SUCCEED_CUDA(cuMemFreeHost(pinned));
}

TEST_F(DriverDouble, PeersNeedPermission) {
  CUcontext other = nullptr;
  SUCCEED_CUDA(cuDevicePrimaryCtxRetain(&other, 1));
  SUCCEED_CUDA(cuCtxSetCurrent(other));
  const CUdeviceptr b = allocate(std::vector<float>(64, 2.0f));
  SUCCEED_CUDA(cuCtxSetCurrent(context));
  const CUdeviceptr a = allocate({1});
  SUCCEED_CUDA(cuMemcpyPeerAsync(a, context, b, other, 4, first));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 1)[0], 2);
  SUCCEED_CUDA(cuCtxEnablePeerAccess(other, 0));
  EXPECT_EQ(cuCtxEnablePeerAccess(other, 0),
            CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  const CUfunction function = scale();
  SUCCEED_CUDA(launch(function, b, 2, 64, first));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  SUCCEED_CUDA(cuCtxDisablePeerAccess(other));
  SUCCEED_CUDA(launch(function, b, 2, 64, first));
  EXPECT_EQ(cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
  cuDevicePrimaryCtxReset(1);
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

TEST_F(DriverDouble, StreamsAreAsynchronous) {
  Gate gate;
  SUCCEED_CUDA(cuLaunchHostFunc(first, Gate::wait, &gate));
  SUCCEED_CUDA(cuEventRecord(event, first));
  EXPECT_EQ(cuStreamQuery(first), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(second), CUDA_SUCCESS);
  gate.open = true;
  SUCCEED_CUDA(cuEventSynchronize(event));
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
}

TEST_F(DriverDouble, EventsOrderStreams) {
  const CUdeviceptr a = allocate({1}), b = allocate({0});
  Gate gate;
  SUCCEED_CUDA(cuLaunchHostFunc(first, Gate::wait, &gate));
  SUCCEED_CUDA(cuMemsetD32Async(a, 0x40A00000, 1, first));
  SUCCEED_CUDA(cuEventRecord(event, first));
  SUCCEED_CUDA(cuStreamWaitEvent(second, event, 0));
  SUCCEED_CUDA(cuMemcpyDtoDAsync(b, a, 4, second));
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  gate.open = true;
  SUCCEED_CUDA(cuStreamSynchronize(second));
  EXPECT_EQ(read(b, 1)[0], 5);
}

TEST_F(DriverDouble, WaitingForAnEventThatWasNeverRecorded) {
  SUCCEED_CUDA(cuStreamWaitEvent(second, event, 0));
  SUCCEED_CUDA(cuStreamSynchronize(second));
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
}

TEST_F(DriverDouble, AWaitIsForTheLastRecordBeforeIt) {
  SUCCEED_CUDA(cuEventRecord(event, first));
  SUCCEED_CUDA(cuStreamWaitEvent(second, event, 0));
  Gate gate;
  SUCCEED_CUDA(cuLaunchHostFunc(first, Gate::wait, &gate));
  SUCCEED_CUDA(cuEventRecord(event, first));
  SUCCEED_CUDA(cuStreamSynchronize(second));
  gate.open = true;
  SUCCEED_CUDA(cuStreamSynchronize(first));
}

TEST_F(DriverDouble, ElapsedTime) {
  CUevent end = nullptr, untimed = nullptr;
  float milliseconds = -1;
  SUCCEED_CUDA(cuEventCreate(&end, CU_EVENT_DEFAULT));
  SUCCEED_CUDA(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  SUCCEED_CUDA(cuEventRecord(event, first));
  SUCCEED_CUDA(cuEventRecord(end, first));
  SUCCEED_CUDA(cuEventRecord(untimed, first));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  SUCCEED_CUDA(cuEventElapsedTime(&milliseconds, event, end));
  EXPECT_GE(milliseconds, 0);
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, event, untimed),
            CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverDouble, WordsThatStreamsWaitFor) {
  const CUdeviceptr flag = allocate({0}), a = allocate({0});
  SUCCEED_CUDA(cuStreamWaitValue32(second, flag, 3, CU_STREAM_WAIT_VALUE_GEQ));
  SUCCEED_CUDA(cuMemsetD32Async(a, 0x3F800000, 1, second));
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  SUCCEED_CUDA(cuStreamWriteValue32(first, flag, 4, 0));
  SUCCEED_CUDA(cuStreamSynchronize(second));
  EXPECT_EQ(read(a, 1)[0], 1);
}

TEST_F(DriverDouble, HostFunctionsMustNotCallTheDriver) {
  struct Call {
    static void CUDA_CB run(void *result) {
      *static_cast<CUresult *>(result) = cuCtxSynchronize();
    }
  };
  CUresult result = CUDA_SUCCESS;
  SUCCEED_CUDA(cuLaunchHostFunc(first, Call::run, &result));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(result, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(DriverDouble, DeadHandlesAreErrors) {
  SUCCEED_CUDA(cuStreamDestroy(second));
  EXPECT_EQ(cuStreamSynchronize(second), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamDestroy(second), CUDA_ERROR_INVALID_HANDLE);
  SUCCEED_CUDA(cuEventDestroy(event));
  EXPECT_EQ(cuEventRecord(event, first), CUDA_ERROR_INVALID_HANDLE);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

TEST_F(DriverDouble, Kernels) {
  std::vector<float> values(100);
  std::iota(values.begin(), values.end(), 0.0f);
  const CUdeviceptr a = allocate(values);
  SUCCEED_CUDA(launch(scale(), a, 2, 100, first));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  const std::vector<float> results = read(a, 100);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(results[i], 2 * i + 1);
}

TEST_F(DriverDouble, ParametersAsOneBuffer) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  struct {
    CUdeviceptr x;
    float factor;
    unsigned n;
  } packed = {a, 4, 64};
  size_t bytes = sizeof packed;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  SUCCEED_CUDA(
      cuLaunchKernel(scale(), 1, 1, 1, 64, 1, 1, 0, first, nullptr, extra));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 1)[0], 5);
}

TEST_F(DriverDouble, LaunchesThatARealDriverRefuses) {
  const CUfunction function = scale();
  CUdeviceptr x = 0;
  float factor = 1;
  unsigned n = 0;
  void *parameters[] = {&x, &factor, &n};
  const auto tryLaunch = [&](unsigned grid, unsigned block, unsigned shared) {
    return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, first,
                          parameters, nullptr);
  };
  EXPECT_EQ(tryLaunch(0, 32, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(tryLaunch(1, 1025, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(tryLaunch(1, 32, 60000), CUDA_ERROR_INVALID_VALUE);
  SUCCEED_CUDA(cuFuncSetAttribute(
      function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
  EXPECT_EQ(tryLaunch(1, 32, 60000), CUDA_SUCCESS);
}

TEST_F(DriverDouble, ModulesThatARealDriverRefuses) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  char log[200] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  const char wrong[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                       ".visible .entry k() { foo; }";
  EXPECT_EQ(cuModuleLoadDataEx(&module, wrong, 2, options, values),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(std::string(log), "ptxas application ptx input, line 4: unknown "
                              "instruction in 'foo'");
  EXPECT_EQ(cuModuleLoadData(&module, ".version 8.0\n.target sm_100\n"
                                      ".address_size 64\n"),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cuModuleLoadData(&module, ".version 9.9\n.target sm_80\n"
                                      ".address_size 64\n"),
            CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(cuModuleLoadData(&module, "\177ELF"), CUDA_ERROR_INVALID_IMAGE);
  SUCCEED_CUDA(cuModuleLoadData(&module, kernels));
  EXPECT_EQ(cuModuleGetFunction(&function, module, "other"),
            CUDA_ERROR_NOT_FOUND);
  SUCCEED_CUDA(cuModuleUnload(module));
}

TEST_F(DriverDouble, GlobalVariables) {
  CUmodule module = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  unsigned value = 0;
  SUCCEED_CUDA(cuModuleLoadData(&module, kernels));
  SUCCEED_CUDA(cuModuleGetGlobal(&address, &bytes, module, "counter"));
  EXPECT_EQ(bytes, 4u);
  SUCCEED_CUDA(cuMemcpyDtoH(&value, address, 4));
  EXPECT_EQ(value, 5u);
}

TEST_F(DriverDouble, ErrorsOfKernelsStick) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  SUCCEED_CUDA(launch(scale(), a, 1, 65, first));
  EXPECT_EQ(cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr b = 0;
  EXPECT_EQ(cuMemAlloc(&b, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(DriverDouble, FreedMemoryIsOutOfReach) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  Gate gate;
  SUCCEED_CUDA(cuLaunchHostFunc(first, Gate::wait, &gate));
  SUCCEED_CUDA(launch(scale(), a, 1, 64, first));
  SUCCEED_CUDA(cuMemFree(a));
  EXPECT_EQ(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
  gate.open = true;
  EXPECT_EQ(cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

TEST_F(DriverDouble, GraphsReplay) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  const CUfunction function = scale();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  size_t nodes = 0;
  SUCCEED_CUDA(
      cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  SUCCEED_CUDA(launch(function, a, 2, 64, first));
  SUCCEED_CUDA(launch(function, a, 3, 64, first));
  SUCCEED_CUDA(cuStreamEndCapture(first, &graph));
  EXPECT_EQ(read(a, 1)[0], 1);
  SUCCEED_CUDA(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 2u);
  SUCCEED_CUDA(cuGraphInstantiate(&exec, graph, 0));
  SUCCEED_CUDA(cuGraphDestroy(graph));
  for (int i = 0; i < 2; ++i)
    SUCCEED_CUDA(cuGraphLaunch(exec, first));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 1)[0], 6 * (6 * 1 + 4) + 4);
  SUCCEED_CUDA(cuGraphExecDestroy(exec));
}

TEST_F(DriverDouble, CaptureFollowsEvents) {
  const CUdeviceptr a = allocate({1}), b = allocate({0});
  CUgraph graph = nullptr;
  CUevent back = nullptr;
  SUCCEED_CUDA(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
  const auto fork = [&] {
    SUCCEED_CUDA(
        cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    SUCCEED_CUDA(cuEventRecord(event, first));
    SUCCEED_CUDA(cuStreamWaitEvent(second, event, 0));
    SUCCEED_CUDA(cuMemcpyDtoDAsync(b, a, 4, second));
  };
  fork();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  SUCCEED_CUDA(cuStreamIsCapturing(second, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(cuStreamEndCapture(first, &graph),
            CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  fork();
  SUCCEED_CUDA(cuEventRecord(back, second));
  SUCCEED_CUDA(cuStreamWaitEvent(first, back, 0));
  SUCCEED_CUDA(cuStreamEndCapture(first, &graph));
  EXPECT_NE(graph, nullptr);
}

TEST_F(DriverDouble, WhatCannotBeCaptured) {
  CUgraph graph = nullptr;
  CUdeviceptr a = 0;
  SUCCEED_CUDA(
      cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(cuMemAlloc(&a, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(first, &graph),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  SUCCEED_CUDA(
      cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(cuStreamSynchronize(first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(first, &graph),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  SUCCEED_CUDA(cuEventRecord(event, second));
  SUCCEED_CUDA(
      cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(cuStreamWaitEvent(first, event, 0),
            CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(cuStreamEndCapture(first, &graph),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  SUCCEED_CUDA(
      cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::thread([&] {
    cuCtxSetCurrent(context);
    EXPECT_EQ(cuStreamEndCapture(first, &graph),
              CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    EXPECT_EQ(cuMemAlloc(&a, 4), CUDA_SUCCESS);
  }).join();
  SUCCEED_CUDA(cuStreamEndCapture(first, &graph));
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

TEST_F(DriverDouble, RacesAreFoundThoughNumbersAreRight) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  SUCCEED_CUDA(launch(scale(), a, 2, 64, first));
  // The kernel is over before the copy begins, but only this thread knows it,
  // and not from the driver.
  std::atomic<bool> over = false;
  struct Set {
    static void CUDA_CB run(void *flag) {
      *static_cast<std::atomic<bool> *>(flag) = true;
    }
  };
  SUCCEED_CUDA(cuLaunchHostFunc(first, Set::run, &over));
  while (!over)
    std::this_thread::yield();
  SUCCEED_CUDA(cuMemcpyDtoDAsync(a + 128, a, 128, second));
  EXPECT_EQ(cuStreamSynchronize(second), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(DriverDouble, WhatEventsOrderIsNoRace) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  const CUfunction function = scale();
  for (int i = 0; i < 3; ++i) {
    SUCCEED_CUDA(launch(function, a, 2, 64, first));
    SUCCEED_CUDA(cuEventRecord(event, first));
    SUCCEED_CUDA(cuStreamWaitEvent(second, event, 0));
    SUCCEED_CUDA(launch(function, a, 2, 64, second));
    SUCCEED_CUDA(cuStreamSynchronize(second));
  }
  EXPECT_EQ(read(a, 1)[0], 127);
}

TEST_F(DriverDouble, ReadersDoNotRaceWithReaders) {
  const CUdeviceptr a = allocate({1, 2}), b = allocate({0, 0});
  SUCCEED_CUDA(cuMemcpyDtoDAsync(b, a, 4, first));
  SUCCEED_CUDA(cuMemcpyDtoDAsync(b + 4, a, 4, first));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  const CUdeviceptr c = allocate({0});
  SUCCEED_CUDA(cuMemcpyDtoDAsync(b, a, 4, first));
  SUCCEED_CUDA(cuMemcpyDtoDAsync(c, a, 4, second));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  SUCCEED_CUDA(cuStreamSynchronize(second));
}

TEST_F(DriverDouble, OperationsOfLibraries) {
  const CUdeviceptr a = allocate({1, 2});
  const void *address = reinterpret_cast<const void *>(a);
  SUCCEED_CUDA(enqueue(first, {"negate",
                               [=] {
                                 float *x = mapElements<float>(address, 2, "x");
                                 x[0] = -x[0];
                               },
                               {{address, 8, true}}}));
  SUCCEED_CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 2), (std::vector<float>{-1, 2}));
  SUCCEED_CUDA(enqueue(first, {"beyond", [=] { map(address, 9, "x"); }, {}}));
  EXPECT_EQ(cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
}
