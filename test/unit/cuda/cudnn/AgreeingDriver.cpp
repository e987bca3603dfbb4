//===- AgreeingDriver.cpp - A CUDA driver that agrees to everything -------===//
//
// cuDNN compiles a kernel for a GPU that is only described to it, and has the
// driver load it, to see whether it can. There is no GPU that could run it:
// every call succeeds, handles are never looked at. No header of CUDA: what is
// asked for depends on the version of cuDNN, not on their signatures.
//
//===----------------------------------------------------------------------===//

#include <dlfcn.h>

#define AGREE(name)                                                            \
  extern "C" int name() { return 0; }
#define AGREE_AND_HAND_OUT(name)                                               \
  extern "C" int name(void **handle) {                                         \
    *handle = handle;                                                          \
    return 0;                                                                  \
  }

AGREE(cuInit)
AGREE(cuCtxGetDevice)
AGREE(cuCtxGetLimit)
AGREE(cuCtxPopCurrent)
AGREE(cuCtxPushCurrent)
AGREE(cuDeviceGet)
AGREE(cuDeviceGetAttribute)
AGREE(cuDeviceGetCount)
AGREE(cuDevicePrimaryCtxRelease)
AGREE(cuDevicePrimaryCtxReset)
AGREE(cuDevicePrimaryCtxRetain)
AGREE(cuFuncGetAttribute)
AGREE(cuFuncSetAttribute)
AGREE(cuGetErrorName)
AGREE(cuGetErrorString)
AGREE(cuKernelGetAttribute)
AGREE(cuKernelSetAttribute)
AGREE(cuLaunchCooperativeKernel)
AGREE(cuLaunchKernel)
AGREE(cuLaunchKernelEx)
AGREE(cuLibraryLoadFromFile)
AGREE(cuLibraryUnload)
AGREE(cuLinkAddData)
AGREE(cuLinkAddData_v2)
AGREE(cuLinkAddFile_v2)
AGREE(cuLinkComplete)
AGREE(cuLinkCreate)
AGREE(cuLinkCreate_v2)
AGREE(cuLinkDestroy)
AGREE(cuMemcpyDtoH_v2)
AGREE(cuModuleGetGlobal_v2)
AGREE(cuModuleLoadFatBinary)
AGREE(cuModuleUnload)
AGREE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
AGREE(cuOccupancyMaxPotentialClusterSize)
AGREE(cuStreamGetCtx)
AGREE(cuStreamSynchronize)
AGREE(cuTensorMapEncodeTiled)

AGREE_AND_HAND_OUT(cuCtxGetCurrent)
AGREE_AND_HAND_OUT(cuLibraryLoadData)
AGREE_AND_HAND_OUT(cuLibraryGetKernel)
AGREE_AND_HAND_OUT(cuLibraryGetModule)
AGREE_AND_HAND_OUT(cuKernelGetFunction)
AGREE_AND_HAND_OUT(cuModuleLoadData)
AGREE_AND_HAND_OUT(cuModuleLoadDataEx)
AGREE_AND_HAND_OUT(cuModuleGetFunction)

extern "C" int cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}

extern "C" int cuGetExportTable(const void **table, const void *) {
  *table = nullptr;
  return 500; // CUDA_ERROR_NOT_FOUND
}

extern "C" int cuGetProcAddress_v2(const char *name, void **address, int,
                                   unsigned long long, int *status) {
  *address = dlsym(RTLD_DEFAULT, name);
  if (status)
    *status = !*address;
  return *address ? 0 : 500;
}
