//===- Cudnn.cpp - NVIDIA's library of convolutions -----------------------===//

#include "runtime/cuda/Cudnn.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/SharedLibrary.h"

#include <cstring>
#include <string>

using namespace pipewright::runtime;

static Cudnn loadFunctions() {
  const SharedLibrary library(
      "cuDNN", "libcudnn.so.9",
      "install cuDNN 9 (9.16 or newer computes attention too), or let "
      "LD_LIBRARY_PATH name its folder");
  Cudnn functions;
#define PIPEWRIGHT_CUDNN_LOAD(name)                                            \
  library.get(functions.name, #name, "cuDNN 9 or newer");
  PIPEWRIGHT_CUDNN_FUNCTIONS(PIPEWRIGHT_CUDNN_LOAD)
#undef PIPEWRIGHT_CUDNN_LOAD
  return functions;
}

const Cudnn &pipewright::runtime::cudnn() {
  static const Cudnn functions = loadFunctions();
  return functions;
}

void pipewright::runtime::checkCudnn(cudnnStatus_t status, const char *call) {
  if (status == CUDNN_STATUS_SUCCESS)
    return;
  char details[512] = "";
  cudnn().cudnnGetLastErrorString(details, sizeof details);
  fail(std::string(call, std::strcspn(call, "(")),
       " failed: ", cudnn().cudnnGetErrorString(status), details[0] ? ": " : "",
       details);
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  PIPEWRIGHT_CUDNN(cudnnBackendCreateDescriptor(type, &descriptor));
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor)
    cudnn().cudnnBackendDestroyDescriptor(descriptor);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t count,
                          const void *values) {
  PIPEWRIGHT_CUDNN(
      cudnnBackendSetAttribute(descriptor, name, type, count, values));
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name,
                          const std::vector<int64_t> &values) {
  set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()),
      values.data());
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name,
                          CudnnDescriptor &&other) {
  refer(name, other);
  keep(std::move(other));
}

void CudnnDescriptor::refer(cudnnBackendAttributeName_t name,
                            const CudnnDescriptor &other) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.descriptor);
}

cudnnStatus_t CudnnDescriptor::tryFinalize() {
  return cudnn().cudnnBackendFinalize(descriptor);
}

void CudnnDescriptor::finalize() {
  checkCudnn(tryFinalize(), "cudnnBackendFinalize");
}
