//===- Driver.h - The CUDA driver, opened when needed ----------*- C++ -*-===//
//
// The only file that names functions of libcuda.so.1. Everything on the GPU
// goes through this table: PIPEWRIGHT_CUDA(cuMemAlloc(&address, bytes)) calls
// the function and turns a failure into an Error.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_DRIVER_H
#define PIPEWRIGHT_RUNTIME_CUDA_DRIVER_H

#include <cuda.h>

#include <string>

// The headers of CUDA 13 call this function by a name that drivers before 12.8
// do not have. Both are the same for events that were recorded plainly.
#undef cuEventElapsedTime

extern "C" CUresult CUDAAPI cuEventElapsedTime(float *milliseconds,
                                               CUevent start, CUevent end);

/// All functions of the driver that the runtime calls: start and errors,
/// devices, memory, memory and events between processes, kernels, streams and
/// events, graphs.
// clang-format off
#define PIPEWRIGHT_DRIVER_FUNCTIONS(F)                                         \
  F(cuInit) F(cuDriverGetVersion) F(cuGetErrorName) F(cuGetErrorString)        \
  F(cuDeviceGetCount) F(cuDeviceGet) F(cuDeviceGetName)                        \
  F(cuDeviceGetAttribute) F(cuDeviceTotalMem) F(cuDeviceGetPCIBusId)           \
  F(cuDeviceGetByPCIBusId) F(cuDeviceCanAccessPeer)                            \
  F(cuDevicePrimaryCtxRetain) F(cuDevicePrimaryCtxRelease)                     \
  F(cuCtxSetCurrent) F(cuCtxGetCurrent) F(cuCtxGetDevice)                      \
  F(cuCtxSynchronize) F(cuCtxEnablePeerAccess)                                 \
  F(cuMemGetInfo) F(cuMemAlloc) F(cuMemFree) F(cuMemAllocHost)                 \
  F(cuMemFreeHost) F(cuMemcpyHtoD) F(cuMemcpyDtoH) F(cuMemcpyHtoDAsync)        \
  F(cuMemcpyDtoHAsync) F(cuMemcpyDtoDAsync) F(cuMemcpyPeerAsync)               \
  F(cuMemsetD8Async) F(cuMemsetD32Async)                                       \
  F(cuIpcGetMemHandle) F(cuIpcOpenMemHandle) F(cuIpcCloseMemHandle)            \
  F(cuIpcGetEventHandle) F(cuIpcOpenEventHandle)                               \
  F(cuModuleLoadDataEx) F(cuModuleUnload) F(cuModuleGetFunction)               \
  F(cuFuncSetAttribute) F(cuLaunchKernel) F(cuLaunchHostFunc)                  \
  F(cuCtxGetStreamPriorityRange) F(cuStreamCreateWithPriority)                 \
  F(cuStreamCreate) F(cuStreamDestroy) F(cuStreamQuery)                        \
  F(cuStreamSynchronize) F(cuStreamWaitEvent) F(cuEventCreate)                 \
  F(cuEventDestroy) F(cuEventRecord) F(cuEventQuery) F(cuEventSynchronize)     \
  F(cuEventElapsedTime)                                                        \
  F(cuStreamBeginCapture) F(cuStreamEndCapture) F(cuStreamIsCapturing)         \
  F(cuGraphGetNodes) F(cuGraphInstantiate) F(cuGraphUpload) F(cuGraphLaunch)   \
  F(cuGraphExecDestroy) F(cuGraphDestroy)
// clang-format on

namespace pipewright::runtime {

/// Pointers to the driver's functions, of the types that its header declares.
struct Driver {
  // The name may be a macro of cuda.h (cuMemAlloc is cuMemAlloc_v2): it is
  // replaced here and in every call alike.
#define PIPEWRIGHT_DRIVER_POINTER(name) decltype(&::name) name = nullptr;
  PIPEWRIGHT_DRIVER_FUNCTIONS(PIPEWRIGHT_DRIVER_POINTER)
#undef PIPEWRIGHT_DRIVER_POINTER

  /// What cuDriverGetVersion said: 12080 is CUDA 12.8.
  int version = 0;
};

/// Opens the driver and starts it (cuInit) at the first call. Throws an Error
/// when there is none, when it is too old, or when it finds no GPU.
const Driver &cudaDriver();

/// Throws an Error with the name of the call and the driver's own words.
void checkCuda(CUresult result, const char *call);

/// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
std::string cudaErrorText(CUresult result);

/// Lets the current GPU, of context `own`, reach the other's memory where it
/// can, and whether it can; else the driver takes copies through the host's
/// memory.
bool enablePeerAccess(CUcontext own, CUcontext other);

/// Copies to the GPU and waits until the bytes are there, for streams too: from
/// pageable memory the driver's own call may come back before.
void copyToDevice(CUdeviceptr destination, const void *source, int64_t bytes);

/// "12.8" of 12080.
std::string cudaVersionText(int version);

} // namespace pipewright::runtime

/// Calls a function of the driver: PIPEWRIGHT_CUDA(cuMemFree(address)).
#define PIPEWRIGHT_CUDA(call)                                                  \
  ::pipewright::runtime::checkCuda(::pipewright::runtime::cudaDriver().call,   \
                                   #call)

#endif // PIPEWRIGHT_RUNTIME_CUDA_DRIVER_H
