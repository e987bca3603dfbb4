//===- KernelGroups.h - which ops become one kernel -------------*- C++ -*-===//
//
// Rules that say which compiled ops may share one loop nest over rows, and the
// greedy grouping by them. Nothing here changes the IR.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_KERNELS_KERNELGROUPS_H
#define PIPEWRIGHT_PASSES_NN_KERNELS_KERNELGROUPS_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace pipewright::nn {

/// How an op walks its rows.
enum class OpShape {
  /// One result element from one element of each operand.
  Pointwise,
  /// Moves elements; its operand is read at other places than its result.
  Movement,
  /// Reduces rows, or works row by row.
  Rows,
  /// Reduces over several rows: the result is known after all of them.
  Columns,
  /// Needs several loop nests: only its last one can be shared.
  Several,
};

/// What the rest of a nest may do with a result.
enum class ResultShape { Element, Row, Final };

/// The row space of an op.
struct OpSpace {
  OpShape shape;
  /// Elements that its loops visit.
  int64_t elements;
  /// The lengths of a row that suit it.
  llvm::SmallVector<int64_t> columns;
};

struct KernelGroup {
  /// In the order of the block.
  llvm::SmallVector<mlir::Operation *> ops;
  int64_t elements = 0;
  llvm::SmallVector<int64_t> columns;
};

/// Ops that are lowered through linalg into kernels.
bool isCompiled(mlir::Operation *op);

/// Constants and masks: every kernel makes its own.
bool isLeaf(mlir::Operation *op);

/// The value that `value` is a view of (itself when it is none).
mlir::Value stripReshapes(mlir::Value value);

/// How a compiled op walks its rows, and what a nest may do with a result.
OpSpace spaceOf(mlir::Operation *op);
ResultShape resultShapeOf(mlir::OpResult result);

/// Ops that may be computed again for every element that repeats their result.
bool isCheap(mlir::Operation *op);

/// True if neighbours along the last dimension stay neighbours.
bool movesWholeRows(mlir::Operation *op);

/// The number of elements of a tensor.
int64_t elementsOf(mlir::Value tensor);

/// Groups the compiled ops of `block`, except leaves. May copy cheap ops.
llvm::SmallVector<KernelGroup> groupOps(mlir::Block &block);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_PASSES_NN_KERNELS_KERNELGROUPS_H
