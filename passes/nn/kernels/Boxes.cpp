//===- Boxes.cpp - What slices take of tensors ----------------------------===//

#include "passes/nn/kernels/Boxes.h"

using namespace mlir;

namespace pipewright::nn {

Box Box::of(SliceOp slice) {
  return {SmallVector<int64_t>(slice.getStarts()),
          SmallVector<int64_t>(slice.getSizes()),
          SmallVector<int64_t>(slice.getSteps())};
}

void Box::add(int64_t start, int64_t size, int64_t step) {
  starts.push_back(start);
  sizes.push_back(size);
  steps.push_back(step);
}

bool Box::isWhole(ArrayRef<int64_t> shape, size_t dim) const {
  return sizes[dim] == shape[dim] && (steps[dim] == 1 || sizes[dim] == 1);
}

Box Box::then(const Box &outer) const {
  Box box;
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    box.add(starts[dim] + outer.starts[dim] * steps[dim], outer.sizes[dim],
            outer.steps[dim] * steps[dim]);
  return box;
}

std::optional<Run> runOf(const Box &box, ArrayRef<int64_t> shape, Dims dims) {
  Run run;
  int64_t stride = 1;
  bool isWhole = true;
  for (size_t dim = dims.end; dim-- > dims.begin;) {
    if (box.sizes[dim] != 1 && (!isWhole || box.steps[dim] != 1))
      return std::nullopt;
    isWhole = isWhole && box.sizes[dim] == shape[dim];
    run.start += box.starts[dim] * stride;
    run.size *= box.sizes[dim];
    stride *= shape[dim];
  }
  return run;
}

/// The only dimension with more than one element; nothing where there are
/// several, or none.
static std::optional<size_t> longDim(ArrayRef<int64_t> shape, Dims dims) {
  std::optional<size_t> found;
  for (size_t dim = dims.begin; dim < dims.end; ++dim) {
    if (shape[dim] == 1)
      continue;
    if (found)
      return std::nullopt;
    found = dim;
  }
  return found;
}

/// Adds the dimensions `from` of a reshape's operand to `before`: what `box`
/// takes of the dimensions `to` of its result, which have the same elements.
static bool boxDims(const Box &box, ArrayRef<int64_t> fromShape, Dims from,
                    ArrayRef<int64_t> toShape, Dims to, Box &before) {
  const std::optional<size_t> source = longDim(fromShape, from);
  const std::optional<size_t> target = longDim(toShape, to);
  bool isWhole = true;
  for (size_t dim = to.begin; dim < to.end; ++dim)
    isWhole = isWhole && box.isWhole(toShape, dim);
  std::optional<Run> run;
  if (!isWhole && !target)
    run = runOf(box, toShape, to);
  if (!isWhole && (!source || (!target && !run)))
    return false;
  for (size_t dim = from.begin; dim < from.end; ++dim) {
    if (isWhole || dim != source)
      before.add(0, fromShape[dim], 1);
    else if (target)
      before.add(box.starts[*target], box.sizes[*target], box.steps[*target]);
    else
      before.add(run->start, run->size, 1);
  }
  return true;
}

std::optional<Box> boxBefore(ReshapeOp view, const Box &box) {
  const ArrayRef<int64_t> fromShape = shapeOf(view.getX());
  const ArrayRef<int64_t> toShape = shapeOf(view.getResult());
  if (llvm::is_contained(fromShape, 0))
    return std::nullopt;
  Box before;
  Dims from, to;
  // The fewest dimensions of each that have as many elements go together.
  while (from.end < fromShape.size() || to.end < toShape.size()) {
    from.begin = from.end;
    to.begin = to.end;
    int64_t left = from.end < fromShape.size() ? fromShape[from.end++] : 1;
    int64_t right = to.end < toShape.size() ? toShape[to.end++] : 1;
    while (left != right)
      if (left < right)
        left *= fromShape[from.end++];
      else
        right *= toShape[to.end++];
    if (!boxDims(box, fromShape, from, toShape, to, before))
      return std::nullopt;
  }
  return before;
}

} // namespace pipewright::nn
