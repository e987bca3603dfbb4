//===- Bootstrap.cpp - How ranks were started -----------------------------===//

#include "runtime/net/Bootstrap.h"
#include "runtime/core/Error.h"
#include "runtime/net/MpiTransport.h"
#include "runtime/net/TcpTransport.h"

#include <cstdlib>
#include <string_view>

using namespace pipewright::runtime;

static bool isSet(const char *name) { return std::getenv(name) != nullptr; }

/// srun started several, but gave them no MPI to find each other with.
static bool startedBySrunAlone() {
  // A batch script or a shell of Slurm is a step of one task.
  const char *tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks && std::atoi(tasks) > 1;
}

Launcher pipewright::runtime::findLauncher() {
  const bool torchrun = isSet("TORCHELASTIC_RUN_ID") && isSet("RANK");
  if (startedByMpi() && !torchrun)
    return Launcher::Mpi;
  if (isSet("RANK") && isSet("WORLD_SIZE"))
    return std::string_view(std::getenv("WORLD_SIZE")) == "1"
               ? Launcher::None
               : Launcher::Environment;
  if (isSet("RANK") || isSet("WORLD_SIZE"))
    fail("RANK and WORLD_SIZE go together, but only ",
         isSet("RANK") ? "RANK" : "WORLD_SIZE",
         " is set: set both (and MASTER_ADDR, MASTER_PORT), or none");
  if (startedBySrunAlone())
    fail("srun started several processes, but neither with MPI nor with RANK "
         "and WORLD_SIZE: use srun --mpi=pmix");
  return Launcher::None;
}

int64_t pipewright::runtime::environmentRank() {
  const bool torchrun = isSet("TORCHELASTIC_RUN_ID");
  if (const char *rank = std::getenv("RANK"); rank && torchrun)
    return std::atoll(rank);
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                           "RANK", "SLURM_PROCID"})
    if (const char *rank = std::getenv(name))
      return std::atoll(rank);
  return 0;
}

std::unique_ptr<Transport>
pipewright::runtime::createProcessTransport(double deadlineSeconds,
                                            std::string_view program) {
  if (findLauncher() == Launcher::Environment)
    return createTcpTransport(TcpJob::fromEnvironment(program),
                              deadlineSeconds);
  return createMpiTransport();
}
