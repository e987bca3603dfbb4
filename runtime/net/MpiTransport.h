//===- MpiTransport.h - Ranks as MPI processes -----------------*- C++ -*-===//
//
// Non-blocking sends and receives on a communicator of our own. With each
// receive goes a notice of its size to the sender: so that a send completes
// only after its receive, and both ends see a size that does not fit.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_MPITRANSPORT_H
#define PIPEWRIGHT_RUNTIME_NET_MPITRANSPORT_H

#include "runtime/net/Transport.h"

#include <memory>

namespace pipewright::runtime {

/// Whether a launcher (mpirun, srun with MPI) started this process as one of
/// several.
bool startedByMpi();

/// Initialises MPI, and finalises it when destroyed. Throws an Error in a
/// build without MPI.
std::unique_ptr<Transport> createMpiTransport();

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_MPITRANSPORT_H
