//===- StageWords.h - Options that each stage may have its own --*- C++ -*-===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEWORDS_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEWORDS_H

#include "mlir/IR/BuiltinOps.h"

namespace pipewright::pipe {

/// The word of each stage of a module, from one for all of them or a list with
/// one for each: `none,full,full,none`. Fails, with a diagnostic that names the
/// option, on other words and on lists of another length.
mlir::FailureOr<llvm::SmallVector<llvm::StringRef>>
wordsOfStages(mlir::ModuleOp module, llvm::StringRef option,
              llvm::StringRef given, llvm::ArrayRef<llvm::StringRef> known);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEWORDS_H
