//===- CheapOps.cpp - Ops that are better repeated than kept --------------===//

#include "passes/pipe/staged/CheapOps.h"

#include "dialects/nn/NNOps.h"

using namespace mlir;

namespace pipewright::pipe {

bool isElementOp(Operation *op) {
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  return kernel ? kernel.getRowSpace().isElementwise()
                : isa<nn::ViewOpInterface, nn::SubviewOp, nn::ParameterOp>(op);
}

bool isView(Operation *op) {
  return isa<nn::ViewOpInterface, nn::SubviewOp, nn::BroadcastToOp>(op);
}

/// The weight that `op` reads; null if it reads none.
static nn::WeightOp weightReadBy(Operation *op,
                                 SymbolTableCollection &symbolTables) {
  auto parameter = dyn_cast<nn::ParameterOp>(op);
  return parameter
             ? nn::lookupWeight(op, parameter.getWeightAttr(), symbolTables)
             : nn::WeightOp();
}

bool readsTrainedWeight(Operation *op, SymbolTableCollection &symbolTables) {
  nn::WeightOp weight = weightReadBy(op, symbolTables);
  return weight && weight.getRole() == nn::WeightRole::Parameter;
}

bool readsLearnedWeight(Operation *op, SymbolTableCollection &symbolTables) {
  nn::WeightOp weight = weightReadBy(op, symbolTables);
  return weight && weight.isLearned();
}

void moveToFirstUse(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *reader = op->getBlock()->findAncestorOpInBlock(*user);
    if (!first || reader->isBeforeInBlock(first))
      first = reader;
  }
  if (first)
    op->moveBefore(first);
}

} // namespace pipewright::pipe
