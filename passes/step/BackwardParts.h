//===- BackwardParts.h - Backwards that are run in parts --------*- C++ -*-===//
//
// Where the body of a backward is cut so that collectives of buckets may begin
// while it goes on: behind the op that is the last one to add to a bucket. Read
// from the body anew by whoever asks.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_STEP_BACKWARDPARTS_H
#define PIPEWRIGHT_PASSES_STEP_BACKWARDPARTS_H

#include "passes/step/Stages.h"

namespace pipewright::pipe {

struct BackwardParts {
  /// The last op of each part but the last one, which goes to the end.
  llvm::SmallVector<mlir::Operation *> ends;
  /// By bucket: the part behind which its gradients are whole, as are those of
  /// all buckets before it.
  llvm::SmallVector<int64_t> partOfBucket;

  int64_t count() const { return static_cast<int64_t>(ends.size()) + 1; }
};

/// Of a stage's backward, or its weight half.
BackwardParts backwardParts(const Stages &stages, int32_t stage, TaskKind kind);

using BodyOps = llvm::iterator_range<mlir::Block::iterator>;

/// The ops of part `number` of a body, its `pipe.return` with the last part.
BodyOps opsOfPart(mlir::Operation *body, const BackwardParts &parts,
                  int64_t number);
/// The ops of its body that a task, or a `pipe.resume` of one, runs.
BodyOps opsRunBy(const Stages &stages, mlir::Operation *taskOrResume);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_STEP_BACKWARDPARTS_H
