//===- BackwardParts.cpp - Backwards that are run in parts ----------------===//
//
// See BackwardParts.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/BackwardParts.h"

#include "passes/step/BodyBuffers.h"
#include "passes/step/Buckets.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

/// Whether nothing runs behind an op but copies of what leaves the body, which
/// are made when memory is planned; whatever may be added in place.
static bool isLastToRun(Operation *op) {
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
    if (!seesBytes(next) && !isa<nn::ParameterOp, CopyOp, ReturnOp>(next))
      return false;
  return true;
}

BackwardParts pipewright::pipe::backwardParts(const Stages &stages,
                                              int32_t stage, TaskKind kind) {
  BackwardParts parts;
  StageOp op = stages[stage];
  Operation *body = op.gradientBodyOf(kind);
  llvm::DenseMap<Attribute, size_t> bucketOf;
  const auto buckets = bucketsOf(stages, stage);
  for (auto [number, bucket] : llvm::enumerate(buckets))
    for (const WeightGroup *group : bucket.weights)
      bucketOf[FlatSymbolRefAttr::get(group->weight.getSymNameAttr())] = number;
  SmallVector<Operation *> last(buckets.size());
  if (body)
    for (auto sum : blockOf(body).getOps<nn::AccumulateGradientOp>())
      if (auto bucket = bucketOf.find(sum.getWeightAttr());
          bucket != bucketOf.end())
        last[bucket->second] = sum;
  for (Operation *end : last) {
    const bool isLater =
        end && (parts.ends.empty() || parts.ends.back()->isBeforeInBlock(end));
    if (isLater && !isLastToRun(end))
      parts.ends.push_back(end);
    const auto ended = static_cast<int64_t>(parts.ends.size());
    const bool isAtEnd = isLater && isLastToRun(end);
    parts.partOfBucket.push_back(isAtEnd || ended == 0 ? ended : ended - 1);
    // What comes behind one that is whole at the end is, too.
    if (isAtEnd)
      break;
  }
  parts.partOfBucket.resize(buckets.size(),
                            static_cast<int64_t>(parts.ends.size()));
  return parts;
}

BodyOps pipewright::pipe::opsOfPart(Operation *body, const BackwardParts &parts,
                                    int64_t number) {
  Block &block = blockOf(body);
  auto behind = [&](int64_t part) {
    return std::next(Block::iterator(parts.ends[part]));
  };
  return {number == 0 ? block.begin() : behind(number - 1),
          number + 1 == parts.count() ? block.end() : behind(number)};
}

BodyOps pipewright::pipe::opsRunBy(const Stages &stages, Operation *op) {
  auto resume = dyn_cast<ResumeOp>(op);
  TaskOp task = resume ? resume.getTask() : cast<TaskOp>(op);
  StageOp stage = stages.stageOf(task.getStageAttr());
  Operation *body = stage.bodyOf(task.getKind());
  if (!task.getParts())
    return blockOf(body);
  const BackwardParts parts = backwardParts(
      stages, stages.numberOf(task.getStageAttr()), task.getKind());
  return opsOfPart(body, parts,
                   resume ? static_cast<int64_t>(resume.getPart()) : 0);
}
