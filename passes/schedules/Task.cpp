//===- Task.cpp - Names of tasks, edges, versions of weights ----*- C++ -*-===//
//
// The short names are the ones that timetables, errors and generated code
// print.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Task.h"

#include "passes/schedules/Schedule.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <utility>

using namespace pipewright::schedules;

char pipewright::schedules::letterOf(TaskKind kind) {
  constexpr char letters[] = "FBIWRU";
  unsigned index = static_cast<unsigned>(kind);
  return index < numTaskKinds ? letters[index] : '?';
}

std::string Task::name() const {
  std::string text = letterOf(kind) + std::to_string(stage);
  if (kind != TaskKind::Update || microBatch != 0)
    text += "." + std::to_string(microBatch);
  return text;
}

std::vector<StageEdge> pipewright::schedules::linearEdges(int64_t stages,
                                                          int64_t bytes,
                                                          int64_t copies) {
  std::vector<StageEdge> edges;
  for (int32_t stage = 0; stage + 1 < stages; ++stage)
    if ((stage + 1) % (stages / copies) != 0)
      edges.push_back({stage, stage + 1, bytes, /*hasGradient=*/true});
  return edges;
}

std::vector<int32_t>
pipewright::schedules::weightVersions(const Schedule &schedule, int32_t stage) {
  std::vector<int32_t> versions(schedule.microBatches);
  int32_t newest = 0;
  for (const Task &task : schedule.order[schedule.rankOfStage[stage]]) {
    if (task.stage != stage)
      continue;
    if (task.kind == TaskKind::Update)
      ++newest;
    else if (task.kind == TaskKind::Forward)
      versions[task.microBatch] =
          schedule.weightRule == WeightRule::DelayedByOne
              ? schedule.updateOf(task.microBatch) - 1
              : newest;
  }
  return versions;
}

int64_t pipewright::schedules::keptVersions(const Schedule &schedule,
                                            int32_t stage) {
  if (schedule.weightRule == WeightRule::Synchronous)
    return 1;
  // From the newest version that exists to the oldest that a forward used
  // whose backward is still to come, both counted.
  std::vector<int32_t> versions = weightVersions(schedule, stage);
  std::vector<int32_t> inUse;
  int64_t newest = 0, kept = 1;
  for (const Task &task : schedule.order[schedule.rankOfStage[stage]]) {
    if (task.stage != stage)
      continue;
    if (task.kind == TaskKind::Update)
      ++newest;
    else if (task.kind == TaskKind::Forward)
      inUse.push_back(versions[task.microBatch]);
    else if (task.endsStash())
      inUse.erase(llvm::find(inUse, versions[task.microBatch]));
    for (int32_t version : inUse)
      kept = std::max(kept, newest - version + 1);
  }
  return kept;
}

bool pipewright::schedules::sumsAscending(const Schedule &schedule) {
  std::vector<int32_t> last(schedule.stages, -1);
  for (const std::vector<Task> &tasks : schedule.order)
    for (const Task &task : tasks)
      if (task.endsStash() &&
          task.microBatch < std::exchange(last[task.stage], task.microBatch))
        return false;
  return true;
}
