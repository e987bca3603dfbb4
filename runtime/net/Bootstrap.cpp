//===- Bootstrap.cpp - How ranks were started -----------------------------===//

#include "runtime/net/Bootstrap.h"
#include "runtime/core/Error.h"
#include "runtime/net/MpiTransport.h"
#include "runtime/net/TcpTransport.h"

#include <algorithm>
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

namespace {
/// What a launcher calls the place of a process, among all of the run and among
/// those of its host; null: it does not say.
struct PlaceNames {
  const char *rank = nullptr, *size = nullptr;
  const char *localRank = nullptr, *localSize = nullptr;
};
} // namespace

/// Slurm says how many tasks each host has; see tasksOfHost.
constexpr const char *slurmTasks = "SLURM_STEP_TASKS_PER_NODE";

/// Whatever started this process goes before what started that.
constexpr PlaceNames placeNames[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMIX_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"},
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", slurmTasks}};

int64_t pipewright::runtime::environmentRank() {
  const bool torchrun = isSet("TORCHELASTIC_RUN_ID");
  if (const char *rank = std::getenv("RANK"); rank && torchrun)
    return std::atoll(rank);
  for (const PlaceNames &names : placeNames)
    if (const char *rank = std::getenv(names.rank))
      return std::atoll(rank);
  return 0;
}

/// The tasks of this host in "4(x2),3": two hosts of four tasks, one of three.
/// 0 if it is not there.
static int64_t tasksOfHost(const char *text) {
  const char *node = std::getenv("SLURM_NODEID");
  int64_t left = node ? std::atoll(node) : 0;
  while (*text) {
    char *end = nullptr;
    const int64_t tasks = std::strtoll(text, &end, 10);
    int64_t hosts = 1;
    if (std::string_view(end).substr(0, 2) == "(x") {
      hosts = std::strtoll(end + 2, &end, 10);
      end += *end == ')';
    }
    if (left < hosts)
      return tasks;
    if (*end != ',')
      return 0;
    left -= hosts;
    text = end + 1;
  }
  return 0;
}

static bool differs(const char *name, int64_t number) {
  const char *text = name ? std::getenv(name) : nullptr;
  return text && std::atoll(text) != number;
}

/// What is said of another rank, or of a run of another size, is of a launcher
/// that started this one's.
RankOnHost pipewright::runtime::placeByLauncher(int64_t rank, int64_t size,
                                                RankOnHost found) {
  for (const PlaceNames &names : placeNames) {
    const char *index =
        names.localRank ? std::getenv(names.localRank) : nullptr;
    if (!index || differs(names.rank, rank) || differs(names.size, size))
      continue;
    const char *count = std::getenv(names.localSize);
    RankOnHost place = {std::atoll(index), 0};
    if (count)
      place.count = names.localSize == slurmTasks ? tasksOfHost(count)
                                                  : std::atoll(count);
    else
      place.count = std::max(found.count, place.index + 1);
    if (place.index >= 0 && place.index < place.count)
      return place;
  }
  return found;
}

std::unique_ptr<Transport>
pipewright::runtime::createProcessTransport(double deadlineSeconds,
                                            std::string_view program) {
  if (findLauncher() == Launcher::Environment)
    return createTcpTransport(TcpJob::fromEnvironment(program),
                              deadlineSeconds);
  return createMpiTransport();
}
