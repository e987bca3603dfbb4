//===- CublasLt.cpp - NVIDIA's library of matrix products -----------------===//

#include "runtime/cuda/CublasLt.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/Driver.h"
#include "runtime/cuda/SharedLibrary.h"

#include <cstring>
#include <string>

using namespace pipewright::runtime;

/// That of CUDA 13 or 12: what is called has the same meaning in both. A driver
/// for CUDA 12 runs that of CUDA 12 alone.
static SharedLibrary openLibrary() {
  const char *what = "cuBLASLt";
  const int driver = cudaDriver().version;
  if (driver < 13000)
    return SharedLibrary(what, "libcublasLt.so.12",
                         "the CUDA driver is for CUDA " +
                             cudaVersionText(driver) +
                             ": install cuBLAS of CUDA 12, or let "
                             "LD_LIBRARY_PATH name its folder");
  const char *advice = "install cuBLAS of CUDA 13 or 12, or let "
                       "LD_LIBRARY_PATH name its folder";
  try {
    return SharedLibrary(what, "libcublasLt.so.13", advice);
  } catch (const Error &newest) {
    try {
      return SharedLibrary(what, "libcublasLt.so.12", advice);
    } catch (const Error &) {
      throw newest;
    }
  }
}

static CublasLt loadFunctions() {
  const SharedLibrary library = openLibrary();
  CublasLt functions;
#define PIPEWRIGHT_CUBLASLT_LOAD(name)                                         \
  library.get(functions.name, #name, "cuBLAS of CUDA 12 or newer");
  PIPEWRIGHT_CUBLASLT_FUNCTIONS(PIPEWRIGHT_CUBLASLT_LOAD)
#undef PIPEWRIGHT_CUBLASLT_LOAD
  return functions;
}

const CublasLt &pipewright::runtime::cublasLt() {
  static const CublasLt functions = loadFunctions();
  return functions;
}

void pipewright::runtime::checkCublasLt(cublasStatus_t status,
                                        const char *call) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return;
  fail(std::string(call, std::strcspn(call, "(")),
       " failed: ", cublasLt().cublasLtGetStatusString(status), " (",
       static_cast<int>(status), ")");
}
