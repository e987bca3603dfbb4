//===- LaneRuns.cpp - Runs of alike tasks on a rank -------------*- C++ -*-===//
//
// Tasks are joined by twelves, which holds whole periods of the usual orders
// (of 2, 3, 4 or 6 tasks), so the runs of a steady state are alike and join in
// turn.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/drawing/LaneRuns.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace pipewright::schedules;

/// Whether two neighbours look the same.
static bool areAlike(const LaneRun &a, const LaneRun &b) {
  if (a.seconds.size() != b.seconds.size())
    return false;
  constexpr double visible = 0.04;
  return llvm::all_of(llvm::zip(a.seconds, b.seconds), [&](const auto &both) {
    const auto &[first, second] = both;
    return first.first == second.first &&
           std::abs(first.second / (a.end - a.start) -
                    second.second / (b.end - b.start)) < visible;
  });
}

static void append(std::vector<LaneRun> &runs, LaneRun run, double shortest) {
  if (runs.empty() || run.start - runs.back().end >= shortest ||
      !areAlike(runs.back(), run)) {
    runs.push_back(std::move(run));
    return;
  }
  runs.back().end = run.end;
  for (const auto &[key, seconds] : run.seconds)
    runs.back().seconds[key] += seconds;
}

std::vector<LaneRun> pipewright::schedules::findRuns(const Picture &picture,
                                                     int32_t rank,
                                                     double shortest) {
  constexpr size_t tasksPerRun = 12;
  const std::vector<Task> &order = picture.schedule.order[rank];
  const std::vector<TaskTime> &times = picture.simulation.times[rank];
  std::vector<LaneRun> runs;
  LaneRun run;
  size_t tasks = 0;
  auto finish = [&] {
    if (tasks > 0 && run.end > run.start)
      append(runs, std::move(run), shortest);
    run = LaneRun();
    tasks = 0;
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const auto [start, end] = times[i];
    // The second of a pair began with the first.
    bool isSecond = i > 0 && order[i - 1].overlapsNext;
    if (tasks > 0 && start - run.end >= shortest)
      finish();
    if (tasks == 0)
      run.start = runs.empty() || start - runs.back().end >= shortest
                      ? start
                      : runs.back().end;
    bool isPaired = isSecond || order[i].overlapsNext;
    run.seconds[{order[i].kind, order[i].stage}] +=
        (end - start) / (isPaired ? 2 : 1);
    run.end = end;
    if (++tasks >= tasksPerRun && !order[i].overlapsNext &&
        run.end - run.start >= shortest)
      finish();
  }
  finish();
  return runs;
}
