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

/// By weight: the last op of a stage's backward that adds to its gradient, as a
/// number in the order of its body.
static llvm::DenseMap<Attribute, int64_t> lastAdditions(StageOp stage) {
  llvm::DenseMap<Attribute, int64_t> last;
  Operation *body = stage.gradientBodyOf(TaskKind::backward);
  if (!body)
    body = stage.gradientBodyOf(TaskKind::weight_gradient);
  if (body)
    for (auto [number, op] : llvm::enumerate(body->getRegion(0).front()))
      if (auto sum = dyn_cast<nn::AccumulateGradientOp>(op))
        last[sum.getWeightAttr()] = static_cast<int64_t>(number);
  return last;
}

/// Cuts a bucket into several of about `size` bytes, none where it has no
/// weights. Those that the backward ends with get what is left over, as nothing
/// runs beside the last sum. What `isApart` is alone.
static SmallVector<Bucket>
cut(Bucket whole, std::optional<int64_t> size, StageOp stage,
    llvm::function_ref<bool(const WeightGroup *)> isApart) {
  if (whole.weights.empty())
    return {};
  if ((!size || whole.bytes() <= *size) &&
      llvm::none_of(whole.weights, isApart))
    return {std::move(whole)};
  const auto last = lastAdditions(stage);
  auto order = llvm::to_vector(llvm::seq<size_t>(0, whole.weights.size()));
  auto key = [&](size_t number) {
    auto name = whole.weights[number]->weight.getSymNameAttr();
    return std::pair(last.lookup(FlatSymbolRefAttr::get(name)), number);
  };
  llvm::sort(order, [&](size_t a, size_t b) { return key(a) < key(b); });
  SmallVector<Bucket> all;
  std::optional<size_t> open;
  for (size_t number : order) {
    const WeightGroup *group = whole.weights[number];
    if (isApart(group)) {
      all.emplace_back().weights.push_back(group);
      continue;
    }
    if (!open || (size && all[*open].bytes() >= *size)) {
      open = all.size();
      all.emplace_back();
    }
    all[*open].weights.push_back(group);
  }
  return all;
}

SmallVector<Bucket> pipewright::pipe::bucketsOf(const Stages &stages,
                                                int32_t stage) {
  if (stage < 0)
    return {};
  StageOp op = stages[stage];
  const ProgramFields program = programOf(op->getParentOfType<ModuleOp>());
  const bool takesMatrices =
      program.optimizer && program.optimizer.getChoice().takesMatrices();
  const bool areParts = program.zero > 0;
  const bool hasMirrors = stages.copies() > 1;
  // One of two copies of the model updates a weight for both where it has an
  // owner.
  auto isApart = [&](const WeightGroup *group) {
    return areParts && group->isTied() &&
           (hasMirrors ? group->stages.size() > 2 : group->isAllReduced());
  };
  // A stage is cut as its mirror, whatever is updated in one of them alone.
  Bucket elementwise, matrices;
  for (const WeightGroup &group : stages.weights())
    if (llvm::is_contained(group.stages, stage) &&
        (group.isUpdatedIn(stage) || isApart(&group)))
      (takesMatrices && group.weight.getOutputs() ? matrices : elementwise)
          .weights.push_back(&group);
  if (!areParts && !program.bucketSize)
    llvm::append_range(elementwise.weights,
                       std::exchange(matrices.weights, {}));
  SmallVector<Bucket> all =
      cut(std::move(elementwise), program.bucketSize, op, isApart);
  // Matrices of a replica are whole, so they are a bucket of any size.
  SmallVector<Bucket> ofMatrices =
      cut(std::move(matrices), areParts ? std::nullopt : program.bucketSize, op,
          isApart);
  for (Bucket &bucket : ofMatrices) {
    if (areParts)
      bucket.homes = shareOut(llvm::map_to_vector(bucket.weights, operationsOf),
                              program.replicas);
    all.push_back(std::move(bucket));
  }
  llvm::erase_if(all, [&](const Bucket &bucket) {
    return !bucket.weights.front()->isUpdatedIn(stage);
  });
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

SmallVector<const WeightGroup *>
pipewright::pipe::weightsOf(const Stages &stages, CollectiveOp op) {
  SmallVector<const WeightGroup *> weights;
  if (op.getWeight()) {
    if (const WeightGroup *group = stages.groupOf(op.getWeightAttr()))
      weights.push_back(group);
    return weights;
  }
  const auto buckets = bucketsOf(stages, stages.numberOf(op.getStageAttr()));
  for (auto [number, bucket] : llvm::enumerate(buckets))
    if (number == op.getBucket().value_or(number))
      llvm::append_range(weights, bucket.weights);
  return weights;
}

std::optional<size_t> pipewright::pipe::bucketOf(const Stages &stages,
                                                 int32_t stage,
                                                 const WeightGroup *weight) {
  for (auto [number, bucket] : llvm::enumerate(bucketsOf(stages, stage)))
    if (llvm::is_contained(bucket.weights, weight))
      return number;
  return std::nullopt;
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
