//===- ModelOps.cpp - What the ops of a model are to a cut ----------------===//

#include "passes/pipe/staged/ModelOps.h"

#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNAttributeNames.h"
#include "passes/pipe/staged/CheapOps.h"

using namespace mlir;

namespace pipewright::pipe {

Value ModelOps::getLoss() const {
  return getFunction().getBody().front().getTerminator()->getOperand(0);
}

bool ModelOps::mayRepeat(Operation *op, const ValueOrigin &origin) const {
  if (isView(op))
    return true;
  if (!isElementOp(op) || !origin.placed.empty())
    return false;
  // Arithmetic on a learned weight and an input is part of the model proper:
  // repeating it would repeat its gradient too.
  return !(origin.readsModelInput && !origin.learned.empty());
}

LogicalResult ModelOps::analyze() {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("expects one block, but has ")
           << function.getBody().getBlocks().size();
  Block &block = function.getBody().front();
  if (function.getNumResults() == 0)
    return function.emitOpError(
        "expects the loss as its first result, but has no results");
  auto lossType = dyn_cast<RankedTensorType>(function.getResultTypes()[0]);
  if (!lossType || lossType.getRank() != 0 ||
      !lossType.getElementType().isF32())
    return function.emitOpError(
               "expects the loss as its first result to be 'tensor<f32>', but "
               "got ")
           << function.getResultTypes()[0];

  for (BlockArgument argument : block.getArguments()) {
    if (!function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                               nn::kName))
      return function.emitOpError("expects argument ")
             << argument.getArgNumber() << " to have an 'nn.name'";
    origins[argument].readsModelInput = true;
  }

  for (Operation &op : block.without_terminator()) {
    if (!isa<nn::NNDialect, call::CallDialect>(op.getDialect()))
      return op.emitOpError(
          "is not allowed in the model, which holds nn and call "
          "ops only");
    ValueOrigin origin;
    for (Value operand : op.getOperands()) {
      const ValueOrigin &from = originOf(operand);
      origin.placed.insert_range(from.placed);
      origin.learned.insert_range(from.learned);
      origin.readsModelInput |= from.readsModelInput;
    }
    if (readsLearnedWeight(&op, symbolTables))
      origin.learned.insert(cast<nn::ParameterOp>(op));
    if (mayRepeat(&op, origin)) {
      repeated.insert(&op);
      for (Value result : op.getResults())
        origins[result] = origin;
      continue;
    }
    placedOps.push_back(&op);
    for (Value result : op.getResults())
      origins[result].placed.insert(result);
  }
  findNeeded();
  if (originOf(getLoss()).placed.empty())
    return function.emitOpError("expects the loss to depend on a trained "
                                "weight, but it does not");
  return success();
}

/// Adds all ops that `roots` are made from.
static void addProducers(SmallVector<Operation *> roots,
                         DenseSet<Operation *> &ops) {
  while (!roots.empty()) {
    Operation *op = roots.pop_back_val();
    if (!ops.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        roots.push_back(producer);
  }
}

void ModelOps::findNeeded() {
  SmallVector<Operation *> roots;
  if (Operation *loss = getLoss().getDefiningOp())
    roots.push_back(loss);
  for (Operation *op : placedOps)
    if (isa<nn::AssignStateOp>(op))
      roots.push_back(op);
  addProducers(std::move(roots), needed);
  addProducers({function.getBody().front().getTerminator()}, alive);
}

} // namespace pipewright::pipe
