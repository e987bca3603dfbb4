//===- AttentionCore.h - What attention makes of q, k and v -----*- C++ -*-===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_ATTENTIONCORE_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_ATTENTIONCORE_H

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseSet.h"

namespace pipewright::pipe {

/// The ops of a forward between q, k and v and attention's output, with both
/// ends: ops that are attention as a whole, and each softmax between two
/// products of values that are made of inputs, with these and what stands
/// between.
llvm::DenseSet<mlir::Operation *> attentionCore(mlir::Block &forward);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_ATTENTIONCORE_H
