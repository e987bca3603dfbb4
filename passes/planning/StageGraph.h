//===- StageGraph.h - Where to cut a model into stages ----------*- C++ -*-===//
//
// The decision behind pipe-partition-stages as plain data: ops in their order,
// what each costs and what flows between them go in, cut positions come out.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PLANNING_STAGEGRAPH_H
#define PIPEWRIGHT_PASSES_PLANNING_STAGEGRAPH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pipewright {

struct StageGraph {
  struct Node {
    /// Paid wherever the node is.
    double cost = 0;
    /// Every stage has at least one layer.
    bool isLayer = false;
    /// Indices into `weightCosts` and `weightBytes`: paid once by each stage
    /// that reads them.
    llvm::SmallVector<int32_t, 2> weights;
    /// Indices into `keptBytes`: what its backward needs of its forward.
    llvm::SmallVector<int32_t, 2> kept = {};
    /// A stage may begin here; the first one always begins at the first node.
    /// Where some may not, the layers are those that may.
    bool mayBegin = true;
  };
  struct Value {
    int32_t producer = 0;
    /// The last node that reads the value.
    int32_t lastUser = 0;
    int64_t bytes = 0;
  };

  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<double> weightCosts;
  /// There all the time in each stage: weights, gradients, states.
  std::vector<double> weightBytes;
  /// Once for each stage that keeps them, and each micro-batch in flight.
  std::vector<double> keptBytes;

  int64_t countLayers() const;

  /// Element `p`: the bytes that cross a cut before node `p`.
  std::vector<int64_t> crossingBytes() const;
};

/// What the ranks of stages can do, where they are not alike.
struct StageRanks {
  /// By stage: a stage takes its cost times this. Empty: all take their costs.
  std::vector<double> slowness = {};
  /// By stage, above 0: the bytes that its rank has. Empty: not limited.
  std::vector<double> memory = {};

  double slownessOf(int64_t stage) const {
    return slowness.empty() ? 1 : slowness[stage];
  }
  double leastSlowness() const {
    return slowness.empty()
               ? 1
               : *std::min_element(slowness.begin(), slowness.end());
  }
};

/// The first node of each stage. Among all cuts whose slowest stage takes at
/// most `slack` (a share) more than the least possible, the one that the fewest
/// bytes cross; then the cheaper, then the later cut.
/// Fails when there are more stages than layers.
llvm::Expected<llvm::SmallVector<int32_t>>
cutIntoStages(const StageGraph &graph, int64_t stages, double slack = 0.05,
              const StageRanks &ranks = {});

/// A step of 1F1B without messages, with a stage of each cost on each rank, of
/// which forwards take `forwardShare`. Takes O(stages * micro-batches).
double stepOf1F1B(llvm::ArrayRef<double> costs, int64_t microBatches,
                  double forwardShare = 1.0 / 3);

/// A cut with a short step of 1F1B in place of the cheapest worst stage: an
/// expensive stage counts more the later it is. Found by a dynamic program over
/// a bound of the step, and by moving borders; never longer than the step of
/// the most even cut. Costs of shared weights are left out. No stage needs more
/// than its rank's memory, counted as by cutForMemory, whose cut it is where
/// none fits. With ranks that are not alike the program guesses what stages
/// before and behind one take by the mean of their ranks.
llvm::Expected<llvm::SmallVector<int32_t>>
cutForStep(const StageGraph &graph, int64_t stages, int64_t microBatches,
           const StageRanks &ranks = {}, double slack = 0.001);

/// A cut whose stages need equal shares of their ranks' memory under 1F1B:
/// bytes that are there all the time, and what a stage keeps for each
/// micro-batch that is in flight there, up to as many as it is stages away from
/// the end.
llvm::Expected<llvm::SmallVector<int32_t>>
cutForMemory(const StageGraph &graph, int64_t stages, int64_t microBatches,
             double slack = 0.01, const StageRanks &ranks = {});

/// The cut whose stages have so many layers each. Fails where these are not all
/// of the model's.
llvm::Expected<llvm::SmallVector<int32_t>>
cutByLayers(const StageGraph &graph, llvm::ArrayRef<int64_t> layers);

} // namespace pipewright

#endif // PIPEWRIGHT_PASSES_PLANNING_STAGEGRAPH_H
