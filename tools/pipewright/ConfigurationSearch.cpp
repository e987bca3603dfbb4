//===- ConfigurationSearch.cpp - The fastest way to use workers -----------===//
//
// Best first: each way has a bound that no plan of it beats, and the one with
// the least is looked at next. The bound grows when more is known: first that a
// smaller micro-batch takes so long, then the tasks of stages, then what the
// fastest schedule takes by estimates of these (PlanChoice.h). Only when that
// is the least of all, a plan is made. When the least bound is longer than a
// plan, all that is left is. For a picture of what memory buys, all are
// planned.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/ConfigurationSearch.h"

#include "codegen/plan/Plan.h"
#include "support/Message.h"
#include "support/Text.h"
#include "tools/pipewright/MemoryLimits.h"
#include "tools/pipewright/PlanChoice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

using namespace mlir;

namespace pipewright::tool {

void ConfigurationSearch::push(Prospect prospect) {
  // Of equals what came first is planned first.
  if (prospect.number < 0)
    prospect.number = pushed++;
  prospects.insert(std::move(prospect));
}

Configuration ConfigurationSearch::summaryOf(Configuration one,
                                             const Draft &draft,
                                             const Compilation &compilation) {
  one.chosen = compilation.schedule();
  one.stages = draft.stages;
  one.step = draft.step;
  one.exposed = draft.exposed;
  one.isLimited = draft.isLimited;
  // It may be a variant of one that was planned.
  one.work = 0;
  one.arenaBytes = one.hostBytes = 0;
  double all = 0;
  for (const Draft::Rank &rank : draft.ranks) {
    all += rank.busySeconds;
    one.work = std::max(one.work, rank.busySeconds);
    one.arenaBytes = std::max(one.arenaBytes, rank.arenaBytes);
    one.hostBytes = std::max(one.hostBytes, rank.hostBytes);
  }
  one.imbalance = one.work - all / static_cast<double>(draft.ranks.size());
  one.waiting = std::max(0.0, one.step - one.work - one.exposed);
  return one;
}

/// The model for micro-batches of a size, imported once for all that is planned
/// with it. Null where there is no such model: it may have a batch of its own.
Compilation *ConfigurationSearch::opened(const CompileOptions &options) {
  auto [entry, isNew] = models.try_emplace(*options.import.microBatchSize);
  if (isNew) {
    entry->second = std::make_unique<Compilation>(options);
    if (failed(entry->second->openQuietly(model.empty(), unopened)))
      entry->second.reset();
    else
      model = entry->second->modelName();
  }
  return entry->second.get();
}

/// Whether a plan with such a step cannot be the best.
bool ConfigurationSearch::isSlower(double step) const {
  // Tasks may be a little shorter in some cuts than in others.
  constexpr double slack = 0.98;
  return step * slack > stepToBeat();
}

/// What the forwards of a micro-batch take at least: not less than those of a
/// smaller one.
double ConfigurationSearch::leastPass(int64_t microBatchSize) const {
  double least = 0;
  for (const auto &[size, pass] : passes)
    if (size <= microBatchSize)
      least = std::max(least, pass);
  return least;
}

/// What it takes at least because of what others do: the first mode of
/// recomputation with no more ZeRO.
double ConfigurationSearch::leastByOthers(const Prospect &prospect) const {
  const Configuration &one = prospect.one;
  double least = leastPass(one.microBatchSize);
  for (int64_t zero = std::min<int64_t>(1, one.zero); zero <= one.zero; ++zero)
    if (auto other = leastOfMore.find({one.ranks, one.microBatchSize, zero});
        other != leastOfMore.end() && prospect.mode != kEachRank)
      least = std::max(least, other->second);
  return least;
}

/// Whether a plan with no more recomputation and sharing, of as many ranks, has
/// the step that was expected of it, so that more of these only takes longer.
bool ConfigurationSearch::isDominated(const Prospect &prospect) const {
  return llvm::any_of(attained, [&](const Prospect &other) {
    const Configuration &a = other.one, &b = prospect.one;
    return a.ranks == b.ranks && a.microBatchSize == b.microBatchSize &&
           a.schedule == b.schedule && a.zero <= b.zero &&
           other.mode <= prospect.mode && other.bound <= prospect.bound;
  });
}

/// What its memory depends on beside the size of micro-batches.
static auto keyOfMemory(const Configuration &one) {
  return std::tuple(one.ranks, one.replicas, one.zero, one.remat,
                    one.recomputesEarly);
}

/// Whether it did not fit with smaller micro-batches. Of larger ones more may
/// be on hosts in time.
bool ConfigurationSearch::isTooLargeWithLess(const Configuration &one) const {
  if (given.isGiven("offload"))
    return false;
  auto found = tooLargeFrom.find(keyOfMemory(one));
  return found != tooLargeFrom.end() && found->second < one.microBatchSize;
}

/// Whether ranks that recompute each their own would have to need less than
/// with any mode for all.
bool ConfigurationSearch::isFarTooLarge(const Prospect &prospect,
                                        int64_t limit) const {
  constexpr double much = 1.1;
  const Configuration &one = prospect.one;
  auto found = leastOfModes.find({one.ranks, one.replicas, one.zero});
  return prospect.mode == kEachRank && planned.empty() &&
         found != leastOfModes.end() &&
         static_cast<double>(found->second) > much * static_cast<double>(limit);
}

/// It cannot be compiled, whatever its size. Where no level of ZeRO can, none
/// may be possible.
void ConfigurationSearch::refuse(const Prospect &prospect,
                                 llvm::StringRef why) {
  ++impossible;
  // What fails as it did before fails without a word.
  if (tooLarge == 0 && !why.empty() && why != reason)
    reason = reason.empty()
                 ? why.str()
                 : "of the ways to use them, " + optionsOf(prospect.one) +
                       " is not possible: " + why.str();
  if (prospect.one.zero == 0 || given.isGiven("zero") || !wanted.pareto.empty())
    return;
  Prospect other = prospect;
  other.one.zero = 0;
  const auto &one = other.one;
  const int64_t levels = isForSpeed() ? 1 : std::min<int64_t>(3, highestZero);
  if (++refused[{one.ranks, one.microBatchSize, other.mode}] < levels)
    return;
  other.number = -1;
  push(std::move(other));
}

/// Makes its bound larger.
void ConfigurationSearch::estimate(Prospect prospect,
                                   const CompileOptions &options,
                                   Compilation &compilation) {
  // To simulate more than other ways ask for is work for nothing; to do so step
  // by step, too.
  double enough = stepToBeat() * 1.03;
  if (!std::isfinite(enough))
    enough = prospect.bound * 1.15;
  const StepEstimate estimate = compilation.estimateStep(options, enough);
  const Configuration &one = prospect.one;
  double &pass = passes[one.microBatchSize];
  pass = std::max(pass, estimate.pass);
  // A mode behind it that keeps some values may compute less again.
  if (prospect.mode == 0) {
    double &least = leastOfMore[{one.ranks, one.microBatchSize, one.zero}];
    least = std::max(least, estimate.leastOfMore);
  }
  if (!std::isfinite(estimate.least)) {
    fail(prospect, options, estimate.why);
    return;
  }
  prospect.bound = std::max(prospect.bound, estimate.least);
  prospect.isEstimated = estimate.isSimulated;
  prospect.expected = estimate.expected;
  push(std::move(prospect));
}

void ConfigurationSearch::fail(const Prospect &prospect,
                               const CompileOptions &options,
                               const Refusal &refusal) {
  if (refusal.why == kNoneIsFaster) {
    ++slower;
    slowerPlans.push_back(prospect);
  } else if (refusal.bytes) {
    ++tooLarge;
    const Configuration &one = prospect.one;
    beyondLimit.insert({*refusal.bytes, one});
    if (planned.empty()) {
      auto [size, isFirst] =
          tooLargeFrom.try_emplace(keyOfMemory(one), one.microBatchSize);
      size->second = std::min(size->second, one.microBatchSize);
      auto [bytes, isLeast] = leastOfModes.try_emplace(
          {one.ranks, one.replicas, one.zero}, *refusal.bytes);
      bytes->second = std::min(bytes->second, *refusal.bytes);
    }
    if (*refusal.bytes < leastBytes) {
      leastBytes = *refusal.bytes;
      reason = tellNeed("a rank needs at least", leastBytes,
                        mostBytesOf(options), options) +
               ": more --workers may need less";
    }
  } else {
    refuse(prospect, refusal.why);
  }
}

/// Plans it.
void ConfigurationSearch::plan(const Prospect &prospect,
                               const CompileOptions &options,
                               Compilation &compilation) {
  Refusal refusal;
  auto draft =
      compilation.planQuietly(options, refusal, stepToBeat() * kOfInterest);
  if (failed(draft)) {
    fail(prospect, options, refusal);
    return;
  }
  Configuration one = summaryOf(prospect.one, *draft, compilation);
  // An estimate counts no sums.
  constexpr double most = 1.02;
  // With more memory left others may be faster.
  if (!one.isLimited && one.step - one.exposed <= most * prospect.expected)
    attained.push_back(prospect);
  add(one);
  if (!hasLimit || prospect.mode == 0)
    return;
  addEachRank(prospect.one, compilation);
  tryOffload(std::move(one));
}

/// Beside one that fits by recomputing in all stages, one with each rank
/// recomputing the least with which it fits.
void ConfigurationSearch::addEachRank(Configuration one,
                                      Compilation &compilation) {
  if (given.isGiven("remat") || one.remat == "auto" ||
      !withEachRank.insert({one.ranks, one.microBatchSize, one.zero}).second)
    return;
  if (!decidesByRank(one))
    return;
  // It takes no less than where nothing is recomputed and all of it fits.
  one.remat = "none";
  auto unlimited = readCompileOptions(valuesOf(one), nullptr);
  one.remat = "auto";
  if (!unlimited)
    return llvm::consumeError(unlimited.takeError());
  unlimited->dropMemoryLimits();
  Prospect prospect{std::move(one), kEachRank};
  prospect.bound =
      compilation
          .estimateStep(*unlimited, std::numeric_limits<double>::infinity())
          .least;
  prospect.isEstimated = true;
  // What it has to recompute is not in the bound.
  prospect.expected = prospect.bound * 1.1;
  push(std::move(prospect));
}

/// Looks at the one that may be the fastest.
void ConfigurationSearch::look(Prospect prospect) {
  const Configuration &one = prospect.one;
  if (const double least = leastByOthers(prospect);
      wanted.pareto.empty() && least > prospect.bound) {
    prospect.bound = least;
    push(std::move(prospect));
    return;
  }
  if (isTooLargeWithLess(one)) {
    ++tooLarge;
    // With another cut it may fit.
    beyondLimit.insert(
        {leastOfModes.at({one.ranks, one.replicas, one.zero}), one});
    return;
  }
  auto options = readCompileOptions(valuesOf(one), nullptr);
  if (!options) {
    refuse(prospect, llvm::toString(options.takeError()));
    return;
  }
  memoryLimit = options->memoryLimit;
  hasLimit = options->limitsMemory();
  highestZero = options->highestZero();
  // Nothing more is shared there.
  if (one.zero > 1 && one.zero > highestZero && !given.isGiven("zero"))
    return;
  keepStagesOfZero(one, *options);
  Compilation *compilation = opened(*options);
  if (!compilation) {
    refuse(prospect, unopened);
    return;
  }
  if (isDominated(prospect)) {
    ++slower;
    return;
  }
  if (isFarTooLarge(prospect, mostBytesOf(*options))) {
    ++tooLarge;
    return;
  }
  tell(one);
  if (Refusal refusal = whyNothingFits(compilation->module(), *options);
      refusal.isOne())
    fail(prospect, *options, refusal);
  else if (!prospect.isEstimated && wanted.pareto.empty())
    estimate(std::move(prospect), *options, *compilation);
  else
    plan(prospect, *options, *compilation);
}

/// Modes of recomputation may come to one program: a stage of one layer is a
/// run of layers.
static bool areAlike(const Configuration &a, const Configuration &b) {
  return std::tie(a.ranks, a.replicas, a.zero, a.microBatchSize, a.stages,
                  a.step, a.arenaBytes) == std::tie(b.ranks, b.replicas, b.zero,
                                                    b.microBatchSize, b.stages,
                                                    b.step, b.arenaBytes);
}

/// Behind all that are faster, or as fast with no more memory.
void ConfigurationSearch::add(Configuration one) {
  if (llvm::any_of(planned, [&](const Configuration &other) {
        return areAlike(one, other);
      })) {
    ++alike;
    return;
  }
  if (const auto maps = processMapsOf(one); !maps.empty())
    one.processMap = nameOf(maps.front());
  auto place = llvm::find_if(planned, [&](const Configuration &other) {
    return isShorterStep(one.step, other.step) ||
           (!isShorterStep(other.step, one.step) &&
            one.arenaBytes < other.arenaBytes);
  });
  planned.insert(place, std::move(one));
}

/// For who waits.
void ConfigurationSearch::tell(const Configuration &next) const {
  showProgress(
      llvm::formatv("{0} planned{1}; planning {2} x {3}, micro-batches of {4}, "
                    "recomputed {5}",
                    planned.size(),
                    planned.empty()
                        ? ""
                        : ", the fastest " +
                              codegen::formatSeconds(planned.front().step),
                    next.ranks, next.replicas, next.microBatchSize, next.remat)
          .str());
}

/// What to look at next: the one with the least bound, or of those that are
/// estimated the one that is expected to be the fastest. While nothing is
/// planned, nothing is known to be slower either: then these come before others
/// whose estimates take long.
std::set<ConfigurationSearch::Prospect>::iterator ConfigurationSearch::next() {
  auto first = prospects.begin();
  if (!first->isEstimated && (!planned.empty() || !first->one.isLarge()))
    return first;
  auto best = prospects.end();
  for (auto each = first; each != prospects.end() && !isSlower(each->bound);
       ++each)
    if (each->isEstimated &&
        (best == prospects.end() || each->expected < best->expected))
      best = each;
  return best == prospects.end() ? first : best;
}

llvm::Error ConfigurationSearch::run() {
  if (llvm::Error error = checkOptions())
    return error;
  auto eraseProgress = llvm::scope_exit([] { showProgress(""); });
  auto ways = allWays();
  if (!ways)
    return ways.takeError();
  if (ways->empty())
    reason = "no numbers of ranks, of replicas and of samples in a micro-batch "
             "make these, or not with those that were given";
  if (llvm::Error error = readLimits(*ways))
    return error;
  for (const Configuration &one : *ways)
    addWays(one);
  auto lookAtAll = [&] {
    while (!prospects.empty() && !isSlower(prospects.begin()->bound))
      look(std::move(prospects.extract(next()).value()));
  };
  lookAtAll();
  if (planned.empty() && tooLarge > 0)
    addSmallerWays(*ways);
  lookAtAll();
  if (planned.empty())
    tryCuts();
  if (planned.empty())
    tryHosts();
  slower += static_cast<int64_t>(prospects.size());
  tryVariants();
  if (planned.empty()) {
    reason += smallestPlan();
    return option::fail("--search found no plan for ",
                        codegen::count(wanted.workers, "worker"),
                        " and a batch of ", wanted.batch,
                        reason.empty() ? std::string() : ": " + reason);
  }
  int64_t least = std::numeric_limits<int64_t>::max();
  for (Configuration &one : planned) {
    one.isOnFront = one.arenaBytes < least;
    least = std::min(least, one.arenaBytes);
  }
  return llvm::Error::success();
}

} // namespace pipewright::tool
