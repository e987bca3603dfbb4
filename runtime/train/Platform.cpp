//===- Platform.cpp - What the ranks of a process compute on --------------===//

#include "runtime/train/Platform.h"
#include "runtime/core/Error.h"
#include "runtime/net/Agreement.h"

#ifdef PIPEWRIGHT_HAS_CUDA
#include "runtime/cuda/Environment.h"
#include "runtime/cuda/GpuPlatform.h"
#endif

#include <cstdlib>
#include <utility>

using namespace pipewright::runtime;

namespace {

/// Ranks are threads that share out the host's cores.
class CpuPlatform : public Platform {
public:
  /// `index`: the place of this process's rank among the host's; -1: all ranks
  /// of the host are in this process.
  CpuPlatform(const Program &program, const Placement &placement, int64_t index)
      : program(program), placement(placement), index(index) {}

  std::unique_ptr<Rank> createRank(Transport &transport) override {
    const int64_t number = transport.rank();
    placement.apply(index < 0 ? number : index);
    auto rank = std::make_unique<Rank>(program, number, transport);
    rank->setThreads(placement.threadsPerRank);
    return rank;
  }

  std::string describe() const override {
    const int64_t threads = placement.threadsPerRank;
    return std::to_string(threads) + (threads == 1 ? " thread" : " threads") +
           " each" +
           (placement.pinned() ? "" : " (not pinned: more threads than cores)");
  }

private:
  const Program &program;
  const Placement placement;
  const int64_t index;
};

} // namespace

#ifndef PIPEWRIGHT_HAS_CUDA
[[noreturn]] static void failWithoutCuda() {
  fail("the program was compiled for GPUs, but its runtime without: build it "
       "where CUDA's headers (cuda.h, nccl.h, cublasLt.h, cudnn.h) are found");
}
#endif

void pipewright::runtime::prepareEnvironment(const Program &program,
                                             const Options &options) {
#ifdef PIPEWRIGHT_HAS_CUDA
  if (program.device)
    setGpuEnvironment(program.ranks.size() > 1 &&
                      options.links != LinkKind::Local);
#else
  static_cast<void>(program), static_cast<void>(options);
#endif
}

std::unique_ptr<Platform>
pipewright::runtime::createThreadPlatform(const Program &program,
                                          const Options &options) {
  if (program.device) {
#ifdef PIPEWRIGHT_HAS_CUDA
    return createGpuThreads(program, options);
#else
    failWithoutCuda();
#endif
  }
  const Placement placement(program.ranks.size(), options.threadsPerRank,
                            false);
  checkThreads(placement.ranksOnHost * placement.threadsPerRank);
  return std::make_unique<CpuPlatform>(program, placement, -1);
}

/// The launcher's own words go before names of hosts, which may be the same in
/// containers. Every process reads what is in its environment.
static HostPlace launcherPlace(HostPlace found) {
  const std::pair<const char *, const char *> names[] = {
      {"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}};
  for (const auto &[rank, size] : names) {
    const char *index = std::getenv(rank), *count = std::getenv(size);
    if (!index || !count)
      continue;
    const HostPlace place = {std::atoll(index), std::atoll(count)};
    if (place.index >= 0 && place.index < place.count)
      return place;
  }
  return found;
}

std::unique_ptr<Platform> pipewright::runtime::createProcessPlatform(
    const Program &program, const Options &options, Transport &transport) {
  const HostPlace place = launcherPlace(findHostPlace(transport));
  if (program.device) {
#ifdef PIPEWRIGHT_HAS_CUDA
    return createGpuProcess(program, options, place, transport);
#else
    failWithoutCuda();
#endif
  }
  const Placement placement(place.count, options.threadsPerRank, true);
  checkThreads(placement.threadsPerRank);
  return std::make_unique<CpuPlatform>(program, placement, place.index);
}
