//===- DepthFirst.cpp - Groups of micro-batches, loop by loop ---*- C++ -*-===//
//
// See DepthFirst.h.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/policies/DepthFirst.h"

#include "passes/schedules/Refusal.h"

#include <algorithm>

using namespace pipewright::schedules;

static bool allows(const ScheduleOptions &options, int64_t group) {
  int64_t last = options.microBatches % group;
  return last == 0 || last >= options.ranks;
}

/// The smallest group of at least `from` that works; all micro-batches do.
static int64_t nextGroup(const ScheduleOptions &options, int64_t from) {
  int64_t group = std::min(from, options.microBatches);
  while (!allows(options, group))
    ++group;
  return group;
}

int64_t DepthFirst::groupOf(const ScheduleOptions &options) {
  int64_t given = options.parameter("group", 0);
  return given > 0 ? given : nextGroup(options, options.ranks);
}

llvm::Error DepthFirst::checkGroup(const Policy &policy,
                                   const ScheduleOptions &options) {
  int64_t least = std::min(options.ranks, options.microBatches);
  int64_t group = options.parameter("group", groupOf(options));
  if (group < least || group > options.microBatches)
    return refuse("{0} needs a group of {1} (ranks, or all micro-batches) to "
                  "{2} (micro-batches), but got group={3}",
                  policy.name(), least, options.microBatches, group);
  if (!allows(options, group))
    return refuse("{0} needs a last group that is full or has at least as many "
                  "micro-batches as there are ranks, but {1} micro-batches in "
                  "groups of {2} leave {3} for {4} ranks; use group={5}",
                  policy.name(), options.microBatches, group,
                  options.microBatches % group, options.ranks,
                  nextGroup(options, group));
  return llvm::Error::success();
}

DepthFirst::Step DepthFirst::operator[](int64_t step) const {
  int64_t first = step / (loops * group) * group;
  int64_t size = std::min(group, microBatches - first);
  int64_t within = step - first * loops;
  return {static_cast<int32_t>(within / size),
          static_cast<int32_t>(first + within % size)};
}

llvm::ArrayRef<PolicyParameter> DepthFirstPolicy::parameters() const {
  static constexpr PolicyParameter all[] = {
      {"group", "micro-batches that go through all loops before the next ones "
                "(default: as many as ranks, or the next larger number that "
                "works)"}};
  return all;
}

llvm::Expected<Placement>
DepthFirstPolicy::placeStages(const ScheduleOptions &options) const {
  if (llvm::Error error = checkLoops(options, 0))
    return error;
  if (llvm::Error error = DepthFirst::checkGroup(*this, options))
    return error;
  return loopPlacement(options.stages, options.ranks);
}
