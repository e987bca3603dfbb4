//===- CudaAwareMpi.cpp - An MPI that starts the CUDA driver --------------===//
//
// To be preloaded: says what the driver would find in its environment.
//
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

static const char *valueOf(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "unset";
}

extern "C" int MPI_Init_thread(int *argc, char ***argv, int required,
                               int *provided) {
  std::printf("MPI starts the driver: %s connections, %s, order %s\n",
              valueOf("CUDA_DEVICE_MAX_CONNECTIONS"),
              valueOf("CUDA_MODULE_LOADING"),
              valueOf("NCCL_LAUNCH_ORDER_IMPLICIT"));
  using Function = int (*)(int *, char ***, int, int *);
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, "MPI_Init_thread"))(
      argc, argv, required, provided);
}
