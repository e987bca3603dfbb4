//===- DriverConformanceTests.cpp - What a CUDA driver does ---------------===//
//
// What programs may count on, and what a driver refuses: of the double and of
// the real one. What is true of the double alone is in test/unit/doubles.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/libraries/DriverTest.h"

#include <numeric>

using namespace pipewright::runtime;

using DriverConformance = DriverTest;

//===----------------------------------------------------------------------===//
// Devices and memory
//===----------------------------------------------------------------------===//

TEST_F(DriverConformance, Devices) {
  int count = 0;
  size_t bytes = 0, free = 0;
  CUdevice device = 0;
  SUCCEED_CUDA(driver().cuDeviceGetCount(&count));
  SUCCEED_CUDA(driver().cuDeviceGet(&device, count - 1));
  EXPECT_EQ(driver().cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  SUCCEED_CUDA(driver().cuMemGetInfo(&free, &bytes));
  EXPECT_LE(free, bytes);
  CUdeviceptr address = 0;
  EXPECT_EQ(driver().cuMemAlloc(&address, bytes + 1), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(DriverConformance, CopiesAndFills) {
  const CUdeviceptr a = allocate({1, 2, 3, 4});
  const CUdeviceptr b = allocate({0, 0, 0, 0});
  SUCCEED_CUDA(driver().cuMemcpyDtoDAsync(b + 4, a, 8, first));
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  EXPECT_EQ(read(b, 4), (std::vector<float>{0, 1, 2, 0}));
  SUCCEED_CUDA(driver().cuMemsetD32Async(b, 0x40400000, 3, first));
  SUCCEED_CUDA(driver().cuMemsetD8Async(b + 12, 0, 4, first));
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  EXPECT_EQ(read(b, 4), (std::vector<float>{3, 3, 3, 0}));
  EXPECT_EQ(driver().cuMemcpyDtoDAsync(b + 4, a, 16, first),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver().cuMemsetD32Async(b + 2, 0, 1, first),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverConformance, PageableMemoryIsReadAtOnce) {
  const CUdeviceptr a = allocate({0});
  Gate gate;
  SUCCEED_CUDA(driver().cuLaunchHostFunc(first, Gate::wait, &gate));
  float value = 7;
  SUCCEED_CUDA(driver().cuMemcpyHtoDAsync(a, &value, 4, first));
  value = 8;
  gate.open = true;
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 1)[0], 7);
}

TEST_F(DriverConformance, PinnedMemoryIsReadWhenItsTurnComes) {
  const CUdeviceptr a = allocate({0});
  void *pinned = nullptr;
  SUCCEED_CUDA(driver().cuMemAllocHost(&pinned, 4));
  *static_cast<float *>(pinned) = 7;
  Gate gate;
  SUCCEED_CUDA(driver().cuLaunchHostFunc(first, Gate::wait, &gate));
  SUCCEED_CUDA(driver().cuMemcpyHtoDAsync(a, pinned, 4, first));
  *static_cast<float *>(pinned) = 8;
  gate.open = true;
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 1)[0], 8);
  SUCCEED_CUDA(driver().cuMemFreeHost(pinned));
}

TEST_F(DriverConformance, PeersNeedPermission) {
  int count = 0;
  SUCCEED_CUDA(driver().cuDeviceGetCount(&count));
  if (count < 2)
    GTEST_SKIP() << "needs 2 GPUs";
  CUcontext other = nullptr;
  SUCCEED_CUDA(driver().cuDevicePrimaryCtxRetain(&other, 1));
  SUCCEED_CUDA(driver().cuCtxSetCurrent(other));
  const CUdeviceptr b = allocate(std::vector<float>(64, 2.0f));
  SUCCEED_CUDA(driver().cuCtxSetCurrent(context));
  const CUdeviceptr a = allocate({1});
  SUCCEED_CUDA(driver().cuMemcpyPeerAsync(a, context, b, other, 4, first));
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 1)[0], 2);
  SUCCEED_CUDA(driver().cuCtxEnablePeerAccess(other, 0));
  EXPECT_EQ(driver().cuCtxEnablePeerAccess(other, 0),
            CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  const CUfunction function = scale();
  SUCCEED_CUDA(launch(function, b, 2, 64, first));
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  SUCCEED_CUDA(driver().cuCtxDisablePeerAccess(other));
  SUCCEED_CUDA(launch(function, b, 2, 64, first));
  EXPECT_EQ(driver().cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
  driver().cuDevicePrimaryCtxReset(1);
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

TEST_F(DriverConformance, StreamsAreAsynchronous) {
  Gate gate;
  SUCCEED_CUDA(driver().cuLaunchHostFunc(first, Gate::wait, &gate));
  SUCCEED_CUDA(driver().cuEventRecord(event, first));
  EXPECT_EQ(driver().cuStreamQuery(first), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(driver().cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(driver().cuStreamQuery(second), CUDA_SUCCESS);
  gate.open = true;
  SUCCEED_CUDA(driver().cuEventSynchronize(event));
  EXPECT_EQ(driver().cuEventQuery(event), CUDA_SUCCESS);
}

TEST_F(DriverConformance, EventsOrderStreams) {
  const CUdeviceptr a = allocate({1}), b = allocate({0});
  Gate gate;
  SUCCEED_CUDA(driver().cuLaunchHostFunc(first, Gate::wait, &gate));
  SUCCEED_CUDA(driver().cuMemsetD32Async(a, 0x40A00000, 1, first));
  SUCCEED_CUDA(driver().cuEventRecord(event, first));
  SUCCEED_CUDA(driver().cuStreamWaitEvent(second, event, 0));
  SUCCEED_CUDA(driver().cuMemcpyDtoDAsync(b, a, 4, second));
  EXPECT_EQ(driver().cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  gate.open = true;
  SUCCEED_CUDA(driver().cuStreamSynchronize(second));
  EXPECT_EQ(read(b, 1)[0], 5);
}

TEST_F(DriverConformance, WaitingForAnEventThatWasNeverRecorded) {
  SUCCEED_CUDA(driver().cuStreamWaitEvent(second, event, 0));
  SUCCEED_CUDA(driver().cuStreamSynchronize(second));
  EXPECT_EQ(driver().cuEventQuery(event), CUDA_SUCCESS);
}

TEST_F(DriverConformance, AWaitIsForTheLastRecordBeforeIt) {
  SUCCEED_CUDA(driver().cuEventRecord(event, first));
  SUCCEED_CUDA(driver().cuStreamWaitEvent(second, event, 0));
  Gate gate;
  SUCCEED_CUDA(driver().cuLaunchHostFunc(first, Gate::wait, &gate));
  SUCCEED_CUDA(driver().cuEventRecord(event, first));
  SUCCEED_CUDA(driver().cuStreamSynchronize(second));
  gate.open = true;
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
}

TEST_F(DriverConformance, ElapsedTime) {
  CUevent end = nullptr, untimed = nullptr;
  float milliseconds = -1;
  SUCCEED_CUDA(driver().cuEventCreate(&end, CU_EVENT_DEFAULT));
  SUCCEED_CUDA(driver().cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  SUCCEED_CUDA(driver().cuEventRecord(event, first));
  SUCCEED_CUDA(driver().cuEventRecord(end, first));
  SUCCEED_CUDA(driver().cuEventRecord(untimed, first));
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  SUCCEED_CUDA(driver().cuEventElapsedTime(&milliseconds, event, end));
  EXPECT_GE(milliseconds, 0);
  EXPECT_EQ(driver().cuEventElapsedTime(&milliseconds, event, untimed),
            CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverConformance, WordsThatStreamsWaitFor) {
  const CUdeviceptr flag = allocate({0}), a = allocate({0});
  SUCCEED_CUDA(
      driver().cuStreamWaitValue32(second, flag, 3, CU_STREAM_WAIT_VALUE_GEQ));
  SUCCEED_CUDA(driver().cuMemsetD32Async(a, 0x3F800000, 1, second));
  EXPECT_EQ(driver().cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  SUCCEED_CUDA(driver().cuStreamWriteValue32(first, flag, 4, 0));
  SUCCEED_CUDA(driver().cuStreamSynchronize(second));
  EXPECT_EQ(read(a, 1)[0], 1);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

TEST_F(DriverConformance, Kernels) {
  std::vector<float> values(100);
  std::iota(values.begin(), values.end(), 0.0f);
  const CUdeviceptr a = allocate(values);
  SUCCEED_CUDA(launch(scale(), a, 2, 100, first));
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  const std::vector<float> results = read(a, 100);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(results[i], 2 * i + 1);
}

TEST_F(DriverConformance, ParametersAsOneBuffer) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  struct {
    CUdeviceptr x;
    float factor;
    unsigned n;
  } packed = {a, 4, 64};
  size_t bytes = sizeof packed;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  SUCCEED_CUDA(driver().cuLaunchKernel(scale(), 1, 1, 1, 64, 1, 1, 0, first,
                                       nullptr, extra));
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 1)[0], 5);
}

TEST_F(DriverConformance, LaunchesThatAreRefused) {
  const CUfunction function = scale();
  CUdeviceptr x = 0;
  float factor = 1;
  unsigned n = 0;
  void *parameters[] = {&x, &factor, &n};
  const auto tryLaunch = [&](unsigned grid, unsigned block, unsigned shared) {
    return driver().cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared,
                                   first, parameters, nullptr);
  };
  EXPECT_EQ(tryLaunch(0, 32, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(tryLaunch(1, 1025, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(tryLaunch(1, 32, 60000), CUDA_ERROR_INVALID_VALUE);
  SUCCEED_CUDA(driver().cuFuncSetAttribute(
      function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
  EXPECT_EQ(tryLaunch(1, 32, 60000), CUDA_SUCCESS);
}

TEST_F(DriverConformance, ModulesThatAreRefused) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  char log[200] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  const char wrong[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                       ".visible .entry k() { foo; }";
  EXPECT_EQ(driver().cuModuleLoadDataEx(&module, wrong, 2, options, values),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::string(log).find("ptxas application ptx input, line 4"),
            std::string::npos)
      << log;
  int major = 0;
  SUCCEED_CUDA(driver().cuDeviceGetAttribute(
      &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  if (major < 10)
    EXPECT_EQ(driver().cuModuleLoadData(&module,
                                        ".version 8.6\n.target sm_100\n"
                                        ".address_size 64\n"),
              CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(driver().cuModuleLoadData(&module, ".version 9.9\n.target sm_80\n"
                                               ".address_size 64\n"),
            CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(driver().cuModuleLoadData(&module, "\177ELF"),
            CUDA_ERROR_INVALID_IMAGE);
  SUCCEED_CUDA(driver().cuModuleLoadData(&module, driverTestKernels));
  EXPECT_EQ(driver().cuModuleGetFunction(&function, module, "other"),
            CUDA_ERROR_NOT_FOUND);
  SUCCEED_CUDA(driver().cuModuleUnload(module));
}

TEST_F(DriverConformance, GlobalVariables) {
  CUmodule module = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  unsigned value = 0;
  SUCCEED_CUDA(driver().cuModuleLoadData(&module, driverTestKernels));
  SUCCEED_CUDA(driver().cuModuleGetGlobal(&address, &bytes, module, "counter"));
  EXPECT_EQ(bytes, 4u);
  SUCCEED_CUDA(driver().cuMemcpyDtoH(&value, address, 4));
  EXPECT_EQ(value, 5u);
}

TEST_F(DriverConformance, ErrorsOfKernelsStick) {
  constexpr CUdeviceptr nowhere = 4096;
  SUCCEED_CUDA(launch(scale(), nowhere, 1, 64, first));
  EXPECT_EQ(driver().cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr a = 0;
  EXPECT_EQ(driver().cuMemAlloc(&a, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(driver().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

TEST_F(DriverConformance, GraphsReplay) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  const CUfunction function = scale();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  size_t nodes = 0;
  SUCCEED_CUDA(driver().cuStreamBeginCapture(
      first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  SUCCEED_CUDA(launch(function, a, 2, 64, first));
  SUCCEED_CUDA(launch(function, a, 3, 64, first));
  SUCCEED_CUDA(driver().cuStreamEndCapture(first, &graph));
  EXPECT_EQ(read(a, 1)[0], 1);
  SUCCEED_CUDA(driver().cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 2u);
  SUCCEED_CUDA(driver().cuGraphInstantiate(&exec, graph, 0));
  SUCCEED_CUDA(driver().cuGraphDestroy(graph));
  for (int i = 0; i < 2; ++i)
    SUCCEED_CUDA(driver().cuGraphLaunch(exec, first));
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 1)[0], 6 * (6 * 1 + 4) + 4);
  SUCCEED_CUDA(driver().cuGraphExecDestroy(exec));
}

TEST_F(DriverConformance, CaptureFollowsEvents) {
  const CUdeviceptr a = allocate({1}), b = allocate({0});
  CUgraph graph = nullptr;
  CUevent back = nullptr;
  SUCCEED_CUDA(driver().cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
  const auto fork = [&] {
    SUCCEED_CUDA(driver().cuStreamBeginCapture(
        first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    SUCCEED_CUDA(driver().cuEventRecord(event, first));
    SUCCEED_CUDA(driver().cuStreamWaitEvent(second, event, 0));
    SUCCEED_CUDA(driver().cuMemcpyDtoDAsync(b, a, 4, second));
  };
  fork();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  SUCCEED_CUDA(driver().cuStreamIsCapturing(second, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(driver().cuStreamEndCapture(first, &graph),
            CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  fork();
  SUCCEED_CUDA(driver().cuEventRecord(back, second));
  SUCCEED_CUDA(driver().cuStreamWaitEvent(first, back, 0));
  SUCCEED_CUDA(driver().cuStreamEndCapture(first, &graph));
  EXPECT_NE(graph, nullptr);
}

TEST_F(DriverConformance, WhatCannotBeCaptured) {
  CUgraph graph = nullptr;
  CUdeviceptr a = 0;
  SUCCEED_CUDA(driver().cuStreamBeginCapture(
      first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(driver().cuMemAlloc(&a, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(driver().cuStreamEndCapture(first, &graph),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  SUCCEED_CUDA(driver().cuStreamBeginCapture(
      first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(driver().cuStreamSynchronize(first),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(driver().cuStreamEndCapture(first, &graph),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  SUCCEED_CUDA(driver().cuEventRecord(event, second));
  SUCCEED_CUDA(driver().cuStreamBeginCapture(
      first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(driver().cuStreamWaitEvent(first, event, 0),
            CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(driver().cuStreamEndCapture(first, &graph),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  SUCCEED_CUDA(driver().cuStreamBeginCapture(
      first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::thread([&] {
    driver().cuCtxSetCurrent(context);
    EXPECT_EQ(driver().cuStreamEndCapture(first, &graph),
              CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    EXPECT_EQ(driver().cuMemAlloc(&a, 4), CUDA_SUCCESS);
  }).join();
  EXPECT_EQ(driver().cuStreamEndCapture(first, &graph),
            CUDA_ERROR_ILLEGAL_STATE);
}
