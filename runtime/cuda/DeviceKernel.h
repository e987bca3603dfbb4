//===- DeviceKernel.h - Compiled kernels of a GPU program ------*- C++ -*-===//
//
// What generated kernels.cpp tells about the PTX that it comes with.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_DEVICEKERNEL_H
#define PIPEWRIGHT_RUNTIME_CUDA_DEVICEKERNEL_H

#include <cstdint>
#include <vector>

namespace pipewright::runtime {

/// One launch of an entry point of the program's PTX.
struct KernelLaunch {
  const char *entry = "";
  /// Blocks, and threads of each; both one-dimensional.
  int64_t grid = 1;
  int64_t block = 32;
  /// Bytes of shared memory that the launch asks for.
  int64_t sharedBytes = 0;
};

/// A compiled kernel: its launches run one after the other. All take the same
/// parameters: the kernel's pointers (inputs, then results), then a pointer to
/// scratch memory if it needs any.
struct DeviceKernel {
  const char *name = "";
  std::vector<KernelLaunch> launches;
  int64_t scratchBytes = 0;
};

/// PTX text for GPUs of at least this architecture (80 is sm_80).
struct DeviceImage {
  int64_t architecture = 0;
  const char *begin = nullptr;
  const char *end = nullptr;
};

/// How matmul and convolution of float32 may round.
enum class Float32Mode { Full, Tf32 };

/// Whose kernels compute attention; Auto is cuDNN's wherever they can.
enum class AttentionBy { Auto, Cudnn, Own };

/// What a GPU program has beside its Program.
struct DeviceProgram {
  std::vector<DeviceImage> images;
  std::vector<const DeviceKernel *> kernels;
  Float32Mode float32 = Float32Mode::Full;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_DEVICEKERNEL_H
