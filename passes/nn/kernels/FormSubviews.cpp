//===- FormSubviews.cpp - nn-form-subviews --------------------------------===//
//
// A step of a sequence, or another part that lies in one piece, is read where
// it lies. Kernels that differ in which step they read become one.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"
#include "passes/nn/kernels/Boxes.h"
#include "passes/nn/kernels/KernelGroups.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <tuple>

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNFORMSUBVIEWS
#include "passes/nn/Passes.h.inc"

/// Whether the kernel that computes a value may take in a slice of it: then
/// the whole need not be stored.
static bool mayBeFused(Value value) {
  value = stripReshapes(value);
  Operation *producer = value.getDefiningOp();
  return producer && isa<KernelOpInterface>(producer) &&
         (isLeaf(producer) || mayMoveInKernel(cast<OpResult>(value)));
}

namespace {
/// Makes subviews in one block, each once.
class SubviewFormer {
public:
  void form(SliceOp slice);

private:
  Value subviewOf(OpBuilder &b, Location loc, Value source, int64_t start,
                  ArrayRef<int64_t> shape);

  std::map<std::tuple<void *, int64_t, void *>, Value> known;
};
} // namespace

Value SubviewFormer::subviewOf(OpBuilder &b, Location loc, Value source,
                               int64_t start, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(source.getType()).clone(shape);
  Value &subview = known[{source.getAsOpaquePointer(), start,
                          const_cast<void *>(type.getAsOpaquePointer())}];
  if (!subview)
    subview = SubviewOp::create(b, loc, type, source, start);
  return subview;
}

/// The subview has all elements of the slice's rows, of which the rest of the
/// slice takes its columns.
void SubviewFormer::form(SliceOp slice) {
  const ArrayRef<int64_t> shape = shapeOf(slice.getX());
  const int64_t bytes = bytesOfElement(slice.getX().getType().getElementType());
  Box rest = Box::of(slice);
  SmallVector<int64_t> seen(shape);
  int64_t stride = elementsOf(slice.getX()), start = 0;
  // The first dimension of which it takes several ends what can be skipped.
  for (size_t dim = 0, several = 0; dim < shape.size() && !several; ++dim) {
    several = rest.sizes[dim] != 1;
    if (several && rest.steps[dim] != 1)
      break;
    stride /= shape[dim];
    if ((start + rest.starts[dim] * stride) * bytes % SubviewOp::kAlignment)
      break;
    start += rest.starts[dim] * stride;
    seen[dim] = rest.sizes[dim];
    rest.starts[dim] = 0;
    rest.steps[dim] = 1;
  }
  if (seen == shape || mayBeFused(slice.getX()))
    return;
  OpBuilder b(slice);
  Value part = subviewOf(b, slice.getX().getLoc(), slice.getX(), start, seen);
  if (seen != rest.sizes)
    part = SliceOp::create(b, slice.getLoc(), part, rest.starts, rest.sizes,
                           rest.steps);
  slice.getResult().replaceAllUsesWith(part);
  slice.erase();
}

namespace {
struct FormSubviews : impl::NNFormSubviewsBase<FormSubviews> {
  void runOnOperation() override {
    SmallVector<SliceOp> slices;
    llvm::DenseMap<Block *, SubviewFormer> formers;
    walkOutsideKernels(getOperation(), [&](Operation *op) {
      if (auto slice = dyn_cast<SliceOp>(op))
        slices.push_back(slice);
    });
    for (SliceOp slice : slices)
      formers[slice->getBlock()].form(slice);
  }
};
} // namespace
} // namespace pipewright::nn
