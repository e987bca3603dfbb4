//===- CutSearch.cpp - Cuts that a schedule takes less time with ----------===//

#include "tools/pipewright/CutSearch.h"

#include "passes/schedules/BuiltSchedules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <limits>
#include <utility>

namespace pipewright::tool {

std::string CutSearch::balanceOf(const std::vector<int64_t> &layers) {
  return "manual:" + llvm::join(llvm::map_range(layers,
                                                [](int64_t count) {
                                                  return std::to_string(count);
                                                }),
                                ",");
}

CutSearch::Estimate CutSearch::estimate(const std::vector<int64_t> &layers) {
  constexpr double none = std::numeric_limits<double>::infinity();
  --budget;
  auto model = stages.ofOps(balanceOf(layers));
  if (!model)
    return {none, none};
  schedules::BuiltSchedules built;
  auto timed =
      stages.simulated(*model, options.policy,
                       options.pipelines.scheduled.policy.getValue(), built);
  if (!timed)
    return {none, none};
  return {timed->step,
          static_cast<double>(stages.fullestOf(*model, timed->kept, 1))};
}

std::optional<std::vector<int64_t>>
CutSearch::improve(std::vector<int64_t> layers) {
  // What is less is a matter of rounding.
  constexpr double least = 1e-4;
  Estimate best = estimate(layers);
  const double mostBytes = best.bytes;
  const auto count = static_cast<int64_t>(layers.size());
  bool isBetter = false;
  // Ends where no move since the last one that was made is better.
  for (int64_t move = 0, since = 0;
       since < count * count && budget > 0 && best.step > 0;
       move = (move + 1) % (count * count), ++since) {
    const int64_t from = move / count, to = move % count;
    if (from == to || layers[from] <= 1)
      continue;
    --layers[from];
    ++layers[to];
    const Estimate next = estimate(layers);
    if (next.step < best.step * (1 - least) && next.bytes <= mostBytes) {
      best = next;
      isBetter = true;
      since = 0;
      continue;
    }
    ++layers[from];
    --layers[to];
  }
  if (!isBetter)
    return std::nullopt;
  return layers;
}

} // namespace pipewright::tool
