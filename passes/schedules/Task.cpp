//===- Task.cpp - Names of tasks, edges of a plain chain --------*- C++ -*-===//
//
// The short names are the ones that timetables, errors and generated code
// print.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Task.h"

#include "passes/schedules/Schedule.h"

using namespace pipewright::schedules;

char pipewright::schedules::letterOf(TaskKind kind) {
  constexpr char letters[] = "FBIWRU";
  unsigned index = static_cast<unsigned>(kind);
  return index < numTaskKinds ? letters[index] : '?';
}

std::string Task::name() const {
  std::string text = letterOf(kind) + std::to_string(stage);
  if (kind != TaskKind::Update)
    text += "." + std::to_string(microBatch);
  return text;
}

std::vector<StageEdge> pipewright::schedules::linearEdges(int64_t stages,
                                                          int64_t bytes) {
  std::vector<StageEdge> edges;
  for (int32_t stage = 0; stage + 1 < stages; ++stage)
    edges.push_back({stage, stage + 1, bytes, /*hasGradient=*/true});
  return edges;
}
