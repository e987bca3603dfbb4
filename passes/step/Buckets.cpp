//===- Buckets.cpp - What replicas cut into parts together ----------------===//
//
// See Buckets.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/Buckets.h"

#include "dialects/nn/NNOrthogonalize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

int64_t Bucket::bytes() const {
  int64_t sum = 0;
  for (const WeightGroup *group : weights)
    sum += byteSize(group->weight.getTensorType());
  return sum;
}

std::vector<int64_t> pipewright::pipe::shareOut(ArrayRef<double> work,
                                                int64_t workers) {
  auto order = llvm::to_vector(llvm::seq<size_t>(0, work.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::pair(work[b], a) < std::pair(work[a], b);
  });
  std::vector<double> given(workers, 0);
  std::vector<int64_t> workerOf(work.size());
  for (size_t piece : order) {
    auto least = std::min_element(given.begin(), given.end());
    *least += work[piece];
    workerOf[piece] = least - given.begin();
  }
  return workerOf;
}

static double operationsOf(const WeightGroup *matrix) {
  return nn::orthogonalizeShape(matrix->weight).operations();
}

SmallVector<Bucket> pipewright::pipe::bucketsOf(const Stages &stages,
                                                int32_t stage) {
  if (stage < 0)
    return {};
  StageOp op = stages[stage];
  const ProgramFields program = programOf(op->getParentOfType<ModuleOp>());
  const bool takesMatrices =
      program.optimizer && program.optimizer.getChoice().takesMatrices();
  Bucket elementwise, matrices;
  for (const WeightGroup &group : stages.weights())
    if (llvm::is_contained(group.stages, stage) && group.isUpdatedIn(stage))
      (takesMatrices && group.weight.getOutputs() ? matrices : elementwise)
          .weights.push_back(&group);
  const bool areParts = program.zero > 0;
  if (!areParts)
    llvm::append_range(elementwise.weights, matrices.weights);
  SmallVector<Bucket> all;
  if (!elementwise.weights.empty())
    all.push_back(std::move(elementwise));
  if (areParts && !matrices.weights.empty()) {
    auto work = llvm::map_to_vector(matrices.weights, operationsOf);
    matrices.homes = shareOut(work, program.replicas);
    all.push_back(std::move(matrices));
  }
  return all;
}

SmallVector<std::optional<int64_t>>
pipewright::pipe::bucketNumbers(const Stages &stages, int32_t stage) {
  const auto count = static_cast<int64_t>(bucketsOf(stages, stage).size());
  if (count <= 1)
    return {std::nullopt};
  SmallVector<std::optional<int64_t>> numbers;
  for (int64_t number = 0; number < count; ++number)
    numbers.emplace_back(number);
  return numbers;
}

double pipewright::pipe::matrixOperations(const Stages &stages, int32_t stage) {
  StageOp op = stages[stage];
  const ProgramFields program = programOf(op->getParentOfType<ModuleOp>());
  if (!program.optimizer || !program.optimizer.getChoice().takesMatrices())
    return 0;
  std::vector<double> ofReplica(program.replicas, 0);
  for (const Bucket &bucket : bucketsOf(stages, stage))
    for (auto [number, group] : llvm::enumerate(bucket.weights))
      if (group->weight.getOutputs())
        ofReplica[bucket.homes.empty() ? 0 : bucket.homes[number]] +=
            operationsOf(group);
  return *llvm::max_element(ofReplica);
}
