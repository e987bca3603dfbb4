//===- ShareTransposes.cpp - nn-share-transposes --------------------------===//
//
// A product of few rows by a transposed matrix copies the matrix, or adds up
// sums of many lanes. The steps of a recurrent layer do so with one matrix.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/Passes.h"

#include "dialects/nn/NNOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace pipewright::nn {
#define GEN_PASS_DEF_NNSHARETRANSPOSES
#include "passes/nn/Passes.h.inc"

/// With more rows, what is done once for each product is little of it.
static constexpr int64_t kFewRows = 64;

/// Rows of all products with a matrix that a transposition is worth. One thread
/// with AVX-512 moves an element in the time that 240 rows gain with it.
static constexpr int64_t kLeastRows = 512;

static int64_t rowsOf(MatmulOp op) {
  ArrayRef<int64_t> shape = op.getA().getType().getShape();
  return op.getA().getType().getNumElements() /
         shape[shape.size() - (op.getTransposeA() ? 2 : 1)];
}

/// The products of a block that take one matrix transposed.
static void shareTransposes(Block &body) {
  llvm::MapVector<Value, SmallVector<MatmulOp>> products;
  for (MatmulOp op : body.getOps<MatmulOp>())
    if (op.getTransposeB() && op.getB().getType().getRank() == 2 &&
        rowsOf(op) <= kFewRows)
      products[op.getB()].push_back(op);
  for (auto &[matrix, ops] : products) {
    int64_t rows = 0;
    for (MatmulOp op : ops)
      rows += rowsOf(op);
    if (rows < kLeastRows)
      continue;
    OpBuilder builder(ops.front());
    Value turned = TransposeOp::create(builder, matrix.getLoc(), matrix,
                                       ArrayRef<int64_t>{1, 0});
    for (MatmulOp op : ops) {
      op.getBMutable().assign(turned);
      op.setTransposeB(false);
    }
  }
}

namespace {
struct ShareTransposes : impl::NNShareTransposesBase<ShareTransposes> {
  void runOnOperation() override {
    getOperation().walk([](Block *block) { shareTransposes(*block); });
  }
};
} // namespace
} // namespace pipewright::nn
