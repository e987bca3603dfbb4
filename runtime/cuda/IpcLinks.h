//===- IpcLinks.h - Transfers between processes of a host ------*- C++ -*-===//
//
// Transport `cuda-ipc`: each process opens the memory of those that it has
// links with, and copy engines go from GPU to GPU (IpcLink.h). No transfer
// holds a multiprocessor, and no stream waits for what is yet to be enqueued.
// There are no groups: processes have those of NCCL.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_IPCLINKS_H
#define PIPEWRIGHT_RUNTIME_CUDA_IPCLINKS_H

#include "runtime/cuda/DeviceLinks.h"
#include "runtime/net/Transport.h"

#include <memory>

namespace pipewright::runtime {

/// The calling thread is the rank's, and its GPU's context is current.
/// `control` must outlive it.
///
/// Destroyed in good order, links wait until their peers have closed what is
/// shared; while an exception is under way, or after a failure, all is left to
/// the end of the process.
std::unique_ptr<DeviceLinks> createIpcLinks(Transport &control);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_IPCLINKS_H
