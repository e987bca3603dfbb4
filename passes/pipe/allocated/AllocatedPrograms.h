//===- AllocatedPrograms.h - Symbolic runs of planned programs --*- C++ -*-===//
//
// The part of `pipe-verify-allocated` that runs rank programs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_ALLOCATED_ALLOCATEDPROGRAMS_H
#define PIPEWRIGHT_PASSES_PIPE_ALLOCATED_ALLOCATEDPROGRAMS_H

#include "passes/pipe/allocated/AllocatedBodies.h"
#include "passes/step/Stages.h"

namespace pipewright::pipe {

/// Arena ranges that each body writes.
using BodyWrites = llvm::DenseMap<mlir::Operation *, std::vector<BufferAttr>>;

/// Fails, with a diagnostic, where an op of a program has no buffers, or others
/// than it needs, or finds another value in them than it wants.
mlir::LogicalResult verifyBuffers(RankArena &arena,
                                  const BodyWrites &bodyWrites, RankOp program,
                                  const Stages &stages);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_ALLOCATED_ALLOCATEDPROGRAMS_H
