//===- Figures.cpp - What a simulated schedule comes to -------------------===//
//
// See Figures.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Figures.h"

#include <algorithm>
#include <map>

using namespace pipewright::schedules;

static int64_t countMessages(const Schedule &schedule,
                             llvm::ArrayRef<StageEdge> edges) {
  int64_t microBatches = schedule.microBatches / schedule.copies;
  int64_t messages = 0;
  for (const StageEdge &edge : edges) {
    if (schedule.rankOfStage[edge.from] == schedule.rankOfStage[edge.to])
      continue;
    bool comesBack = edge.hasGradient && !schedule.forwardOnly;
    messages += microBatches * (comesBack ? 2 : 1);
  }
  return messages;
}

double pipewright::schedules::stagesPerRank(const Schedule &schedule) {
  return static_cast<double>(schedule.stages / schedule.copies) /
         schedule.ranks;
}

int32_t pipewright::schedules::lastRank(const Simulation &simulation) {
  auto endOf = [](const std::vector<TaskTime> &times) {
    return times.empty() ? 0 : times.back().end;
  };
  auto last = std::max_element(
      simulation.times.begin(), simulation.times.end(),
      [&](const auto &a, const auto &b) { return endOf(a) < endOf(b); });
  return static_cast<int32_t>(last - simulation.times.begin());
}

Figures Figures::of(const Schedule &schedule, const Simulation &simulation,
                    llvm::ArrayRef<StageEdge> edges) {
  Figures figures;
  figures.step = simulation.globalStepTime;
  figures.span = simulation.spanStepTime;
  for (const RankSummary &rank : simulation.ranks) {
    figures.busiest = std::max(figures.busiest, rank.busySeconds);
    figures.bubble += rank.bubbleFraction / simulation.ranks.size();
    figures.stashesOfRanks.push_back(rank.peakInFlight);
    figures.stashes = std::max(figures.stashes, rank.peakInFlight);
    figures.stashBytes = std::max(figures.stashBytes, rank.peakStashBytes);
  }
  figures.activations = figures.stashes / stagesPerRank(schedule);
  figures.messages =
      edges.empty() ? countMessages(schedule, linearEdges(schedule.stages, 0,
                                                          schedule.copies))
                    : countMessages(schedule, edges);
  std::map<std::pair<int32_t, bool>, int64_t> ofReplicas;
  for (const TimedWork &timed : simulation.works)
    if (timed.work.replicas > 1) {
      const bool sums = pipewright::runtime::factsOf(timed.work.kind).reduces;
      int64_t &figure = sums ? figures.sums : figures.gathers;
      figure =
          std::max(figure, ++ofReplicas[{timed.work.members[0].rank, sums}]);
    }
  figures.exposed = simulation.exposedSeconds;
  for (int32_t stage = 0; stage < schedule.stages; ++stage)
    figures.versions =
        std::max(figures.versions, keptVersions(schedule, stage));
  return figures;
}
