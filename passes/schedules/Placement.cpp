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
