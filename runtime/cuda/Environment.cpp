//===- Environment.cpp - What CUDA's libraries read at the start ----------===//

#include "runtime/cuda/Environment.h"

#include <cuda.h>

#include <cstdlib>
#include <dlfcn.h>

using namespace pipewright::runtime;

/// CUDA 12.3: the order of launches no longer means the order of completion.
static constexpr int orderedLaunchDriver = 12030;

/// 0 if there is no driver; whoever needs one says so later.
static int driverVersion() {
  int version = 0;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return 0;
  if (void *function = dlsym(library, "cuDriverGetVersion"))
    reinterpret_cast<decltype(&::cuDriverGetVersion)>(function)(&version);
  return version;
}

static void setForNccl() {
  // Libraries load their kernels at the first use, for which the driver may
  // wait until the GPU is idle; a transfer that waits for its peer meanwhile
  // would never end.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  // A kernel that needs more stack than all before makes the driver enlarge
  // it, for which it waits as well: NCCL's ask for theirs at the start.
  setenv("NCCL_SET_STACK_SIZE", "1", 0);
  // A rank has one communicator for each link, and their kernels may wait for
  // each other's peers. If a GPU starts them in another order than the host
  // gave them, those that wait can keep out those that are waited for. This
  // makes the GPU start them in the host's order, which the plan was checked
  // for. Before CUDA 12.3 it would also make each wait for the end of the last,
  // which is more than the plan was checked for.
  if (driverVersion() >= orderedLaunchDriver)
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
}

void pipewright::runtime::setGpuEnvironment(bool overNccl) {
  // Streams that wait must not stand in the way of streams that could run:
  // each rank has one for every link.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  if (overNccl)
    setForNccl();
}
