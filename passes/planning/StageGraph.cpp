//===- StageGraph.cpp - Where to cut a model into stages ------------------===//
//
// Two dynamic programs over cut positions: the first finds how cheap the most
// expensive stage can be, or how short a step, the second how few bytes cross
// the cuts when that may be a little more.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/StageGraph.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Sequence.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace pipewright {

static constexpr double never = std::numeric_limits<double>::infinity();

int64_t StageGraph::countLayers() const {
  return llvm::count_if(nodes, [](const Node &node) { return node.isLayer; });
}

std::vector<int64_t> StageGraph::crossingBytes() const {
  std::vector<int64_t> change(nodes.size() + 2, 0);
  for (const Value &value : values) {
    if (value.lastUser <= value.producer)
      continue;
    change[value.producer + 1] += value.bytes;
    change[value.lastUser + 1] -= value.bytes;
  }
  std::vector<int64_t> crossing(nodes.size() + 1, 0);
  for (size_t p = 1; p < crossing.size(); ++p)
    crossing[p] = crossing[p - 1] + change[p];
  return crossing;
}

namespace {
/// What a range of nodes costs as a stage, the bytes that are there all the
/// time, and those that it keeps of a micro-batch.
struct StageCost {
  double cost = 0, resident = 0, kept = 0;
  /// Of the cost, that of the nodes without the weights that they read.
  double own = 0;

  /// Under 1F1B.
  double bytes(int64_t stage, int64_t stages, int64_t microBatches) const {
    return resident +
           static_cast<double>(std::min(microBatches, stages - stage)) * kept;
  }
};
} // namespace

namespace {
/// Adds up the nodes of a stage, what they share once.
class StageSum {
public:
  explicit StageSum(const StageGraph &graph)
      : graph(graph),
        read(std::max(graph.weightCosts.size(), graph.weightBytes.size())),
        isKept(graph.keptBytes.size()) {}

  void clear() {
    read.reset();
    isKept.reset();
    cost = {};
    hasLayer = false;
  }
  void add(const StageGraph::Node &node) {
    cost.cost += node.cost;
    cost.own += node.cost;
    hasLayer |= node.isLayer;
    for (int32_t weight : node.weights) {
      if (!read.test(weight) && !graph.weightCosts.empty())
        cost.cost += graph.weightCosts[weight];
      if (!read.test(weight) && !graph.weightBytes.empty())
        cost.resident += graph.weightBytes[weight];
      read.set(weight);
    }
    for (int32_t value : node.kept) {
      if (!isKept.test(value))
        cost.kept += graph.keptBytes[value];
      isKept.set(value);
    }
  }

  StageCost cost;
  bool hasLayer = false;

private:
  const StageGraph &graph;
  llvm::BitVector read, isKept;
};
} // namespace

/// Calls `visit(begin, end, cost)` for each range of nodes that can be a stage:
/// ends ascending, begins descending as long as it says that larger stages
/// matter.
static void
forEachStage(const StageGraph &graph,
             llvm::function_ref<bool(int32_t, int32_t, StageCost)> visit) {
  int32_t size = graph.nodes.size();
  StageSum sum(graph);
  for (int32_t end = 1; end <= size; ++end) {
    if (end < size && !graph.nodes[end].mayBegin)
      continue;
    sum.clear();
    for (int32_t begin = end - 1; begin >= 0; --begin) {
      const StageGraph::Node &node = graph.nodes[begin];
      sum.add(node);
      if (sum.hasLayer && (node.mayBegin || begin == 0) &&
          !visit(begin, end, sum.cost))
        break;
    }
  }
}

namespace {
/// What a stage of some cost is worth, by its number: the largest counts.
struct Price {
  llvm::function_ref<double(int64_t stage, int32_t begin, int32_t end,
                            StageCost cost)>
      of;
  /// No stage with so much, or more, is worth less.
  llvm::function_ref<double(StageCost cost)> atLeast;
  /// Whether it is the same whatever the stage's number.
  bool isSameForAll = false;
};

/// The best way to make the first nodes into some number of stages.
struct Best {
  int64_t bytes = std::numeric_limits<int64_t>::max();
  double cost = never;
  int32_t begin = -1;

  bool isPossible() const { return begin >= 0; }
};

/// Something by the number of stages that have been made, and of the first
/// nodes that are in them.
template <typename T>
class StageTable {
public:
  StageTable(size_t nodes, int64_t stages, T none, T start)
      : stages(stages), table((nodes + 1) * (stages + 1), none),
        fewest(nodes + 1, stages), most(nodes + 1, -1) {
    reach(0, 0) = start;
  }
  const T &at(int64_t made, int32_t nodes) const {
    return table[nodes * (stages + 1) + made];
  }
  /// The same, of which something is known from now on.
  T &reach(int64_t made, int32_t nodes) {
    fewest[nodes] = std::min(fewest[nodes], made);
    most[nodes] = std::max(most[nodes], made);
    return table[nodes * (stages + 1) + made];
  }
  /// Numbers of the stages that may come behind so many nodes, where what is
  /// left is at least `fewestLeft` stages and at most `mostLeft`.
  auto next(int32_t nodes, int64_t fewestLeft, int64_t mostLeft) const {
    const int64_t end = std::min(most[nodes], stages - fewestLeft) + 1,
                  begin = std::max(fewest[nodes], stages - mostLeft);
    return llvm::seq(std::min(begin, end), end);
  }

private:
  int64_t stages;
  std::vector<T> table;
  /// By nodes: the stages that have been made from them.
  std::vector<int64_t> fewest, most;
};
} // namespace

namespace {
/// By the nodes that have been made into stages: how many stages the others can
/// be, at least within a limit of what each is worth, and at most.
struct StagesLeft {
  StagesLeft(const StageGraph &graph, Price price, double limit)
      : fewest(graph.nodes.size() + 1, 0), most(graph.nodes.size() + 1, 0) {
    const auto size = static_cast<int32_t>(graph.nodes.size());
    StageSum sum(graph);
    for (int32_t begin = size - 1; begin >= 0; --begin) {
      sum.clear();
      int32_t end = begin;
      while (end < size) {
        sum.add(graph.nodes[end]);
        if (end > begin && price.atLeast(sum.cost) > limit)
          break;
        ++end;
      }
      fewest[begin] = fewest[end] + 1;
      most[begin] = most[begin + 1] + graph.nodes[begin].isLayer;
    }
  }

  std::vector<int64_t> fewest, most;
};
} // namespace

/// Calls `visit(stage, begin, end, worth)` for each range of nodes that can be
/// a stage, and each number that `table` and what is left allow it, as long as
/// `isWithin` says yes to what larger stages are worth at least.
template <typename T>
static void forEachNumbered(
    const StageGraph &graph, const StageTable<T> &table, Price price,
    double limit, llvm::function_ref<bool(double)> isWithin,
    llvm::function_ref<void(int64_t, int32_t, int32_t, double)> visit) {
  const StagesLeft left(graph, price, limit);
  forEachStage(graph, [&](int32_t begin, int32_t end, StageCost cost) {
    std::optional<double> worth;
    for (int64_t stage :
         table.next(begin, left.fewest[begin], left.most[begin])) {
      if (!worth || !price.isSameForAll)
        worth = price.of(stage, begin, end, cost);
      visit(stage, begin, end, *worth);
    }
    return isWithin(price.atLeast(cost));
  });
}

/// How little the most expensive stage can be worth, with no regard to stages
/// worth more than `limit`; `never` where they are needed. Sets `isLimited` if
/// there are such stages.
static double leastWorst(const StageGraph &graph, int64_t stages, Price price,
                         double limit, bool &isLimited) {
  StageTable<double> least(graph.nodes.size(), stages, never, 0);
  isLimited = false;
  auto isWithin = [&](double worth) {
    isLimited |= worth > limit && worth < never;
    return worth <= limit;
  };
  auto visit = [&](int64_t stage, int32_t begin, int32_t end, double own) {
    const double worst = std::max(least.at(stage, begin), own);
    if (isWithin(worst))
      least.reach(stage + 1, end) = std::min(least.at(stage + 1, end), worst);
  };
  forEachNumbered<double>(graph, least, price, limit, isWithin, visit);
  return least.at(stages, static_cast<int32_t>(graph.nodes.size()));
}

/// How many stages there are if each is as long as a limit of what it is worth
/// at least allows; none where some node is beyond it.
static std::optional<int64_t> countLongest(const StageGraph &graph, Price price,
                                           double limit) {
  const auto size = static_cast<int32_t>(graph.nodes.size());
  StageSum sum(graph);
  int64_t count = 0;
  for (int32_t begin = 0; begin < size; ++count) {
    sum.clear();
    int32_t end = begin;
    for (int32_t next = begin; next < size;) {
      sum.add(graph.nodes[next++]);
      if (price.atLeast(sum.cost) > limit)
        break;
      if (sum.hasLayer && (next == size || graph.nodes[next].mayBegin))
        end = next;
    }
    if (end == begin)
      return std::nullopt;
    begin = end;
  }
  return count;
}

/// How little the most expensive stage can be worth; `never` where there is
/// none. Large stages are looked at only where no cut goes without them.
static double leastWorst(const StageGraph &graph, int64_t stages, Price price) {
  StageCost all;
  forEachStage(graph, [&](int32_t begin, int32_t end, StageCost cost) {
    all = cost;
    return end == static_cast<int32_t>(graph.nodes.size());
  });
  double limit = price.atLeast(all) / static_cast<double>(stages);
  for (int tries = 0; tries < 64; ++tries, limit *= 1.01)
    if (auto count = countLongest(graph, price, limit);
        count && *count <= stages)
      break;
  double growth = 1;
  for (bool isLimited = true;; growth *= 1.05, limit *= growth) {
    const double least = leastWorst(graph, stages, price, limit, isLimited);
    if (least < never || !isLimited)
      return least;
  }
}

/// See cutIntoStages.
static llvm::Expected<llvm::SmallVector<int32_t>>
cutBy(const StageGraph &graph, int64_t stages, double slack, Price price) {
  if (stages < 1)
    return llvm::createStringError("expects at least 1 stage, but got " +
                                   std::to_string(stages));
  int64_t layers = graph.countLayers();
  if (stages > layers)
    return llvm::createStringError(
        "expects at most " + std::to_string(layers) +
        (layers == 1 ? " stage" : " stages") +
        ", one for each operation or layer of the model, but got " +
        std::to_string(stages));

  if (stages == 1)
    return llvm::SmallVector<int32_t>{0};
  const double least = leastWorst(graph, stages, price);
  if (least == never)
    return llvm::SmallVector<int32_t>();
  const double limit = least * (1 + slack) + 1e-9;
  const size_t size = graph.nodes.size();
  const std::vector<int64_t> crossing = graph.crossingBytes();
  StageTable<Best> best(size, stages, /*none=*/{}, /*start=*/{0, 0, 0});
  auto isWithin = [&](double worth) { return worth <= limit; };
  auto visit = [&](int64_t stage, int32_t begin, int32_t end, double own) {
    const Best &before = best.at(stage, begin);
    if (!before.isPossible() || !isWithin(own))
      return;
    const Best candidate{before.bytes + crossing[begin],
                         std::max(before.cost, own), begin};
    Best &known = best.reach(stage + 1, end);
    if (std::tie(candidate.bytes, candidate.cost) <
        std::tie(known.bytes, known.cost))
      known = candidate;
  };
  forEachNumbered<Best>(graph, best, price, limit, isWithin, visit);

  llvm::SmallVector<int32_t> begins(stages);
  int32_t end = static_cast<int32_t>(size);
  for (int64_t k = stages; k > 0; --k)
    end = begins[k - 1] = best.at(k, end).begin;
  return begins;
}

llvm::Expected<llvm::SmallVector<int32_t>>
cutIntoStages(const StageGraph &graph, int64_t stages, double slack,
              const StageRanks &ranks) {
  auto priceOf = [&](int64_t stage, int32_t, int32_t, StageCost cost) {
    return cost.cost * ranks.slownessOf(stage);
  };
  auto atLeast = [least = ranks.leastSlowness()](StageCost cost) {
    return cost.cost * least;
  };
  return cutBy(graph, stages, slack,
               {priceOf, atLeast, /*isSameForAll=*/ranks.slowness.empty()});
}

llvm::Expected<llvm::SmallVector<int32_t>>
cutForMemory(const StageGraph &graph, int64_t stages, int64_t microBatches,
             double slack, const StageRanks &ranks) {
  const double most =
      ranks.memory.empty()
          ? 1
          : *std::max_element(ranks.memory.begin(), ranks.memory.end());
  auto priceOf = [&](int64_t stage, int32_t, int32_t, StageCost cost) {
    const double share = ranks.memory.empty() ? 1 : ranks.memory[stage] / most;
    return cost.bytes(stage, stages, microBatches) / share;
  };
  auto atLeast = [](StageCost cost) { return cost.resident + cost.kept; };
  return cutBy(graph, stages, slack, {priceOf, atLeast});
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// When the rank of a stage is done at the earliest under 1F1B, counted from
/// the step's beginning to its end; `before` and `after` are what other stages
/// cost. Each rank has before its first task what earlier stages take for one
/// micro-batch, and its own stage for all of them; while later ones work on the
/// first and on the last micro-batch, it fills what it can with forwards and
/// backwards of others.
static double leastStepOf1F1B(int64_t stage, int64_t stages,
                              int64_t microBatches, double before, double cost,
                              double after) {
  const auto others =
      static_cast<double>(std::min(microBatches, stages - stage) - 1);
  const double forward = cost / 3, backward = cost - forward;
  const double forFirst = std::max(0.0, after - others * forward),
               forLast = std::max(0.0, after - others * backward);
  // Where all forwards come before the first backward, it is one wait.
  const double waits = microBatches <= stages - stage
                           ? std::max(forFirst, forLast)
                           : forFirst + forLast;
  return before + static_cast<double>(microBatches) * cost + waits;
}

double stepOf1F1B(llvm::ArrayRef<double> costs, int64_t microBatches,
                  double forwardShare) {
  const auto stages = static_cast<int64_t>(costs.size());
  // By stage: when its rank is free, and how far its tasks have come.
  std::vector<double> free(stages, 0);
  std::vector<int64_t> forwards(stages, 0), backwards(stages, 0);
  std::vector<std::vector<double>> forwardEnds(stages), backwardEnds(stages);
  // Whether a task of the stage ran.
  auto advance = [&](int64_t stage) {
    const int64_t ahead = std::min(microBatches, stages - stage);
    const bool isForward = forwards[stage] < microBatches &&
                           forwards[stage] - backwards[stage] < ahead;
    const int64_t number = isForward ? forwards[stage] : backwards[stage];
    double ready = 0;
    if (isForward && stage > 0) {
      if (static_cast<int64_t>(forwardEnds[stage - 1].size()) <= number)
        return false;
      ready = forwardEnds[stage - 1][number];
    } else if (!isForward && stage + 1 < stages) {
      if (static_cast<int64_t>(backwardEnds[stage + 1].size()) <= number)
        return false;
      ready = backwardEnds[stage + 1][number];
    }
    const double forward = forwardShare * costs[stage];
    free[stage] = std::max(free[stage], ready) +
                  (isForward ? forward : costs[stage] - forward);
    ++(isForward ? forwards : backwards)[stage];
    (isForward ? forwardEnds : backwardEnds)[stage].push_back(free[stage]);
    return true;
  };
  while (backwards[0] < microBatches)
    for (int64_t stage = 0; stage < stages; ++stage)
      while (backwards[stage] < microBatches && advance(stage))
        ;
  return *std::max_element(free.begin(), free.end());
}

/// Of stages from `from` to in front of `to`; 1 of none.
static double meanSlowness(const StageRanks &ranks, int64_t from, int64_t to) {
  double sum = 0;
  for (int64_t stage = from; stage < to; ++stage)
    sum += ranks.slownessOf(stage);
  return from == to ? 1 : sum / static_cast<double>(to - from);
}

/// Moves borders of stages by one node as long as that makes the step shorter;
/// `far` also by two, four and so on, and both borders of a stage.
static void
improve(const StageGraph &graph, llvm::SmallVector<int32_t> &begins,
        double &step, bool far,
        llvm::function_ref<double(llvm::ArrayRef<int32_t>)> stepOf) {
  const auto size = static_cast<int32_t>(graph.nodes.size());
  // A border may lie where a stage may begin and both sides have a layer.
  auto isAllowed = [&](llvm::ArrayRef<int32_t> borders) {
    for (size_t stage = 1; stage < borders.size(); ++stage)
      if (borders[stage] <= borders[stage - 1] || borders[stage] >= size)
        return false;
    for (auto [stage, begin] : llvm::enumerate(borders)) {
      const int32_t end =
          stage + 1 < borders.size() ? borders[stage + 1] : size;
      if ((stage > 0 && !graph.nodes[begin].mayBegin) ||
          std::none_of(graph.nodes.begin() + begin, graph.nodes.begin() + end,
                       [](const auto &node) { return node.isLayer; }))
        return false;
    }
    return true;
  };
  // So far from a border, and over nodes that no stage may begin at.
  auto place = [&](int32_t border, int32_t by, int32_t direction) {
    border += direction * (by - 1);
    do
      border += direction;
    while (border > 0 && border < size &&
           (!graph.nodes[border].mayBegin ||
            graph.nodes[border - (direction < 0 ? 0 : 1)].cost == 0));
    return border;
  };
  for (bool isBetter = true; isBetter;) {
    isBetter = false;
    for (size_t stage = 1; stage < begins.size(); ++stage)
      for (int32_t by = 1; by < (far ? size : 2); by *= 2)
        for (int32_t direction : {-1, 1})
          for (bool both : {false, true}) {
            if (both && (!far || stage + 1 == begins.size()))
              continue;
            llvm::SmallVector<int32_t> moved = begins;
            moved[stage] = place(moved[stage], by, direction);
            if (both)
              moved[stage + 1] = place(moved[stage + 1], by, direction);
            if (!isAllowed(moved))
              continue;
            if (double other = stepOf(moved); other < step * (1 - 1e-9)) {
              begins = moved;
              step = other;
              isBetter = true;
            }
          }
  }
}

llvm::Expected<llvm::SmallVector<int32_t>>
cutForStep(const StageGraph &graph, int64_t stages, int64_t microBatches,
           const StageRanks &ranks, double slack) {
  std::vector<double> until = {0};
  for (const StageGraph::Node &node : graph.nodes)
    until.push_back(until.back() + node.cost);
  auto fits = [&](int64_t stage, StageCost cost) {
    return ranks.memory.empty() ||
           cost.bytes(stage, stages, microBatches) <= ranks.memory[stage];
  };
  std::vector<double> slowBefore, slowBehind;
  for (int64_t stage = 0; stage < stages; ++stage) {
    slowBefore.push_back(meanSlowness(ranks, 0, stage));
    slowBehind.push_back(meanSlowness(ranks, stage + 1, stages));
  }
  // By stage and begin, the furthest end with which it fits; a stage of more
  // nodes needs no less.
  std::vector<std::vector<int32_t>> furthest;
  if (!ranks.memory.empty()) {
    furthest.assign(stages, std::vector<int32_t>(graph.nodes.size(), 0));
    forEachStage(graph, [&](int32_t begin, int32_t end, StageCost cost) {
      for (int64_t stage = 0; stage < stages; ++stage)
        if (fits(stage, cost))
          furthest[stage][begin] = std::max(furthest[stage][begin], end);
      return true;
    });
  }
  auto stepOf = [&](llvm::ArrayRef<int32_t> begins) {
    std::vector<double> costs;
    for (size_t stage = 0; stage < furthest.size(); ++stage)
      if (furthest[stage][begins[stage]] <
          (stage + 1 < begins.size()
               ? begins[stage + 1]
               : static_cast<int32_t>(graph.nodes.size())))
        return never;
    for (auto [stage, begin] : llvm::enumerate(begins))
      costs.push_back(((stage + 1 < begins.size() ? until[begins[stage + 1]]
                                                  : until.back()) -
                       until[begin]) *
                      ranks.slownessOf(static_cast<int64_t>(stage)));
    return stepOf1F1B(costs, microBatches);
  };
  auto evenPrice = [&](int64_t stage, int32_t, int32_t, StageCost cost) {
    return fits(stage, cost) ? cost.cost * ranks.slownessOf(stage) : never;
  };
  auto atLeast = [least = ranks.leastSlowness()](StageCost cost) {
    return cost.cost * least;
  };
  auto even = cutBy(graph, stages, slack, {evenPrice, atLeast});
  if (!even)
    return even;
  if (even->empty())
    return cutForMemory(graph, stages, microBatches, /*slack=*/0.01, ranks);
  auto boundPrice = [&](int64_t stage, int32_t begin, int32_t end,
                        StageCost cost) {
    return fits(stage, cost)
               ? leastStepOf1F1B(
                     stage, stages, microBatches,
                     until[begin] * slowBefore[stage],
                     (until[end] - until[begin]) * ranks.slownessOf(stage),
                     (until.back() - until[end]) * slowBehind[stage])
               : never;
  };
  // Shared weights are left out of steps.
  auto boundAtLeast = [&, least = ranks.leastSlowness()](StageCost cost) {
    return static_cast<double>(microBatches) * cost.own * least;
  };
  auto bound = cutBy(graph, stages, slack, {boundPrice, boundAtLeast});
  if (!bound)
    return bound;
  double evenStep = stepOf(*even), boundStep = stepOf(*bound);
  // A step takes as many operations as it has tasks; a search some tens of
  // steps for each border, or, with ranks that are not alike, some hundreds.
  const bool far = !ranks.slowness.empty();
  if (stages * stages * microBatches < (far ? 1 << 18 : 1 << 20)) {
    improve(graph, *even, evenStep, far, stepOf);
    improve(graph, *bound, boundStep, far, stepOf);
  }
  if (boundStep <= evenStep * (1 + 1e-9))
    return bound;
  return even;
}

llvm::Expected<llvm::SmallVector<int32_t>>
cutByLayers(const StageGraph &graph, llvm::ArrayRef<int64_t> layers) {
  int64_t wanted = 0;
  for (int64_t each : layers)
    wanted += each;
  if (int64_t found = graph.countLayers(); wanted != found)
    return llvm::createStringError(
        "expects the layers of all stages to be the " + std::to_string(found) +
        " of the model, but they are " + std::to_string(wanted));
  // A stage begins at its first layer; what is in front of all layers goes with
  // the first one.
  llvm::SmallVector<int32_t> begins = {0};
  int64_t left = layers.front();
  for (auto [number, node] : llvm::enumerate(graph.nodes)) {
    if (!node.isLayer)
      continue;
    if (left == 0) {
      left = layers[begins.size()];
      begins.push_back(static_cast<int32_t>(number));
    }
    --left;
  }
  return begins;
}

} // namespace pipewright
