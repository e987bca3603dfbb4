//===- VerifySums.cpp - Which gradients an update is of -------------------===//
//
// See VerifySums.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/unrolled/VerifySums.h"
#include "passes/step/Buckets.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <map>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// How often the gradient of a stage and a micro-batch was added.
using Sum = std::map<std::pair<int32_t, int64_t>, int64_t>;

class SumReader {
public:
  SumReader(const Stages &stages, ArrayRef<Operation *> ops);

  /// What a gradient of a stage, or a tensor that is one of a weight, is the
  /// sum of. Fails, with a diagnostic, where it is needed for itself.
  LogicalResult add(Value gradients, const WeightGroup &weight, Sum &sum);

private:
  /// A directed link in a rank's program, and a group of ranks there.
  using Link = std::pair<int64_t, int64_t>;
  using Group = std::pair<SmallVector<int64_t>, int64_t>;

  bool isAbout(CollectiveOp together, const WeightGroup &weight) const {
    return llvm::is_contained(about.at(together), &weight);
  }
  bool getsAll(CollectiveOp together, const WeightGroup &weight,
               int64_t rank) const;
  LogicalResult addAll(CollectiveOp together, const WeightGroup &weight,
                       Sum &sum);
  LogicalResult addTensor(Value tensor, const WeightGroup &weight, Sum &sum);

  const Stages &stages;
  /// The n-th collectives of all members of a group of ranks are one.
  std::map<Group, SmallVector<CollectiveOp>> parts;
  llvm::DenseMap<Operation *, Group> groupOf;
  /// The weights that each is about.
  llvm::DenseMap<Operation *, SmallVector<const WeightGroup *>> about;
  /// Those of weights.
  SmallVector<CollectiveOp> handedOut;
  /// The n-th receive of a link gets what the n-th send gives.
  std::map<Link, SmallVector<Value>> sent;
  llvm::DenseMap<Operation *, std::pair<Link, size_t>> received;
  llvm::SmallPtrSet<Operation *, 8> open;
};

} // namespace

SumReader::SumReader(const Stages &stages, ArrayRef<Operation *> ops)
    : stages(stages) {
  std::map<std::pair<SmallVector<int64_t>, int64_t>, int64_t> begun;
  std::map<Link, size_t> receives;
  for (Operation *op : ops) {
    auto program = dyn_cast<RankOp>(op->getParentOp());
    const int64_t rank =
        program ? static_cast<int64_t>(program.getRank()) : int64_t{-1};
    if (auto together = dyn_cast<CollectiveOp>(op)) {
      if (together.getOver().isOfReplicas())
        continue;
      about[op] = weightsOf(stages, together);
      if (!together.isOfGradients())
        handedOut.push_back(together);
      SmallVector<int64_t> over(together.getOver().getRanks());
      const int64_t member =
          stages[stages.numberOf(together.getStage())].getRank().value_or(-1);
      Group group = {over, begun[{over, member}]++};
      parts[group].push_back(together);
      groupOf[op] = std::move(group);
    } else if (auto post = dyn_cast<PostSendOp>(op)) {
      sent[{rank, post.getPeer()}].push_back(post.getValue());
    } else if (auto post = dyn_cast<PostReceiveOp>(op)) {
      const Link link = {post.getPeer(), rank};
      received[op] = {link, receives[link]++};
    }
  }
}

/// Whether a member has the whole sum in the end, or gets the weights that
/// others make of theirs. Where members do not even do the same, that is told
/// elsewhere.
bool SumReader::getsAll(CollectiveOp together, const WeightGroup &weight,
                        int64_t rank) const {
  const runtime::CollectiveFacts &facts = together.getKindAttr().getFacts();
  if (facts.replicates || (facts.rooted && together.getRoot() &&
                           static_cast<int64_t>(*together.getRoot()) == rank))
    return true;
  const bool areAlike =
      llvm::all_of(parts.at(groupOf.lookup(together)), [&](CollectiveOp part) {
        return part.getKind() == together.getKind();
      });
  return !areAlike || llvm::any_of(handedOut, [&](CollectiveOp weights) {
    return weights.getStage() == together.getStage() &&
           weights.getOver() == together.getOver() && isAbout(weights, weight);
  });
}

/// What all members have; what is left to one that gets a part is its own.
LogicalResult SumReader::addAll(CollectiveOp together,
                                const WeightGroup &weight, Sum &sum) {
  const auto &members = parts.at(groupOf.lookup(together));
  const int64_t rank =
      stages[stages.numberOf(together.getStage())].getRank().value_or(-1);
  if (!getsAll(together, weight, rank))
    return add(together.getValue(), weight, sum);
  // Members that wait for each other's sums never come to an end.
  if (!open.insert(together).second)
    return together.emitOpError("adds what it makes itself");
  for (CollectiveOp part : members) {
    const Type given = part.getValue().getType();
    if (stateOfReplicas(given) !=
        stateOfReplicas(together.getValue().getType()))
      return part.emitOpError("gives ")
             << given << " to a sum with " << together.getValue().getType()
             << ": all members' gradients are those of a replica, or of all";
    if (failed(add(part.getValue(), weight, sum)))
      return failure();
  }
  open.erase(together);
  return success();
}

LogicalResult SumReader::addTensor(Value tensor, const WeightGroup &weight,
                                   Sum &sum) {
  Operation *op = tensor.getDefiningOp();
  while (auto wait = dyn_cast_if_present<WaitReceiveOp>(op)) {
    const auto [link, number] =
        received.lookup(wait.getPending().getDefiningOp());
    const auto &values = sent[link];
    // Transfers are compared at both ends, elsewhere.
    if (number >= values.size())
      return success();
    op = values[number].getDefiningOp();
  }
  auto view = dyn_cast_if_present<GradientOfOp>(op);
  return view && view.getWeight() == weight.weight.getSymName()
             ? add(view.getGradient(), weight, sum)
             : success();
}

LogicalResult SumReader::add(Value gradients, const WeightGroup &weight,
                             Sum &sum) {
  while (Operation *op = gradients.getDefiningOp()) {
    if (auto task = dyn_cast<TaskOp>(op)) {
      if (!task.getMicroBatch())
        return success(); // An update clears them.
      const int32_t stage = stages.numberOf(task.getStageAttr());
      const auto *holder = llvm::find(weight.stages, stage);
      if (holder != weight.stages.end() &&
          weight.trained[holder - weight.stages.begin()])
        ++sum[{stage, static_cast<int64_t>(*task.getMicroBatch())}];
      Value before = task.getSummed();
      if (!before || !isa<GradientType>(before.getType()))
        return success();
      gradients = before;
    } else if (auto keep = dyn_cast<KeepGradientsOp>(op)) {
      gradients = keep.getGradients();
    } else if (auto fold = dyn_cast<FoldGradientsOp>(op)) {
      gradients = fold.getGradients();
    } else if (auto resume = dyn_cast<ResumeOp>(op)) {
      gradients = resume.getGradients();
    } else if (auto clip = dyn_cast<ClipGradientsOp>(op)) {
      gradients = clip.getGradientOf(gradients);
    } else if (auto added = dyn_cast<AddGradientOp>(op)) {
      if (added.getWeight() == weight.weight.getSymName() &&
          failed(addTensor(added.getAddend(), weight, sum)))
        return failure();
      gradients = added.getGradient();
    } else if (auto together = dyn_cast<CollectiveOp>(op)) {
      if (!together.getOver().isOfReplicas() && together.isOfGradients() &&
          isAbout(together, weight))
        return addAll(together, weight, sum);
      gradients = together.getValue();
    } else {
      return success();
    }
  }
  return success();
}

/// What an update of a weight takes, against what one rank would add.
static LogicalResult verifyUpdate(const Stages &stages, int64_t microBatches,
                                  TaskOp update, const WeightGroup &weight,
                                  Sum sum) {
  auto module = update->getParentOfType<ModuleOp>();
  const int64_t updates = programOf(module).updates;
  const auto number = static_cast<int64_t>(update.getNumber().value_or(0));
  auto report = [&](StringRef does, int32_t stage, int64_t microBatch) {
    return update.emitOpError(does)
           << " the gradient of '@" << weight.weight.getSymName()
           << "' in stage '@" << stages[stage].getSymName() << "', micro-batch "
           << microBatch;
  };
  for (auto [stage, trains] : llvm::zip(weight.stages, weight.trained))
    for (int64_t m = 0; trains && m < microBatches; ++m) {
      if (!stages.runs(stage, m, microBatches) ||
          m * updates / microBatches != number)
        continue;
      const int64_t count = sum[{stage, m}];
      if (count == 0)
        return report("lacks", stage, m);
      if (count > 1)
        return report("is of", stage, m) << ", " << count << " times";
      sum.erase({stage, m});
    }
  for (const auto &[from, count] : sum)
    if (count > 0)
      return report("is of", from.first, from.second)
             << ", which another update takes";
  return success();
}

LogicalResult pipewright::pipe::verifySums(const Stages &stages,
                                           int64_t microBatches,
                                           ArrayRef<Operation *> ops,
                                           bool withTied) {
  SumReader reader(stages, ops);
  LogicalResult result = success();
  for (Operation *op : ops) {
    auto update = dyn_cast<TaskOp>(op);
    if (!update || update.getKind() != TaskKind::update)
      continue;
    const int32_t stage = stages.numberOf(update.getStageAttr());
    for (const WeightGroup &weight : stages.weights()) {
      if (!llvm::is_contained(weight.stages, stage) ||
          !weight.isUpdatedIn(stage) || (weight.isTied() && !withTied))
        continue;
      Sum sum;
      if (failed(reader.add(update.getOperand(0), weight, sum)))
        return failure();
      // What is wrong with one weight is wrong with others.
      if (failed(verifyUpdate(stages, microBatches, update, weight, sum))) {
        result = failure();
        break;
      }
    }
  }
  return result;
}
