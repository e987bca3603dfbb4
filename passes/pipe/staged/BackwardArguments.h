//===- BackwardArguments.h - What a part of a backward takes ----*- C++ -*-===//
//
// Shared by the passes that cut backwards.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_BACKWARDARGUMENTS_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_BACKWARDARGUMENTS_H

#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/IRMapping.h"

#include <array>

namespace pipewright::pipe {

/// What the arguments of a body stand for: inputs, outputs, stash, gradients,
/// what is recomputed.
using ArgumentLists = std::array<llvm::SmallVector<int64_t>, 5>;

/// Gives `part` those arguments of a backward that `readers` read, or that are
/// in `alsoRead`, in their order. Returns their lists, and maps them in `map`.
ArgumentLists addArguments(mlir::Block &part, BackwardOp whole,
                           llvm::ArrayRef<mlir::Operation *> readers,
                           mlir::ValueRange alsoRead, mlir::IRMapping &map);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_BACKWARDARGUMENTS_H
