//===- Simulator.cpp - When each task runs ----------------------*- C++ -*-===//
//
// Runs through the schedule in any order that respects dependences and fills
// in times. That is enough, without an event queue: all messages of a directed
// link come from tasks of one rank, so they queue in that rank's own order.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Simulator.h"

#include "passes/schedules/Collectives.h"
#include "passes/schedules/Dependences.h"
#include "passes/schedules/Pairs.h"
#include "passes/schedules/Refusal.h"
#include "passes/schedules/StashMeter.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace pipewright::schedules;
using llvm::formatv;

TaskCosts TaskCosts::uniform(int64_t stages, double forward, double backward) {
  StageCosts each;
  each.forward = each.recompute = forward;
  each.backward = backward;
  each.inputGradient = each.weightGradient = backward / 2;
  TaskCosts costs;
  costs.stages.assign(stages, each);
  return costs;
}

double TaskCosts::secondsOf(const Task &task) const {
  const StageCosts &stage = stages[task.stage];
  switch (task.kind) {
  case TaskKind::Forward:
    return stage.forward;
  case TaskKind::Backward:
    return stage.backward;
  case TaskKind::InputGradient:
    return stage.inputGradient;
  case TaskKind::WeightGradient:
    return stage.weightGradient;
  case TaskKind::Recompute:
    return stage.recompute;
  case TaskKind::Update:
    return stage.update;
  }
  return 0;
}

LinkCosts TaskCosts::linkBetween(int32_t from, int32_t to) const {
  auto own = links.find({from, to});
  if (own != links.end())
    return own->second;
  return hosts.areApart(from, to) ? hosts.network
                                  : LinkCosts{linkLatency, linkBandwidth};
}

LinkCosts TaskCosts::linkBetweenReplicas() const {
  return hosts.replicasCross() ? hosts.network
                               : LinkCosts{linkLatency, linkBandwidth};
}

std::string IdleInterval::describe() const {
  if (atEndOfStep)
    return formatv("rank {0} waits for rank {1} to end the step", rank,
                   causeRank);
  if (!hasCause())
    return formatv("rank {0} waits at {1} for what begins with the step", rank,
                   next.name());
  return formatv("rank {0} waits at {1} for {2} on rank {3}", rank, next.name(),
                 cause.name(), causeRank);
}

std::string PathStep::describe() const {
  // Times may be microseconds, so that digits after the point say nothing.
  auto text = [](double seconds) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.4g", seconds);
    return std::string(digits);
  };
  std::string step = formatv("{0} on rank {1} from {2} to {3}", task.name(),
                             rank, text(time.start), text(time.end));
  if (transferSeconds > 0)
    step += ", " + text(transferSeconds) + " after its message was sent";
  return step;
}

double Simulation::longestWorkWait() const {
  double longest = 0;
  for (const RankSummary &rank : ranks)
    longest = std::max(longest, rank.workWaitSeconds);
  return longest;
}

std::vector<PathStep> Simulation::criticalPath(const Schedule &schedule,
                                               int32_t rank) const {
  std::vector<PathStep> path;
  int64_t position = static_cast<int64_t>(times[rank].size()) - 1;
  while (position >= 0) {
    llvm::ArrayRef<Task> tasks = schedule.order[rank];
    const TaskTime &time = times[rank][position];
    path.push_back({rank, position, tasks[position], time, 0});
    // Both of a pair start when the first does.
    int64_t first = beginOfPair(tasks, position);
    auto waited = llvm::lower_bound(
        idle, std::pair(rank, first), [](const IdleInterval &idle, auto key) {
          return std::pair(idle.rank, idle.nextPosition) < key;
        });
    bool isWaiting =
        waited != idle.end() && waited->rank == rank && !waited->atEndOfStep &&
        waited->end == time.start &&
        waited->nextPosition < static_cast<int64_t>(endOfPair(tasks, first));
    if (!isWaiting) {
      position = first - 1;
      continue;
    }
    // Where a pair waited, the path goes through the task that had to wait.
    path.back().position = waited->nextPosition;
    path.back().task = waited->next;
    const bool hasCause = waited->hasCause();
    rank = waited->causeRank;
    position = waited->causePosition;
    path.back().transferSeconds =
        time.start - (hasCause ? times[rank][position].end : 0);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

llvm::Error pipewright::schedules::checkCosts(const Schedule &schedule,
                                              const TaskCosts &costs) {
  if (static_cast<int64_t>(costs.stages.size()) != schedule.stages)
    return refuse("expects the costs of {0} stages, but got {1}",
                  schedule.stages, costs.stages.size());
  auto isTime = [](double value) { return std::isfinite(value) && value >= 0; };
  for (auto [stage, cost] : llvm::enumerate(costs.stages)) {
    for (double seconds : {cost.forward, cost.backward, cost.inputGradient,
                           cost.weightGradient, cost.recompute, cost.update})
      if (!isTime(seconds))
        return refuse("expects task times of at least 0, but got {0} for stage "
                      "{1}",
                      seconds, stage);
    if (cost.stashBytes < 0)
      return refuse(
          "expects a stash of at least 0 bytes, but got {0} for stage "
          "{1}",
          cost.stashBytes, stage);
  }
  auto checkLink = [&](const LinkCosts &link) -> llvm::Error {
    if (!isTime(link.latency))
      return refuse("expects a link latency of at least 0, but got {0}",
                    link.latency);
    if (!(link.bandwidth > 0))
      return refuse("expects a link bandwidth above 0, but got {0}",
                    link.bandwidth);
    return llvm::Error::success();
  };
  for (const auto &[ends, link] : costs.links)
    if (llvm::Error error = checkLink(link))
      return error;
  if (llvm::Error error = checkLink(costs.hosts.network))
    return error;
  if (llvm::Error error = checkLink(costs.hostLink))
    return error;
  if (!isTime(costs.pairFactor))
    return refuse("expects a pair factor of at least 0, but got {0}",
                  costs.pairFactor);
  return checkLink({costs.linkLatency, costs.linkBandwidth});
}

namespace {

/// Fills a `Simulation` task by task.
class Timeline {
public:
  Timeline(const Schedule &schedule, const TaskCosts &costs,
           const Dependences &dependences, llvm::ArrayRef<Work> works);

  void visit(int32_t rank, int64_t position);
  void visitWork(int32_t work);
  Simulation finish();

private:
  /// When a result is there, and what it came from.
  struct Arrival {
    double ready = 0;
    double produced = 0;
    Task producer;
    int64_t position = 0;
  };

  int64_t pairOf(int32_t stage, int32_t microBatch) const {
    return stage * schedule.microBatches + microBatch;
  }
  Arrival arrivalOf(const Dependences::Need &need) const;
  Arrival latestArrival(const Task &task) const;
  void publish(const Task &task, int64_t position, double end);
  void send(TransferKind kind, int32_t edge, int32_t microBatch, double end);
  /// When the first `count` tasks of a rank are over.
  double endOf(int32_t rank, int64_t count) const {
    return count > 0 ? result.times[rank][count - 1].end : 0;
  }
  /// When a rank comes to a work.
  double comeOf(const Work::Member &member) const {
    double end = endOf(member.rank, member.posted);
    if (member.posted == 0 || member.left == 0)
      return end;
    const TaskTime &last = result.times[member.rank][member.posted - 1];
    return end - member.left * (last.end - last.start);
  }
  /// Of the works that a task waits for, the one that is over last.
  struct WorkWait {
    double over = 0;
    int32_t work = -1;
  };
  WorkWait takeWaits(int32_t rank, int64_t position);

  const Schedule &schedule;
  const TaskCosts &costs;
  const Dependences &dependences;
  LinkIndex links;
  Simulation result;

  /// When results of one direction were made, and at which position of their
  /// rank's order. The index counts stages, then micro-batches.
  struct Results {
    std::vector<double> end;
    std::vector<int32_t> position;
  };
  Results forwards, gradients;
  // Arrival times of messages by edge and micro-batch; empty rows for edges
  // that stay on their rank.
  std::vector<std::vector<double>> forwardArrival, gradientArrival;
  std::vector<double> linkFree, rankFree;
  /// When the engines of a rank that copy to the host and back are free.
  std::map<std::pair<Resource, int32_t>, double> engineFree;
  /// By rank: places and numbers of the works that no task has waited for yet,
  /// the next one last.
  std::vector<std::vector<std::pair<int64_t, int32_t>>> waits;
  std::vector<LinkCosts> linkCosts;
  std::vector<StashMeter> meters;
  std::vector<std::vector<IdleInterval>> idleOfRank;
};

} // namespace

Timeline::Timeline(const Schedule &schedule, const TaskCosts &costs,
                   const Dependences &dependences, llvm::ArrayRef<Work> works)
    : schedule(schedule), costs(costs), dependences(dependences),
      links(schedule, dependences.edges(), works),
      forwardArrival(dependences.edges().size()),
      gradientArrival(dependences.edges().size()),
      linkFree(links.links().size()), rankFree(schedule.ranks),
      waits(schedule.ranks),
      meters(schedule.ranks, StashMeter(schedule, costs)),
      idleOfRank(schedule.ranks) {
  for (Results *results : {&forwards, &gradients}) {
    results->end.resize(schedule.stages * schedule.microBatches);
    results->position.resize(results->end.size());
  }
  for (const LinkIndex::Link &link : links.links())
    linkCosts.push_back(costs.linkBetween(link.from, link.to));
  result.ranks.resize(schedule.ranks);
  result.times.resize(schedule.ranks);
  for (int64_t rank = 0; rank < schedule.ranks; ++rank)
    result.times[rank].resize(schedule.order[rank].size());
  for (int32_t edge = 0;
       edge < static_cast<int32_t>(dependences.edges().size()); ++edge) {
    if (links.linkOf(TransferKind::Forward, edge) >= 0)
      forwardArrival[edge].resize(schedule.microBatches);
    if (links.linkOf(TransferKind::Gradient, edge) >= 0)
      gradientArrival[edge].resize(schedule.microBatches);
  }
  for (auto [number, work] : llvm::enumerate(works)) {
    result.works.push_back({work, {}});
    for (const Work::Member &member : work.members)
      waits[member.rank].push_back(
          {member.waited, static_cast<int32_t>(number)});
  }
  for (auto [rank, meter] : llvm::enumerate(meters))
    meter.addTransfers(works, static_cast<int32_t>(rank));
  for (auto &ofRank : waits)
    llvm::sort(ofRank, std::greater<>());
}

Timeline::Arrival Timeline::arrivalOf(const Dependences::Need &need) const {
  Arrival arrival;
  arrival.producer = {need.kind, need.stage, need.microBatch};
  bool isForward = need.kind == TaskKind::Forward;
  if (!isForward &&
      dependences.hasKind(TaskKind::InputGradient, need.stage, need.microBatch))
    arrival.producer.kind = TaskKind::InputGradient;
  const Results &results = isForward ? forwards : gradients;
  int64_t pair = pairOf(need.stage, need.microBatch);
  arrival.produced = results.end[pair];
  arrival.position = results.position[pair];
  const std::vector<double> &arrivals =
      (isForward ? forwardArrival : gradientArrival)[need.edge];
  arrival.ready =
      arrivals.empty() ? arrival.produced : arrivals[need.microBatch];
  return arrival;
}

void Timeline::send(TransferKind kind, int32_t edge, int32_t microBatch,
                    double end) {
  int32_t link = links.linkOf(kind, edge);
  if (link < 0)
    return;
  double &free = linkFree[link];
  const LinkCosts &cost = linkCosts[link];
  free = std::max(free, end) + dependences.edges()[edge].bytes / cost.bandwidth;
  (kind == TransferKind::Forward ? forwardArrival
                                 : gradientArrival)[edge][microBatch] =
      free + cost.latency;
}

/// Makes the results of a finished task known to those that need them.
void Timeline::publish(const Task &task, int64_t position, double end) {
  if (task.kind != TaskKind::Forward && !task.producesGradient())
    return;
  bool isForward = task.kind == TaskKind::Forward;
  Results &results = isForward ? forwards : gradients;
  int64_t pair = pairOf(task.stage, task.microBatch);
  results.end[pair] = end;
  results.position[pair] = static_cast<int32_t>(position);
  const EdgeIndex &index = dependences.edgeIndex();
  TransferKind kind =
      isForward ? TransferKind::Forward : TransferKind::Gradient;
  for (int32_t edge :
       isForward ? index.outOf(task.stage) : index.into(task.stage))
    send(kind, edge, task.microBatch, end);
}

/// The arrival that a task waits for longest.
Timeline::Arrival Timeline::latestArrival(const Task &task) const {
  Arrival latest;
  dependences.forEachNeed(task, [&](const Dependences::Need &need) {
    // What comes from the own rank is ready when the rank is free.
    if (need.edge < 0)
      return true;
    Arrival arrival = arrivalOf(need);
    if (arrival.ready > latest.ready)
      latest = arrival;
    return true;
  });
  return latest;
}

void Timeline::visit(int32_t rank, int64_t position) {
  llvm::ArrayRef<Task> tasks = schedule.order[rank];
  const Task &task = tasks[position];
  TaskTime &time = result.times[rank][position];
  // The second of a pair has run with the first.
  if (isSecondOfPair(tasks, position)) {
    time = result.times[rank][position - 1];
    publish(task, position, time.end);
    return;
  }

  const WorkWait wait =
      takeWaits(rank, position + (isFirstOfPair(tasks, position) ? 1 : 0));
  Arrival latest = latestArrival(task);
  int64_t next = position;
  double seconds = costs.secondsOf(task);
  if (isFirstOfPair(tasks, position)) {
    const Task &partner = tasks[position + 1];
    Arrival other = latestArrival(partner);
    if (other.ready > latest.ready) {
      latest = other;
      next = position + 1;
    }
    seconds = (seconds + costs.secondsOf(partner)) * costs.pairFactor;
  }
  double free = rankFree[rank];
  time.start = std::max({free, latest.ready, wait.over});
  result.ranks[rank].workWaitSeconds += std::max(0.0, wait.over - free);
  time.end = time.start + seconds;
  rankFree[rank] = time.end;
  if (time.start > free) {
    IdleInterval idle;
    idle.rank = rank;
    idle.causeRank = schedule.rankOfStage[latest.producer.stage];
    idle.start = free;
    idle.end = time.start;
    idle.next = tasks[next];
    idle.nextPosition = next;
    idle.cause = latest.producer;
    idle.causePosition = latest.position;
    idle.transferSeconds = latest.ready - std::max(latest.produced, free);
    if (wait.over > latest.ready) {
      // Who comes last to the work keeps the others.
      llvm::ArrayRef<Work::Member> members =
          result.works[wait.work].work.members;
      const Work::Member &last = *std::max_element(
          members.begin(), members.end(),
          [&](const auto &a, const auto &b) { return comeOf(a) < comeOf(b); });
      double came = comeOf(last);
      idle.next = task;
      idle.nextPosition = position;
      idle.causeRank = last.rank;
      idle.causePosition = last.posted - 1;
      idle.cause = idle.hasCause()
                       ? schedule.order[last.rank][idle.causePosition]
                       : Task();
      idle.transferSeconds = wait.over - std::max(came, free);
      idle.work = wait.work;
    }
    idleOfRank[rank].push_back(idle);
  }
  meters[rank].runAt(tasks, position);
  result.ranks[rank].busySeconds += seconds;
  publish(task, position, time.end);
}

/// Its members have come to it, and what it needs has been visited.
void Timeline::visitWork(int32_t number) {
  auto &[work, time] = result.works[number];
  for (const Work::Member &member : work.members)
    time.start = std::max(time.start, comeOf(member));
  for (int32_t need : work.needs)
    time.start = std::max(time.start, result.works[need].time.end);
  int32_t link = links.linkOfWork(number);
  if (work.isCopy()) {
    double &free = engineFree[{work.on, work.members.front().rank}];
    time.start = std::max(time.start, free);
    time.end = free = time.start + costs.secondsOfCopy(work.bytes);
    return;
  }
  if (link < 0) {
    time.end = time.start + secondsOfCollective(work, costs);
    return;
  }
  double &free = linkFree[link];
  free = std::max(free, time.start) +
         static_cast<double>(work.bytes) / linkCosts[link].bandwidth;
  time.end = free + linkCosts[link].latency;
}

Timeline::WorkWait Timeline::takeWaits(int32_t rank, int64_t position) {
  WorkWait wait;
  while (!waits[rank].empty() && waits[rank].back().first <= position) {
    int32_t work = waits[rank].back().second;
    waits[rank].pop_back();
    if (result.works[work].time.end > wait.over)
      wait = {result.works[work].time.end, work};
  }
  return wait;
}

Simulation Timeline::finish() {
  for (int32_t rank = 0; rank < schedule.ranks; ++rank) {
    const double over =
        takeWaits(rank, std::numeric_limits<int64_t>::max()).over;
    result.ranks[rank].workWaitSeconds += std::max(0.0, over - rankFree[rank]);
    rankFree[rank] = std::max(rankFree[rank], over);
  }
  // Some task needs nothing, so the step always begins at time 0.
  auto last = std::max_element(rankFree.begin(), rankFree.end());
  result.globalStepTime = *last;
  for (int32_t rank = 0; rank < schedule.ranks; ++rank) {
    const std::vector<TaskTime> &times = result.times[rank];
    if (!times.empty())
      result.spanStepTime =
          std::max(result.spanStepTime, rankFree[rank] - times[0].start);
    RankSummary &summary = result.ranks[rank];
    summary.peakStashBytes = meters[rank].peakBytes();
    summary.peakInFlight = meters[rank].peakInFlight();
    if (*last > 0)
      summary.bubbleFraction = 1 - summary.busySeconds / *last;
    if (rankFree[rank] < *last) {
      IdleInterval idle;
      idle.rank = rank;
      idle.causeRank = static_cast<int32_t>(last - rankFree.begin());
      idle.start = rankFree[rank];
      idle.end = *last;
      idle.atEndOfStep = true;
      idle.nextPosition = static_cast<int64_t>(times.size());
      idleOfRank[rank].push_back(idle);
    }
  }
  size_t intervals = 0;
  for (const std::vector<IdleInterval> &idle : idleOfRank)
    intervals += idle.size();
  result.idle.reserve(intervals);
  for (std::vector<IdleInterval> &idle : idleOfRank) {
    llvm::append_range(result.idle, idle);
    // There may be millions.
    idle = {};
  }
  return std::move(result);
}

llvm::Expected<Simulation> pipewright::schedules::simulateUnordered(
    const Schedule &schedule, const TaskCosts &costs,
    llvm::ArrayRef<StageEdge> edges, llvm::ArrayRef<Work> works) {
  llvm::Expected<Dependences> dependences = Dependences::build(schedule, edges);
  if (!dependences)
    return dependences.takeError();
  if (llvm::Error error = checkCosts(schedule, costs))
    return error;
  Timeline timeline(schedule, costs, *dependences, works);
  if (llvm::Error error = dependences->run(
          [&](int32_t rank, int64_t position) {
            timeline.visit(rank, position);
          },
          works, [&](int32_t work) { timeline.visitWork(work); }))
    return error;
  return timeline.finish();
}

llvm::Expected<Simulation> pipewright::schedules::simulate(
    const Schedule &schedule, const TaskCosts &costs,
    llvm::ArrayRef<StageEdge> edges, llvm::ArrayRef<Work> works) {
  llvm::Expected<Simulation> simulation =
      simulateUnordered(schedule, costs, edges, inQueues(works));
  if (!simulation || works.empty())
    return simulation;
  llvm::Expected<Simulation> without =
      simulateUnordered(schedule, costs, edges, {});
  if (!without)
    return without.takeError();
  simulation->exposedSeconds =
      simulation->globalStepTime - without->globalStepTime;
  return simulation;
}
