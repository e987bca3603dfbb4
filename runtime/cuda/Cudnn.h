//===- Cudnn.h - NVIDIA's library of convolutions --------------*- C++ -*-===//
//
// The only file that names functions of libcudnn.so. It is opened when a
// program has a convolution, at the first call. Work is described by backend
// descriptors: tensors, an operation graph, an execution plan.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_CUDNN_H
#define PIPEWRIGHT_RUNTIME_CUDA_CUDNN_H

#include <cudnn.h>

#include <utility>
#include <vector>

// clang-format off
#define PIPEWRIGHT_CUDNN_FUNCTIONS(F)                                          \
  F(cudnnGetVersion) F(cudnnGetErrorString) F(cudnnGetLastErrorString)         \
  F(cudnnCreate) F(cudnnDestroy) F(cudnnSetStream)                             \
  F(cudnnBackendCreateDescriptor) F(cudnnBackendDestroyDescriptor)             \
  F(cudnnBackendSetAttribute) F(cudnnBackendGetAttribute)                      \
  F(cudnnBackendFinalize) F(cudnnBackendExecute)
// clang-format on

namespace pipewright::runtime {

/// Pointers to the library's functions, of the types that its header declares.
struct Cudnn {
#define PIPEWRIGHT_CUDNN_POINTER(name) decltype(&::name) name = nullptr;
  PIPEWRIGHT_CUDNN_FUNCTIONS(PIPEWRIGHT_CUDNN_POINTER)
#undef PIPEWRIGHT_CUDNN_POINTER
};

/// Opens the library at the first call. Throws an Error when there is none.
const Cudnn &cudnn();

/// Throws an Error with the name of the call and the library's own words.
void checkCudnn(cudnnStatus_t status, const char *call);

/// A backend descriptor and what it needs to live.
class CudnnDescriptor {
public:
  CudnnDescriptor() = default;
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor &&other) noexcept {
    *this = std::move(other);
  }
  CudnnDescriptor &operator=(CudnnDescriptor &&other) noexcept {
    std::swap(descriptor, other.descriptor);
    std::swap(parts, other.parts);
    return *this;
  }
  ~CudnnDescriptor();

  cudnnBackendDescriptor_t get() const { return descriptor; }
  explicit operator bool() const { return descriptor != nullptr; }

  /// Set an attribute to these values.
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           int64_t count, const void *values);
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           const T &value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name,
           const std::vector<int64_t> &values);
  /// The other descriptor is kept as long as this one.
  void set(cudnnBackendAttributeName_t name, CudnnDescriptor &&other);
  /// The other descriptor must outlive this one.
  void refer(cudnnBackendAttributeName_t name, const CudnnDescriptor &other);
  void keep(CudnnDescriptor &&other) { parts.push_back(std::move(other)); }

  /// Ends the setting of attributes; the library says whether it can do this.
  cudnnStatus_t tryFinalize();
  void finalize();

private:
  cudnnBackendDescriptor_t descriptor = nullptr;
  std::vector<CudnnDescriptor> parts;
};

} // namespace pipewright::runtime

/// Calls a function of the library: PIPEWRIGHT_CUDNN(cudnnCreate(&handle)).
#define PIPEWRIGHT_CUDNN(call)                                                 \
  ::pipewright::runtime::checkCudnn(::pipewright::runtime::cudnn().call, #call)

#endif // PIPEWRIGHT_RUNTIME_CUDA_CUDNN_H
