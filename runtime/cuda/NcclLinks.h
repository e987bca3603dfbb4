//===- NcclLinks.h - Transfers between GPUs by NCCL ------------*- C++ -*-===//
//
// A communicator of NCCL is one FIFO: whatever its operations are, they run in
// the order in which the host gave them, on whatever streams. A receive that
// waits would hold up every send behind it. So each directed link has a
// communicator of its own, of two ranks. Messages have no tags and no sizes:
// what does not match hangs. So sizes are compared over the control plane.
//
// Collectives have a communicator for each group (NcclGroups.h). How calls of
// NCCL come to an end: see NcclCalls.h.
//
// Ranks may be processes, or threads of one process with one GPU each.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_NCCLLINKS_H
#define PIPEWRIGHT_RUNTIME_CUDA_NCCLLINKS_H

#include "runtime/cuda/DeviceLinks.h"
#include "runtime/net/Transport.h"

#include <memory>

namespace pipewright::runtime {

/// The calling thread is the rank's, and its GPU's context is current. Throws
/// an Error if NCCL is not there, or too old. `control` must outlive it.
///
/// Destroyed in good order, links wait for each other; while an exception is
/// under way, or after a failure, they are torn down.
std::unique_ptr<DeviceLinks> createNcclLinks(Transport &control);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_NCCLLINKS_H
