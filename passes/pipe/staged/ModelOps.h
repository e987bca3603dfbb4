//===- ModelOps.h - What the ops of a model are to a cut --------*- C++ -*-===//
//
// Sorts the ops of the model's function into those that are placed in exactly
// one stage and those that every stage repeats for itself, and finds out which
// of them the loss needs.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_MODELOPS_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_MODELOPS_H

#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace pipewright::pipe {

/// What a value is made from, seen through the ops that are repeated.
struct ValueOrigin {
  /// Results of placed ops.
  llvm::SmallSetVector<mlir::Value, 1> placed;
  /// Reads of weights that are trained or frozen.
  llvm::SmallSetVector<nn::ParameterOp, 1> learned;
  bool readsModelInput = false;
};

class ModelOps {
public:
  explicit ModelOps(mlir::func::FuncOp function) : function(function) {}

  /// Fails with a diagnostic when the function is not a model with a loss.
  llvm::LogicalResult analyze();

  mlir::func::FuncOp getFunction() const { return function; }
  mlir::Value getLoss() const;

  /// The ops that belong to one stage each, in their order.
  llvm::ArrayRef<mlir::Operation *> placed() const { return placedOps; }

  /// Whether the op is repeated by every stage that uses it.
  bool isRepeated(mlir::Operation *op) const { return repeated.contains(op); }

  /// Whether training needs the op: for the loss or for an update of state.
  bool isNeededForLoss(mlir::Operation *op) const {
    return needed.contains(op);
  }

  /// Whether any output of the model or any state depends on the op.
  bool isAlive(mlir::Operation *op) const {
    return alive.contains(op) || needed.contains(op);
  }

  /// Null where there is none.
  nn::WeightOp weightOf(nn::ParameterOp read) const {
    return symbolTables.lookupNearestSymbolFrom<nn::WeightOp>(
        read, read.getWeightAttr());
  }

  const ValueOrigin &originOf(mlir::Value value) const {
    return origins.find(value)->second;
  }

private:
  bool mayRepeat(mlir::Operation *op, const ValueOrigin &origin) const;
  void findNeeded();

  mlir::func::FuncOp function;
  /// Filled by lookups.
  mutable mlir::SymbolTableCollection symbolTables;
  llvm::DenseMap<mlir::Value, ValueOrigin> origins;
  llvm::SmallVector<mlir::Operation *> placedOps;
  llvm::DenseSet<mlir::Operation *> repeated;
  llvm::DenseSet<mlir::Operation *> needed;
  llvm::DenseSet<mlir::Operation *> alive;
};

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_MODELOPS_H
