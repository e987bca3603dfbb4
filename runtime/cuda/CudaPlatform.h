//===- CudaPlatform.h - Which GPU each rank takes ---------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_CUDAPLATFORM_H
#define PIPEWRIGHT_RUNTIME_CUDA_CUDAPLATFORM_H

#include "runtime/core/Platform.h"
#include "runtime/cuda/DeviceKernel.h"
#include "runtime/cuda/LinkKind.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// The options that only GPUs have.
struct CudaOptions {
  /// Unless given: the first kind that will do.
  std::optional<LinkKind> links;
  /// The numbers of the GPUs to use; empty for all.
  std::vector<int64_t> gpus;
  bool graphs = true;
  AttentionBy attention = AttentionBy::Auto;
  /// A file's name; empty: the heuristic's.
  std::string algorithms;
  /// Seed of random delays; 0: none.
  uint64_t chaos = 0;

  static CudaOptions of(const RunSettings &settings);
};

/// How ranks reach each other, and which GPUs those of this host take.
struct GpuChoice {
  /// Ipc: processes of a host; those of others are Nccl's.
  LinkKind links = LinkKind::Local;
  /// Indexed by the place of the rank among those of the host.
  std::vector<int64_t> gpus;
};

/// Whether ranks that are threads can do without NCCL on these GPUs.
using CanBeLocal = std::function<bool(const std::vector<int64_t> &gpus)>;

/// Chooses for `ranksHere` ranks of this host, of `ranks` in all, where the
/// driver shows `available` GPUs. Throws an Error when they are too few.
GpuChoice chooseGpus(int64_t ranks, int64_t ranksHere, bool processes,
                     int64_t available, const CudaOptions &options,
                     const CanBeLocal &canBeLocal);

/// Ranks take GPUs of NVIDIA.
const Platform &cudaPlatform();

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_CUDAPLATFORM_H
