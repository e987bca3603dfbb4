//===- NcclMemory.h - What NCCL takes of a GPU -----------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_NCCLMEMORY_H
#define PIPEWRIGHT_RUNTIME_CUDA_NCCLMEMORY_H

#include <cstdint>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// How many multiprocessors a transfer may hold while it waits for its peer.
/// All links of a rank may wait at once, and leave most of the GPU to tasks;
/// what a stage hands on takes two orders of magnitude less time than the stage
/// itself, so that more would not be seen.
inline constexpr int linkCtas = 4;

/// The same of a collective that waits for a slow member: more, as it moves a
/// stage's weights.
inline constexpr int groupCtas = 8;

/// Bytes of the buffers that a rank's links, (from, to), and groups have. Each
/// multiprocessor is a channel of NCCL, and each channel has a buffer for what
/// it receives; across hosts, one for what it sends as well. A ring is one link
/// in and one out.
int64_t ncclBuffersOf(int64_t rank,
                      const std::vector<std::pair<int64_t, int64_t>> &links,
                      const std::vector<std::vector<int64_t>> &groups,
                      bool isOneHost);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_NCCLMEMORY_H
