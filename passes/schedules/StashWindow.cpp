//===- StashWindow.cpp - Micro-batches that keep their stash --------------===//

#include "passes/schedules/StashWindow.h"

#include "passes/schedules/Schedule.h"
#include "passes/schedules/Simulator.h"

#include <algorithm>

using namespace pipewright::schedules;

std::vector<int64_t>
pipewright::schedules::stagesInFlight(const Schedule &schedule) {
  std::vector<int64_t> now(schedule.stages), most(schedule.stages);
  for (const std::vector<Task> &order : schedule.order)
    for (const Task &task : order) {
      if (task.kind == TaskKind::Forward)
        most[task.stage] = std::max(most[task.stage], ++now[task.stage]);
      now[task.stage] -= task.endsStash();
    }
  return most;
}

std::vector<StashWindow>
pipewright::schedules::sizedWindows(const Schedule &schedule,
                                    const TaskCosts &costs) {
  const std::vector<int64_t> inFlight = stagesInFlight(schedule);
  std::vector<StashWindow> windows;
  for (int64_t stage = 0; stage < schedule.stages; ++stage) {
    StashWindow window = costs.stages[stage].window;
    if (window.count > 0)
      window.size = window.isLast ? schedule.microBatches / schedule.copies
                                  : inFlight[stage];
    windows.push_back(window);
  }
  return windows;
}

void pipewright::schedules::noteRecomputes(Schedule &schedule) {
  schedule.recomputed.clear();
  for (const std::vector<Task> &order : schedule.order)
    for (const Task &task : order)
      if (task.kind == TaskKind::Recompute && task.stage >= 0 &&
          task.stage < schedule.stages && task.microBatch >= 0 &&
          task.microBatch < schedule.microBatches) {
        schedule.recomputed.resize(schedule.stages * schedule.microBatches);
        schedule
            .recomputed[task.stage * schedule.microBatches + task.microBatch] =
            true;
      }
}
