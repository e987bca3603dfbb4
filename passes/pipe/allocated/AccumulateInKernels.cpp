//===- AccumulateInKernels.cpp - pipe-accumulate-in-kernels ---------------===//
//
// A compiled kernel that ends in sums over rows can add them to what is there:
// gradients of biases and scales then need no launch of their own to be
// collected.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNAttributeNames.h"
#include "passes/pipe/Passes.h"
#include "passes/step/BodyBuffers.h"

#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace pipewright::pipe {
#define GEN_PASS_DEF_PIPEACCUMULATEINKERNELS
#include "passes/pipe/Passes.h.inc"

namespace {

/// Numbers of results.
using Results = SmallVector<int64_t>;

/// True if result `number` of the kernel is a sum over rows that nothing else
/// in the kernel reads.
bool isFinalSum(func::FuncOp kernel, unsigned number) {
  Value value = kernel.getBody().front().getTerminator()->getOperand(number);
  while (value.hasOneUse() && value.getDefiningOp<nn::ViewOpInterface>())
    value = value.getDefiningOp()->getOperand(0);
  if (!value.hasOneUse())
    return false;
  auto norm = value.getDefiningOp<nn::LayerNormBackwardOp>();
  return value.getDefiningOp<nn::ReduceSumOp>() ||
         (norm && value != norm->getResult(0));
}

/// The gradient that the value is added to, if nothing else reads it.
nn::AccumulateGradientOp soleSum(Value value) {
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (auto sum = dyn_cast<nn::AccumulateGradientOp>(user))
      return sum;
    if (!isa<nn::ViewOpInterface>(user))
      break;
    value = user->getResult(0);
  }
  return {};
}

Results addedResults(nn::LaunchOp launch, func::FuncOp kernel) {
  Results added;
  // Pointers of one call may not overlap.
  llvm::SmallSet<StringRef, 4> weights;
  for (OpResult result : launch->getResults()) {
    nn::AccumulateGradientOp sum = soleSum(result);
    unsigned number = result.getResultNumber();
    if (sum && isFinalSum(kernel, number) &&
        weights.insert(sum.getWeight()).second)
      added.push_back(number);
  }
  return added;
}

struct AccumulateInKernels
    : impl::PipeAccumulateInKernelsBase<AccumulateInKernels> {
  void runOnOperation() override {
    SymbolTableCollection tables;
    llvm::MapVector<func::FuncOp,
                    llvm::MapVector<Attribute, SmallVector<nn::LaunchOp>>>
        launches;
    Builder builder(&getContext());
    getOperation().walk([&](nn::LaunchOp launch) {
      auto kernel = tables.lookupNearestSymbolFrom<func::FuncOp>(
          launch, launch.getKernelAttr());
      if (kernel && !kernel.isExternal() && !launch->hasAttr(nn::kAdded))
        launches[kernel]
                [builder.getDenseI64ArrayAttr(addedResults(launch, kernel))]
                    .push_back(launch);
    });
    for (auto &[kernel, uses] : launches)
      for (auto &[added, users] : uses)
        if (auto numbers = cast<DenseI64ArrayAttr>(added); !numbers.empty())
          addIn(kernel, numbers, users, /*isOnly=*/uses.size() == 1);
  }

private:
  /// Lets `launches` call a kernel that adds its results `added`.
  void addIn(func::FuncOp kernel, DenseI64ArrayAttr added,
             ArrayRef<nn::LaunchOp> launches, bool isOnly) {
    if (!isOnly) {
      auto kernels = cast<ModuleOp>(kernel->getParentOp());
      kernel = kernel.clone();
      kernel.setName((kernel.getName() + "_added").str());
      SymbolTable(kernels).insert(kernel);
    }
    for (int64_t number : added.asArrayRef())
      kernel.setResultAttr(number, nn::kAdded, UnitAttr::get(&getContext()));
    for (nn::LaunchOp launch : launches) {
      auto path = launch.getKernelAttr();
      launch.setKernelAttr(
          SymbolRefAttr::get(path.getRootReference(),
                             FlatSymbolRefAttr::get(kernel.getSymNameAttr())));
      launch->setAttr(nn::kAdded, added);
    }
  }
};

} // namespace
} // namespace pipewright::pipe
