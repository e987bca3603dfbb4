//===- Figures.h - What a simulated schedule comes to -----------*- C++ -*-===//
//
// The numbers that tables and pictures of schedules state, each defined once.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_FIGURES_H
#define PIPEWRIGHT_PASSES_SCHEDULES_FIGURES_H

#include "passes/schedules/Simulator.h"

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace pipewright::schedules {

/// How many stages of one copy of the model there are for each rank.
double stagesPerRank(const Schedule &schedule);

/// The rank whose last task ends last; of several the first.
int32_t lastRank(const Simulation &simulation);

struct Figures {
  double step = 0, span = 0;
  /// Of the rank with the most work.
  double busiest = 0;
  /// The share of ranks x step in which no task runs.
  double bubble = 0;
  /// Peaks of each rank, in (stage, micro-batch) pairs, and the largest.
  std::vector<int64_t> stashesOfRanks;
  int64_t stashes = 0;
  /// The largest in units: what a rank's whole share of the model keeps of one
  /// micro-batch. A stash of one of v stages is 1/v of it.
  double activations = 0;
  /// Zero where nobody says how large a stash is.
  int64_t stashBytes = 0;
  /// From rank to rank, in one step.
  int64_t messages = 0;
  /// Of replicas, on the rank that has most: sums of gradients, and gathers of
  /// weights, in one step.
  int64_t sums = 0, gathers = 0;
  /// How much sooner the step would end without works.
  double exposed = 0;
  /// Versions of the weights of a stage, at most.
  int64_t versions = 1;

  static Figures of(const Schedule &schedule, const Simulation &simulation,
                    llvm::ArrayRef<StageEdge> edges = {});
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FIGURES_H
