//===- AttentionCore.cpp - What attention makes of q, k and v -------------===//
//
// See AttentionCore.h.
//
//===----------------------------------------------------------------------===//

#include "passes/pipe/staged/AttentionCore.h"

#include "dialects/nn/NNOps.h"
#include "passes/pipe/staged/CheapOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace pipewright::pipe {

namespace {

class CoreFinder {
public:
  explicit CoreFinder(Block &forward);

  llvm::DenseSet<Operation *> find();

private:
  /// Whether each operand depends on more than weights.
  bool isProductOfActivations(Operation *op) const;
  /// What may stand between a product and the softmax, or behind that.
  static bool isBetween(Operation *op);
  /// Adds the ops from the product that `op` reads, over others; false, and
  /// nothing, where there is none.
  bool addBefore(Operation *op, llvm::DenseSet<Operation *> &found) const;
  /// The same to the product that reads it.
  bool addBehind(Operation *op, llvm::DenseSet<Operation *> &found) const;

  Block &forward;
  llvm::DenseSet<Operation *> ofWeights;
};

} // namespace

CoreFinder::CoreFinder(Block &forward) : forward(forward) {
  for (Operation &op : forward.without_terminator())
    if (llvm::all_of(op.getOperands(), [&](Value operand) {
          return ofWeights.contains(operand.getDefiningOp());
        }))
      ofWeights.insert(&op);
}

bool CoreFinder::isProductOfActivations(Operation *op) const {
  return isa<nn::MatmulOp>(op) &&
         llvm::none_of(op->getOperands(), [&](Value operand) {
           return ofWeights.contains(operand.getDefiningOp());
         });
}

bool CoreFinder::isBetween(Operation *op) {
  return isElementOp(op) || isView(op) ||
         isa<nn::LaunchOp, nn::DropoutOp, nn::SoftmaxOp>(op);
}

bool CoreFinder::addBefore(Operation *op,
                           llvm::DenseSet<Operation *> &found) const {
  bool isBehindProduct = isProductOfActivations(op);
  if (!isBehindProduct && isBetween(op) && !ofWeights.contains(op))
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp())
        isBehindProduct |= addBefore(maker, found);
  if (isBehindProduct)
    found.insert(op);
  return isBehindProduct;
}

bool CoreFinder::addBehind(Operation *op,
                           llvm::DenseSet<Operation *> &found) const {
  bool isBeforeProduct = isProductOfActivations(op);
  if (!isBeforeProduct && isBetween(op))
    for (Operation *user : op->getUsers())
      if (user->getBlock() == &forward)
        isBeforeProduct |= addBehind(user, found);
  if (isBeforeProduct)
    found.insert(op);
  return isBeforeProduct;
}

/// Whether it is a softmax, or a kernel with one.
static bool hasSoftmax(Operation *op) {
  auto launch = dyn_cast<nn::LaunchOp>(op);
  if (!launch)
    return isa<nn::SoftmaxOp>(op);
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      launch, launch.getKernel());
  return kernel && !kernel.isExternal() &&
         !kernel.getOps<nn::SoftmaxOp>().empty();
}

llvm::DenseSet<Operation *> CoreFinder::find() {
  llvm::DenseSet<Operation *> core;
  for (Operation &op : forward.without_terminator()) {
    if (isa<nn::AttentionOpInterface>(op))
      core.insert(&op);
    llvm::DenseSet<Operation *> found;
    if (hasSoftmax(&op) && addBefore(&op, found) && addBehind(&op, found))
      core.insert(found.begin(), found.end());
  }
  return core;
}

llvm::DenseSet<Operation *> attentionCore(Block &forward) {
  return CoreFinder(forward).find();
}

} // namespace pipewright::pipe
