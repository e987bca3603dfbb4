//===- Draft.cpp - What a plan that is only compared comes to -------------===//

#include "tools/pipewright/Draft.h"

#include "dialects/pipe/PipeDialect.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;

namespace pipewright::tool {

Draft Draft::ofMemory(ModuleOp module) {
  Draft draft;
  draft.stages = llvm::range_size(module.getOps<pipe::StageOp>());
  for (auto arena : module.getOps<pipe::ArenaOp>()) {
    draft.ranks.resize(
        std::max<size_t>(draft.ranks.size(), arena.getRank() + 1));
    Rank &rank = draft.ranks[arena.getRank()];
    rank.arenaBytes = static_cast<int64_t>(arena.getBytes());
    rank.hostBytes = static_cast<int64_t>(arena.getHostBytes());
  }
  return draft;
}

void Draft::setStep(const schedules::Simulation &simulation) {
  step = simulation.globalStepTime;
  exposed = simulation.exposedSeconds;
  ranks.resize(simulation.ranks.size());
  for (auto [rank, summary] : llvm::zip_equal(ranks, simulation.ranks))
    rank.busySeconds = summary.busySeconds;
}

int64_t Draft::mostBytes() const {
  int64_t most = 0;
  for (const Rank &rank : ranks)
    most = std::max(most, rank.arenaBytes);
  return most > 0 ? most : std::numeric_limits<int64_t>::max();
}

bool Draft::usesHosts() const {
  return llvm::any_of(ranks,
                      [](const Rank &rank) { return rank.hostBytes > 0; });
}

} // namespace pipewright::tool
