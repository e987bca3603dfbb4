//===- MoveStashes.cpp - Stashes that are elsewhere -----------------------===//
//
// See MoveStashes.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/scheduled/MoveStashes.h"

#include "passes/step/BodyBuffers.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

/// What a forward keeps; null where it keeps nothing. A stash that moves is one
/// range.
static Value stashOf(TaskOp forward) {
  for (Value result : forward.getResults())
    if (isa<StashType>(result.getType()))
      return result;
  return Value();
}

void pipewright::pipe::keepStashes(StepOp step) {
  SmallVector<MoveOp> moves(step.getBody()->getOps<MoveOp>());
  for (MoveOp move : moves)
    if (!move.isToHost())
      move.getResult().replaceAllUsesWith(
          move.getValue().getDefiningOp<MoveOp>().getValue());
  for (WaitMoveOp wait :
       llvm::make_early_inc_range(step.getBody()->getOps<WaitMoveOp>()))
    wait.erase();
  for (MoveOp move : llvm::reverse(moves))
    move.erase();
  SmallVector<HoldOp> holds(step.getBody()->getOps<HoldOp>());
  for (HoldOp hold : holds)
    if (isa<StashType>(hold.getResult().getType())) {
      Value kept = hold.getValue();
      while (auto before = kept.getDefiningOp<HoldOp>())
        kept = before.getValue();
      hold.getResult().replaceAllUsesWith(kept);
    }
  for (HoldOp hold : llvm::reverse(holds))
    hold.erase();
}

LogicalResult
pipewright::pipe::moveStashes(StepOp step, const Stages &stages,
                              const schedules::Schedule &schedule) {
  for (const schedules::StashMove &move : schedule.moves)
    if (StageOp stage = stages[move.stage]; stage.getSplitsStash())
      return stage.emitOpError(
          "splits the stash, which the schedule moves: run "
          "pipe-split-backward with whole-stash");
  TaskIndex index;
  for (auto task : step.getBody()->getOps<TaskOp>())
    index.add(stages, task);
  // A model may have no use for some tasks.
  auto firstFrom = [&](int32_t rank, int64_t position) {
    llvm::ArrayRef<schedules::Task> tasks = schedule.order[rank];
    while (!index.lookup(tasks[position]))
      ++position;
    return index.lookup(tasks[position]);
  };
  OpBuilder builder(step.getContext());
  auto moveToHost = [&](const schedules::StashMove &move, Value stash) {
    const int32_t rank = schedule.rankOfStage[move.stage];
    FlatSymbolRefAttr own = stages.nameOf(move.stage);
    auto bytes = RankedTensorType::get(
        {StashLayout(stages.stageOf(own), stash.getType()).bytes},
        builder.getI8Type());
    auto copy = [&](Type type, Value value) {
      return MoveOp::create(builder, stash.getLoc(), type, value, own,
                            builder.getI64IntegerAttr(move.microBatch),
                            /*buffers=*/ArrayAttr(), /*event=*/IntegerAttr())
          .getResult();
    };
    builder.setInsertionPoint(firstFrom(rank, move.sent));
    Value kept = copy(bytes, stash);
    builder.setInsertionPoint(firstFrom(rank, move.gone));
    WaitMoveOp::create(builder, stash.getLoc(), kept, own);
    builder.setInsertionPoint(firstFrom(rank, move.fetched));
    Value back = copy(stash.getType(), kept);
    stash.replaceAllUsesExcept(back, kept.getDefiningOp());
  };
  // What keepers hold, by move.
  SmallVector<Value> kept(schedule.moves.size());
  bool movesAny = false;
  for (auto [number, move] : llvm::enumerate(schedule.moves)) {
    TaskOp forward =
        index.lookup(schedules::TaskKind::Forward, move.stage, move.microBatch);
    Value stash = forward ? stashOf(forward) : Value();
    if (!stash)
      continue;
    movesAny = true;
    if (move.keeper.isHost()) {
      moveToHost(move, stash);
      continue;
    }
    FlatSymbolRefAttr own = stages.nameOf(move.stage);
    FlatSymbolRefAttr keeper = stages.nameOf(static_cast<int32_t>(
        llvm::find(schedule.rankOfStage, *move.keeper.rank) -
        schedule.rankOfStage.begin()));
    auto bytes = RankedTensorType::get(
        {StashLayout(stages.stageOf(own), stash.getType()).bytes},
        builder.getI8Type());
    auto hold = [&](Type type, Value value, FlatSymbolRefAttr in,
                    Value behind = {}) {
      return HoldOp::create(builder, forward.getLoc(), type, value, own,
                            builder.getI64IntegerAttr(move.microBatch), in,
                            behind)
          .getResult();
    };
    int32_t rank = schedule.rankOfStage[move.stage];
    builder.setInsertionPoint(firstFrom(rank, move.sent));
    Value sent = hold(bytes, stash, own);
    kept[number] =
        hold(bytes, sent, keeper, move.after < 0 ? Value() : kept[move.after]);
    builder.setInsertionPoint(firstFrom(rank, move.fetched));
    Value back = hold(stash.getType(), kept[number], own);
    stash.replaceAllUsesExcept(back, sent.getDefiningOp());
  }
  if (!movesAny && !schedule.moves.empty())
    step.emitWarning(
        "the schedule moves stashes of stages that keep none: with "
        "less recomputation they may");
  return success();
}
