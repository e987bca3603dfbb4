// Takes softplus for every ReLU: log(1 + exp(x)) in place of max(x, 0). Behind
// the import level, so that gradients are taken of what it leaves.

#include "dialects/nn/NNOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace pipewright;

struct Softer : mlir::PassWrapper<Softer, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Softer)
  llvm::StringRef getArgument() const override { return "softer"; }
  llvm::StringRef getDescription() const override {
    return "Take softplus for every ReLU";
  }
  void runOnOperation() override {
    mlir::IRRewriter rewriter(&getContext());
    getOperation().walk([&](nn::ReluOp relu) {
      rewriter.setInsertionPoint(relu);
      rewriter.replaceOpWithNewOp<nn::SoftplusOp>(relu, relu.getType(),
                                                  relu.getOperand());
    });
  }
};

extern "C" mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "softer", LLVM_VERSION_STRING,
          [] { mlir::PassRegistration<Softer>(); }};
}
