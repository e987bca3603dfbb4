//===- BodyPlan.h - Buffers of the ops of a stage body ----------*- C++ -*-===//
//
// Where each op of a body writes: straight to the task's result or stash where
// the value leaves the body, else to a workspace that all bodies of a rank
// share.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_ALLOCATED_BODYPLAN_H
#define PIPEWRIGHT_PASSES_PIPE_ALLOCATED_BODYPLAN_H

#include "passes/pipe/allocated/ArenaLayout.h"
#include "passes/planning/MemoryPlanner.h"
#include "passes/step/BodyBuffers.h"

#include "llvm/ADT/DenseMap.h"

namespace pipewright::pipe {

class BodyPlan {
public:
  /// Inserts `pipe.copy` ops into `body` where one value needs two buffers, and
  /// plans the workspace.
  explicit BodyPlan(mlir::Operation *body);

  int64_t workspaceBytes() const { return plan.bytes; }

  /// Sets `pipe.buffers` on every op with results, the workspace beginning at
  /// `workspace` of the arena.
  void write(const ArenaLayout &layout, int32_t stage, int64_t workspace);

private:
  void assignResults();
  void planTemporaries();
  BufferAttr bufferOfRoot(mlir::Value root, const ArenaLayout &layout,
                          int32_t stage, int64_t workspace) const;

  mlir::Operation *body;
  /// Values that leave the body, by root.
  llvm::DenseMap<mlir::Value, BufferAttr> leaving;
  /// The index of each temporary in the plan, by root.
  llvm::DenseMap<mlir::Value, size_t> temporaries;
  MemoryPlan plan;
};

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_ALLOCATED_BODYPLAN_H
