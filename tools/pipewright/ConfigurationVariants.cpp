//===- ConfigurationVariants.cpp - What else ways may be planned with -----===//
//
// Other cuts, tasks of their own for what is recomputed, and stashes on hosts:
// tried beside the best ways, or where nothing fits, and not for all ways.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/ConfigurationSearch.h"
#include "tools/pipewright/MemoryLimits.h"
#include "tools/pipewright/PlanChoice.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace pipewright::tool {

/// How many of the ways that need least are looked at again where nothing fits.
static constexpr int kSmallestOfInterest = 6;

/// So much more than the limit ways may need with the cut of `flops`, for which
/// another one may need less: weights of a few layers may be most of a model.
static constexpr double kLittleMore = 1.5, kLittleMoreOfLarge = 1.15;

/// What shares no more than with ZeRO-1 is looked at with that: of higher
/// levels, the numbers of stages to choose from are those that share more.
void ConfigurationSearch::keepStagesOfZero(const Configuration &one,
                                           CompileOptions &options) const {
  if (one.zero > 1 && one.zero <= options.highestZero() &&
      !given.isGiven("zero"))
    options.stageChoices = options.stageChoicesAboveZero1();
}

std::optional<ConfigurationSearch::Variant>
ConfigurationSearch::opened(const Configuration &one) {
  auto options = readCompileOptions(valuesOf(one), nullptr);
  if (!options) {
    llvm::consumeError(options.takeError());
    return std::nullopt;
  }
  keepStagesOfZero(one, *options);
  Compilation *compilation = opened(*options);
  if (!compilation)
    return std::nullopt;
  return Variant{std::move(*options), *compilation};
}

/// Where nothing fits: cuts for a short step within the limit, which also make
/// the fullest rank less full, for the ways that are beyond it by little; first
/// under the schedule that is given, or 1f1b, then, where they have few tasks,
/// under all.
void ConfigurationSearch::tryCuts() {
  if (given.isGiven("balance"))
    return;
  auto tryAll = [&](double little, size_t most, bool comparesSchedules) {
    std::set<std::tuple<int64_t, int64_t, int64_t>> tried;
    for (auto [bytes, one] : beyondLimit) {
      if (tried.size() == most || !planned.empty())
        return;
      const auto variant = opened(one);
      if (!variant || one.ranks * one.replicas == 1 ||
          static_cast<double>(bytes) >
              little * static_cast<double>(mostBytesOf(variant->options)) ||
          !tried.insert({one.ranks, one.microBatchSize, one.zero}).second)
        continue;
      if (comparesSchedules ? !mayCompareSchedules(one, opsToCompare)
                            : !decidesByRank(one))
        continue;
      one.balance = "step";
      if (comparesSchedules && !given.isGiven("schedule"))
        one.schedule = "auto";
      if (!given.isGiven("remat"))
        one.remat = "auto";
      planVariant(one, /*estimatesFirst=*/false, comparesSchedules);
    }
  };
  tryAll(1.25, 2, /*comparesSchedules=*/false);
  tryAll(kLittleMore, 6, /*comparesSchedules=*/true);
}

/// Where nothing fits: stashes on hosts, for the ways that need least.
void ConfigurationSearch::tryHosts() {
  int tried = 0;
  for (const Configuration &one : llvm::make_second_range(beyondLimit)) {
    // Of these no more than the least is known.
    if (isTooLargeWithLess(one))
      continue;
    tried += tryOffload(one);
    if (!planned.empty() || tried == kSmallestOfInterest)
      return;
  }
}

/// Of the ways that do not fit, those that need least by what is known, one for
/// each number of ranks and replicas; of equals, what recomputes most. Those of
/// few tasks come first, as they are planned in little time.
std::vector<Configuration> ConfigurationSearch::smallestWays() const {
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, Configuration>> all;
  for (const auto &[bytes, one] : beyondLimit) {
    // `auto` recomputes no more than a limit asks for. With larger
    // micro-batches no less is needed, though less may be known of them.
    if (one.remat == "auto" || isTooLargeWithLess(one) ||
        one.recomputesEarly != given.isSet("early-recompute"))
      continue;
    auto [place, isFirst] =
        all.try_emplace({one.ranks, one.replicas}, bytes, one);
    if (!isFirst && bytes == place->second.first)
      place->second.second = one;
  }
  std::multimap<std::pair<bool, int64_t>, Configuration> sorted;
  for (const auto &[bytes, one] : llvm::make_second_range(all))
    sorted.insert({{one.isLarge(), bytes}, one});
  std::vector<Configuration> ways;
  for (Configuration &one : llvm::make_second_range(sorted)) {
    // A choice of schedules takes the fastest, whatever it keeps.
    if (!decidesByRank(one))
      one.schedule = "1f1b";
    ways.push_back(one);
  }
  return ways;
}

/// Where nothing fits: what would, in words. What a rank needs at least is a
/// bound, so a few of the ways with the least are planned as if there were no
/// limit.
std::string ConfigurationSearch::smallestPlan() {
  std::optional<Configuration> best;
  bool isForMachine = true;
  auto consider = [&](const Configuration &one) {
    auto variant = opened(one);
    if (!variant)
      return false;
    CompileOptions &options = variant->options;
    options.memoryLimit.reset();
    llvm::SmallVector<std::optional<int64_t>> limits;
    for (int64_t rank = 0; rank < one.ranks; ++rank)
      limits.push_back(options.limitOf(rank));
    options.dropMemoryLimits();
    tell(one);
    Refusal refusal;
    if (auto draft = variant->compilation.planQuietly(
            options, refusal, std::numeric_limits<double>::infinity());
        succeeded(draft))
      if (const Configuration found =
              summaryOf(one, *draft, variant->compilation);
          !best || found.arenaBytes < best->arenaBytes) {
        best = found;
        isForMachine = llvm::all_of(
            llvm::zip_equal(draft->ranks, limits), [](const auto &pair) {
              const auto &[rank, limit] = pair;
              return !limit || rank.arenaBytes <= *limit;
            });
      }
    return true;
  };
  int tried = 0;
  for (const Configuration &one : smallestWays()) {
    tried += consider(one);
    if (tried == kSmallestOfInterest)
      break;
  }
  // Which mode needs least is not known of bounds.
  if (const std::optional<Configuration> known = best;
      known && !given.isGiven("remat"))
    for (llvm::StringRef mode : kRematModesByTime) {
      Configuration one = *known;
      if (std::exchange(one.remat, mode.str()) != mode)
        consider(one);
    }
  if (best && movesToHosts(*best)) {
    Configuration one = *best;
    one.offloads = true;
    consider(one);
  }
  if (!best)
    return "";
  return "; " + std::to_string(best->arenaBytes) + " B" +
         (isForMachine ? "" : ", more than ranks of --machine have,") +
         " are enough for " + optionsOf(*best);
}

std::vector<Configuration> ConfigurationSearch::fastest() const {
  constexpr size_t most = 3;
  return {planned.begin(), planned.begin() + std::min(most, planned.size())};
}

/// Plans it beside the others, unless it asks estimates first and these say
/// that it does not fit, or expect it to be slower. Whether there is such a
/// plan.
bool ConfigurationSearch::planVariant(const Configuration &one,
                                      bool estimatesFirst,
                                      bool comparesSchedules) {
  const double mostOfInterest =
      stepToBeat() *
      (one.isSmall() && !comparesSchedules ? kLittleLonger : kOfInterest);
  auto variant = opened(one);
  if (!variant)
    return false;
  auto &[options, compilation] = *variant;
  options.comparesSchedules = comparesSchedules;
  tell(one);
  if (estimatesFirst) {
    const StepEstimate estimate =
        compilation.estimateStep(options, mostOfInterest);
    if (estimate.least > mostOfInterest || estimate.expected > mostOfInterest)
      return false;
  }
  Refusal refusal;
  auto draft = compilation.planQuietly(options, refusal, mostOfInterest);
  if (failed(draft))
    return false;
  Configuration found = summaryOf(one, *draft, compilation);
  if (found.step > stepToBeat() * kOfInterest)
    return false;
  // Copies may not be in time for any.
  found.offloads &= found.hostBytes > 0;
  if (found.balance != "flops")
    keepSchedule(found);
  // What has no name is found again by a plan of its own, which compares all
  // schedules with a cut each, whatever is faster.
  if (found.balance != "flops" && found.schedule == one.schedule &&
      !options.stageChoices.empty() &&
      found.stages * one.microBatches <= kFewPairs) {
    auto whole = readCompileOptions(valuesOf(one), nullptr);
    if (!whole) {
      llvm::consumeError(whole.takeError());
      return false;
    }
    whole->comparesSchedules = true;
    draft = compilation.planQuietly(*whole, refusal);
    if (failed(draft))
      return false;
    found = summaryOf(one, *draft, compilation);
    keepSchedule(found);
  }
  add(std::move(found));
  return true;
}

/// Makes a variant one for the schedule that the way was found under: to choose
/// among all again takes long, and could end with another one that gains
/// nothing by it.
void ConfigurationSearch::keepSchedule(Configuration &one) {
  auto policy = schedules::choosePolicy(one.chosen);
  if (!policy)
    return llvm::consumeError(policy.takeError());
  if (one.schedule == one.chosen || (*policy)->isChoice())
    return;
  one.schedule = one.chosen;
  one.loops = one.stages > one.ranks ? one.stages / one.ranks : 0;
}

/// The fastest, each with what `change` makes of it; left out where that says
/// no.
void ConfigurationSearch::tryEach(
    bool estimatesFirst, llvm::function_ref<bool(Configuration &)> change) {
  for (Configuration one : fastest())
    if (one.stages > 1 && change(one))
      planVariant(one, estimatesFirst);
}

/// Whether weights, their gradients and states leave room for anything.
bool ConfigurationSearch::mayFit(const Configuration &one) {
  auto variant = opened(one);
  return variant &&
         !whyNothingFits(variant->compilation.module(), variant->options)
              .isOne();
}

/// Whether its `--balance` may cut the model for a shorter step than that of
/// its plan, which has the cut of `flops`.
bool ConfigurationSearch::mayCutBetter(const Configuration &one) {
  auto variant = opened(one);
  return variant &&
         variant->compilation.mayCutBetter(variant->options, one.step);
}

/// Whether any of its stages recomputes in a task of its own.
bool ConfigurationSearch::recomputesEarly(const Configuration &one) {
  auto variant = opened(one);
  return variant && variant->compilation.recomputesEarly(variant->options);
}

/// Beside one that recomputes, one with stashes on hosts and the least
/// recomputation with which it fits. To choose among all schedules again would
/// take long. Whether that was tried.
bool ConfigurationSearch::tryOffload(Configuration one) {
  if (!movesToHosts(one) ||
      !withHosts.insert({one.ranks, one.microBatchSize, one.zero}).second)
    return false;
  one.offloads = true;
  one.recomputesEarly = false;
  if (!mayFit(one))
    return false;
  if (one.schedule == "auto") {
    one.loops = one.stages / one.ranks;
    one.schedule = one.loops > 1 ? "interleaved" : "1f1b";
  }
  llvm::SmallVector<llvm::StringRef> modes(std::begin(kRematModesByTime),
                                           std::end(kRematModesByTime));
  if (given.isGiven("remat"))
    modes = {given["remat"]};
  for (llvm::StringRef mode : modes) {
    one.remat = mode.str();
    if (planVariant(one, /*estimatesFirst=*/true))
      break;
  }
  return true;
}

/// Ways with few tasks, whose plans take little time, that take little longer
/// with the cut of `flops`, or need little more than there is: the fastest
/// first.
std::vector<Configuration> ConfigurationSearch::smallWays() {
  std::multimap<double, Configuration> ways;
  for (const Prospect &prospect : prospects)
    if (prospect.bound <= kLittleLonger * stepToBeat())
      ways.insert({prospect.bound, prospect.one});
  for (const Prospect &prospect : slowerPlans)
    ways.insert({prospect.bound, prospect.one});
  for (const Configuration &one : planned)
    ways.insert({one.step, one});
  for (const auto &[bytes, one] : beyondLimit) {
    const auto variant = opened(one);
    // To cut a large model anew for each of them takes long.
    if (variant && static_cast<double>(bytes) <=
                       (opsOf(*variant) > opsToCompare ? kLittleMoreOfLarge
                                                       : kLittleMore) *
                           static_cast<double>(mostBytesOf(variant->options)))
      ways.insert({kOfInterest * stepToBeat(), one});
  }
  std::vector<Configuration> small;
  llvm::copy_if(llvm::make_second_range(ways), std::back_inserter(small),
                [](const Configuration &one) {
                  return one.ranks * one.replicas > 1 && one.isSmall();
                });
  return small;
}

/// Ops of the model.
int64_t ConfigurationSearch::opsOf(const Variant &variant) {
  int64_t ops = 0;
  variant.compilation.module().walk([&](mlir::func::FuncOp model) {
    ops += llvm::range_size(model.getOps());
  });
  return ops;
}

/// Whether its schedules are compared with a cut each, which takes as long as
/// hundreds of plans: where it has few tasks, and the model no more ops than
/// `ops`, which are less by them then.
bool ConfigurationSearch::mayCompareSchedules(const Configuration &one,
                                              int64_t &ops) {
  if (!one.isSmall() || !wanted.pareto.empty())
    return false;
  const auto variant = opened(one);
  if (!variant)
    return false;
  const int64_t own = opsOf(*variant);
  if (own > ops)
    return false;
  ops -= own;
  return true;
}

/// The fastest ways with few tasks, planned as `plan` alone would plan them:
/// schedules are compared with a cut each, and where memory matters, each rank
/// recomputes what it has to. Where that would take too long, they get another
/// cut alone.
void ConfigurationSearch::compareSmallWays() {
  constexpr size_t most = 16;
  // A limit that plans come near rules out cuts, too.
  const bool isLimited =
      tooLarge > 0 || llvm::any_of(planned, [&](const Configuration &one) {
        const auto variant = opened(one);
        return one.isLimited ||
               (hasLimit && variant &&
                kLittleMore * static_cast<double>(one.arenaBytes) >
                    static_cast<double>(mostBytesOf(variant->options)));
      });
  const bool cuts = !given.isGiven("balance");
  const bool recomputes = isLimited && !given.isGiven("remat");
  if (planned.empty() || !wanted.pareto.empty() || !(cuts || recomputes))
    return;
  std::set<std::tuple<int64_t, int64_t, int64_t, std::string>> compared;
  size_t tried = 0;
  auto compare = [&](Configuration one) {
    const std::tuple key(one.ranks, one.microBatchSize, one.zero,
                         one.processMap);
    if (compared.count(key) || tried++ >= most)
      return;
    if (cuts)
      one.balance = "step";
    if (!mayCompareSchedules(one, opsToCompare)) {
      // Those that share more differ by little.
      if (cuts && one.zero <= 1)
        planVariant(one, /*estimatesFirst=*/false);
      return;
    }
    compared.insert(key);
    if (!given.isGiven("schedule"))
      one.schedule = "auto";
    if (!given.isGiven("remat"))
      one.remat = recomputes ? "auto" : "none";
    one.recomputesEarly = given.isSet("early-recompute");
    planVariant(one, /*estimatesFirst=*/false, /*comparesSchedules=*/true);
  };
  for (Configuration one : smallWays()) {
    const auto maps = processMapsOf(one);
    if (maps.empty())
      compare(one);
    for (const runtime::ProcessMap map : maps) {
      one.processMap = nameOf(map);
      compare(one);
    }
  }
}

/// The fastest ways to share states without sharing them: that sends no less
/// and keeps more, but its sums may be in places where more is beside them.
void ConfigurationSearch::tryWithoutZero() {
  if (given.isGiven("zero") || !wanted.pareto.empty())
    return;
  // Other comparisons leave nothing for it where models are not very small.
  int64_t ops = std::max<int64_t>(opsToCompare, 384);
  std::set<std::pair<int64_t, int64_t>> tried;
  for (Configuration one : fastest()) {
    if (one.zero != 1 || one.replicas == 1 ||
        !tried.insert({one.ranks, one.microBatchSize}).second)
      continue;
    one.zero = 0;
    if (!mayFit(one))
      continue;
    const bool compares =
        !given.isGiven("schedule") && mayCompareSchedules(one, ops);
    if (compares) {
      one.schedule = "auto";
      one.loops = 0;
    } else {
      keepSchedule(one);
    }
    planVariant(one, /*estimatesFirst=*/!compares, compares);
  }
}

/// The orders of processes that a way may have, its own first; none where it
/// makes no difference, or the user says which.
std::vector<runtime::ProcessMap>
ConfigurationSearch::processMapsOf(const Configuration &one) {
  const auto variant = opened(one);
  if (!variant ||
      (given.isGiven("process-map") && given["process-map"] != "auto"))
    return {};
  std::vector<runtime::ProcessMap> maps = variant->options.processMaps();
  if (maps.size() == 1)
    return {};
  auto own = llvm::find(maps, variant->options.mesh().map);
  if (own != maps.end())
    std::rotate(maps.begin(), own, std::next(own));
  return maps;
}

/// Ways are looked at with the usual order of processes, under which messages
/// are short. The fastest, and those that may have been but for their sums,
/// with others.
void ConfigurationSearch::tryProcessMaps() {
  constexpr size_t most = 6;
  std::multimap<double, Configuration> ways;
  for (const Configuration &one : planned)
    ways.insert({one.step, one});
  for (const Prospect &prospect : slowerPlans)
    if (prospect.bound <= stepToBeat())
      ways.insert({prospect.bound, prospect.one});
  std::set<std::tuple<int64_t, int64_t, int64_t, bool>> tried;
  for (Configuration one : llvm::make_second_range(ways)) {
    if (tried.size() == most)
      return;
    const auto maps = processMapsOf(one);
    if (maps.empty() || !tried
                             .insert({one.ranks, one.microBatchSize, one.zero,
                                      one.balance == "step"})
                             .second)
      continue;
    if (!one.isSmall() && !one.chosen.empty())
      keepSchedule(one);
    for (const runtime::ProcessMap map : llvm::drop_begin(maps)) {
      one.processMap = nameOf(map);
      planVariant(one, /*estimatesFirst=*/false);
    }
  }
}

void ConfigurationSearch::tryVariants() {
  tryProcessMaps();
  compareSmallWays();
  tryProcessMaps();
  tryWithoutZero();
  // Cut for a short step. Several stages on a rank are made to take as long, so
  // nothing is gained where they do; as that takes long, one is enough.
  constexpr double ofUse = 0.01;
  bool hadLoops = false;
  if (!given.isGiven("balance"))
    tryEach(/*estimatesFirst=*/false, [&](Configuration &one) {
      if (one.isSmall() && wanted.pareto.empty())
        return false;
      one.balance = "step";
      keepSchedule(one);
      return (one.stages == one.ranks || (!std::exchange(hadLoops, true) &&
                                          one.imbalance > ofUse * one.step)) &&
             mayCutBetter(one);
    });
  if (!given.isGiven("early-recompute"))
    tryEach(/*estimatesFirst=*/true, [&](Configuration &one) {
      one.recomputesEarly = true;
      if (!one.isSmall())
        keepSchedule(one);
      return recomputesEarly(one);
    });
}

} // namespace pipewright::tool
