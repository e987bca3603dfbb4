//===- StreamSimulator.cpp - Schedules too large to write out ---*- C++ -*-===//
//
// The run through the orders is that of Dependences.h, so a schedule is checked
// by being simulated. Messages wait in one queue for each edge and direction;
// ranks take turns, so that queues stay short.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/StreamSimulator.h"

#include "passes/schedules/Dependences.h"
#include "passes/schedules/PackedOrder.h"
#include "passes/schedules/StashMeter.h"

#include <algorithm>

using namespace pipewright::schedules;

namespace {

/// When the results of one edge and direction arrive, of those that nobody has
/// taken.
class Arrivals {
public:
  void add(int32_t microBatch, double time) {
    waiting.push_back({microBatch, time});
  }

  double take(int32_t microBatch) {
    // Nearly always the oldest: consumers go the way of producers.
    size_t found = head;
    while (waiting[found].microBatch != microBatch)
      ++found;
    double time = waiting[found].time;
    for (; found > head; --found)
      waiting[found] = waiting[found - 1];
    ++head;
    if (head == waiting.size() || head >= 128) {
      waiting.erase(waiting.begin(), waiting.begin() + head);
      head = 0;
    }
    return time;
  }

private:
  struct Arrival {
    int32_t microBatch;
    double time;
  };
  std::vector<Arrival> waiting;
  size_t head = 0;
};

class StreamTimeline {
public:
  StreamTimeline(const Schedule &shape, const TaskCosts &costs,
                 const Dependences &dependences,
                 std::vector<PackedOrder> &orders);

  void visit(int32_t rank);
  StreamSimulation finish();

  // The cursor of `Dependences::runOrders`.
  const Task *task(int32_t rank) const { return orders[rank].task(); }
  const Task *partner(int32_t rank) const { return orders[rank].partner(); }
  void advance(int32_t rank) { orders[rank].advance(); }

private:
  struct Rank {
    bool hasStarted = false, isInPair = false;
    double firstStart = 0, free = 0;
    StashMeter meter;
  };

  double latestArrival(const Task &task);
  void publish(const Task &task, double end);

  Arrivals &arrivalsOf(TransferKind kind, int32_t edge) {
    return (kind == TransferKind::Forward ? forward : gradient)[edge];
  }

  const TaskCosts &costs;
  const Dependences &dependences;
  std::vector<PackedOrder> &orders;
  LinkIndex links;
  std::vector<LinkCosts> linkCosts;
  std::vector<double> linkFree;
  std::vector<Arrivals> forward, gradient;
  std::vector<Rank> ranks;
  int64_t messages = 0;
  StreamSimulation result;
};

} // namespace

StreamTimeline::StreamTimeline(const Schedule &shape, const TaskCosts &costs,
                               const Dependences &dependences,
                               std::vector<PackedOrder> &orders)
    : costs(costs), dependences(dependences), orders(orders),
      links(shape, dependences.edges()), linkFree(links.links().size()),
      forward(dependences.edges().size()), gradient(dependences.edges().size()),
      ranks(shape.ranks, Rank{.meter = StashMeter(shape, costs)}) {
  for (const LinkIndex::Link &link : links.links())
    linkCosts.push_back(costs.linkBetween(link.from, link.to));
  result.ranks.resize(shape.ranks);
  for (const PackedOrder &order : orders)
    result.orderBytes += order.bytes();
}

double StreamTimeline::latestArrival(const Task &task) {
  double latest = 0;
  dependences.forEachNeed(task, [&](const Dependences::Need &need) {
    if (need.edge < 0)
      return true;
    TransferKind kind = need.kind == TaskKind::Forward ? TransferKind::Forward
                                                       : TransferKind::Gradient;
    // What stays on its rank is there when the rank is free.
    if (links.linkOf(kind, need.edge) >= 0) {
      latest =
          std::max(latest, arrivalsOf(kind, need.edge).take(need.microBatch));
      --messages;
    }
    return true;
  });
  return latest;
}

void StreamTimeline::publish(const Task &task, double end) {
  bool isForward = task.kind == TaskKind::Forward;
  if (!isForward && !task.producesGradient())
    return;
  TransferKind kind =
      isForward ? TransferKind::Forward : TransferKind::Gradient;
  const EdgeIndex &index = dependences.edgeIndex();
  for (int32_t edge :
       isForward ? index.outOf(task.stage) : index.into(task.stage)) {
    int32_t link = links.linkOf(kind, edge);
    if (link < 0)
      continue;
    double &free = linkFree[link];
    free = std::max(free, end) +
           dependences.edges()[edge].bytes / linkCosts[link].bandwidth;
    arrivalsOf(kind, edge).add(task.microBatch, free + linkCosts[link].latency);
    result.peakMessages = std::max(result.peakMessages, ++messages);
  }
}

void StreamTimeline::visit(int32_t number) {
  const Task &task = *orders[number].task();
  Rank &rank = ranks[number];
  ++result.tasks;
  if (rank.isInPair) {
    rank.isInPair = false;
    publish(task, rank.free);
    return;
  }
  double ready = latestArrival(task);
  double seconds = costs.secondsOf(task);
  if (task.overlapsNext) {
    const Task &partner = *orders[number].partner();
    ready = std::max(ready, latestArrival(partner));
    seconds = (seconds + costs.secondsOf(partner)) * costs.pairFactor;
    rank.isInPair = true;
    rank.meter.runPair(task, partner);
  } else {
    rank.meter.run(task);
  }
  double start = std::max(rank.free, ready);
  if (!rank.hasStarted)
    rank.firstStart = start;
  rank.hasStarted = true;
  rank.free = start + seconds;
  result.ranks[number].busySeconds += seconds;
  publish(task, rank.free);
}

StreamSimulation StreamTimeline::finish() {
  for (const Rank &rank : ranks) {
    result.globalStepTime = std::max(result.globalStepTime, rank.free);
    result.spanStepTime =
        std::max(result.spanStepTime, rank.free - rank.firstStart);
  }
  for (auto [rank, summary] : llvm::zip(ranks, result.ranks)) {
    summary.peakStashBytes = rank.meter.peakBytes();
    summary.peakInFlight = rank.meter.peakInFlight();
    if (result.globalStepTime > 0)
      summary.bubbleFraction = 1 - summary.busySeconds / result.globalStepTime;
  }
  return std::move(result);
}

llvm::Expected<StreamSimulation> pipewright::schedules::simulateStream(
    const Policy &policy, const ScheduleOptions &options,
    const TaskCosts &costs, llvm::ArrayRef<StageEdge> edges) {
  llvm::Expected<Schedule> shape = policy.shape(options);
  if (!shape)
    return shape.takeError();
  llvm::Expected<Dependences> dependences = Dependences::begin(*shape, edges);
  if (!dependences)
    return dependences.takeError();
  if (llvm::Error error = checkCosts(*shape, costs))
    return error;

  std::vector<PackedOrder> orders(shape->ranks);
  auto addRank = [&](int32_t rank, llvm::ArrayRef<Task> tasks) -> llvm::Error {
    orders[rank] = PackedOrder(tasks);
    return dependences->addRank(rank, tasks);
  };
  if (llvm::Error error = policy.forEachRank(*shape, options, addRank))
    return error;
  if (llvm::Error error = dependences->findMissingTasks())
    return error;

  StreamTimeline timeline(*shape, costs, *dependences, orders);
  auto visit = [&](int32_t rank) { timeline.visit(rank); };
  if (llvm::Error error = dependences->runOrders(timeline, visit))
    return error;
  return timeline.finish();
}
