//===- NamedRange.h - Names for NVIDIA's profilers -------------*- C++ -*-===//
//
// What the host enqueues for a task is a range of NVTX with the task's name,
// as the plan has it. Without a profiler, or without NVTX's header, it is
// nothing.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_NAMEDRANGE_H
#define PIPEWRIGHT_RUNTIME_CUDA_NAMEDRANGE_H

#include <string>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define PIPEWRIGHT_HAS_NVTX
#endif

namespace pipewright::runtime {

/// Lasts as long as the object.
class NamedRange {
public:
#ifdef PIPEWRIGHT_HAS_NVTX
  explicit NamedRange(const std::string &name) { nvtxRangePushA(name.c_str()); }
  ~NamedRange() { nvtxRangePop(); }
#else
  explicit NamedRange(const std::string &) {}
#endif
  NamedRange(const NamedRange &) = delete;
  NamedRange &operator=(const NamedRange &) = delete;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_NAMEDRANGE_H
