//===- ProgramPlan.h - Where the values of a program are --------*- C++ -*-===//
//
// The values of one rank's program, packed by their lives: those in its arena,
// and apart from them those in the memory of its host.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_ALLOCATED_PROGRAMPLAN_H
#define PIPEWRIGHT_PASSES_PIPE_ALLOCATED_PROGRAMPLAN_H

#include "passes/pipe/allocated/ArenaLayout.h"
#include "passes/planning/MemoryPlanner.h"

#include "llvm/ADT/DenseMap.h"

namespace pipewright::pipe {

/// The values of one `pipe.rank`.
class ProgramPlan {
public:
  /// `spare` is that of the pass's option `link-buffers`.
  ProgramPlan(const Stages &stages, const ArenaLayout &layout, RankOp program,
              int64_t spare);

  int64_t bytes() const { return plan.bytes; }
  /// Those in the host's memory.
  int64_t hostBytes() const { return host.bytes; }

  /// Sets the buffers of all ops, the values beginning at `base`.
  void write(const Stages &stages, const ArenaLayout &layout, int64_t base);

private:
  int64_t lastUse(mlir::Value value) const;
  mlir::Operation *taskOf(mlir::Value value) const;
  void add(mlir::Value value, int64_t last, int64_t bytes);
  void place(int64_t spare);

  RankOp program;
  llvm::DenseMap<mlir::Operation *, int64_t> pointOf;
  /// The values that have bytes of their own, and the index of each.
  std::vector<mlir::Value> values;
  llvm::DenseMap<mlir::Value, size_t> indices;
  std::vector<BufferLife> lives;
  /// The offsets of those that are not there are of no use.
  MemoryPlan plan, host;
};

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_ALLOCATED_PROGRAMPLAN_H
