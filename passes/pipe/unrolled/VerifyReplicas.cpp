//===- VerifyReplicas.cpp - What replicas do together ---------------------===//
//
// See VerifyReplicas.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/unrolled/VerifyReplicas.h"
#include "passes/step/Buckets.h"
#include "passes/step/RunningStatistics.h"
#include "passes/step/StepOrder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallSet.h"

#include <map>
#include <set>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

CollectiveOp pipewright::pipe::overReplicas(Operation *op) {
  auto together = dyn_cast_if_present<CollectiveOp>(op);
  return together && together.getOver().isOfReplicas() && !together.getWeight()
             ? together
             : CollectiveOp();
}

CollectiveOp pipewright::pipe::behindParts(Value made) {
  Operation *op = made ? made.getDefiningOp() : nullptr;
  while (auto resume = dyn_cast_if_present<ResumeOp>(op))
    op = resume.getGradients().getDefiningOp();
  return overReplicas(op);
}

namespace {

class ReplicaVerifier {
public:
  ReplicaVerifier(const Stages &stages, Operation *where,
                  ArrayRef<Operation *> ops)
      : stages(stages), program(programOf(where->getParentOfType<ModuleOp>())),
        where(where), ops(ops) {
    for (Operation *op : ops)
      if (auto task = dyn_cast<TaskOp>(op))
        tasks.push_back(task);
  }

  LogicalResult verify(bool isSynchronized) {
    verifyLoaded();
    if (isSynchronized) {
      verifyUpdates();
      verifyStatistics();
    }
    return result;
  }

private:
  InFlightDiagnostic report(Operation *op) {
    result = failure();
    return op->emitOpError();
  }
  using Collectives = SmallVector<CollectiveOp>;
  std::optional<Collectives> behind(Value made, int32_t stage,
                                    bool isOfGradients, bool isRounded = false);
  void verifyUpdates();
  Value behindHolders(Value made);
  void verifyBucket(CollectiveOp together);
  void verifyLent(llvm::SmallPtrSetImpl<Operation *> &wanted);
  void verifyGathered(TaskOp update, bool isShared,
                      llvm::SmallPtrSetImpl<Operation *> &wanted);
  void verifyLoaded();
  LoadWeightsOp loadBehind(TaskOp task, int32_t stage);
  void verifyStatistics();

  const Stages &stages;
  const ProgramFields program;
  Operation *where;
  ArrayRef<Operation *> ops;
  SmallVector<TaskOp> tasks;
  /// The stages whose tasks take what was put together for them.
  std::set<int32_t> loaded;
  /// What puts that together.
  llvm::SmallPtrSet<Operation *, 8> gathers;
  LogicalResult result = success();
};

} // namespace

/// Whether a collective is of that bucket, or of all, where there is no number.
static bool isOf(CollectiveOp together, std::optional<int64_t> bucket) {
  return together.getBucket().has_value() == bucket.has_value() &&
         static_cast<int64_t>(together.getBucket().value_or(0)) ==
             bucket.value_or(0);
}

/// What replicas do together to make a value, one collective for each bucket of
/// the stage; the first one comes first.
std::optional<ReplicaVerifier::Collectives>
ReplicaVerifier::behind(Value made, int32_t stage, bool isOfGradients,
                        bool isRounded) {
  Collectives found;
  auto numbers = bucketNumbers(stages, stage);
  for (std::optional<int64_t> number : llvm::reverse(numbers)) {
    CollectiveOp together = behindParts(made);
    const bool isIt = together && together.isOfGradients() == isOfGradients &&
                      together.getRounded() == isRounded &&
                      isOf(together, number);
    if (!isIt)
      return std::nullopt;
    found.insert(found.begin(), together);
    made = together.getValue();
  }
  return found;
}

/// What replicas have summed, behind which stages that hold a weight add, or
/// sum, what they have of that.
Value ReplicaVerifier::behindHolders(Value made) {
  while (Operation *op = made.getDefiningOp()) {
    auto together = dyn_cast<CollectiveOp>(op);
    if (together &&
        (!together.getOver().isOfReplicas() || together.getWeight())) {
      verifyBucket(together);
      made = together.getValue();
    } else if (auto add = dyn_cast<AddGradientOp>(op)) {
      made = add.getGradient();
    } else {
      break;
    }
  }
  return made;
}

/// Buckets, and parts of them, are the same ones on all ranks that sum them.
void ReplicaVerifier::verifyBucket(CollectiveOp together) {
  if (!together.isOfPart() && !together.getBucket())
    return;
  const auto weights = weightsOf(stages, together);
  auto hasBucket = [&](int32_t stage) {
    return llvm::any_of(bucketsOf(stages, stage), [&](const Bucket &bucket) {
      return bucket.weights == weights;
    });
  };
  if (weights.empty() || !llvm::all_of(weights.front()->stages, hasBucket))
    report(together) << "expects weights that are a bucket in each stage that "
                        "holds them";
}

/// What stages add to a weight that an owner updates is of all replicas where
/// the owner's gradient is, and of one where that is.
void ReplicaVerifier::verifyLent(llvm::SmallPtrSetImpl<Operation *> &wanted) {
  if (program.replicas == 1)
    return;
  for (Operation *op : ops)
    if (auto together = dyn_cast<CollectiveOp>(op);
        together && together.getWeight() && together.getOver().isOfReplicas())
      if (const WeightGroup *group = stages.groupOf(together.getWeightAttr());
          group && group->isUpdatedIn(stages.numberOf(together.getStageAttr())))
        report(op) << "is of a weight that its stage updates, which replicas "
                      "sum with all others of the stage";
  // By weight: a view of what one replica has, and of what all have summed.
  std::map<StringRef, GradientOfOp> ofOne, ofAll;
  for (Operation *op : ops) {
    auto view = dyn_cast<GradientOfOp>(op);
    if (!view)
      continue;
    int64_t sums = 0;
    for (Operation *before = view.getGradient().getDefiningOp();
         isa_and_present<CollectiveOp, ResumeOp, AddGradientOp>(before);
         before = before->getOperand(0).getDefiningOp()) {
      auto together = dyn_cast<CollectiveOp>(before);
      if (!together || !together.getOver().isOfReplicas() ||
          together.getWeightAttr() != view.getWeightAttr())
        continue;
      ++sums;
      wanted.insert(before);
    }
    if (sums > 1)
      report(view) << "is of a gradient that is summed over all replicas "
                   << sums << " times";
    (sums > 0 ? ofAll : ofOne)[view.getWeight()] = view;
  }
  for (Operation *op : ops) {
    auto add = dyn_cast<AddGradientOp>(op);
    if (!add)
      continue;
    const bool isOfOne =
        stateOfReplicas(add.getGradient().getType()) == ReplicaState::partial;
    auto &others = isOfOne ? ofAll : ofOne;
    if (!others.contains(add.getWeight()))
      continue;
    InFlightDiagnostic diagnostic = report(add);
    diagnostic << "adds to the gradient of "
               << (isOfOne ? "one replica what all replicas have summed"
                           : "all replicas what one of them has");
    diagnostic.attachNote(others[add.getWeight()].getLoc())
        << "it is taken here";
  }
}

/// The last thing that happens to gradients before an update is that they are
/// summed over all replicas, bucket by bucket, or that a part of such a sum is
/// kept, or that holders of a weight sum what replicas have; and the first
/// thing that happens to weights behind it is that those of all replicas are
/// put together, if each updates a part. Nothing else is over replicas. That
/// sums and gathers stand where they have a meaning, their types say.
void ReplicaVerifier::verifyUpdates() {
  llvm::SmallPtrSet<Operation *, 8> wanted;
  std::set<StringRef> keeping;
  for (Operation *op : ops)
    if (auto keep = dyn_cast<KeepGradientsOp>(op)) {
      keeping.insert(keep.getStage());
      if (auto sums =
              behind(keep.getGradients(), stages.numberOf(keep.getStageAttr()),
                     /*isOfGradients=*/true))
        wanted.insert_range(*sums);
      else
        report(keep) << "expects a sum over all replicas";
    }
  for (TaskOp task : tasks) {
    if (task.getKind() != TaskKind::update || program.replicas == 1)
      continue;
    Value gradients = task.getOperand(0);
    if (auto clip = gradients.getDefiningOp<ClipGradientsOp>())
      gradients = clip.getGradientOf(gradients);
    gradients = behindHolders(gradients);
    if (keeping.contains(task.getStage())) {
      if (!gradients.getDefiningOp<KeepGradientsOp>())
        report(task) << "expects gradients that are kept, as some of its stage "
                        "are";
    } else if (auto sums =
                   behind(gradients, stages.numberOf(task.getStageAttr()),
                          /*isOfGradients=*/true))
      wanted.insert_range(*sums);
    else
      report(task) << "expects gradients that are summed over all "
                   << program.replicas << " replicas";
    verifyGathered(task, program.zero > 0, wanted);
  }
  verifyLent(wanted);
  for (Operation *op : ops)
    if (auto together = dyn_cast<CollectiveOp>(op);
        together && together.getOver().isOfReplicas() && !wanted.contains(op) &&
        !gathers.contains(op))
      report(op) << "is over replicas, but no update "
                 << (together.isOfGradients() ? "is of what it makes"
                                              : "made what it is of");
}

/// What was loaded for a task and then put together, as far as it reads it;
/// null, with a diagnostic, where it was not.
LoadWeightsOp ReplicaVerifier::loadBehind(TaskOp task, int32_t stage) {
  Value made = task.getGathered();
  for (bool isRounded : {true, false}) {
    if (!(isRounded ? stages.readsRounded(stage) : stages.readsMasters(stage)))
      continue;
    auto together = behind(made, stage, /*isOfGradients=*/false, isRounded);
    if (!together) {
      report(task) << "expects weights"
                   << (isRounded ? ", rounded to bf16, " : " ")
                   << "that are put together for it";
      return {};
    }
    gathers.insert_range(*together);
    made = together->front().getValue();
  }
  auto load = made ? made.getDefiningOp<LoadWeightsOp>() : LoadWeightsOp();
  if (!load)
    report(task) << "expects weights that are loaded for it";
  return load;
}

/// Where weights of a stage are loaded, every task that reads some takes those,
/// and its update comes behind all loads.
void ReplicaVerifier::verifyLoaded() {
  llvm::DenseMap<int32_t, Operation *> updated;
  for (Operation *op : ops) {
    auto load = dyn_cast<LoadWeightsOp>(op);
    auto task = dyn_cast<TaskOp>(op);
    if (task && task.getKind() == TaskKind::update)
      updated[stages.numberOf(task.getStage())] = op;
    if (!load)
      continue;
    const int32_t stage = stages.numberOf(load.getStage());
    loaded.insert(stage);
    if (program.zero < (load.getInPlace() ? 1 : 3) || !stages.hasUpdate(stage))
      report(load) << "expects a stage whose weights replicas have parts of: "
                      "'zero' is "
                   << program.zero;
    else if (updated.contains(stage))
      report(load) << "is behind the update of its stage";
    if (load.getGathers().empty())
      report(load) << "is never put together";
  }
  for (TaskOp task : tasks) {
    const int32_t stage = stages.numberOf(task.getStageAttr());
    const bool isWanted = loaded.contains(stage) && task.getMicroBatch() &&
                          stages.readsUpdated(stage, task.getKind());
    if (isWanted)
      loadBehind(task, stage);
    else if (task.getGathered())
      report(task) << "takes weights that it does not read, or that are there "
                      "without";
  }
}

/// The weights of an update, and their bf16 copies, where somebody reads them.
void ReplicaVerifier::verifyGathered(
    TaskOp update, bool isShared, llvm::SmallPtrSetImpl<Operation *> &wanted) {
  Value made = update.getResult(0);
  const bool isSplit = stateOfReplicas(made.getType()) == ReplicaState::split;
  if (isSplit != isShared) {
    report(update) << "expects to make "
                   << (isShared ? "a part of the weights: 'zero' is 1"
                                : "all weights: 'zero' is 0");
    return;
  }
  if (!isShared)
    return;
  const int32_t stage = stages.numberOf(update.getStageAttr());
  if (loaded.contains(stage))
    return; // The next step puts them together.
  for (bool isRounded : {false, true}) {
    if (!(isRounded ? stages.readsRounded(stage) : stages.readsMasters(stage)))
      continue;
    for (std::optional<int64_t> bucket : bucketNumbers(stages, stage)) {
      SmallVector<CollectiveOp> gathers;
      for (Operation *user : made.getUsers())
        if (CollectiveOp together = overReplicas(user);
            together && together.getRounded() == isRounded &&
            isOf(together, bucket))
          gathers.push_back(together);
      if (gathers.size() != 1) {
        report(update) << "expects its weights"
                       << (isRounded ? ", rounded to bf16, " : " ")
                       << "to be put together once, but they are "
                       << gathers.size() << " times";
        return;
      }
      wanted.insert(gathers.front());
      made = gathers.front().getResult();
    }
  }
}

/// Replicas make one of the statistics of each stage that has some, once, when
/// all forwards of the stage have written theirs.
void ReplicaVerifier::verifyStatistics() {
  llvm::SmallSet<int32_t, 8> merged;
  for (auto [i, op] : llvm::enumerate(ops)) {
    auto merge = dyn_cast<MergeStatisticsOp>(op);
    if (!merge)
      continue;
    int32_t stage = stages.numberOf(merge.getStageAttr());
    if (stage < 0 || decaysOf(stages[stage]).empty())
      report(op) << "is about a stage without running statistics";
    else if (!merged.insert(stage).second)
      report(op) << "is the second one of stage '@" << merge.getStage() << "'";
    for (Operation *late : ops.drop_front(i + 1))
      if (auto task = dyn_cast<TaskOp>(late);
          task && task.getKind() == TaskKind::forward &&
          task.getStageAttr() == merge.getStageAttr())
        report(op) << "stands before a forward of its stage";
  }
  for (int32_t stage = 0; stage < stages.size(); ++stage)
    if (program.replicas > 1 && !merged.contains(stage) &&
        !decaysOf(stages[stage]).empty())
      report(where) << "never makes one of the running statistics that "
                    << program.replicas << " replicas have of stage '@"
                    << stages[stage].getSymName() << "'";
}

LogicalResult pipewright::pipe::verifyReplicas(const Stages &stages,
                                               bool isSynchronized,
                                               Operation *where,
                                               ArrayRef<Operation *> ops) {
  return ReplicaVerifier(stages, where, ops).verify(isSynchronized);
}
