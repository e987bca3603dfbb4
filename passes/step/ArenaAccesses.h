//===- ArenaAccesses.h - What an op does to the arena -----------*- C++ -*-===//
//
// The bytes that each op of a planned rank program reads and writes, those of
// a task being what the ops of its body do.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_ARENAACCESSES_H
#define PIPEWRIGHT_PASSES_STEP_ARENAACCESSES_H

#include "passes/planning/StreamPlanner.h"
#include "passes/step/BackwardParts.h"
#include "passes/step/BodyBuffers.h"
#include "passes/step/Stages.h"

#include "llvm/ADT/DenseMap.h"

namespace pipewright::pipe {

/// What an op reads and writes: ranges of any space, or of the arena.
struct Accesses {
  std::vector<BufferAttr> reads, writes;
};

/// The accesses of one rank's program. Its ops are asked in their order.
class ArenaAccesses {
public:
  ArenaAccesses(const Stages &stages, ArenaOp arena)
      : stages(stages), arena(arena) {}

  /// Ranges of the arena; a transfer's are in use until it is over. Fails, with
  /// a diagnostic, where buffers are missing.
  mlir::FailureOr<Accesses> of(StepOpInterface op);

private:
  mlir::LogicalResult add(StepOpInterface op, const ByteUse &use,
                          Accesses &accesses);
  mlir::LogicalResult addBody(mlir::Operation *taskOrResume,
                              Accesses &accesses);
  void addOptimizer(TaskOp task, Accesses &accesses);
  mlir::LogicalResult addPlace(StepOpInterface op, const ByteUse &use,
                               Accesses &accesses);
  mlir::FailureOr<const Accesses *> bodyAccesses(StageOp stage, BodyOps ops);
  mlir::LogicalResult addBodyOp(StageOp stage, mlir::Operation &op,
                                Accesses &accesses);
  PlaceOp placeOf(mlir::FlatSymbolRefAttr weight, llvm::StringRef stage);
  /// Notes where the results of an op lie.
  mlir::LogicalResult place(StepOpInterface op);
  BufferAttr resolve(TaskOp task, BufferAttr buffer) const;

  const Stages &stages;
  ArenaOp arena;
  llvm::DenseMap<mlir::Value, BufferAttr> places;
  /// The ranges of each body, or part of one, by its first op; joined where
  /// they touch.
  llvm::DenseMap<mlir::Operation *, Accesses> bodies;
};

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_ARENAACCESSES_H
