//===- InsertTransfers.cpp - One straight program per rank ----------------===//
//
// Splits a step into `pipe.rank` ops: values that cross from one rank to
// another become posts and waits, and collectives get waits, where
// passes/schedules puts all of them (WorkOrder.h). Everything else of a rank
// stands right before what takes it, or at the end if nothing does.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/Passes.h"
#include "passes/schedules/WorkOrder.h"
#include "passes/step/StepGraph.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

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
  StepSplitter(StepOp step, const Stages &stages, const StepGraph &graph)
      : step(step), stages(stages), graph(graph), builder(step.getContext()),
        ranks(graph.tasks.ranks) {
    for (auto task : step.getBody()->getOps<TaskOp>())
      index.add(stages, task);
  }

  LogicalResult run();

private:
  struct RankState {
    Block *block = nullptr;
    /// From values of the step to values of this rank.
    IRMapping values;
    /// What was posted, by value of the step; what is sent, by its peer too.
    llvm::DenseMap<std::pair<Value, int32_t>, Value> sending;
    llvm::DenseMap<Value, Value> receiving;
  };

  int32_t rankOf(Operation *op) const {
    FlatSymbolRefAttr stage = cast<StepOpInterface>(op).getStageName();
    return graph.tasks.rankOfStage[stages.numberOf(stage)];
  }
  bool isOfWork(const RankInstruction &instruction) const {
    return instruction.transfer.kind == TransferKind::Work;
  }
  Value valueOf(const RankInstruction &instruction) const;
  GroupOpInterface partOf(int32_t rank,
                          const RankInstruction &instruction) const;
  void emit(int32_t rank, const RankInstruction &instruction);
  void copy(int32_t rank, Operation *op);
  void makeReady(int32_t rank, Value value);

  mutable StepOp step;
  const Stages &stages;
  const StepGraph &graph;
  OpBuilder builder;
  TaskIndex index;
  std::vector<RankState> ranks;
  /// Those of the graph, in order.
  std::vector<const WorkOps *> works;
};

} // namespace

LogicalResult StepSplitter::run() {
  llvm::Expected<schedules::OrderedWork> ordered = schedules::orderWork(
      graph.tasks, stages.costs(step.getMode()), graph.edges, graph.works);
  if (!ordered)
    return step.emitError(llvm::toString(ordered.takeError()));
  for (int32_t number : ordered->numbers)
    works.push_back(&graph.ops[number]);

  builder.setInsertionPoint(step);
  for (auto [number, rank] : llvm::enumerate(ranks)) {
    auto op = RankOp::create(builder, step.getLoc(), number, step.getMode());
    rank.block = &op.getBodyRegion().emplaceBlock();
  }
  for (auto [rank, list] : llvm::enumerate(ordered->lists))
    for (const RankInstruction &instruction : list)
      emit(rank, instruction);
  // Nothing has taken what these make.
  for (Operation &op : *step.getBody())
    if (!isa<InputOp, TaskOp, GroupOpInterface, MoveOp, WaitMoveOp>(op) &&
        (op.getNumResults() == 0 ||
         !ranks[rankOf(&op)].values.contains(op.getResult(0))))
      copy(rankOf(&op), &op);
  step.erase();
  return success();
}

/// What a send or a receive moves.
Value StepSplitter::valueOf(const RankInstruction &instruction) const {
  const schedules::Transfer &transfer = instruction.transfer;
  if (isOfWork(instruction))
    return works[transfer.edge]->sent;
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

GroupOpInterface
StepSplitter::partOf(int32_t rank, const RankInstruction &instruction) const {
  return *llvm::find_if(
      works[instruction.transfer.edge]->parts,
      [&](GroupOpInterface part) { return rankOf(part) == rank; });
}

void StepSplitter::emit(int32_t rank, const RankInstruction &instruction) {
  RankState &state = ranks[rank];
  auto pendingOf = [&](Value value) {
    return PendingType::get(builder.getContext(),
                            cast<RankedTensorType>(value.getType()));
  };
  builder.setInsertionPointToEnd(state.block);
  switch (instruction.kind) {
  case InstructionKind::Task: {
    TaskOp task = index.lookup(instruction.task);
    for (Operation *op : graph.before.lookup(task))
      makeReady(rank, op->getResult(0));
    return copy(rank, task);
  }
  case InstructionKind::PostSend: {
    Value value = valueOf(instruction);
    makeReady(rank, value);
    state.sending[{value, instruction.peer}] =
        PostSendOp::create(builder, value.getLoc(), pendingOf(value),
                           state.values.lookup(value), instruction.peer,
                           /*event=*/IntegerAttr());
    return;
  }
  case InstructionKind::WaitSend: {
    Value pending = state.sending.at({valueOf(instruction), instruction.peer});
    WaitSendOp::create(builder, pending.getLoc(), pending, instruction.peer);
    return;
  }
  case InstructionKind::PostReceive: {
    Value value = valueOf(instruction);
    state.receiving[value] = PostReceiveOp::create(
        builder, value.getLoc(), pendingOf(value), instruction.peer,
        /*buffers=*/ArrayAttr(), /*event=*/IntegerAttr());
    return;
  }
  case InstructionKind::WaitReceive: {
    Value value = valueOf(instruction);
    state.values.map(value, WaitReceiveOp::create(
                                builder, value.getLoc(), value.getType(),
                                state.receiving.at(value), instruction.peer));
    return;
  }
  case InstructionKind::PostCollective:
    return copy(rank, partOf(rank, instruction));
  case InstructionKind::PostCopy:
    return copy(rank, works[instruction.transfer.edge]->move);
  case InstructionKind::WaitCopy: {
    MoveOp move = works[instruction.transfer.edge]->move;
    WaitMoveOp::create(builder, move.getLoc(),
                       state.values.lookup(move.getResult()),
                       move.getStageAttr());
    return;
  }
  case InstructionKind::WaitCollective: {
    GroupOpInterface part = partOf(rank, instruction);
    // Others are over when the program goes on.
    if (!cast<StepOpInterface>(*part).isAsynchronous())
      return;
    WaitCollectiveOp::create(builder, part->getLoc(),
                             state.values.lookup(part->getResult(0)));
    return;
  }
  }
}

void StepSplitter::copy(int32_t rank, Operation *op) {
  // What is sent back before is over by now.
  if (auto hold = dyn_cast<HoldOp>(op))
    hold.getBehindMutable().clear();
  for (Value operand : op->getOperands())
    makeReady(rank, operand);
  builder.setInsertionPointToEnd(ranks[rank].block);
  builder.clone(*op, ranks[rank].values);
}

/// Inputs, and ops that neither take time nor wait for another rank, stand
/// right before what takes them.
void StepSplitter::makeReady(int32_t rank, Value value) {
  if (!ranks[rank].values.contains(value))
    copy(rank, value.getDefiningOp());
}

namespace {

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
      FailureOr<StepGraph> graph = readStepGraph(step, *stages);
      if (failed(graph) || failed(StepSplitter(step, *stages, *graph).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
