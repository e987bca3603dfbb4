//===- StashPlan.h - What a backward keeps of its forward -------*- C++ -*-===//
//
// Decides, for a backward that still contains a copy of the whole forward,
// which values are handed over and which copies stay because repeating them
// costs little. The same question arises between the two halves of a
// backward: there the "copies" are the ops of the first half.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_STASHPLAN_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_STASHPLAN_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace pipewright::pipe {

/// Which element ops of what is kept are repeated: all, or those that are cheap
/// and that kernels read.
struct RepeatRule {
  bool allPointwise = false;
  /// GELU by tanh is not: what computes it first may be no kernel.
  bool keepsGelu = false;
};

class StashPlan {
public:
  /// `block` is the backward's; `copies` are the forward's ops in it, in order;
  /// `modelInputs` are the arguments that every rank can load.
  StashPlan(mlir::Block &block, llvm::ArrayRef<mlir::Operation *> copies,
            llvm::DenseSet<mlir::Value> modelInputs, RepeatRule rule = {});

  /// What is handed over: arguments and results of copies, in the order in
  /// which they are defined.
  llvm::ArrayRef<mlir::Value> saved() const {
    return savedValues.getArrayRef();
  }

  /// The copies that stay.
  bool isRepeated(mlir::Operation *op) const { return repeated.contains(op); }

private:
  void need(mlir::Value value);
  /// Whether it is repeated if what it is made from is kept.
  bool isWorthRepeating(mlir::Value value) const;
  bool isPointwise(mlir::Operation *op) const;
  /// What a value is made from by element ops alone.
  struct Leaves {
    bool areKnown = false, hasInput = false, hasWeight = false;
  };
  Leaves leavesOf(mlir::Value value);
  bool isFree(mlir::Value value);
  bool isAvailable(mlir::Value value);
  void repeat(mlir::Value value);

  const RepeatRule rule;
  llvm::DenseSet<mlir::Operation *> copySet;
  llvm::DenseSet<mlir::Value> modelInputs;
  llvm::DenseMap<mlir::Value, Leaves> leaves;
  llvm::SetVector<mlir::Value> savedValues;
  /// Needed values that are repeated if what they are made from is there.
  llvm::SetVector<mlir::Value> candidates;
  llvm::DenseSet<mlir::Operation *> repeated;
};

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_STASHPLAN_H
