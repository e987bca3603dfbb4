//===- Policy.cpp - What all policies share, and their list -----*- C++ -*-===//
//
// The checks that every policy needs, and the registry: a new policy is one
// file and one line in `allPolicies`' list below.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/Story.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace pipewright::schedules;

static std::vector<const Policy *> &registry() {
  static std::vector<const Policy *> policies = {
      &gpipePolicy(),
      &oneFOneBPolicy(),
      &breadthFirstPolicy(),
  };
  return policies;
}

llvm::ArrayRef<const Policy *> pipewright::schedules::allPolicies() {
  return registry();
}

void pipewright::schedules::registerPolicy(const Policy &policy) {
  for (const Policy *&known : registry())
    if (known->name() == policy.name()) {
      known = &policy;
      return;
    }
  registry().push_back(&policy);
}

static bool isNear(llvm::StringRef typed, llvm::StringRef name) {
  if (typed.empty())
    return false;
  if (name.contains_insensitive(typed) || typed.contains_insensitive(name))
    return true;
  unsigned limit = std::max<unsigned>(1, name.size() / 3);
  return typed.edit_distance_insensitive(name, /*AllowReplacements=*/true,
                                         limit) <= limit;
}

llvm::Expected<const Policy *>
pipewright::schedules::findPolicy(llvm::StringRef name) {
  std::vector<llvm::StringRef> all;
  std::vector<std::string> near;
  for (const Policy *policy : allPolicies()) {
    if (policy->name() == name)
      return policy;
    all.push_back(policy->name());
    if (isNear(name, policy->name()))
      near.push_back(("'" + policy->name() + "'").str());
  }
  if (!near.empty())
    return refuse("unknown schedule '{0}'; did you mean {1}?", name,
                  llvm::join(near, " or "));
  return refuse("unknown schedule '{0}'; expects one of {1}", name,
                llvm::join(all, ", "));
}

llvm::Expected<Placement> Policy::place(const ScheduleOptions &options) const {
  struct Count {
    llvm::StringRef what;
    int64_t value;
  };
  for (auto [what, value] :
       {Count{"ranks", options.ranks}, Count{"stages", options.stages},
        Count{"micro-batches", options.microBatches}})
    if (value < 1)
      return refuse("{0} needs at least 1 of {1}, but got {2}", name(), what,
                    value);
  // Beyond this, two tasks per pair would not fit a large machine's memory,
  // and 32-bit positions would be near their end.
  constexpr int64_t maxPairs = int64_t(1) << 28;
  if (options.stages > maxPairs || options.microBatches > maxPairs ||
      options.stages * options.microBatches > maxPairs)
    return refuse("{0} stages and {1} micro-batches make a schedule too "
                  "large to write out",
                  options.stages, options.microBatches);
  return placeStages(options);
}

llvm::Expected<Schedule> Policy::build(const ScheduleOptions &options) const {
  llvm::Expected<Placement> placement = place(options);
  if (!placement)
    return placement.takeError();

  Schedule schedule;
  schedule.ranks = options.ranks;
  schedule.stages = options.stages;
  schedule.microBatches = options.microBatches;
  schedule.rankOfStage = std::move(*placement);
  schedule.order.resize(options.ranks);
  for (int32_t rank = 0; rank < options.ranks; ++rank)
    schedule.order[rank] = orderOfRank(schedule, rank);
  for (int32_t stage = 0; stage < options.stages; ++stage)
    schedule.order[schedule.rankOfStage[stage]].push_back(Task::update(stage));
  return schedule;
}

llvm::Expected<Placement>
Policy::placeOneStagePerRank(const ScheduleOptions &options) const {
  if (options.ranks == 1 || options.stages == options.ranks)
    return linearPlacement(options.stages, options.ranks);
  bool isLoop = options.stages % options.ranks == 0;
  return refuse("{0} needs exactly 1 stage per rank, but got {1} stages on "
                "{2} ranks; {3}",
                name(), options.stages, options.ranks,
                isLoop ? "use breadth-first or --loops 1"
                       : "use as many ranks as stages");
}
