//===- Draft.cpp - What a plan that is only compared comes to -------------===//

#include "tools/pipewright/Draft.h"

#include "dialects/pipe/PipeDialect.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;

namespace pipewright::tool {

Draft Draft::ofMemory(ModuleOp module) {
  Draft draft;
  for (auto stage : module.getOps<pipe::StageOp>()) {
    draft.rankOfStage.push_back(
        stage.getRank() ? static_cast<int64_t>(*stage.getRank()) : -1);
    draft.stagesOfModel += !stage.getMirrors();
  }
  draft.stages = static_cast<int64_t>(draft.rankOfStage.size());
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

llvm::SmallVector<int64_t> Draft::beyondLimit(
    llvm::function_ref<std::optional<int64_t>(int64_t)> limitOf) const {
  llvm::SmallVector<int64_t> beyond(std::max<int64_t>(1, stagesOfModel));
  for (auto [number, rank] : llvm::enumerate(rankOfStage)) {
    if (rank < 0 || rank >= static_cast<int64_t>(ranks.size()))
      continue;
    const int64_t bytes = ranks[rank].arenaBytes;
    int64_t &most = beyond[number % beyond.size()];
    if (bytes > limitOf(rank).value_or(bytes))
      most = std::max(most, bytes);
  }
  return beyond;
}

bool Draft::usesHosts() const {
  return llvm::any_of(ranks,
                      [](const Rank &rank) { return rank.hostBytes > 0; });
}

} // namespace pipewright::tool
