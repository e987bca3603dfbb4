//===- CpuPlatform.cpp - Ranks that are threads of CPUs -------------------===//

#include "runtime/cpu/CpuPlatform.h"
#include "runtime/core/ThreadLimit.h"
#include "runtime/cpu/CpuFeatures.h"
#include "runtime/cpu/Probes.h"
#include "runtime/cpu/Rank.h"
#include "runtime/cpu/Threads.h"
#include "runtime/net/Agreement.h"
#include "runtime/net/Transport.h"

using namespace pipewright::runtime;

namespace {

class CpuRanks final : public RankFactory {
public:
  /// `index`: the place of this process's rank among the host's; -1: all ranks
  /// of the host are in this process.
  CpuRanks(const Program &program, const Placement &placement, int64_t index)
      : program(program), placement(placement), index(index) {}

  std::unique_ptr<Worker> createRank(Transport &transport) override {
    placement.apply(index < 0 ? transport.rank() : index);
    auto rank = std::make_unique<Rank>(program, transport);
    rank->setThreads(placement.threadsPerRank);
    return rank;
  }

  void moveToCoresOf(Transport &transport, int64_t by) override {
    const int64_t own = index < 0 ? transport.rank() : index;
    placement.move((own + by) % placement.ranksOnHost);
  }

  void leaveCores() override { placement.leave(); }

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

class CpuPlatform final : public Platform {
public:
  const char *name() const override { return "cpu"; }
  const char *rankWord() const override { return "rank"; }
  bool hasThreads() const override { return true; }
  const char *timeoutHelp() const override {
    return "seconds of silence until a rank counts as lost (8)";
  }
  double timeout() const override { return 8; }

  void check(const Program &program) const override {
    checkKernelFeatures();
    checkCpuLibrary(program);
  }
  std::string remarks(const Program &program) const override {
    return cpuRemarks(program);
  }

  std::unique_ptr<RankFactory>
  createThreads(const Program &program,
                const RunSettings &settings) const override {
    const Placement placement(program.mesh().size(), settings.threadsPerRank,
                              false);
    checkThreads(placement.ranksOnHost * placement.threadsPerRank);
    return std::make_unique<CpuRanks>(program, placement, -1);
  }

  std::unique_ptr<RankFactory> createProcess(const Program &program,
                                             const RunSettings &settings,
                                             RankOnHost place,
                                             Transport &) const override {
    const Placement placement(place.count, settings.threadsPerRank, true);
    checkThreads(placement.threadsPerRank);
    return std::make_unique<CpuRanks>(program, placement, place.index);
  }

  ProbeProgram probeProgram() const override {
#ifdef PIPEWRIGHT_HAS_CPU
    return cpuProbes();
#else
    return {};
#endif
  }
};

} // namespace

const Platform &pipewright::runtime::cpuPlatform() {
  static const CpuPlatform platform;
  return platform;
}
