//===- InsertTransfers.cpp - One straight program per rank ----------------===//
//
// Splits a step into `pipe.rank` ops: values that cross from one rank to
// another become posts and waits, in the order that passes/schedules proves
// safe. What weights that several ranks hold need at the end of a step follows
// in one global order of messages and collectives, which cannot deadlock
// either. Sums of gradients that no other op of the step has a part in begin
// earlier: behind the last task of their stage, beside the tasks of others.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/schedules/MessageOrder.h"
#include "passes/step/StepOrder.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEINSERTTRANSFERS
#include "passes/pipe/Passes.h.inc"
} // namespace pipewright::pipe

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;
using schedules::InstructionKind;
using schedules::RankInstruction;
using schedules::TransferKind;

namespace {

/// Builds the ranks of one step.
class StepSplitter {
public:
  StepSplitter(StepOp step, const Stages &stages,
               const schedules::Schedule &schedule)
      : step(step), stages(stages), schedule(schedule),
        builder(step.getContext()), ranks(schedule.ranks) {
    for (auto task : step.getBody()->getOps<TaskOp>())
      index.add(stages, task);
  }

  LogicalResult run();

private:
  struct RankState {
    Block *block = nullptr;
    /// From values of the step to values of this rank.
    IRMapping values;
    /// What was posted and not yet waited for, by value of the step.
    llvm::DenseMap<Value, Value> sending, receiving;
    /// Sends of the end of the step, and collectives that were posted and not
    /// yet waited for, in order.
    SmallVector<PostSendOp> lateSends;
    SmallVector<CollectiveOp> together;
    /// Collectives of the step that begin behind a task, in order, until they
    /// have been posted.
    SmallVector<CollectiveOp> early;
  };

  int32_t rankOf(FlatSymbolRefAttr stage) const {
    return schedule.rankOfStage[stages.numberOf(stage)];
  }
  /// The rank of a task, or of an op that belongs to a tied weight.
  int32_t rankOf(Operation *op) const {
    return rankOf(cast<StepOpInterface>(op).getStageName());
  }
  /// Updates wait for the gradients of other ranks where weights are tied, or
  /// reduced by several ranks for another reason: then all of them end the
  /// step, unless it has several for each stage.
  bool hasLateUpdates() const {
    return step.getMode() == StepMode::train && !hasSeveralUpdates() &&
           (stages.hasTiedWeights() ||
            !step.getBody()->getOps<CollectiveOp>().empty());
  }
  bool hasSeveralUpdates() const { return schedule.updates > 1; }
  LogicalResult verifyPlaces() const;
  Value valueOf(const schedules::Transfer &transfer) const;
  void emit(int32_t rank, const RankInstruction &instruction);
  void copy(int32_t rank, Operation *op);
  PostSendOp postSend(int32_t rank, Value value, int64_t peer);
  void postReceive(int32_t rank, Value value, int64_t peer);
  void waitReceive(int32_t rank, Value value, int64_t peer);
  void findEarly();
  void postEarly(RankState &rank);
  void endStep();
  void copyWithTransfers(Operation *op);
  void copyLate(Operation *op);
  void waitCollectives(RankState &rank);
  void waitAll();

  mutable StepOp step;
  const Stages &stages;
  const schedules::Schedule &schedule;
  OpBuilder builder;
  TaskIndex index;
  std::vector<RankState> ranks;
};

/// Every op has a rank, and what ranks take from each other can be sent.
LogicalResult StepSplitter::verifyPlaces() const {
  for (Operation &op : *step.getBody()) {
    FlatSymbolRefAttr stage = cast<StepOpInterface>(op).getStageName();
    if (!stage || stages.numberOf(stage) < 0)
      return op.emitOpError("belongs to no stage of the module");
    bool isOfUpdate = hasSeveralUpdates() && isa<CollectiveOp>(op);
    if (!isa<InputOp, TaskOp>(op) && !isOfUpdate && !hasLateUpdates())
      return op.emitOpError("has no place in a step in which ranks share no "
                            "weight; expects inputs and tasks alone");
    for (Value operand : op.getOperands())
      if (!isa<RankedTensorType>(operand.getType()) &&
          rankOf(operand.getDefiningOp()) != rankOf(&op))
        return op.emitOpError("takes ")
               << operand.getType() << " from another rank, but only tensors "
               << "can be sent";
  }
  return success();
}

LogicalResult StepSplitter::run() {
  llvm::Expected<schedules::InstructionLists> lists = schedules::orderMessages(
      schedule, stages.costs(step.getMode()), stages.edges(step.getMode()));
  if (!lists)
    return step.emitError(llvm::toString(lists.takeError()));

  if (failed(verifyPlaces()))
    return failure();
  builder.setInsertionPoint(step);
  for (auto [number, rank] : llvm::enumerate(ranks)) {
    auto op = RankOp::create(builder, step.getLoc(), number, step.getMode());
    rank.block = &op.getBodyRegion().emplaceBlock();
  }
  findEarly();
  for (auto [rank, list] : llvm::enumerate(*lists)) {
    for (const RankInstruction &instruction : list) {
      // Other ranks wait for what a task sends.
      if (instruction.kind != InstructionKind::PostSend)
        postEarly(ranks[rank]);
      emit(rank, instruction);
    }
    postEarly(ranks[rank]);
  }
  endStep();
  step.erase();
  return success();
}

Value StepSplitter::valueOf(const schedules::Transfer &transfer) const {
  const StageLink &link = stages.links(step.getMode())[transfer.edge];
  if (transfer.kind == TransferKind::Forward)
    return index
        .lookup(schedules::TaskKind::Forward, link.from, transfer.microBatch)
        .getResult(link.result);
  TaskOp giver =
      index.lookup(schedules::TaskKind::Backward, link.to, transfer.microBatch);
  if (!giver)
    giver = index.lookup(schedules::TaskKind::InputGradient, link.to,
                         transfer.microBatch);
  return giver.getResult(link.gradientResult);
}

void StepSplitter::emit(int32_t rank, const RankInstruction &instruction) {
  builder.setInsertionPointToEnd(ranks[rank].block);
  switch (instruction.kind) {
  case InstructionKind::Task: {
    // The completed schedule has tasks that the model does not need.
    TaskOp task = index.lookup(instruction.task);
    if (!task || (task.getKind() == TaskKind::update && hasLateUpdates()))
      return;
    for (Value operand : task.getOperands())
      if (Operation *before = operand.getDefiningOp();
          isa_and_present<InputOp, CollectiveOp>(before) &&
          !ranks[rank].values.contains(operand)) {
        copy(rank, before);
        if (isa<CollectiveOp>(before))
          WaitCollectiveOp::create(builder, before->getLoc(),
                                   ranks[rank].values.lookup(operand));
      }
    copy(rank, task);
    return;
  }
  case InstructionKind::PostSend:
    ranks[rank].sending[valueOf(instruction.transfer)] =
        postSend(rank, valueOf(instruction.transfer), instruction.peer);
    return;
  case InstructionKind::WaitSend:
    WaitSendOp::create(builder, step.getLoc(),
                       ranks[rank].sending.at(valueOf(instruction.transfer)),
                       instruction.peer);
    return;
  case InstructionKind::PostReceive:
    return postReceive(rank, valueOf(instruction.transfer), instruction.peer);
  case InstructionKind::WaitReceive:
    return waitReceive(rank, valueOf(instruction.transfer), instruction.peer);
  case InstructionKind::PostCollective:
  case InstructionKind::WaitCollective:
    llvm_unreachable("schedules::orderMessages makes transfers only");
  }
}

void StepSplitter::copy(int32_t rank, Operation *op) {
  builder.setInsertionPointToEnd(ranks[rank].block);
  builder.clone(*op, ranks[rank].values);
}

PostSendOp StepSplitter::postSend(int32_t rank, Value value, int64_t peer) {
  builder.setInsertionPointToEnd(ranks[rank].block);
  auto type = PendingType::get(builder.getContext(),
                               cast<RankedTensorType>(value.getType()));
  return PostSendOp::create(builder, value.getLoc(), type,
                            ranks[rank].values.lookup(value), peer,
                            /*event=*/IntegerAttr());
}

void StepSplitter::postReceive(int32_t rank, Value value, int64_t peer) {
  builder.setInsertionPointToEnd(ranks[rank].block);
  auto type = PendingType::get(builder.getContext(),
                               cast<RankedTensorType>(value.getType()));
  ranks[rank].receiving[value] = PostReceiveOp::create(
      builder, value.getLoc(), type, peer, /*buffers=*/ArrayAttr(),
      /*event=*/IntegerAttr());
}

void StepSplitter::waitReceive(int32_t rank, Value value, int64_t peer) {
  builder.setInsertionPointToEnd(ranks[rank].block);
  Value received =
      WaitReceiveOp::create(builder, value.getLoc(), value.getType(),
                            ranks[rank].receiving.at(value), peer);
  ranks[rank].values.map(value, received);
}

/// Copies an op of the end of the step, receiving what other ranks have. The
/// messages of all ranks stand in one order, that of the step; a rank waits
/// for a receive only behind posts that come earlier in that order, and for
/// sends only after all its receives: no cycle of waits can arise.
void StepSplitter::copyWithTransfers(Operation *op) {
  int32_t rank = rankOf(op);
  for (Value operand : op->getOperands()) {
    if (ranks[rank].values.contains(operand))
      continue;
    int32_t owner = rankOf(operand.getDefiningOp());
    ranks[owner].lateSends.push_back(postSend(owner, operand, rank));
    postReceive(rank, operand, owner);
    waitReceive(rank, operand, owner);
  }
  copy(rank, op);
}

/// Those that take what a task makes of gradients. Behind one of several ranks
/// that does not, on the same rank, no other of several ranks is early: their
/// order is that of the step on each rank. Before one of several updates they
/// begin where they are waited for: what comes next may use the same gradients.
void StepSplitter::findEarly() {
  if (hasSeveralUpdates())
    return;
  llvm::SmallSet<int32_t, 4> held;
  for (auto op : step.getBody()->getOps<CollectiveOp>()) {
    auto task = op.getValue().getDefiningOp<TaskOp>();
    bool isReady =
        task && task.getKind() != TaskKind::update && op.isOfGradients();
    if (isReady && (op.isOverReplicas() || !held.contains(rankOf(op))))
      ranks[rankOf(op)].early.push_back(op);
    else if (!op.isOverReplicas())
      held.insert(rankOf(op));
  }
}

/// Posts what has become ready. Nothing waits for it before the end of the
/// step, so no task does. Those of several ranks keep the order of the step on
/// each of them; a rank and its replicas run one program, whatever its order.
void StepSplitter::postEarly(RankState &rank) {
  bool isHeld = false;
  llvm::erase_if(rank.early, [&](CollectiveOp op) {
    bool isReady =
        rank.values.contains(op.getValue()) && (op.isOverReplicas() || !isHeld);
    if (!isReady) {
      isHeld |= !op.isOverReplicas();
      return false;
    }
    builder.setInsertionPointToEnd(rank.block);
    builder.clone(*op, rank.values);
    rank.together.push_back(cast<CollectiveOp>(rank.block->back()));
    return true;
  });
}

/// Waits for all collectives of a rank, whose oldest is over first.
void StepSplitter::waitCollectives(RankState &rank) {
  builder.setInsertionPointToEnd(rank.block);
  for (CollectiveOp post : rank.together)
    WaitCollectiveOp::create(builder, post.getLoc(), post.getResult());
  rank.together.clear();
}

/// Collectives of different weights are under way together; whatever else takes
/// what one makes waits for it. The parts of all members stand in the order of
/// the step, as messages do, and a rank waits only behind posts that come
/// earlier in that order: no cycle of waits here either.
void StepSplitter::copyLate(Operation *op) {
  RankState &rank = ranks[rankOf(op)];
  if (op->getNumResults() == 1 && rank.values.contains(op->getResult(0)))
    return;
  auto together = dyn_cast<CollectiveOp>(op);
  auto isUnderWay = [&](Value operand) {
    return llvm::any_of(rank.together, [&](CollectiveOp post) {
      return rank.values.lookupOrNull(operand) == post.getResult() &&
             !(together && post.isApartFrom(together));
    });
  };
  if (isa<MergeStatisticsOp>(op) || llvm::any_of(op->getOperands(), isUnderWay))
    waitCollectives(rank);
  if (!together)
    return copyWithTransfers(op);
  copy(rankOf(op), op);
  rank.together.push_back(cast<CollectiveOp>(rank.block->back()));
}

void StepSplitter::waitAll() {
  for (RankState &rank : ranks) {
    waitCollectives(rank);
    builder.setInsertionPointToEnd(rank.block);
    for (PostSendOp post : rank.lateSends)
      WaitSendOp::create(builder, post.getLoc(), post, post.getPeer());
    rank.lateSends.clear();
  }
}

void StepSplitter::endStep() {
  if (!hasLateUpdates())
    return;
  // What takes an update, or what takes that, comes behind all updates.
  SmallVector<Operation *> sums;
  llvm::SetVector<Operation *> behind;
  for (Operation &op : *step.getBody()) {
    if (isa<InputOp, TaskOp>(op))
      continue;
    bool isBehind = llvm::any_of(op.getOperands(), [&](Value operand) {
      return isa<UpdatedType>(operand.getType()) ||
             behind.contains(operand.getDefiningOp());
    });
    if (isBehind)
      behind.insert(&op);
    else
      sums.push_back(&op);
  }

  for (Operation *op : sums)
    copyLate(op);
  // An update or a cleared gradient must not change what is still being sent.
  waitAll();
  for (auto task : step.getBody()->getOps<TaskOp>())
    if (task.getKind() == TaskKind::update)
      copy(rankOf(task), task);
  for (Operation *op : behind)
    copyLate(op);
  waitAll();
}

class InsertTransfers
    : public pipe::impl::PipeInsertTransfersBase<InsertTransfers> {
public:
  using PipeInsertTransfersBase::PipeInsertTransfersBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Stages> stages = Stages::read(module);
    if (failed(stages))
      return signalPassFailure();
    for (StepOp step : llvm::make_early_inc_range(module.getOps<StepOp>())) {
      FailureOr<schedules::Schedule> schedule =
          readSchedule(module, *stages, step.getMode());
      if (failed(schedule))
        return signalPassFailure();
      completeSchedule(*schedule);
      if (failed(StepSplitter(step, *stages, *schedule).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
