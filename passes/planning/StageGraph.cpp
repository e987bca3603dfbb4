//===- StageGraph.cpp - Where to cut a model into stages ------------------===//
//
// Two dynamic programs over cut positions: the first finds how cheap the most
// expensive stage can be, the second how few bytes cross the cuts when stages
// may cost a little more than that.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/StageGraph.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>
#include <limits>

namespace pipewright {

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

/// Calls `visit(begin, end, cost)` for each range of nodes that can be a stage:
/// ends ascending, begins descending.
static void
forEachStage(const StageGraph &graph,
             llvm::function_ref<void(int32_t, int32_t, double)> visit) {
  int32_t size = graph.nodes.size();
  llvm::BitVector read(graph.weightCosts.size());
  for (int32_t end = 1; end <= size; ++end) {
    if (end < size && !graph.nodes[end].mayBegin)
      continue;
    read.reset();
    double cost = 0;
    bool hasLayer = false;
    for (int32_t begin = end - 1; begin >= 0; --begin) {
      const StageGraph::Node &node = graph.nodes[begin];
      cost += node.cost;
      hasLayer |= node.isLayer;
      for (int32_t weight : node.weights) {
        if (!read.test(weight))
          cost += graph.weightCosts[weight];
        read.set(weight);
      }
      if (hasLayer && (node.mayBegin || begin == 0))
        visit(begin, end, cost);
    }
  }
}

namespace {
/// The best way to make the first nodes into some number of stages.
struct Best {
  int64_t bytes = std::numeric_limits<int64_t>::max();
  double cost = std::numeric_limits<double>::infinity();
  int32_t begin = -1;

  bool isPossible() const { return begin >= 0; }
};
} // namespace

llvm::Expected<llvm::SmallVector<int32_t>>
cutIntoStages(const StageGraph &graph, int64_t stages, double slack) {
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

  size_t size = graph.nodes.size();
  // least[k][j]: how cheap the most expensive of k stages made from the first
  // j nodes can be.
  std::vector<std::vector<double>> least(
      stages + 1,
      std::vector<double>(size + 1, std::numeric_limits<double>::infinity()));
  least[0][0] = 0;
  forEachStage(graph, [&](int32_t begin, int32_t end, double cost) {
    for (int64_t k = 1; k <= stages; ++k)
      least[k][end] =
          std::min(least[k][end], std::max(least[k - 1][begin], cost));
  });

  double limit = least[stages][size] * (1 + slack) + 1e-9;
  std::vector<int64_t> crossing = graph.crossingBytes();
  std::vector<std::vector<Best>> best(stages + 1, std::vector<Best>(size + 1));
  best[0][0] = {0, 0, 0};
  forEachStage(graph, [&](int32_t begin, int32_t end, double cost) {
    if (cost > limit)
      return;
    for (int64_t k = 1; k <= stages; ++k) {
      const Best &before = best[k - 1][begin];
      if (!before.isPossible())
        continue;
      Best candidate{before.bytes + crossing[begin],
                     std::max(before.cost, cost), begin};
      Best &known = best[k][end];
      if (std::tie(candidate.bytes, candidate.cost) <
          std::tie(known.bytes, known.cost))
        known = candidate;
    }
  });

  llvm::SmallVector<int32_t> begins(stages);
  int32_t end = size;
  for (int64_t k = stages; k > 0; --k)
    end = begins[k - 1] = best[k][end].begin;
  return begins;
}

} // namespace pipewright
