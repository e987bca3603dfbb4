//===- SelectBuffers.cpp - choose where to load from, outside of loops ----===//
//
// An element of a concatenation is loaded from every part and one is taken.
// LLVM makes one load of that from an address that it chooses, but in the
// innermost loop, by as many comparisons as there are parts.
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace pipewright::codegen {
#define GEN_PASS_DEF_KERNELSELECTBUFFERS
#include "codegen/kernels/Passes.h.inc"

namespace {

/// Whether a condition is the same in every step of the loop.
bool isInvariant(scf::ForOp loop, Value condition) {
  if (loop.isDefinedOutsideOfLoop(condition))
    return true;
  if (isa<BlockArgument>(condition))
    return false;
  Operation *op = condition.getDefiningOp();
  return isa<arith::CmpIOp, arith::OrIOp, arith::ConstantOp>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isInvariant(loop, operand);
         });
}

/// The load that gives an operand of `op`, if it is for `op` alone and nothing
/// is written between the two.
memref::LoadOp loadFor(arith::SelectOp op, Value operand) {
  auto load = operand.getDefiningOp<memref::LoadOp>();
  if (!load || !load->hasOneUse() || load->getBlock() != op->getBlock())
    return {};
  for (Operation *next = load->getNextNode(); next != op;
       next = next->getNextNode())
    if (!isMemoryEffectFree(next) && !isa<memref::LoadOp>(next))
      return {};
  return load;
}

bool readSamePlace(memref::LoadOp a, memref::LoadOp b) {
  return a && b && a.getMemRefType() == b.getMemRefType() &&
         llvm::equal(a.getIndices(), b.getIndices());
}

Value loadEither(arith::SelectOp op, memref::LoadOp a, memref::LoadOp b,
                 PatternRewriter &rewriter) {
  Value buffer = arith::SelectOp::create(
      rewriter, op.getLoc(), op.getCondition(), a.getMemRef(), b.getMemRef());
  return memref::LoadOp::create(rewriter, op.getLoc(), buffer, a.getIndices());
}

/// select(c, load(a, i), load(b, i)) to load(select(c, a, b), i), and
/// select(c, load(a, i), select(d, load(b, i), x)) to
/// select(c or d, load(select(c, a, b), i), x).
struct SelectBuffer : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op,
                                PatternRewriter &rewriter) const override {
    auto loop = op->getParentOfType<scf::ForOp>();
    memref::LoadOp a = loadFor(op, op.getTrueValue());
    if (!a || !loop || !isInvariant(loop, op.getCondition()))
      return failure();
    if (memref::LoadOp b = loadFor(op, op.getFalseValue())) {
      if (!readSamePlace(a, b))
        return failure();
      rewriter.replaceOp(op, loadEither(op, a, b, rewriter));
      return success();
    }
    auto other = op.getFalseValue().getDefiningOp<arith::SelectOp>();
    if (!other || !other->hasOneUse() ||
        other->getBlock() != op->getBlock() ||
        !isInvariant(loop, other.getCondition()))
      return failure();
    memref::LoadOp b = loadFor(other, other.getTrueValue());
    if (!readSamePlace(a, b))
      return failure();
    Value either = arith::OrIOp::create(
        rewriter, op.getLoc(), op.getCondition(), other.getCondition());
    rewriter.replaceOpWithNewOp<arith::SelectOp>(
        op, either, loadEither(op, a, b, rewriter), other.getFalseValue());
    return success();
  }
};

/// A field of a descriptor that was chosen is chosen itself: LLVM does not look
/// into descriptors.
struct SelectField : OpRewritePattern<LLVM::ExtractValueOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LLVM::ExtractValueOp op,
                                PatternRewriter &rewriter) const override {
    auto select = op.getContainer().getDefiningOp<LLVM::SelectOp>();
    if (!select)
      return failure();
    auto field = [&](Value descriptor) -> Value {
      return rewriter.createOrFold<LLVM::ExtractValueOp>(
          op.getLoc(), descriptor, op.getPosition());
    };
    rewriter.replaceOpWithNewOp<LLVM::SelectOp>(
        op, select.getCondition(), field(select.getTrueValue()),
        field(select.getFalseValue()));
    return success();
  }
};

struct SelectBuffers : impl::KernelSelectBuffersBase<SelectBuffers> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SelectBuffer, SelectField>(&getContext());
    // The last parts of a chain come first: what they become is one load.
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal();
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns),
                                     config)))
      signalPassFailure();
  }
};

} // namespace
} // namespace pipewright::codegen
