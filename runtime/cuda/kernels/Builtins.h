//===- Builtins.h - Launches of the builtin kernels ------------*- C++ -*-===//
//
// Builtin.cu comes as PTX inside of the runtime. The driver compiles it for a
// GPU at its first use, once for all ranks on that GPU.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_KERNELS_BUILTINS_H
#define PIPEWRIGHT_RUNTIME_CUDA_KERNELS_BUILTINS_H

#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceRank.h"

#include <string>

namespace pipewright::runtime {

/// Which PTX a kernel is in: Builtin.cu or Attention.cu.
enum class BuiltinImage { General, Attention };

struct BuiltinKernel {
  std::string entry;
  BuiltinImage image = BuiltinImage::General;

  BuiltinKernel(std::string entry, BuiltinImage image = BuiltinImage::General)
      : entry(std::move(entry)), image(image) {}
  BuiltinKernel(const char *entry) : entry(entry) {}
};

/// Loads the kernel's image, if that has not been done.
CUfunction findBuiltin(Device &device, const BuiltinKernel &kernel);

/// Called in setUp: loads the kernel's image, so that no step has to.
void prepareBuiltin(DeviceRank &rank, const BuiltinKernel &kernel);

/// Enqueues a kernel on the compute stream. `parameters` are pointers to what
/// the kernel gets, of exactly its types.
void launchBuiltin(DeviceRank &rank, const BuiltinKernel &kernel,
                   int64_t blocks, int64_t threads, void **parameters);

/// The same with the parameters themselves.
template <class... Parameters>
void launchBuiltin(DeviceRank &rank, const BuiltinKernel &kernel,
                   int64_t blocks, int64_t threads, Parameters... parameters) {
  void *pointers[] = {&parameters...};
  launchBuiltin(rank, kernel, blocks, threads, pointers);
}

/// Launches at least `count` threads, in blocks of 256.
template <class... Parameters>
void launchBuiltinThreads(DeviceRank &rank, const BuiltinKernel &kernel,
                          int64_t count, Parameters... parameters) {
  constexpr int64_t threads = 256;
  if (count > 0)
    launchBuiltin(rank, kernel, (count + threads - 1) / threads, threads,
                  parameters...);
}

/// Whether all addresses are multiples of `alignment`.
template <class... Pointers>
bool alignedTo(int64_t alignment, const Pointers *...pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % alignment == 0) && ...);
}

/// "_f32" or "_bf16", which ends the names of kernels that have both.
const char *typeSuffix(ElementType type);

/// A size that kernels hold in 32 bits; throws an Error when it does not fit.
int32_t kernelSize(int64_t size, const char *what);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_KERNELS_BUILTINS_H
