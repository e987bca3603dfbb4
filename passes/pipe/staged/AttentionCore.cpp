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
#include "llvm/ADT/SmallVector.h"

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
  /// Those that make the operands of `op`, or the ones of its block that read
  /// its results.
  llvm::SmallVector<Operation *> neighbours(Operation *op, bool behind) const;
  /// Adds the ops on paths from products to `op`, over others between, or from
  /// `op` to products; false, and nothing, where there are none.
  bool addPaths(Operation *op, bool behind,
                llvm::DenseSet<Operation *> &found) const;

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

llvm::SmallVector<Operation *> CoreFinder::neighbours(Operation *op,
                                                      bool behind) const {
  llvm::SmallVector<Operation *> all;
  if (behind) {
    for (Operation *user : op->getUsers())
      if (user->getBlock() == &forward)
        all.push_back(user);
    return all;
  }
  for (Value operand : op->getOperands())
    if (Operation *maker = operand.getDefiningOp();
        maker && !ofWeights.contains(maker))
      all.push_back(maker);
  return all;
}

bool CoreFinder::addPaths(Operation *op, bool behind,
                          llvm::DenseSet<Operation *> &found) const {
  llvm::DenseSet<Operation *> reached = {op};
  llvm::SmallVector<Operation *> next = {op}, products;
  while (!next.empty()) {
    Operation *one = next.pop_back_val();
    if (isProductOfActivations(one)) {
      products.push_back(one);
      continue;
    }
    for (Operation *other : neighbours(one, behind))
      if ((isBetween(other) || isProductOfActivations(other)) &&
          reached.insert(other).second)
        next.push_back(other);
  }
  // Back again, as not all that was reached leads to a product.
  found.insert(products.begin(), products.end());
  for (next = products; !next.empty();)
    for (Operation *other : neighbours(next.pop_back_val(), !behind))
      if (reached.contains(other) && found.insert(other).second)
        next.push_back(other);
  return !products.empty();
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
    if (hasSoftmax(&op) && addPaths(&op, /*behind=*/false, found) &&
        addPaths(&op, /*behind=*/true, found))
      core.insert(found.begin(), found.end());
  }
  return core;
}

llvm::DenseSet<Operation *> attentionCore(Block &forward) {
  return CoreFinder(forward).find();
}

} // namespace pipewright::pipe
