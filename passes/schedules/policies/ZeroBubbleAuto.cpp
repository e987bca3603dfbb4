//===- ZeroBubbleAuto.cpp - Zero bubble within a memory limit ---*- C++ -*-===//
//
// Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024 (arXiv 2401.10241),
// the automatic scheduler: given what tasks and messages take and how many
// stashes fit, an order with split backwards. `zb-1p` has room for P stashes
// on every rank, as 1F1B on its first; `zb-2p` for twice as many. Where it is
// known how large stashes are, the room is the bytes of as many: I frees what W
// does not read, which makes room for more. 3 ranks, 6 micro-batches, F, I and
// W alike, `zb-1p` above `zb-2p`:
//
//   rank 0 | F0 F1 F2       I0 W0 F3 I1 W1 F4 I2 W2 F5 I3 W3 I4 W4 I5 W5
//   rank 1 |    F0 F1 F2 I0 W0 I1 W1 F3 I2 W2 F4 I3 W3 F5 I4 W4 I5 W5
//   rank 2 |       F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 F4 I4 W2 F5 I5 W3 W4 W5
//
//   rank 0 | F0 F1 F2 F3 F4 I0 F5 I1 W0 I2 W1 I3 W2 I4 W3 I5 W4 W5
//   rank 1 |    F0 F1 F2 I0 F3 I1 F4 I2 F5 I3 W0 I4 W1 I5 W2 W3 W4 W5
//   rank 2 |       F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 F5 I5 W0 W1 W2 W3 W4 W5
//
// Each rank goes by itself, in three phases:
//  - before its first I, as many forwards as fit;
//  - then I and F in turn, and a W where the rank would else be idle for at
//    least as long; in a shorter gap only if that idleness would make its sum
//    the largest of all ranks; and where a forward waits for room;
//  - I alone, and at last what W are left.
// The text leaves three choices open: whether a forward may delay the first I
// that a small gap separates it from, whether an I goes before a forward
// whenever both could run, and whether every gap is filled with a W. All eight
// ways are tried, and beside them the handmade orders `zb-h1` and `zb-h2` where
// their stashes fit (on 16 and 32 ranks the paper's bubble rates of `zb-1p` are
// those of `zb-h1`), and the shortest step wins; of equal ones, the one with
// the shortest span, which is what the paper compares. The paper then improves
// the result by integer programming, which its authors' program leaves out by
// default, and so do we. For large schedules the choice is made on fewer
// micro-batches.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Policy.h"

#include "passes/schedules/ListScheduler.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/policies/OneStagePerRank.h"
#include "passes/schedules/policies/Switch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>
#include <tuple>

using namespace pipewright::schedules;

namespace {

/// The choices that the paper leaves open.
struct Knobs {
  bool delaysFirstBackward = false;
  bool prefersBackward = false;
  bool fillsAllGaps = false;
};

/// Decides for ranks of one stage each.
class ZeroBubbleRule final : public ListRule {
public:
  ZeroBubbleRule(Knobs knobs, int64_t ranks) : knobs(knobs), ranks(ranks) {}

  int choose(int32_t rank, double now,
             llvm::ArrayRef<ListCandidate> candidates) override;
  void started(int32_t rank, const Task &task, double start,
               double end) override;

private:
  struct Rank {
    bool hadBackward = false;
    TaskKind last = TaskKind::WeightGradient;
    double busyUntil = 0;
    double idle = 0;
    bool hasBegun = false;
  };
  struct Offer {
    int forward = -1, backward = -1, weight = -1;
  };

  int beforeFirstBackward(const Offer &offer,
                          llvm::ArrayRef<ListCandidate> candidates) const;
  bool isWorthFilling(int32_t rank, double gap, double seconds) const;

  Knobs knobs;
  std::vector<Rank> ranks;
};

} // namespace

int ZeroBubbleRule::beforeFirstBackward(
    const Offer &offer, llvm::ArrayRef<ListCandidate> candidates) const {
  auto isReady = [&](int i) { return i >= 0 && candidates[i].wait == 0; };
  if (isReady(offer.backward))
    return offer.backward;
  if (!isReady(offer.forward) || !candidates[offer.forward].fits)
    return -1;
  bool delays = offer.backward >= 0 && candidates[offer.backward].wait <
                                           candidates[offer.forward].seconds;
  return delays && !knobs.delaysFirstBackward ? -1 : offer.forward;
}

bool ZeroBubbleRule::isWorthFilling(int32_t rank, double gap,
                                    double seconds) const {
  if (knobs.fillsAllGaps || gap >= seconds)
    return true;
  double largest = 0;
  for (const Rank &other : ranks)
    largest = std::max(largest, other.idle);
  return ranks[rank].idle + gap > largest;
}

int ZeroBubbleRule::choose(int32_t rank, double now,
                           llvm::ArrayRef<ListCandidate> candidates) {
  Offer offer;
  for (auto [i, candidate] : llvm::enumerate(candidates))
    (candidate.task.kind == TaskKind::Forward ? offer.forward
     : candidate.task.producesGradient() ? offer.backward
                                         : offer.weight) = static_cast<int>(i);
  const Rank &state = ranks[rank];
  if (!state.hadBackward)
    return beforeFirstBackward(offer, candidates);

  bool backwardFirst =
      knobs.prefersBackward || state.last != TaskKind::InputGradient;
  int first = backwardFirst ? offer.backward : offer.forward;
  int second = backwardFirst ? offer.forward : offer.backward;
  double gap = std::numeric_limits<double>::infinity();
  for (int i : {first, second}) {
    if (i < 0)
      continue;
    const ListCandidate &candidate = candidates[i];
    if (candidate.fits && candidate.wait == 0)
      return i;
    // It has its data, but needs the room of a W.
    if (!candidate.fits && candidate.wait == 0 && offer.weight >= 0)
      return offer.weight;
    if (candidate.fits)
      gap = std::min(gap, candidate.wait);
  }
  if (offer.weight >= 0 &&
      isWorthFilling(rank, gap, candidates[offer.weight].seconds))
    return offer.weight;
  return -1;
}

void ZeroBubbleRule::started(int32_t rank, const Task &task, double start,
                             double end) {
  Rank &state = ranks[rank];
  if (state.hasBegun)
    state.idle += start - state.busyUntil;
  state.hasBegun = true;
  state.busyUntil = end;
  state.hadBackward |= task.producesGradient();
  if (task.kind != TaskKind::WeightGradient)
    state.last = task.kind;
}

namespace {

class ZeroBubbleAuto final : public Policy {
public:
  /// `share` of P is the limit when the user says nothing.
  ZeroBubbleAuto(llvm::StringLiteral ownName, llvm::StringLiteral ownSummary,
                 int64_t share)
      : ownName(ownName), ownSummary(ownSummary), share(share) {}

  llvm::StringRef name() const override { return ownName; }
  bool plansWithTimes() const override { return true; }
  const Policy &maker(const ScheduleOptions &options) const override {
    const bool hasLimit = options.parameter("limit", 0) > 0;
    return hasLimit || share == 1 ? zeroBubbleAutoPolicy() : *this;
  }
  llvm::StringRef summary() const override { return ownSummary; }
  llvm::StringRef paper() const override {
    return "Qi et al., ICLR 2024 (arXiv 2401.10241)";
  }
  llvm::StringRef bubbleFormula() const override {
    return share == 1 ? "planned; (P-1)tF if tF = tI = tW and M >= P"
                      : "planned; (P-1)tF if tF = tI = tW and M >= P; none of "
                        "the span if M >= 2P-1";
  }
  llvm::StringRef memoryFormula() const override {
    return share == 1 ? "min(P, M) stashes on every rank, or their bytes"
                      : "min(2P, M) stashes on every rank, or their bytes";
  }
  ScheduleOptions example() const override { return {3, 3, 6}; }
  bool splitsBackward() const override { return true; }
  llvm::ArrayRef<PolicyParameter> parameters() const override {
    static constexpr PolicyParameter all[] = {
        {"limit", "most stashes of a rank's share of the model at a time"},
        {"span", "of what was tried, the shortest span instead of the shortest "
                 "step: for steps that follow each other without a barrier"}};
    return all;
  }

  /// What the plan takes that is made without costs. With other times only the
  /// search itself could say it.
  std::optional<double> stepTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    int64_t idle = std::max(options.ranks, options.microBatches) -
                   options.microBatches + options.ranks - 1;
    return timeOf(idle, options, times);
  }
  std::optional<double> spanTime(const ScheduleOptions &options,
                                 const UnitTimes &times) const override {
    int64_t idle = 2 * options.ranks - 1 - options.microBatches;
    return timeOf(std::max(idle, share == 1 ? options.ranks - 1 : 0), options,
                  times);
  }

  int64_t maxInFlight(const ScheduleOptions &options,
                      int64_t rank) const override {
    if (options.ranks == 1)
      return options.stages;
    return std::min(limitOf(options), options.microBatches);
  }

protected:
  llvm::Expected<Placement>
  placeStages(const ScheduleOptions &options) const override {
    if (int64_t limit = limitOf(options); limit < 1)
      return refuse("{0} needs a limit of at least 1 stash, but got {1}",
                    name(), limit);
    if (llvm::Error error = checkSwitch(*this, options, "span"))
      return std::move(error);
    return placeOneStagePerRank(options);
  }

  llvm::Error orderRanks(Schedule &schedule,
                         const ScheduleOptions &options) const override;

private:
  int64_t limitOf(const ScheduleOptions &options) const {
    return options.parameter("limit", share * options.ranks);
  }
  std::vector<RankLimit> roomOf(const ScheduleOptions &options) const;
  std::optional<double> timeOf(int64_t idleSlots,
                               const ScheduleOptions &options,
                               const UnitTimes &times) const {
    bool isUniform = times.forward == times.inputGradient &&
                     times.forward == times.weightGradient;
    if (options.costs || !isUniform ||
        limitOf(options) != share * options.ranks)
      return std::nullopt;
    int64_t perRank = options.stages / options.ranks;
    return (3 * options.microBatches * perRank + idleSlots) * times.forward;
  }
  /// An order by the rule with these knobs, or by another policy.
  struct Way {
    Knobs knobs = {};
    const Policy *policy = nullptr;
  };
  std::vector<Way> waysFor(const ScheduleOptions &options) const;
  /// Without order, where a rule takes longer than `most` seconds.
  llvm::Expected<Schedule>
  orderWith(const Way &way, const Schedule &frame,
            const ScheduleOptions &options,
            double most = std::numeric_limits<double>::infinity()) const;
  llvm::Expected<Way> chooseWay(Schedule frame,
                                const ScheduleOptions &options) const;

  llvm::StringLiteral ownName, ownSummary;
  int64_t share;
};

} // namespace

std::vector<ZeroBubbleAuto::Way>
ZeroBubbleAuto::waysFor(const ScheduleOptions &options) const {
  std::vector<Way> ways;
  for (int i = 0; i < 8; ++i)
    ways.push_back({.knobs = {(i & 1) != 0, (i & 2) != 0, (i & 4) != 0}});
  for (const Policy *policy : {&zbH1Policy(), &zbH2Policy()}) {
    int64_t most = 0;
    for (int64_t rank = 0; rank < options.ranks; ++rank)
      most = std::max(most, policy->maxInFlight(options, rank));
    if (most <= limitOf(options))
      ways.push_back({.policy = policy});
  }
  return ways;
}

/// A limit of the user's is one of stashes; that of the policy is one of bytes,
/// where I frees some.
std::vector<RankLimit>
ZeroBubbleAuto::roomOf(const ScheduleOptions &options) const {
  const int64_t most = limitOf(options);
  std::vector<RankLimit> room(options.ranks, {most});
  if (!options.costs || options.parameter("limit", 0) > 0)
    return room;
  for (auto [limit, stage] : llvm::zip_equal(room, options.costs->stages)) {
    const bool frees = stage.weightStashBytes >= 0 &&
                       stage.weightStashBytes < stage.stashBytes;
    if (int64_t bytes = 0;
        frees && !llvm::MulOverflow(most, stage.stashBytes, bytes))
      limit = {-1, bytes};
  }
  return room;
}

llvm::Expected<Schedule>
ZeroBubbleAuto::orderWith(const Way &way, const Schedule &frame,
                          const ScheduleOptions &options, double most) const {
  if (way.policy) {
    ScheduleOptions its = {options.ranks, options.stages, frame.microBatches};
    llvm::Expected<Schedule> schedule = way.policy->build(its);
    if (schedule)
      for (std::vector<Task> &order : schedule->order)
        llvm::erase_if(order, [](const Task &task) {
          return task.kind == TaskKind::Update;
        });
    return schedule;
  }
  ListOptions list;
  list.costs = options.costs;
  list.edges = options.edges;
  list.splitsBackward = true;
  list.limits = roomOf(options);
  list.most = most;
  ZeroBubbleRule rule(way.knobs, options.ranks);
  Schedule schedule = frame;
  if (llvm::Error error = orderByRule(schedule, list, rule))
    return error;
  return schedule;
}

llvm::Expected<ZeroBubbleAuto::Way>
ZeroBubbleAuto::chooseWay(Schedule frame,
                          const ScheduleOptions &options) const {
  // Warm-up, cool-down and a few periods between them tell the ways apart.
  constexpr int64_t enoughPairs = 1 << 14;
  frame.microBatches =
      std::min(frame.microBatches,
               std::max(4 * options.ranks, enoughPairs / options.ranks));
  TaskCosts uniform = TaskCosts::uniform(frame.stages, 1, 2);
  const TaskCosts &costs = options.costs ? *options.costs : uniform;
  Way best;
  const bool bySpan = isOn(options, "span");
  // Step and span, or span and step; number.
  std::tuple<double, double, size_t> least{
      std::numeric_limits<double>::infinity(), 0, 0};
  // Handmade orders are at hand, and the others need not be slower.
  const std::vector<Way> ways = waysFor(options);
  for (size_t number = ways.size(); number-- > 0;) {
    const Way &way = ways[number];
    const double most = bySpan ? std::numeric_limits<double>::infinity()
                               : std::get<0>(least) * kListRounding;
    llvm::Expected<Schedule> schedule = orderWith(way, frame, options, most);
    if (!schedule)
      return schedule.takeError();
    if (schedule->order.empty())
      continue;
    for (int32_t stage = 0; stage < frame.stages; ++stage)
      schedule->order[stage].push_back(Task::update(stage));
    llvm::Expected<Simulation> simulation =
        simulate(*schedule, costs, options.edges);
    if (!simulation)
      return simulation.takeError();
    std::tuple time{simulation->globalStepTime, simulation->spanStepTime,
                    number};
    if (bySpan)
      std::swap(std::get<0>(time), std::get<1>(time));
    if (time < least) {
      least = time;
      best = way;
    }
  }
  return best;
}

llvm::Error ZeroBubbleAuto::orderRanks(Schedule &schedule,
                                       const ScheduleOptions &options) const {
  if (options.ranks == 1) {
    schedule.order[0] = orderOfOnlyRank(schedule, /*splits=*/true);
    return llvm::Error::success();
  }
  llvm::Expected<Way> way = chooseWay(schedule, options);
  if (!way)
    return way.takeError();
  llvm::Expected<Schedule> ordered = orderWith(*way, schedule, options);
  if (!ordered)
    return ordered.takeError();
  schedule.order = std::move(ordered->order);
  return llvm::Error::success();
}

const Policy &pipewright::schedules::zeroBubbleAutoPolicy() {
  static const ZeroBubbleAuto policy(
      "zb-auto",
      "zero bubble planned with the tasks' times, within the stashes that "
      "'limit' allows",
      1);
  return policy;
}

const Policy &pipewright::schedules::zeroBubble1pPolicy() {
  static const ZeroBubbleAuto policy(
      "zb-1p", "zb-auto with as many stashes as the worst rank of 1f1b", 1);
  return policy;
}

const Policy &pipewright::schedules::zeroBubble2pPolicy() {
  static const ZeroBubbleAuto policy(
      "zb-2p", "zb-auto with twice the stashes of the worst rank of 1f1b", 2);
  return policy;
}
