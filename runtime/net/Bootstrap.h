//===- Bootstrap.h - How ranks were started --------------------*- C++ -*-===//
//
// A program does not start its processes itself: mpirun, srun, torchrun or a
// script does, and tells each one its place by environment variables.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_BOOTSTRAP_H
#define PIPEWRIGHT_RUNTIME_NET_BOOTSTRAP_H

#include "runtime/net/Agreement.h"
#include "runtime/net/Transport.h"

#include <cstdint>
#include <memory>
#include <string_view>

namespace pipewright::runtime {

enum class Launcher {
  /// Nobody: all ranks are threads of this process.
  None,
  /// mpirun, or srun with its MPI support.
  Mpi,
  /// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say where to meet.
  Environment
};

/// Who started this process as one of several. MPI goes first, except below
/// torchrun, which may itself have been started by srun. Throws an Error where
/// the environment says half of what is needed.
Launcher findLauncher();

/// The rank of this process as the environment has it, before there is a
/// Transport; 0 if nobody started it.
int64_t environmentRank();

/// The place of a process among those of its host as its launcher has it, or
/// else the one that was found by names of hosts, which may be the same in
/// containers. Every process reads its own environment.
RankOnHost placeByLauncher(int64_t rank, int64_t size, RankOnHost found);

/// The control plane between processes, by whatever findLauncher says.
/// `program` is whatever only copies of the same program have in common. Throws
/// an Error within the deadline if some rank does not arrive.
std::unique_ptr<Transport>
createProcessTransport(double deadlineSeconds = 300,
                       std::string_view program = "");

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_NET_BOOTSTRAP_H
