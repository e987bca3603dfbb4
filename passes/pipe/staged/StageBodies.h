//===- StageBodies.h - Build stages from placed ops -------------*- C++ -*-===//
//
// Once it is known which stage each op belongs to, this builds the stages'
// forward and evaluate bodies and connects them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEBODIES_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEBODIES_H

#include "passes/pipe/staged/ModelOps.h"

namespace pipewright::pipe {

/// Builds `stages` stages after the model's function. `stageOf` says where the
/// ops that the loss needs belong; all others are evaluated in the first stage
/// that has what they read.
llvm::LogicalResult
buildStages(const ModelOps &model,
            llvm::DenseMap<mlir::Operation *, int32_t> stageOf, int64_t stages);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEBODIES_H
