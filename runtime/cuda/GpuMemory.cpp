//===- GpuMemory.cpp - What ranks take of a GPU ---------------------------===//

#include "runtime/cuda/GpuMemory.h"
#include "runtime/cuda/NcclMemory.h"
#include "runtime/cuda/Staging.h"

using namespace pipewright::runtime;

GpuMemory &GpuMemory::operator+=(const GpuMemory &other) {
  arenas += other.arenas;
  workspace += other.workspace;
  ncclBuffers += other.ncclBuffers;
  inputsAhead += other.inputsAhead;
  return *this;
}

GpuMemory pipewright::runtime::gpuMemoryOf(const Program &program, int64_t rank,
                                           const LinkChoice &links,
                                           bool isOneHost) {
  const int64_t position = program.mesh().placeOf(rank).position;
  GpuMemory memory = {.arenas = program.ranks[position].arenaBytes,
                      .workspace = int64_t{32} << 20,
                      .inputsAhead = Staging::bytesOfStep(program, position)};
  memory.ncclBuffers =
      ncclBuffersOf(rank, links.over(LinkKind::Nccl),
                    links.groupsOver(LinkKind::Nccl), isOneHost);
  return memory;
}
