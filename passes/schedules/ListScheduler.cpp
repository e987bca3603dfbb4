//===- ListScheduler.cpp - An order out of times, limits, a rule ----------===//
//
// Time goes on from event to event: a rank becomes free, or something that it
// may wait for arrives. On each stage, forwards, backwards and W each go in
// ascending order of micro-batches, so a rank has at most three candidates per
// stage, and three counters per stage say all about what it keeps. Why limits
// never get the scheduler stuck stands in ListBudget.cpp.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/ListScheduler.h"

#include "passes/schedules/Dependences.h"
#include "passes/schedules/ListBudget.h"
#include "passes/schedules/Refusal.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <queue>
#include <tuple>

using namespace pipewright::schedules;

//===----------------------------------------------------------------------===//
// Priorities
//===----------------------------------------------------------------------===//

/// Numbers of micro-batches and stages are below 2^29 in all that a policy
/// builds.
static int64_t keyOf(int64_t group, int64_t major, int64_t minor) {
  constexpr int bits = 29;
  return (group << (2 * bits)) + (major << bits) + minor;
}
static constexpr int32_t deepest = (1 << 29) - 1;

ListPriority pipewright::schedules::preferBackward() {
  return [](const Task &task) {
    if (task.producesGradient())
      return keyOf(0, task.microBatch, deepest - task.stage);
    if (task.kind == TaskKind::Forward)
      return keyOf(1, deepest - task.stage, task.microBatch);
    return keyOf(2, task.microBatch, deepest - task.stage);
  };
}

ListPriority
pipewright::schedules::preferBackwardInGroups(int64_t microBatches) {
  return [=, base = preferBackward()](const Task &task) {
    if (task.kind != TaskKind::Forward)
      return base(task);
    return keyOf(1, task.microBatch / microBatches, task.stage);
  };
}

ListPriority pipewright::schedules::preferAsIn(const Schedule &schedule) {
  struct Positions {
    int64_t microBatches;
    std::vector<int32_t> forward, backward, weight;
  };
  auto positions = std::make_shared<Positions>();
  positions->microBatches = schedule.microBatches;
  auto tableOf = [](Positions &all, TaskKind kind) -> std::vector<int32_t> & {
    return kind == TaskKind::Forward          ? all.forward
           : kind == TaskKind::WeightGradient ? all.weight
                                              : all.backward;
  };
  for (TaskKind kind :
       {TaskKind::Forward, TaskKind::Backward, TaskKind::WeightGradient})
    tableOf(*positions, kind)
        .assign(schedule.stages * schedule.microBatches,
                std::numeric_limits<int32_t>::max());
  for (const std::vector<Task> &tasks : schedule.order)
    for (auto [i, task] : llvm::enumerate(tasks))
      if (task.kind != TaskKind::Update && task.kind != TaskKind::Recompute)
        tableOf(
            *positions,
            task.kind)[task.stage * schedule.microBatches + task.microBatch] =
            static_cast<int32_t>(i);
  return [=](const Task &task) -> int64_t {
    return tableOf(
        *positions,
        task.kind)[task.stage * positions->microBatches + task.microBatch];
  };
}

namespace {

class PriorityRule final : public ListRule {
public:
  explicit PriorityRule(const ListOptions &options) : options(options) {}

  int choose(int32_t rank, double now,
             llvm::ArrayRef<ListCandidate> candidates) override {
    keys.clear();
    for (const ListCandidate &candidate : candidates)
      keys.push_back(candidate.fits ? options.priority(candidate.task) : 0);
    int best = bestWithin(candidates, 0);
    if (best < 0 || options.patience <= 0)
      return best;
    return bestWithin(candidates, options.patience * candidates[best].seconds);
  }

private:
  int bestWithin(llvm::ArrayRef<ListCandidate> candidates, double wait) const {
    int best = -1;
    for (size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].fits && candidates[i].wait <= wait &&
          (best < 0 || keys[i] < keys[best]))
        best = static_cast<int>(i);
    return best;
  }

  const ListOptions &options;
  std::vector<int64_t> keys;
};

} // namespace

//===----------------------------------------------------------------------===//
// The run through time
//===----------------------------------------------------------------------===//

namespace {

class ListScheduler {
public:
  ListScheduler(Schedule &schedule, const TaskCosts &costs,
                const ListOptions &options, ListRule &rule);

  llvm::Error run();

private:
  struct Event {
    double time;
    int32_t rank;
    bool operator>(const Event &other) const {
      return std::tie(time, rank) > std::tie(other.time, other.rank);
    }
  };
  struct Rank {
    std::vector<int32_t> stages;
    /// Parallel to `stages`.
    std::vector<ListProgress> progress;
    std::vector<ListBudget> budgets;
    double freeAt = 0;
    /// Of the tasks that have not started, in seconds.
    double left = 0;
  };
  static constexpr double unknown = -1;

  void addBudgets(int32_t rank);
  double secondsOfStage(int32_t stage) const;
  llvm::Error checkLimits() const;
  int64_t countTasks() const;

  double arrivalOf(llvm::ArrayRef<int32_t> edges, TransferKind kind,
                   int64_t microBatch) const;
  void collect(int32_t rank, double now);
  void addCandidate(const Rank &rank, size_t stage, Task task, double ready,
                    double now);
  bool dispatch(int32_t rank, double now, bool mustRun);
  void start(int32_t rank, size_t candidate, double now);
  void publish(const Task &task, double end);
  void send(TransferKind kind, int32_t edge, int32_t microBatch, double end);
  void wake(int32_t rank, double time);
  bool runAnyTask();

  Schedule &schedule;
  const TaskCosts &costs;
  const ListOptions &options;
  ListRule &rule;
  std::vector<StageEdge> edges;
  EdgeIndex index;
  LinkIndex links;

  std::vector<Rank> ranks;
  // When the message of an edge and a micro-batch arrives.
  std::vector<double> forwardArrival, gradientArrival;
  std::vector<double> linkFree;
  std::vector<LinkCosts> linkCosts;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  /// Waits below this come from rounding.
  double noise = 0;
  double latest = 0;
  /// No order that begins like this takes less.
  double least = 0;

  // What the rank that is being served may run next; `place` is the index of a
  // stage among the rank's.
  std::vector<ListCandidate> candidates;
  std::vector<size_t> place;
  std::vector<double> readyTime;
};

} // namespace

ListScheduler::ListScheduler(Schedule &schedule, const TaskCosts &costs,
                             const ListOptions &options, ListRule &rule)
    : schedule(schedule), costs(costs), options(options), rule(rule),
      edges(options.edges.empty() ? linearEdges(schedule.stages)
                                  : options.edges.vec()),
      index(schedule.stages, edges), links(schedule, edges),
      ranks(schedule.ranks),
      forwardArrival(edges.size() * schedule.microBatches, unknown),
      gradientArrival(forwardArrival.size(), unknown),
      linkFree(links.links().size()) {
  for (const LinkIndex::Link &link : links.links())
    linkCosts.push_back(costs.linkBetween(link.from, link.to));
  for (int32_t stage = 0; stage < schedule.stages; ++stage)
    ranks[schedule.rankOfStage[stage]].stages.push_back(stage);
  for (int32_t rank = 0; rank < schedule.ranks; ++rank) {
    ranks[rank].progress.resize(ranks[rank].stages.size());
    for (int32_t stage : ranks[rank].stages)
      ranks[rank].left += secondsOfStage(stage);
    if (!schedule.forwardOnly)
      addBudgets(rank);
  }
  for (const StageCosts &stage : costs.stages)
    noise = std::max({noise, stage.forward, stage.backward, stage.inputGradient,
                      stage.weightGradient});
  noise *= 1e-9;
}

/// All tasks of a stage.
double ListScheduler::secondsOfStage(int32_t stage) const {
  const StageCosts &cost = costs.stages[stage];
  const double backward = options.splitsBackward
                              ? cost.inputGradient + cost.weightGradient
                              : cost.backward;
  return static_cast<double>(schedule.microBatches) *
         (cost.forward + (schedule.forwardOnly ? 0 : backward));
}

void ListScheduler::addBudgets(int32_t rank) {
  std::vector<ListBudget::Stage> pairs, bytes;
  for (int32_t stage : ranks[rank].stages) {
    const StageCosts &cost = costs.stages[stage];
    int64_t weightStash =
        cost.weightStashBytes < 0 ? cost.stashBytes : cost.weightStashBytes;
    pairs.push_back({1, options.splitsBackward ? 1 : 0});
    bytes.push_back(
        {cost.stashBytes, options.splitsBackward ? weightStash : 0});
  }
  RankLimit limit = options.limits.empty() ? RankLimit() : options.limits[rank];
  ranks[rank].budgets.emplace_back(limit.inFlight, std::move(pairs));
  ranks[rank].budgets.emplace_back(limit.stashBytes, std::move(bytes));
}

llvm::Error ListScheduler::checkLimits() const {
  for (auto [rank, state] : llvm::enumerate(ranks)) {
    if (state.budgets.empty())
      continue;
    const ListBudget &pairs = state.budgets[0], &bytes = state.budgets[1];
    if (pairs.isTooSmall())
      return refuse("rank {0} may keep {1} stashes in flight, but needs at "
                    "least {2}, one of each of its stages",
                    rank, options.limits[rank].inFlight, pairs.leastLimit());
    if (bytes.isTooSmall())
      return refuse("rank {0} may keep {1} bytes of stashes, but needs at "
                    "least {2}, those of one micro-batch",
                    rank, options.limits[rank].stashBytes, bytes.leastLimit());
  }
  return llvm::Error::success();
}

int64_t ListScheduler::countTasks() const {
  int64_t each = schedule.forwardOnly ? 1 : options.splitsBackward ? 3 : 2;
  return each * schedule.stages * schedule.microBatches;
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// When the last of some edges has brought its tensor; `unknown` while one
/// has a producer that has not started.
double ListScheduler::arrivalOf(llvm::ArrayRef<int32_t> which,
                                TransferKind kind, int64_t microBatch) const {
  bool isForward = kind == TransferKind::Forward;
  double ready = 0;
  for (int32_t edge : which) {
    if (!isForward && !edges[edge].hasGradient)
      continue;
    double arrival =
        (isForward
             ? forwardArrival
             : gradientArrival)[edge * schedule.microBatches + microBatch];
    if (arrival == unknown)
      return unknown;
    ready = std::max(ready, arrival);
  }
  return ready;
}

void ListScheduler::addCandidate(const Rank &rank, size_t stage, Task task,
                                 double ready, double now) {
  if (ready == unknown)
    return;
  bool fits = llvm::all_of(rank.budgets, [&](const ListBudget &budget) {
    return budget.allows(rank.progress, stage, task);
  });
  double wait = ready - now <= noise ? 0 : ready - now;
  candidates.push_back({task, costs.secondsOf(task), wait, fits});
  place.push_back(stage);
  readyTime.push_back(ready);
}

void ListScheduler::collect(int32_t rankNumber, double now) {
  const Rank &rank = ranks[rankNumber];
  candidates.clear();
  place.clear();
  readyTime.clear();
  for (size_t i = 0; i < rank.stages.size(); ++i) {
    int32_t stage = rank.stages[i];
    const ListProgress &at = rank.progress[i];
    auto task = [&](TaskKind kind, int64_t m) {
      return Task{kind, stage, static_cast<int32_t>(m)};
    };
    if (at.forwards < schedule.microBatches)
      addCandidate(
          rank, i, task(TaskKind::Forward, at.forwards),
          arrivalOf(index.into(stage), TransferKind::Forward, at.forwards),
          now);
    if (schedule.forwardOnly)
      continue;
    if (at.backwards < at.forwards)
      addCandidate(
          rank, i,
          task(options.splitsBackward ? TaskKind::InputGradient
                                      : TaskKind::Backward,
               at.backwards),
          arrivalOf(index.outOf(stage), TransferKind::Gradient, at.backwards),
          now);
    if (options.splitsBackward && at.weights < at.backwards)
      addCandidate(rank, i, task(TaskKind::WeightGradient, at.weights), 0, now);
  }
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// A rank that is busy until later will look for itself when it ends.
void ListScheduler::wake(int32_t rank, double time) {
  if (ranks[rank].freeAt <= time)
    events.push({time, rank});
}

/// A directed link carries one message at a time, like in the simulator.
void ListScheduler::send(TransferKind kind, int32_t edge, int32_t microBatch,
                         double end) {
  bool isForward = kind == TransferKind::Forward;
  double arrival = end;
  if (int32_t link = links.linkOf(kind, edge); link >= 0) {
    double &free = linkFree[link];
    free = std::max(free, end) + edges[edge].bytes / linkCosts[link].bandwidth;
    arrival = free + linkCosts[link].latency;
    wake(links.links()[link].to, arrival);
  }
  (isForward ? forwardArrival
             : gradientArrival)[edge * schedule.microBatches + microBatch] =
      arrival;
}

void ListScheduler::publish(const Task &task, double end) {
  if (task.kind == TaskKind::Forward)
    for (int32_t edge : index.outOf(task.stage))
      send(TransferKind::Forward, edge, task.microBatch, end);
  else if (task.producesGradient())
    for (int32_t edge : index.into(task.stage))
      if (edges[edge].hasGradient)
        send(TransferKind::Gradient, edge, task.microBatch, end);
}

void ListScheduler::start(int32_t rankNumber, size_t candidate, double now) {
  Rank &rank = ranks[rankNumber];
  const Task task = candidates[candidate].task;
  size_t stage = place[candidate];
  double begin = std::max(now, readyTime[candidate]);
  double end = begin + candidates[candidate].seconds;
  rank.freeAt = end;
  rank.left -= candidates[candidate].seconds;
  latest = std::max(latest, end);
  least = std::max(least, end + rank.left);
  schedule.order[rankNumber].push_back(task);
  for (ListBudget &budget : rank.budgets)
    budget.start(stage, task);
  ListProgress &at = rank.progress[stage];
  at.forwards += task.kind == TaskKind::Forward;
  at.backwards += task.producesGradient();
  at.weights += task.endsStash();
  publish(task, end);
  wake(rankNumber, end);
  rule.started(rankNumber, task, begin, end);
}

bool ListScheduler::dispatch(int32_t rank, double now, bool mustRun) {
  collect(rank, now);
  int chosen = candidates.empty() ? -1 : rule.choose(rank, now, candidates);
  auto isPossible = [&](int i) {
    return i >= 0 && i < static_cast<int>(candidates.size()) &&
           candidates[i].fits;
  };
  for (size_t i = 0; mustRun && i < candidates.size(); ++i)
    if (!isPossible(chosen) ||
        (candidates[i].fits && candidates[i].wait < candidates[chosen].wait))
      chosen = static_cast<int>(i);
  if (!isPossible(chosen))
    return false;
  start(rank, chosen, now);
  return true;
}

/// For rules that wait for what never comes.
bool ListScheduler::runAnyTask() {
  for (int32_t rank = 0; rank < schedule.ranks; ++rank)
    if (dispatch(rank, std::max(latest, ranks[rank].freeAt), /*mustRun=*/true))
      return true;
  return false;
}

llvm::Error ListScheduler::run() {
  if (llvm::Error error = checkLimits())
    return error;
  schedule.order.assign(schedule.ranks, {});
  for (int32_t rank = 0; rank < schedule.ranks; ++rank)
    events.push({0, rank});
  for (int64_t left = countTasks(); left > 0 && least <= options.most;) {
    if (events.empty()) {
      if (!runAnyTask())
        return refuse("the list scheduler is stuck with {0} tasks left", left);
      --left;
      continue;
    }
    Event event = events.top();
    events.pop();
    // A rank that is still busy will look for itself when it ends.
    if (ranks[event.rank].freeAt <= event.time)
      left -= dispatch(event.rank, event.time, /*mustRun=*/false);
  }
  if (least > options.most)
    schedule.order.clear();
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Entry
//===----------------------------------------------------------------------===//

static llvm::Error checkOptions(const Schedule &schedule,
                                const ListOptions &options) {
  if (llvm::Error error = checkFrame(schedule, options.edges))
    return error;
  if (schedule.copies != 1 || schedule.updates != 1 ||
      schedule.weightRule != WeightRule::Synchronous)
    return refuse("the list scheduler expects one copy of the model and one "
                  "update per step, but got {0} and {1}",
                  schedule.copies, schedule.updates);
  if (!options.limits.empty() &&
      static_cast<int64_t>(options.limits.size()) != schedule.ranks)
    return refuse("expects limits of {0} ranks, but got {1}", schedule.ranks,
                  options.limits.size());
  return llvm::Error::success();
}

llvm::Error pipewright::schedules::orderByRule(Schedule &schedule,
                                               const ListOptions &options,
                                               ListRule &rule) {
  if (llvm::Error error = checkOptions(schedule, options))
    return error;
  TaskCosts uniform;
  if (!options.costs)
    uniform = TaskCosts::uniform(schedule.stages, 1, 2);
  const TaskCosts &costs = options.costs ? *options.costs : uniform;
  if (llvm::Error error = checkCosts(schedule, costs))
    return error;
  return ListScheduler(schedule, costs, options, rule).run();
}

llvm::Error pipewright::schedules::orderByList(Schedule &schedule,
                                               const ListOptions &options) {
  PriorityRule rule(options);
  return orderByRule(schedule, options, rule);
}
