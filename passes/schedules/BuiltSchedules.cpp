//===- BuiltSchedules.cpp - Schedules that were built already -------------===//

#include "passes/schedules/BuiltSchedules.h"

#include "passes/schedules/WorkOrder.h"

using namespace pipewright::schedules;

/// Pairs of stage and micro-batch up to which a schedule is kept: a few MB.
static constexpr int64_t mostPairs = 1 << 17;

static std::string keyOf(const Policy &policy, const ScheduleOptions &options) {
  std::string key = policy.maker(options).name().str() + " " +
                    std::to_string(options.microBatches);
  if (options.offload > 0)
    key += " offload " + std::to_string(options.offload);
  for (const auto &[name, value] : options.parameters)
    key += " " + name + "=" + std::to_string(value);
  return key;
}

static llvm::Expected<BuiltSchedule>
buildAndSimulate(const Policy &policy, const ScheduleOptions &options) {
  llvm::Expected<Schedule> schedule = policy.build(options);
  if (!schedule)
    return schedule.takeError();
  llvm::Expected<Simulation> simulation =
      simulateWithMoves(*schedule, *options.costs, options.edges);
  if (!simulation)
    return simulation.takeError();
  simulation->times = {};
  simulation->idle = {};
  simulation->works = {};
  return BuiltSchedule{std::move(*schedule), std::move(*simulation)};
}

llvm::Expected<std::shared_ptr<const BuiltSchedule>>
BuiltSchedules::of(const Policy &policy, const ScheduleOptions &options) {
  const std::string key = keyOf(policy, options);
  if (auto found = known.find(key); found != known.end())
    return found->second;
  llvm::Expected<BuiltSchedule> built = buildAndSimulate(policy, options);
  if (!built)
    return built.takeError();
  auto result = std::make_shared<const BuiltSchedule>(std::move(*built));
  if (options.stages * options.microBatches <= mostPairs)
    known[key] = result;
  return result;
}
