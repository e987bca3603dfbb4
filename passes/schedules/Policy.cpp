//===- Policy.cpp - What all policies share, and their list -----*- C++ -*-===//
//
// The checks that every policy needs, and the registry: a new policy is one
// file and one line in policies/Policies.def.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/HostMoves.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/Simulator.h"
#include "passes/schedules/StashMoves.h"
#include "support/NearWords.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace pipewright;
using namespace pipewright::schedules;

static std::vector<const Policy *> &registry() {
  static std::vector<const Policy *> policies = {
#define POLICY(function) &function(),
#include "passes/schedules/policies/Policies.def"
#undef POLICY
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

llvm::Expected<const Policy *>
pipewright::schedules::findPolicy(llvm::StringRef name) {
  std::vector<llvm::StringRef> all;
  for (const Policy *policy : allPolicies()) {
    if (policy->name() == name)
      return policy;
    all.push_back(policy->name());
  }
  std::string shown = text::shortened(name, 64);
  if (std::string near = text::didYouMean(name, all); !near.empty())
    return refuse("unknown schedule '{0}'{1}", shown, near);
  return refuse("unknown schedule '{0}'; expects one of {1}", shown,
                llvm::join(all, ", "));
}

static std::string namesOfParameters(const Policy &policy) {
  std::vector<std::string> names;
  for (const PolicyParameter &parameter : policy.parameters())
    names.push_back(parameter.name.str());
  return names.empty() ? "it has none" : "it has " + llvm::join(names, ", ");
}

llvm::Expected<PolicyChoice>
pipewright::schedules::choosePolicy(llvm::StringRef text) {
  auto [name, rest] = text.split(':');
  llvm::Expected<const Policy *> policy = findPolicy(name);
  if (!policy)
    return policy.takeError();
  PolicyChoice choice{*policy, {}, {}};
  if (name.size() < text.size()) {
    llvm::SmallVector<llvm::StringRef> words;
    rest.split(words, ':');
    for (llvm::StringRef word : words) {
      auto [parameter, number] = word.split('=');
      bool isKnown = llvm::any_of((*policy)->parameters(), [&](const auto &p) {
        return p.name == parameter;
      });
      if (!isKnown)
        return refuse("schedule '{0}' has no parameter '{1}'; {2}", name,
                      parameter, namesOfParameters(**policy));
      int64_t value = 1;
      if (parameter.size() < word.size() && number.getAsInteger(10, value))
        return refuse("parameter '{0}' of schedule '{1}' expects a whole "
                      "number, but got '{2}'",
                      parameter, name, number);
      choice.parameters.emplace_back(parameter.str(), value);
    }
  }
  return choice;
}

int64_t ScheduleOptions::parameter(llvm::StringRef name,
                                   int64_t otherwise) const {
  for (const auto &[given, value] : parameters)
    if (given == name)
      return value;
  return otherwise;
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
  for (const auto &[given, value] : options.parameters)
    if (llvm::none_of(parameters(),
                      [&](const auto &known) { return known.name == given; }))
      return refuse("schedule '{0}' has no parameter '{1}'; {2}", name(), given,
                    namesOfParameters(*this));
  return placeStages(options);
}

llvm::Error Policy::orderRanks(Schedule &schedule,
                               const ScheduleOptions &options) const {
  for (int32_t rank = 0; rank < schedule.ranks; ++rank)
    schedule.order[rank] = orderOfRank(schedule, options, rank);
  return llvm::Error::success();
}

llvm::Expected<Schedule> Policy::shape(const ScheduleOptions &options) const {
  llvm::Expected<Placement> placement = place(options);
  if (!placement)
    return placement.takeError();

  Schedule schedule;
  schedule.ranks = options.ranks;
  schedule.stages = static_cast<int64_t>(placement->size());
  schedule.microBatches = options.microBatches;
  schedule.rankOfStage = std::move(*placement);
  schedule.copies = copies();
  schedule.updates = updates(options);
  schedule.weightRule = weightRule();
  schedule.forwardOnly = !trains();
  schedule.stageTasks = stageTasks().vec();
  if (schedule.microBatches % (schedule.copies * schedule.updates) != 0)
    return refuse("{0} needs micro-batches that {1} divides, but got {2}",
                  name(), schedule.copies * schedule.updates,
                  schedule.microBatches);
  schedule.order.resize(options.ranks);
  return schedule;
}

/// The updates that end the order of each rank.
static std::vector<std::vector<Task>> finalUpdates(const Schedule &shape) {
  std::vector<std::vector<Task>> updates(shape.ranks);
  if (!shape.forwardOnly && shape.weightRule == WeightRule::Synchronous)
    for (int32_t stage = 0; stage < shape.stages; ++stage)
      if (shape.tasksOf(stage).update)
        updates[shape.rankOfStage[stage]].push_back(Task::update(stage));
  return updates;
}

/// Right in front of the backward, or of its first half, a rank waits for the
/// gradient, which an R does not need. A pair stays together. Micro-batches
/// that keep their stash have none.
void pipewright::schedules::addRecomputes(Schedule &schedule,
                                          const TaskCosts &costs) {
  auto key = [](const Task &task) {
    return std::pair(task.stage, task.microBatch);
  };
  const std::vector<StashWindow> windows = sizedWindows(schedule, costs);
  auto keeps = [&](const Task &task) {
    return windows[task.stage].keeps(task.microBatch);
  };
  for (std::vector<Task> &order : schedule.order) {
    llvm::erase_if(order, [&](const Task &task) {
      return task.kind == TaskKind::Recompute && keeps(task);
    });
    std::set<std::pair<int32_t, int32_t>> known;
    for (const Task &task : order)
      if (task.kind == TaskKind::Recompute)
        known.insert(key(task));
    std::vector<Task> tasks;
    for (const Task &task : order) {
      if (task.producesGradient() && costs.stages[task.stage].recomputesEarly &&
          !keeps(task) && !known.contains(key(task))) {
        const bool isSecond = !tasks.empty() && tasks.back().overlapsNext;
        tasks.insert(tasks.end() - (isSecond ? 1 : 0),
                     Task::recompute(task.stage, task.microBatch));
      }
      tasks.push_back(task);
    }
    order = std::move(tasks);
  }
}

/// Why stashes of a schedule cannot live on the host.
static llvm::Error checkOffload(const Policy &policy, bool movesStashes,
                                bool recomputes) {
  if (!policy.trains())
    return refuse("{0} keeps no stashes that could live on the host; leave "
                  "--offload out",
                  policy.name());
  if (policy.weightRule() != WeightRule::Synchronous)
    return refuse("{0} updates weights within a step, and --offload is for "
                  "schedules that update at its end",
                  policy.name());
  if (movesStashes)
    return refuse("{0} moves stashes to other ranks, and --offload to the "
                  "host; use one of both",
                  policy.name());
  if (recomputes)
    return refuse("recomputation in tasks of its own would need stashes before "
                  "--offload has them back; leave --offload out, or "
                  "--early-recompute and --remat window:N or except-last");
  return llvm::Error::success();
}

llvm::Expected<Schedule> Policy::build(const ScheduleOptions &options) const {
  llvm::Expected<Schedule> schedule = shape(options);
  if (!schedule)
    return schedule;
  // What moves is of one whole order: others that are tried have no moves.
  ScheduleOptions own = options;
  own.offload = 0;
  if (llvm::Error error = orderRanks(*schedule, own))
    return error;
  const bool recomputes =
      options.costs &&
      static_cast<int64_t>(options.costs->stages.size()) == schedule->stages &&
      llvm::any_of(options.costs->stages, [](const StageCosts &stage) {
        return stage.recomputesEarly;
      });
  if (recomputes && stashLimit(options))
    return refuse("{0} moves stashes, which recomputation in tasks of its own "
                  "would need before they are back; leave --early-recompute, "
                  "and window:N and except-last of --remat, out",
                  name());
  if (recomputes)
    addRecomputes(*schedule, *options.costs);
  noteRecomputes(*schedule);
  for (auto [rank, updates] : llvm::enumerate(finalUpdates(*schedule)))
    llvm::append_range(schedule->order[rank], updates);
  if (options.offload > 0) {
    if (llvm::Error error =
            checkOffload(*this, stashLimit(options).has_value(), recomputes))
      return error;
    llvm::Expected<std::vector<StashMove>> moves =
        movesToHost(*schedule,
                    options.costs ? *options.costs
                                  : TaskCosts::uniform(schedule->stages, 1, 2),
                    options.edges, options.offload);
    if (!moves)
      return moves.takeError();
    schedule->moves = std::move(*moves);
  } else if (std::optional<int64_t> limit = stashLimit(options)) {
    llvm::Expected<std::vector<StashMove>> moves =
        movesWithin(*schedule, *limit);
    if (!moves)
      return moves.takeError();
    schedule->moves = std::move(*moves);
  }
  return schedule;
}

llvm::Error Policy::forEachRank(
    const Schedule &shape, const ScheduleOptions &options,
    llvm::function_ref<llvm::Error(int32_t, llvm::ArrayRef<Task>)> visit)
    const {
  std::vector<std::vector<Task>> updates = finalUpdates(shape);
  Schedule whole;
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    std::vector<Task> tasks;
    if (whole.order.empty())
      tasks = orderOfRank(shape, options, rank);
    // The policy cannot say the order of a rank by itself.
    if (whole.order.empty() && tasks.empty()) {
      whole = shape;
      if (llvm::Error error = orderRanks(whole, options))
        return error;
    }
    if (!whole.order.empty())
      tasks = std::move(whole.order[rank]);
    llvm::append_range(tasks, updates[rank]);
    if (llvm::Error error = visit(rank, tasks))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error Policy::checkLoops(const ScheduleOptions &options,
                               int64_t loops) const {
  if (loops > 0 ? options.stages == loops * options.ranks
                : options.stages % options.ranks == 0)
    return llvm::Error::success();
  if (options.stages % options.ranks == 0)
    return refuse("{0} needs exactly {1} stage{2} per rank, but got {3}; use "
                  "--loops {1}",
                  name(), loops, loops == 1 ? "" : "s",
                  options.stages / options.ranks);
  return refuse("{0} needs ranks x loops stages, but got {1} stages on {2} "
                "ranks",
                name(), options.stages, options.ranks);
}

llvm::Expected<Placement>
Policy::placeOneStagePerRank(const ScheduleOptions &options) const {
  if (options.ranks == 1 || options.stages == options.ranks)
    return linearPlacement(options.stages, options.ranks);
  bool isLoop = options.stages % options.ranks == 0;
  return refuse("{0} needs exactly 1 stage per rank, but got {1} stages on "
                "{2} ranks; {3}",
                name(), options.stages, options.ranks,
                isLoop ? "use interleaved or --loops 1"
                       : "use as many ranks as stages");
}
