//===- WorkTesting.h - Works between the tasks of schedules -----*- C++ -*-===//
//
// Random collectives and messages that a step can have.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_SCHEDULES_WORKTESTING_H
#define PIPEWRIGHT_TEST_UNIT_SCHEDULES_WORKTESTING_H

#include "test/unit/schedules/PlainExecution.h"
#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Simulator.h"

#include "llvm/ADT/STLExtras.h"

namespace pipewright::schedules::testing {

/// Works that fit in between the tasks of a simulated step: each takes what is
/// there at some moment, and tasks that begin later may wait for it.
inline std::vector<Work> someWorks(const Schedule &schedule,
                                   const Simulation &simulation,
                                   Random &random) {
  std::vector<Work> works;
  double length = simulation.globalStepTime;
  std::vector<double> moments(1 + below(random, 8));
  for (double &moment : moments)
    moment = length * below(random, 1000) / 1000;
  llvm::sort(moments);
  auto memberAt = [&](int32_t rank, double moment) {
    const std::vector<TaskTime> &times = simulation.times[rank];
    auto count = [&](auto isBefore) {
      return static_cast<int64_t>(llvm::find_if_not(times, isBefore) -
                                  times.begin());
    };
    auto position = count([&](const TaskTime &t) { return t.end <= moment; });
    auto limit = count([&](const TaskTime &t) { return t.start <= moment; });
    limit += below(random, times.size() + 1 - limit);
    return Work::Member{rank, below(random, 4) ? position : 0, limit};
  };
  for (double moment : moments) {
    Work work;
    work.name = std::to_string(works.size());
    work.bytes = 4 * below(random, 5);
    if (schedule.ranks > 1 && below(random, 3) == 0) {
      work.on = Resource::Link;
      int32_t from = below(random, schedule.ranks);
      int32_t to = (from + 1 + below(random, schedule.ranks - 1)) %
                   static_cast<int32_t>(schedule.ranks);
      work.members = {memberAt(from, moment), memberAt(to, moment)};
    } else {
      for (int32_t rank = 0; rank < schedule.ranks; ++rank)
        if (work.members.empty() || below(random, 2))
          work.members.push_back(memberAt(rank, moment));
    }
    // Earlier ones whose results its members have.
    for (size_t need = 0; need < works.size(); ++need)
      for (const Work::Member &member :
           llvm::ArrayRef(work.members)
               .drop_back(work.on == Resource::Link ? 1 : 0))
        if (below(random, 6) == 0 && works[need].takerOn(member.rank) &&
            !llvm::is_contained(work.needs, static_cast<int32_t>(need)))
          work.needs.push_back(static_cast<int32_t>(need));
    works.push_back(work);
  }
  return works;
}

} // namespace pipewright::schedules::testing

#endif // PIPEWRIGHT_TEST_UNIT_SCHEDULES_WORKTESTING_H
