//===- Driver.cpp - The CUDA driver, opened when needed -------------------===//

#include "runtime/cuda/Driver.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/SharedLibrary.h"

#include <cstring>

using namespace pipewright::runtime;

/// The oldest driver that has all that is called, and reads our PTX.
static constexpr int oldestVersion = 12000;

std::string pipewright::runtime::cudaVersionText(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

static Driver openDriver() {
  const SharedLibrary library(
      "CUDA driver", "libcuda.so.1",
      "install NVIDIA's driver, or compile the model with --target cpu");
  Driver driver;
  const std::string needed =
      "a driver for CUDA " + cudaVersionText(oldestVersion) + " or newer";
  library.get(driver.cuDriverGetVersion, "cuDriverGetVersion", needed.c_str());
  if (driver.cuDriverGetVersion(&driver.version) == CUDA_SUCCESS &&
      driver.version < oldestVersion)
    fail("the CUDA driver is too old: it is for CUDA ",
         cudaVersionText(driver.version), ", but ", needed,
         " is needed; install a newer driver of NVIDIA's, or compile the model "
         "with --target cpu");
#define PIPEWRIGHT_TEXT(name) #name
#define PIPEWRIGHT_DRIVER_LOAD(name)                                           \
  library.get(driver.name, PIPEWRIGHT_TEXT(name), needed.c_str());
  PIPEWRIGHT_DRIVER_FUNCTIONS(PIPEWRIGHT_DRIVER_LOAD)
#undef PIPEWRIGHT_DRIVER_LOAD
#undef PIPEWRIGHT_TEXT
  return driver;
}

static std::string errorText(const Driver &driver, CUresult result) {
  const char *name = nullptr, *text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  return std::string(text ? text : "unknown error") + " (" +
         (name ? name : std::to_string(result)) + ")";
}

static Driver startDriver() {
  Driver driver = openDriver();
  const CUresult result = driver.cuInit(0);
  if (result == CUDA_ERROR_NO_DEVICE)
    fail("no GPU: the CUDA driver is installed, but finds none that it can use "
         "(cuInit: ",
         errorText(driver, result), "); is CUDA_VISIBLE_DEVICES right?");
  if (result != CUDA_SUCCESS)
    fail("the CUDA driver does not start (cuInit: ", errorText(driver, result),
         ")");
  return driver;
}

const Driver &pipewright::runtime::cudaDriver() {
  static const Driver driver = startDriver();
  return driver;
}

std::string pipewright::runtime::cudaErrorText(CUresult result) {
  return errorText(cudaDriver(), result);
}

void pipewright::runtime::checkCuda(CUresult result, const char *call) {
  if (result == CUDA_SUCCESS)
    return;
  fail(std::string(call, std::strcspn(call, "(")),
       " failed: ", cudaErrorText(result));
}

void pipewright::runtime::copyToDevice(CUdeviceptr destination,
                                       const void *source, int64_t bytes) {
  PIPEWRIGHT_CUDA(cuMemcpyHtoD(destination, source, bytes));
  PIPEWRIGHT_CUDA(cuStreamSynchronize(nullptr));
}

bool pipewright::runtime::enablePeerAccess(CUcontext own, CUcontext other) {
  if (own == other)
    return true;
  const CUresult result = cudaDriver().cuCtxEnablePeerAccess(other, 0);
  if (result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED)
    return false;
  if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
    checkCuda(result, "cuCtxEnablePeerAccess");
  return true;
}
