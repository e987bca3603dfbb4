//===- StageWords.h - Options that each stage may have its own --*- C++ -*-===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEWORDS_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEWORDS_H

#include "mlir/IR/BuiltinOps.h"

namespace pipewright::pipe {

/// Whether a word is one of `known`, of which those with an N stand for all
/// words with a positive number in its place.
bool isStageWord(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> known);

/// The word of each stage of a module, from one for all of them or a list with
/// one for each: `none,full,full,none`. Fails, with a diagnostic that names the
/// option, on other words and on lists of another length.
mlir::FailureOr<llvm::SmallVector<llvm::StringRef>>
wordsOfStages(mlir::ModuleOp module, llvm::StringRef option,
              llvm::StringRef given, llvm::ArrayRef<llvm::StringRef> known);

/// What `pipe-rematerialize` can do with a stage.
inline constexpr llvm::StringRef kRematModes[] = {
    "none",    "full",     "selective",  "keep:N",
    "every:N", "window:N", "except-last"};

/// Whether some micro-batches of a stage keep their stash under a mode, and
/// others do not.
bool isWindowMode(llvm::StringRef mode);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEWORDS_H
