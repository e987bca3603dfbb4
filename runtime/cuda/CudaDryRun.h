//===- CudaDryRun.h - What --dry-run tells of GPUs --------------*- C++ -*-===//
//
// All of it comes from the program, the options and the launcher's environment:
// no driver is looked for. Where --gpus names no GPUs, there is one for each
// rank.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_CUDADRYRUN_H
#define PIPEWRIGHT_RUNTIME_CUDA_CUDADRYRUN_H

#include "runtime/core/Platform.h"

#include <string>

namespace pipewright::runtime {

/// Kernels, GPUs and libraries that are needed, which ranks are where, what
/// each GPU holds, links, communicators and streams: as many lines for hundreds
/// of ranks as for five. Throws an Error where the run would: too few GPUs.
Platform::Lines gpuLines(const Program &program, const RunSettings &settings);

/// The streams and events of one rank.
std::string streamsText(const Program &program, int64_t number);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_CUDADRYRUN_H
