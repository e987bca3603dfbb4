//===- GpuPlatform.h - Which GPU each rank takes ---------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_GPUPLATFORM_H
#define PIPEWRIGHT_RUNTIME_CUDA_GPUPLATFORM_H

#include "runtime/core/Program.h"
#include "runtime/net/Agreement.h"
#include "runtime/train/Options.h"
#include "runtime/train/Platform.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// How ranks reach each other, and which GPUs those of this host take.
struct GpuChoice {
  LinkKind links = LinkKind::Local;
  /// By the place of the rank among those of the host.
  std::vector<int64_t> gpus;
};

/// Chooses for `ranksHere` ranks of this host, of `ranks` in all, where the
/// driver shows `available` GPUs. Throws an Error when they are too few.
GpuChoice chooseGpus(int64_t ranks, int64_t ranksHere, bool processes,
                     int64_t available, const Options &options);

/// All directed links of a program, in the one order in which they are made.
std::vector<std::pair<int64_t, int64_t>> linksOf(const Program &program);

std::unique_ptr<Platform> createGpuThreads(const Program &program,
                                           const Options &options);
std::unique_ptr<Platform> createGpuProcess(const Program &program,
                                           const Options &options,
                                           HostPlace place,
                                           Transport &transport);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_GPUPLATFORM_H
