//===- DriverDoubleTests.cpp - The double of the CUDA driver --------------===//
//
// Where the double is stricter than a real driver, or does what none does. What
// is true of both is in test/conformance/libraries.
//
//===----------------------------------------------------------------------===//

#include "test/conformance/libraries/DriverTest.h"
#include "test/doubles/cuda/Device.h"

using namespace pipewright::doubles;
using namespace pipewright::runtime;

using DriverDouble = DriverTest;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST_F(DriverDouble, MemoryIsNotCleared) {
  CUdeviceptr address = 0;
  SUCCEED_CUDA(driver().cuMemAlloc(&address, 16));
  const std::vector<float> values = read(address, 4);
  EXPECT_NE(values[0], values[0]);
}

TEST_F(DriverDouble, MemoryHasTheSizeThatItIsGiven) {
  size_t bytes = 0, free = 0;
  SUCCEED_CUDA(driver().cuDeviceTotalMem(&bytes, 0));
  EXPECT_EQ(bytes, 1000000u);
  CUdeviceptr address = 0;
  SUCCEED_CUDA(driver().cuMemAlloc(&address, 600000));
  SUCCEED_CUDA(driver().cuMemGetInfo(&free, &bytes));
  EXPECT_EQ(free, 400000u);
  EXPECT_EQ(driver().cuMemAlloc(&address, 600000), CUDA_ERROR_OUT_OF_MEMORY);
}

/// A real GPU rounds allocations up, and some read the host's memory.
TEST_F(DriverDouble, AccessesKeepToOneAllocation) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  float onHost = 0;
  EXPECT_EQ(driver().cuMemcpyDtoD(a, reinterpret_cast<CUdeviceptr>(&onHost), 4),
            CUDA_ERROR_INVALID_VALUE);
  SUCCEED_CUDA(launch(scale(), a, 1, 65, first));
  EXPECT_EQ(driver().cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(DriverDouble, FreedMemoryIsOutOfReach) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  Gate gate;
  SUCCEED_CUDA(driver().cuLaunchHostFunc(first, Gate::wait, &gate));
  SUCCEED_CUDA(launch(scale(), a, 1, 64, first));
  SUCCEED_CUDA(driver().cuMemFree(a));
  EXPECT_EQ(driver().cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
  gate.open = true;
  EXPECT_EQ(driver().cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/// The work of a stream that was destroyed goes on; what waits for the GPU
/// waits for it as well.
TEST_F(DriverDouble, TheWorkOfDestroyedStreamsIsWaitedFor) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  CUstream third = nullptr;
  SUCCEED_CUDA(driver().cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
  Gate gate;
  SUCCEED_CUDA(driver().cuLaunchHostFunc(third, Gate::wait, &gate));
  SUCCEED_CUDA(launch(scale(), a, 2, 64, third));
  SUCCEED_CUDA(driver().cuStreamDestroy(third));
  const std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.open = true;
  });
  SUCCEED_CUDA(driver().cuCtxSynchronize());
  EXPECT_TRUE(gate.open);
  EXPECT_EQ(read(a, 1)[0], 3);
}

//===----------------------------------------------------------------------===//
// Handles and modules
//===----------------------------------------------------------------------===//

TEST_F(DriverDouble, HostFunctionsMustNotCallTheDriver) {
  struct Call {
    static void CUDA_CB run(void *result) {
      *static_cast<CUresult *>(result) = driver().cuCtxSynchronize();
    }
  };
  CUresult result = CUDA_SUCCESS;
  SUCCEED_CUDA(driver().cuLaunchHostFunc(first, Call::run, &result));
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  EXPECT_EQ(result, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(DriverDouble, DeadHandlesAreErrors) {
  SUCCEED_CUDA(driver().cuStreamDestroy(second));
  EXPECT_EQ(driver().cuStreamSynchronize(second), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(driver().cuStreamDestroy(second), CUDA_ERROR_INVALID_HANDLE);
  SUCCEED_CUDA(driver().cuEventDestroy(event));
  EXPECT_EQ(driver().cuEventRecord(event, first), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverDouble, InstructionsThatAreNotKnownAreNamed) {
  CUmodule module = nullptr;
  char log[200] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  const char wrong[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                       ".visible .entry k() { foo; }";
  EXPECT_EQ(driver().cuModuleLoadDataEx(&module, wrong, 2, options, values),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(std::string(log), "ptxas application ptx input, line 4: unknown "
                              "instruction in 'foo'");
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
  SUCCEED_CUDA(driver().cuLaunchHostFunc(first, Set::run, &over));
  while (!over)
    std::this_thread::yield();
  SUCCEED_CUDA(driver().cuMemcpyDtoDAsync(a + 128, a, 128, second));
  EXPECT_EQ(driver().cuStreamSynchronize(second), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(DriverDouble, WhatEventsOrderIsNoRace) {
  const CUdeviceptr a = allocate(std::vector<float>(64, 1));
  const CUfunction function = scale();
  for (int i = 0; i < 3; ++i) {
    SUCCEED_CUDA(launch(function, a, 2, 64, first));
    SUCCEED_CUDA(driver().cuEventRecord(event, first));
    SUCCEED_CUDA(driver().cuStreamWaitEvent(second, event, 0));
    SUCCEED_CUDA(launch(function, a, 2, 64, second));
    SUCCEED_CUDA(driver().cuStreamSynchronize(second));
  }
  EXPECT_EQ(read(a, 1)[0], 127);
}

TEST_F(DriverDouble, ReadersDoNotRaceWithReaders) {
  const CUdeviceptr a = allocate({1, 2}), b = allocate({0, 0});
  SUCCEED_CUDA(driver().cuMemcpyDtoDAsync(b, a, 4, first));
  SUCCEED_CUDA(driver().cuMemcpyDtoDAsync(b + 4, a, 4, first));
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  const CUdeviceptr c = allocate({0});
  SUCCEED_CUDA(driver().cuMemcpyDtoDAsync(b, a, 4, first));
  SUCCEED_CUDA(driver().cuMemcpyDtoDAsync(c, a, 4, second));
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  SUCCEED_CUDA(driver().cuStreamSynchronize(second));
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
  SUCCEED_CUDA(driver().cuStreamSynchronize(first));
  EXPECT_EQ(read(a, 2), (std::vector<float>{-1, 2}));
  SUCCEED_CUDA(enqueue(first, {"beyond", [=] { map(address, 9, "x"); }, {}}));
  EXPECT_EQ(driver().cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
}
