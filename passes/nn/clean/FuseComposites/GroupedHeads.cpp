//===- GroupedHeads.cpp - Share heads of k and v among heads of q ---------===//
//
// Grouped queries as exporters spell them: each head of k and v is broadcast
// along a new dimension, which is merged with that of the heads. Attention
// reads the heads themselves, so that no copies are made, and no sums of their
// gradients. Between the copies and attention vectors may be transposed, as
// products want them.
//
//===----------------------------------------------------------------------===//

#include "passes/nn/clean/FuseComposites/Matching.h"

using namespace mlir;

namespace pipewright::nn {

namespace {

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Heads that are each repeated, one copy behind the other.
struct Repeated {
  /// What was broadcast, and how often it has each head.
  Value heads;
  int64_t times;
  /// What was done to the elements of each head since, the last first.
  SmallVector<TransposeOp> transposes;
};

/// How many leading dimensions have `count` elements together; none where no
/// number of them has.
std::optional<size_t> leadingDims(ArrayRef<int64_t> shape, int64_t count) {
  int64_t product = 1;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (product == count && size != 1)
      return dim;
    product *= size;
  }
  return product == count ? std::optional(shape.size()) : std::nullopt;
}

/// Whether a transposition leaves `count` heads in their order.
bool keepsHeads(TransposeOp op, int64_t count) {
  std::optional<size_t> dims = leadingDims(shapeOf(op.getX()), count);
  return dims && llvm::equal(op.getPermutation().take_front(*dims),
                             llvm::seq<int64_t>(*dims));
}

/// How often a broadcast repeats each of the heads that become `count`; 0 where
/// it does something else.
int64_t timesRepeated(BroadcastToOp op, int64_t count) {
  ArrayRef<int64_t> from = shapeOf(op.getX()), to = shapeOf(op.getResult());
  if (from.size() != to.size())
    return 0;
  std::optional<size_t> dims = leadingDims(to, count);
  int64_t times = 0;
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip_equal(from, to))) {
    auto [before, after] = sizes;
    if (before == after)
      continue;
    // Copies follow each other where no dimension of several stands behind.
    bool isLast = dims && dim < *dims &&
                  llvm::all_of(
                      to.slice(dim + 1, *dims - dim - 1),
                      [](int64_t size) { return size == 1; });
    if (times || !isLast)
      return 0;
    times = after;
  }
  return times;
}

/// `value`, `[B, H, T, D]`, as repeated heads; none where it is not.
std::optional<Repeated> findRepeated(Value value) {
  int64_t count = shapeOf(value)[0] * shapeOf(value)[1];
  Repeated found;
  while (Operation *op = value.getDefiningOp()) {
    if (auto broadcast = dyn_cast<BroadcastToOp>(op)) {
      found.heads = broadcast.getX();
      found.times = timesRepeated(broadcast, count);
      return found.times > 1 ? std::optional(found) : std::nullopt;
    }
    auto transpose = dyn_cast<TransposeOp>(op);
    if (transpose && keepsHeads(transpose, count))
      found.transposes.push_back(transpose);
    else if (!isa<ReshapeOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

Value reshaped(PatternRewriter &rewriter, Value value,
               ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType()).clone(shape);
  if (value.getType() == type)
    return value;
  return ReshapeOp::create(rewriter, value.getLoc(), type, value);
}

/// The heads themselves, `[B, H / times, T, D]` where `value` was
/// `[B, H, T, D]`.
Value buildHeads(PatternRewriter &rewriter, const Repeated &found,
                 Value value) {
  SmallVector<int64_t> shape(shapeOf(value));
  int64_t count = shape[0] * shape[1];
  Value heads = found.heads;
  for (TransposeOp transpose : llvm::reverse(found.transposes)) {
    size_t dims = *leadingDims(shapeOf(transpose.getX()), count);
    SmallVector<int64_t> sizes{count / found.times}, permutation{0};
    llvm::append_range(sizes, shapeOf(transpose.getX()).drop_front(dims));
    for (int64_t dim : transpose.getPermutation().drop_front(dims))
      permutation.push_back(dim - static_cast<int64_t>(dims) + 1);
    heads = TransposeOp::create(rewriter, transpose.getLoc(),
                                reshaped(rewriter, heads, sizes), permutation);
  }
  shape[1] /= found.times;
  return reshaped(rewriter, heads, shape);
}

LogicalResult shareHeads(AttentionOp op, PatternRewriter &rewriter) {
  std::optional<Repeated> k = findRepeated(op.getK());
  std::optional<Repeated> v = findRepeated(op.getV());
  if (!k || !v || k->times != v->times || shapeOf(op.getK())[1] % k->times != 0)
    return failure();
  Value sharedK = buildHeads(rewriter, *k, op.getK());
  Value sharedV = buildHeads(rewriter, *v, op.getV());
  rewriter.modifyOpInPlace(op, [&] {
    op.getKMutable().assign(sharedK);
    op.getVMutable().assign(sharedV);
  });
  return success();
}

} // namespace

void populateGroupedHeadsPatterns(RewritePatternSet &patterns) {
  patterns.add(shareHeads);
}

} // namespace pipewright::nn
