//===- Boxes.h - What slices take of tensors --------------------*- C++ -*-===//
//
// Arithmetic on slices: of slices, and of what reshapes make.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_NN_KERNELS_BOXES_H
#define PIPEWRIGHT_PASSES_NN_KERNELS_BOXES_H

#include "dialects/nn/NNOps.h"

#include <optional>

namespace pipewright::nn {

/// What a slice takes of its operand: one entry for each dimension.
struct Box {
  llvm::SmallVector<int64_t> starts, sizes, steps;

  static Box of(SliceOp slice);
  void add(int64_t start, int64_t size, int64_t step);
  /// Whether it takes all of a dimension of a tensor of this shape, in order.
  bool isWhole(llvm::ArrayRef<int64_t> shape, size_t dim) const;
  /// What `outer` takes of what this one takes.
  Box then(const Box &outer) const;
};

/// Elements that follow each other, in row-major order.
struct Run {
  int64_t start = 0, size = 1;
};

/// Some dimensions that follow each other: [begin, end).
struct Dims {
  size_t begin = 0, end = 0;
};

/// What a box takes of some dimensions of a tensor of this shape, if it is one
/// run of them.
std::optional<Run> runOf(const Box &box, llvm::ArrayRef<int64_t> shape,
                         Dims dims);

/// The box of a reshape's operand that has the elements of a box of its result,
/// in the same order; nothing where no box has.
std::optional<Box> boxBefore(ReshapeOp view, const Box &box);

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

} // namespace pipewright::nn

#endif // PIPEWRIGHT_PASSES_NN_KERNELS_BOXES_H
