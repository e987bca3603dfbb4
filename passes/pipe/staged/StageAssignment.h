//===- StageAssignment.h - Which stage each op is in ------------*- C++ -*-===//
//
// How a model is cut: by a method that balances something, at the borders of
// its modules, or as its file says.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEASSIGNMENT_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEASSIGNMENT_H

#include "passes/pipe/staged/ModelOps.h"

namespace pipewright::pipe {

/// The stages of the ops that are placed and that the loss needs.
using StageOfOp = llvm::DenseMap<mlir::Operation *, int32_t>;

/// What is wrong with the name of a method, and which there are; empty if
/// nothing is.
std::string problemOfBalance(llvm::StringRef balance);

/// The regular expression of a method that has one; empty for others.
llvm::StringRef patternOfBalance(llvm::StringRef balance);

/// The file with measured times of a method that needs them; empty for others.
llvm::StringRef timesFileOfBalance(llvm::StringRef balance);

/// The methods that have nothing behind their names, and so may be tried for
/// any model.
llvm::SmallVector<llvm::StringRef> balancesByName();

/// Whether the method can leave out cuts of which a stage needs much memory.
bool isBalanceWithinMemory(llvm::StringRef balance);

/// Whether ranks that are alike get the same cut whatever the micro-batches,
/// the optimizer and the memory.
bool isBalanceOfModelAlone(llvm::StringRef balance);

/// How a model is to be cut.
struct StageCut {
  int64_t stages = 1;
  llvm::StringRef balance = "flops";
  /// The most bytes that stages need under 1F1B, where the method can do so and
  /// there are such cuts: one number for all, or one for each; empty for no
  /// limit. Workspace and messages are not among these bytes.
  llvm::ArrayRef<int64_t> memoryLimit = {};
  /// Where stages will be, those of the first copy of the model before those of
  /// the second; empty: they go round and round.
  llvm::ArrayRef<int64_t> rankOfStage = {};
};

/// Cuts the model. Fails with a diagnostic that begins with the name of
/// pipe-partition-stages where it cannot be cut so.
llvm::FailureOr<StageOfOp> assignStages(const ModelOps &model,
                                        const StageCut &cut);

/// As the configuration of that name says, or the only one where the name is
/// empty (`nn.configurations`). Where it has k times as many stages, k after
/// each other become one.
llvm::FailureOr<StageOfOp> assignAnnotatedStages(const ModelOps &model,
                                                 llvm::StringRef name,
                                                 int64_t stages);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_STAGEASSIGNMENT_H
