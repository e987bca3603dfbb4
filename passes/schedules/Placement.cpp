//===- Placement.cpp - Which rank has which stage ---------------*- C++ -*-===//
//
// See Placement.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Placement.h"

using namespace pipewright::schedules;

Placement pipewright::schedules::linearPlacement(int64_t stages,
                                                 int64_t ranks) {
  Placement rankOfStage(stages);
  for (int64_t stage = 0; stage < stages; ++stage)
    rankOfStage[stage] = static_cast<int32_t>(stage * ranks / stages);
  return rankOfStage;
}

Placement pipewright::schedules::loopPlacement(int64_t stages, int64_t ranks) {
  Placement rankOfStage(stages);
  for (int64_t stage = 0; stage < stages; ++stage)
    rankOfStage[stage] = static_cast<int32_t>(stage % ranks);
  return rankOfStage;
}

Placement pipewright::schedules::zigzagPlacement(int64_t stages,
                                                 int64_t ranks) {
  Placement rankOfStage(stages);
  for (int64_t stage = 0; stage < stages; ++stage) {
    int64_t at = stage % ranks;
    bool goesDown = stage / ranks % 2 == 1;
    rankOfStage[stage] = static_cast<int32_t>(goesDown ? ranks - 1 - at : at);
  }
  return rankOfStage;
}

Placement pipewright::schedules::veePlacement(int64_t ranks) {
  return zigzagPlacement(2 * ranks, ranks);
}

Placement pipewright::schedules::mirrorPlacement(int64_t ranks) {
  // The same numbers as the V: only which stage feeds which differs.
  return veePlacement(ranks);
}
