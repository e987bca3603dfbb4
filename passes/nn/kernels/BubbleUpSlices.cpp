//===- BubbleUpSlices.cpp - nn-bubble-up-slices ---------------------------===//
//
// A kernel that reads a slice of a sum computes what it needs of the sum where
// the summands are sliced in its place, and the whole is never stored.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"
#include "passes/nn/kernels/Boxes.h"
#include "passes/nn/kernels/KernelGroups.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNBUBBLEUPSLICES
#include "passes/nn/Passes.h.inc"

static Value reshaped(OpBuilder &b, Location loc, Value value,
                      ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  auto type = cast<RankedTensorType>(value.getType()).clone(shape);
  return ReshapeOp::create(b, loc, type, value);
}

/// A box of a value, as a slice of what slices and reshapes make it of.
static Value sliceOf(OpBuilder &b, Location loc, Value value, Box box) {
  const SmallVector<int64_t> shape = box.sizes;
  while (Operation *producer = value.getDefiningOp()) {
    if (auto slice = dyn_cast<SliceOp>(producer)) {
      box = Box::of(slice).then(box);
    } else if (auto view = dyn_cast<ReshapeOp>(producer)) {
      std::optional<Box> before = boxBefore(view, box);
      if (!before)
        break;
      box = std::move(*before);
    } else {
      break;
    }
    value = producer->getOperand(0);
  }
  bool isWhole = true;
  for (size_t dim = 0; dim < box.sizes.size(); ++dim)
    isWhole = isWhole && box.isWhole(shapeOf(value), dim);
  if (!isWhole)
    value = SliceOp::create(b, loc, value, box.starts, box.sizes, box.steps);
  return reshaped(b, loc, value, shape);
}

/// What an operand that broadcasts to a result contributes to a box of it.
static Value operandOf(OpBuilder &b, Location loc, Value operand,
                       const Box &box) {
  const ArrayRef<int64_t> shape = shapeOf(operand);
  const size_t skipped = box.sizes.size() - shape.size();
  Box its;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (size == 1)
      its.add(0, 1, 1);
    else
      its.add(box.starts[skipped + dim], box.sizes[skipped + dim],
              box.steps[skipped + dim]);
  return sliceOf(b, loc, operand, std::move(its));
}

namespace {
/// A slice, and what it takes of a value that it may see through reshapes.
struct View {
  SliceOp slice;
  Box box;
};
} // namespace

/// Erases those that are slices and reshapes that nobody uses, and what they
/// alone used of such.
static void eraseDead(SmallVector<Operation *> pending) {
  llvm::SmallPtrSet<Operation *, 16> erased;
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (!op || erased.contains(op) || !isa<SliceOp, ReshapeOp>(op) ||
        !op->use_empty())
      continue;
    pending.push_back(op->getOperand(0).getDefiningOp());
    erased.insert(op);
    op->erase();
  }
}

/// All uses of a value, if they are slices, and do not overlap much. Adds those
/// that nobody uses to `dead`.
static std::optional<SmallVector<View>>
viewsOf(Value value, SmallVectorImpl<Operation *> &dead) {
  SmallVector<View> views;
  SmallVector<Operation *> users(value.getUsers());
  int64_t elements = 0;
  while (!users.empty()) {
    Operation *user = users.pop_back_val();
    if (isa<SliceOp, ReshapeOp>(user) && user->use_empty()) {
      dead.push_back(user);
      continue;
    }
    if (user->getBlock() != value.getParentBlock())
      return std::nullopt;
    if (isa<ReshapeOp>(user)) {
      llvm::append_range(users, user->getUsers());
      continue;
    }
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice)
      return std::nullopt;
    Box box = Box::of(slice);
    for (Value seen = slice.getX(); seen != value;) {
      auto view = cast<ReshapeOp>(seen.getDefiningOp());
      std::optional<Box> before = boxBefore(view, box);
      if (!before)
        return std::nullopt;
      box = std::move(*before);
      seen = view.getX();
    }
    elements += elementsOf(slice.getResult());
    views.push_back({slice, std::move(box)});
  }
  if (views.empty() || elements > elementsOf(value))
    return std::nullopt;
  return views;
}

/// Computes an elementwise op for each slice of its result.
static void bubbleUp(Operation *op) {
  SmallVector<Operation *> dead;
  const auto views = viewsOf(op->getResult(0), dead);
  if (!views)
    return;
  for (const View &view : *views) {
    SliceOp slice = view.slice;
    OpBuilder b(slice);
    auto operands = llvm::map_to_vector(op->getOperands(), [&](Value operand) {
      return operandOf(b, slice.getLoc(), operand, view.box);
    });
    Operation *part = b.clone(*op);
    part->setOperands(operands);
    Value result = part->getResult(0);
    auto type = cast<RankedTensorType>(result.getType());
    result.setType(type.clone(view.box.sizes));
    slice.getResult().replaceAllUsesWith(reshaped(
        b, slice.getLoc(), result, slice.getResult().getType().getShape()));
    dead.push_back(slice);
  }
  eraseDead(std::move(dead));
  dead.clear();
  for (Value operand : op->getOperands())
    dead.push_back(operand.getDefiningOp());
  op->erase();
  eraseDead(std::move(dead));
}

namespace {
struct BubbleUpSlices : impl::NNBubbleUpSlicesBase<BubbleUpSlices> {
  void runOnOperation() override {
    SmallVector<Operation *> cheap;
    walkOutsideKernels(getOperation(), [&](Operation *op) {
      auto kernel = dyn_cast<KernelOpInterface>(op);
      if (kernel && kernel.getRowSpace().walk == RowWalk::Cheap)
        cheap.push_back(op);
    });
    // What reads an op comes behind it: its slices are final.
    for (Operation *op : llvm::reverse(cheap))
      bubbleUp(op);
  }
};
} // namespace
} // namespace pipewright::nn
