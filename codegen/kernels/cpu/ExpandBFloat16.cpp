//===- ExpandBFloat16.cpp - bf16 conversions as integer arithmetic --------===//
//
// Not every CPU converts between f32 and bf16, and the instructions that some
// have flush small numbers to zero. Integer arithmetic vectorizes everywhere
// and gives the same bits everywhere. So does a choice between integers: LLVM
// converts bf16 numbers to choose between them, by calls where no instruction
// does.
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

struct SelectIntegers : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isBF16())
      return failure();
    Type integers = rewriter.getI16Type();
    if (auto shaped = dyn_cast<ShapedType>(type))
      integers = shaped.clone(integers);
    auto cast = [&](Type to, Value value) -> Value {
      return arith::BitcastOp::create(rewriter, op.getLoc(), to, value);
    };
    Value chosen = arith::SelectOp::create(
        rewriter, op.getLoc(), op.getCondition(),
        cast(integers, op.getTrueValue()), cast(integers, op.getFalseValue()));
    rewriter.replaceOp(op, cast(type, chosen));
    return success();
  }
};

struct ExpandBFloat16 : impl::KernelExpandBFloat16Base<ExpandBFloat16> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    patterns.add<SelectIntegers>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace pipewright::codegen
