//===- KernelGroups.h - which ops become one kernel -------------*- C++ -*-===//
//
// Rules that say which compiled ops may share one loop nest over rows, and the
// greedy grouping by them. Nothing here changes the IR.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_KERNELS_KERNELGROUPS_H
#define PIPEWRIGHT_PASSES_NN_KERNELS_KERNELGROUPS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace pipewright::nn {

struct KernelGroup {
  /// In the order of the block.
  llvm::SmallVector<mlir::Operation *> ops;
  int64_t elements = 0;
  llvm::SmallVector<int64_t> columns;
};

/// Constants and masks: every kernel makes its own.
bool isLeaf(mlir::Operation *op);

/// The value that `value` is a view of (itself when it is none).
mlir::Value stripReshapes(mlir::Value value);

/// Whether a kernel that computes `value`, a result of a kernel op, may also
/// move it: the whole need not be stored then.
bool mayMoveInKernel(mlir::OpResult value);

/// Visits all ops of a module but those in kernels, which are in a module in
/// it.
void walkOutsideKernels(mlir::ModuleOp module,
                        llvm::function_ref<void(mlir::Operation *)> visit);

/// Groups the kernel ops of `block`, except leaves.
llvm::SmallVector<KernelGroup> groupOps(mlir::Block &block);

} // namespace pipewright::nn

#endif // PIPEWRIGHT_PASSES_NN_KERNELS_KERNELGROUPS_H
