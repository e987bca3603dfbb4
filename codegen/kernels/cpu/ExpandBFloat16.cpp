//===- ExpandBFloat16.cpp - bf16 conversions as integer arithmetic --------===//
//
// Not every CPU converts between f32 and bf16, and the instructions that some
// have flush small numbers to zero. Integer arithmetic vectorizes everywhere
// and gives the same bits everywhere.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace pipewright::codegen {
#define GEN_PASS_DEF_KERNELEXPANDBFLOAT16
#include "codegen/kernels/Passes.h.inc"

namespace {

struct ExpandBFloat16 : impl::KernelExpandBFloat16Base<ExpandBFloat16> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace pipewright::codegen
