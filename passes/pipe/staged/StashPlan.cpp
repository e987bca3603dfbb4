//===- StashPlan.cpp - What a backward keeps of its forward ---------------===//

#include "passes/pipe/staged/StashPlan.h"

#include "dialects/nn/NNOps.h"
#include "passes/pipe/staged/CheapOps.h"

using namespace mlir;

namespace pipewright::pipe {

/// Masks, and the same elements in another order: worth repeating when the
/// operands are kept anyway.
static bool isTrivial(Operation *op) {
  if (!isElementOp(op))
    return false;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return type.getElementType().isInteger(1) ||
         isa<nn::TransposeOp, nn::SliceOp, nn::CastOp>(op);
}

/// Whether all ops of a backward that want a value compute with its elements,
/// so that their kernels can compute it.
static bool isReadByElement(Value value, const DenseSet<Operation *> &copies) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (copies.contains(user))
      return true;
    if (isView(user))
      return isReadByElement(user->getResult(0), copies);
    return isElementOp(user) || isa<nn::ReduceSumOp>(user);
  });
}

/// Whether an element takes less time to compute than to write and read.
static bool isCheap(Operation *op) {
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  return kernel && kernel.getRowSpace().walk == nn::RowWalk::Cheap;
}

StashPlan::StashPlan(Block &block, ArrayRef<Operation *> copies,
                     DenseSet<Value> modelInputs, RepeatRule rule)
    : rule(rule), copySet(copies.begin(), copies.end()),
      modelInputs(std::move(modelInputs)) {
  auto needIfUsed = [&](Value value) {
    if (llvm::any_of(value.getUsers(),
                     [&](Operation *user) { return !copySet.contains(user); }))
      need(value);
  };
  for (BlockArgument argument : block.getArguments())
    needIfUsed(argument);
  for (Operation *copy : copies)
    for (Value result : copy->getResults())
      needIfUsed(result);

  for (Value value : candidates) {
    if (llvm::all_of(value.getDefiningOp()->getOperands(),
                     [&](Value operand) { return isAvailable(operand); }))
      repeat(value);
    else
      savedValues.insert(value);
  }

  // Repeating asks for operands late: bring all into the order of definition.
  SmallVector<Value> ordered = savedValues.takeVector();
  llvm::sort(ordered, [](Value a, Value b) {
    auto left = dyn_cast<BlockArgument>(a), right = dyn_cast<BlockArgument>(b);
    if (left && right)
      return left.getArgNumber() < right.getArgNumber();
    if (left || right)
      return static_cast<bool>(left);
    if (a.getDefiningOp() == b.getDefiningOp())
      return cast<OpResult>(a).getResultNumber() <
             cast<OpResult>(b).getResultNumber();
    return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp());
  });
  savedValues.insert_range(ordered);
}

/// An element op that is repeated wherever it stands.
bool StashPlan::isPointwise(Operation *op) const {
  auto gelu = dyn_cast<nn::GeluOp>(op);
  bool isKept = rule.keepsGelu && gelu &&
                gelu.getApproximate() == nn::GeluApproximation::Tanh;
  return rule.allPointwise && isElementOp(op) && !isKept;
}

bool StashPlan::isWorthRepeating(Value value) const {
  Operation *op = value.getDefiningOp();
  return isTrivial(op) || isPointwise(op) ||
         (isCheap(op) && isReadByElement(value, copySet));
}

void StashPlan::need(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !copySet.contains(op)) {
    savedValues.insert(value);
  } else if (isFree(value)) {
    repeat(value);
  } else if (isView(op)) {
    repeated.insert(op);
    need(op->getOperand(0));
  } else if (isWorthRepeating(value)) {
    candidates.insert(value);
  } else {
    savedValues.insert(value);
  }
}

StashPlan::Leaves StashPlan::leavesOf(Value value) {
  auto [it, isNew] = leaves.insert({value, Leaves()});
  if (!isNew)
    return it->second;
  Leaves found;
  if (Operation *op = value.getDefiningOp()) {
    found.areKnown = isElementOp(op);
    found.hasWeight = isa<nn::ParameterOp>(op);
    for (Value operand : op->getOperands()) {
      Leaves from = leavesOf(operand);
      found.areKnown &= from.areKnown;
      found.hasInput |= from.hasInput;
      found.hasWeight |= from.hasWeight;
    }
  } else {
    found.areKnown = found.hasInput = modelInputs.contains(value);
  }
  return leaves[value] = found;
}

/// Made from weights and constants, or from model inputs and constants, which
/// is mask arithmetic; weights and inputs together are the model proper.
bool StashPlan::isFree(Value value) {
  Leaves from = leavesOf(value);
  return from.areKnown && !(from.hasInput && from.hasWeight);
}

bool StashPlan::isAvailable(Value value) {
  if (savedValues.contains(value) || isFree(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op &&
         (isView(op) || isTrivial(op) || candidates.contains(value) ||
          isPointwise(op)) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isAvailable(operand); });
}

void StashPlan::repeat(Value value) {
  if (savedValues.contains(value))
    return;
  Operation *op = value.getDefiningOp();
  if (!op || !copySet.contains(op)) {
    savedValues.insert(value);
    return;
  }
  if (!repeated.insert(op).second)
    return;
  for (Value operand : op->getOperands())
    repeat(operand);
}

} // namespace pipewright::pipe
