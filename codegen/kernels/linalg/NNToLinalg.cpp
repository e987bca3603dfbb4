//===- NNToLinalg.cpp - what compiled nn ops mean -------------------------===//
//
// The pass. The lowerings live beside it by family, as functions that build the
// replacement; types do not change, so ops are replaced one by one in order.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/linalg/LinalgBuilder.h"
#include "codegen/kernels/linalg/Passes.h"

#include "dialects/nn/NNOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_CONVERTNNTOLINALG
#include "codegen/kernels/linalg/Passes.h.inc"

namespace {
struct ConvertNNToLinalg : impl::ConvertNNToLinalgBase<ConvertNNToLinalg> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      // Library ops of any dialect have no lowering, and are reported.
      if ((isa_and_present<NNDialect>(op->getDialect()) ||
           isa<LibraryOpInterface>(op)) &&
          op->getNumResults() > 0)
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      OpBuilder builder(op);
      LinalgBuilder linalg(builder, op->getLoc());
      Lowered lowered = failure();
      for (auto lower : {lowerElementwise, lowerShape, lowerNormalization,
                         lowerLoss, lowerOptimizer})
        if (failed(lowered))
          lowered = lower(op, linalg);
      if (failed(lowered)) {
        op->emitOpError("cannot be compiled into a kernel");
        return signalPassFailure();
      }
      op->replaceAllUsesWith(*lowered);
      op->erase();
    }
  }
};
} // namespace
} // namespace pipewright::nn
