//===- CheapOps.h - Ops that are better repeated than kept ------*- C++ -*-===//
//
// Says which ops a stage may compute again instead of having their results
// sent, and a backward instead of keeping them. Computing them again gives the
// same bits, in whatever kernel: none of them sums several numbers.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_PIPE_STAGED_CHEAPOPS_H
#define PIPEWRIGHT_PASSES_PIPE_STAGED_CHEAPOPS_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"

namespace pipewright::pipe {

/// An op that computes each element by itself, moves elements, or reads a
/// weight.
bool isElementOp(mlir::Operation *op);

/// An element op whose result has the operand's bytes or repeats of them.
bool isView(mlir::Operation *op);

/// Whether `op` reads a weight that is trained.
bool readsTrainedWeight(mlir::Operation *op,
                        mlir::SymbolTableCollection &symbolTables);

/// Whether `op` reads a weight that is trained or frozen: what is decided by
/// it does not change when the user freezes something.
bool readsLearnedWeight(mlir::Operation *op,
                        mlir::SymbolTableCollection &symbolTables);

/// Moves an op that is repeated to right before its first use, if there is one,
/// so that its result takes memory only when it is needed.
void moveToFirstUse(mlir::Operation *op);

} // namespace pipewright::pipe

#endif // PIPEWRIGHT_PASSES_PIPE_STAGED_CHEAPOPS_H
