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

/// LLVM writes the loop over so many parts as straight code, which is no slower
/// without this pass.
constexpr size_t fewBuffers = 8;

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

/// What `op` takes where its condition does not hold, if `op` alone uses it.
arith::SelectOp nextOf(arith::SelectOp op) {
  auto next = op.getFalseValue().getDefiningOp<arith::SelectOp>();
  return next && next->hasOneUse() && next->getBlock() == op->getBlock()
             ? next
             : arith::SelectOp();
}

/// select(c, load(a, i), select(d, load(b, i), ... load(z, i))) to
/// load(select(c, a, select(d, b, ... z)), i), and with another value x at the
/// end to select(c or d ..., load(select(c, a, b), i), x).
struct SelectBuffer : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op,
                                PatternRewriter &rewriter) const override {
    memref::LoadOp first = loadFor(op, op.getTrueValue());
    auto loop = op->getParentOfType<scf::ForOp>();
    if (!first || !loop)
      return failure();
    // The select that uses this one so takes the whole chain.
    for (Operation *user : op->getUsers())
      if (auto above = dyn_cast<arith::SelectOp>(user))
        if (nextOf(above) == op && loadFor(above, above.getTrueValue()))
          return failure();
    auto readsThere = [&](memref::LoadOp load) {
      return load && load.getMemRefType() == first.getMemRefType() &&
             llvm::equal(load.getIndices(), first.getIndices());
    };
    SmallVector<Value> conditions, buffers;
    Value last;
    for (arith::SelectOp each = op;
         each && isInvariant(loop, each.getCondition()); each = nextOf(each)) {
      memref::LoadOp load = loadFor(each, each.getTrueValue());
      if (!readsThere(load))
        break;
      conditions.push_back(each.getCondition());
      buffers.push_back(load.getMemRef());
      last = each.getFalseValue();
      memref::LoadOp otherwise = loadFor(each, last);
      if (readsThere(otherwise)) {
        buffers.push_back(otherwise.getMemRef());
        break;
      }
    }
    if (buffers.size() <= fewBuffers)
      return failure();
    Location loc = op.getLoc();
    bool isWhole = buffers.size() > conditions.size();
    Value buffer = buffers.back(), any = conditions.back();
    for (size_t i = buffers.size() - 1; i-- > 0;) {
      buffer = arith::SelectOp::create(rewriter, loc, conditions[i], buffers[i],
                                       buffer);
      if (!isWhole)
        any = arith::OrIOp::create(rewriter, loc, conditions[i], any);
    }
    Value number =
        memref::LoadOp::create(rewriter, loc, buffer, first.getIndices());
    if (!isWhole)
      number = arith::SelectOp::create(rewriter, loc, any, number, last);
    rewriter.replaceOp(op, number);
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
    rewriter.replaceOpWithNewOp<LLVM::SelectOp>(op, select.getCondition(),
                                                field(select.getTrueValue()),
                                                field(select.getFalseValue()));
    return success();
  }
};

struct SelectBuffers : impl::KernelSelectBuffersBase<SelectBuffers> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SelectBuffer, SelectField>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace pipewright::codegen
