//===- PackAttention.cpp - call-pack-attention ----------------------------===//
//
// Reshapes, transpositions and slices above q, k and v are read as strides over
// the tensor that they begin with. Where these are strides that kernels take,
// attention reads that tensor itself.
//
//===----------------------------------------------------------------------===//

#include "passes/call/Passes.h"

#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNInference.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace pipewright::call {
#define GEN_PASS_DEF_CALLPACKATTENTION
#include "passes/call/Passes.h.inc"

namespace {

/// A tensor as elements of another one, `base`: from `offset` on, by strides.
struct Window {
  Value base;
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  /// What leads from the base to it.
  SmallVector<Operation *> ops;
};

class PackAttention {
public:
  PackAttention(nn::AttentionOp op, bool cached)
      : op(op), cached(cached), builder(op) {}

  /// Whether it was possible.
  bool run();

private:
  bool isFast(int64_t row);
  bool leadsElsewhere(ArrayRef<Window> windows) const;
  Value reshaped(Value base, ArrayRef<int64_t> sizes);
  void replace(Value o, Value stats, ArrayRef<Window> windows);

  nn::AttentionOp op;
  const bool cached;
  OpBuilder builder;
};

/// Rows and heads swapped, from each order to the other.
constexpr int64_t kSwapped[] = {0, 2, 1, 3};

} // namespace

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> denseStrides(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> strides(sizes.size(), 1);
  for (size_t dim = sizes.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * sizes[dim];
  return strides;
}

static SmallVector<size_t> dimsOfSeveral(ArrayRef<int64_t> sizes) {
  SmallVector<size_t> dims;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (size != 1)
      dims.push_back(dim);
  return dims;
}

/// The strides of the same elements in another shape; none where no strides
/// lead to them. Those of dimensions of one element mean nothing.
static std::optional<SmallVector<int64_t>>
reshapedStrides(ArrayRef<int64_t> from, ArrayRef<int64_t> strides,
                ArrayRef<int64_t> to) {
  if (llvm::is_contained(from, 0))
    return std::nullopt;
  SmallVector<size_t> fromDims = dimsOfSeveral(from),
                      toDims = dimsOfSeveral(to);
  SmallVector<int64_t> result(to.size(), 0);
  size_t i = 0, j = 0;
  while (i < fromDims.size()) {
    // The smallest groups of as many elements on both sides.
    const size_t firstTo = j;
    int64_t ofFrom = from[fromDims[i++]], ofTo = to[toDims[j++]];
    while (ofFrom != ofTo) {
      if (ofTo < ofFrom) {
        ofTo *= to[toDims[j++]];
        continue;
      }
      const size_t inner = fromDims[i++];
      if (strides[fromDims[i - 2]] != from[inner] * strides[inner])
        return std::nullopt;
      ofFrom *= from[inner];
    }
    int64_t stride = strides[fromDims[i - 1]];
    for (size_t dim = j; dim-- > firstTo;) {
      result[toDims[dim]] = stride;
      stride *= to[toDims[dim]];
    }
  }
  return result;
}

static Window windowOn(Value value) {
  return {value, 0, denseStrides(nn::tensorOf(value).getShape()), {}};
}

/// The value as a window on what is as far up as possible. Slices end it
/// unless they are `sliced` through.
static Window windowOf(Value value, bool sliced) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<nn::ReshapeOp, nn::TransposeOp>(op) &&
      !(sliced && isa_and_nonnull<nn::SliceOp>(op)))
    return windowOn(value);
  Window window = windowOf(op->getOperand(0), sliced);
  SmallVector<int64_t> above = std::move(window.strides);
  window.strides.clear();
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    for (int64_t dim : transpose.getPermutation())
      window.strides.push_back(above[dim]);
  } else if (auto slice = dyn_cast<nn::SliceOp>(op)) {
    for (auto [start, step, stride] :
         llvm::zip_equal(slice.getStarts(), slice.getSteps(), above)) {
      window.offset += start * stride;
      window.strides.push_back(step * stride);
    }
  } else {
    auto strides = reshapedStrides(nn::tensorOf(op->getOperand(0)).getShape(),
                                   above, nn::tensorOf(value).getShape());
    if (!strides)
      return windowOn(value);
    window.strides = std::move(*strides);
  }
  window.ops.push_back(op);
  return window;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Whether the window, of `[B, H, T, D]`, is part `part` of a base
/// `[B, T, parts, H, D]`.
static bool reads(const Window &window, ArrayRef<int64_t> shape, int64_t parts,
                  int64_t part) {
  auto [batch, heads, length, depth] =
      std::tuple(shape[0], shape[1], shape[2], shape[3]);
  const int64_t row = parts * heads * depth;
  const int64_t expected[] = {length * row, depth, row, 1};
  if (nn::tensorOf(window.base).getNumElements() != batch * length * row ||
      window.offset != part * heads * depth)
    return false;
  return llvm::all_of(dimsOfSeveral(shape), [&](size_t dim) {
    return window.strides[dim] == expected[dim];
  });
}

/// Whether something else needs what elements are moved for: then they are
/// moved anyway.
bool PackAttention::leadsElsewhere(ArrayRef<Window> windows) const {
  SmallPtrSet<Operation *, 16> known{op};
  for (const Window &window : windows)
    known.insert(window.ops.begin(), window.ops.end());
  return llvm::any_of(known, [&](Operation *moving) {
    return moving != op && !isa<nn::ViewOpInterface>(moving) &&
           llvm::any_of(moving->getUsers(),
                        [&](Operation *user) { return !known.contains(user); });
  });
}

/// Whether kernels may read vectors that are `row` elements apart: all, or
/// those that fit in a first-level cache, of 64 sets of 8 lines of 64 bytes.
/// At multiples of a high power of two they share few of the sets.
bool PackAttention::isFast(int64_t row) {
  if (!cached)
    return true;
  constexpr int64_t line = 16, sets = 64, ways = 8;
  ArrayRef<int64_t> shape = nn::tensorOf(op.getQ()).getShape();
  const int64_t linesOfVector = llvm::divideCeil(shape[3], line);
  const int64_t period = std::max(std::gcd(row, line * sets), line);
  const int64_t used =
      sets * line / period * std::min(period / line, linesOfVector);
  return shape[2] * linesOfVector <= ways * used;
}

Value PackAttention::reshaped(Value base, ArrayRef<int64_t> sizes) {
  RankedTensorType type = nn::tensorOf(base).clone(sizes);
  if (base.getType() == type)
    return base;
  return nn::ReshapeOp::create(builder, op.getLoc(), type, base);
}

/// `o` has rows first: so do those that transpose it, already.
void PackAttention::replace(Value o, Value stats, ArrayRef<Window> windows) {
  for (Operation *user : llvm::make_early_inc_range(op.getO().getUsers())) {
    auto transpose = dyn_cast<nn::TransposeOp>(user);
    if (!transpose || !llvm::equal(transpose.getPermutation(), kSwapped))
      continue;
    transpose.getResult().replaceAllUsesWith(o);
    transpose.erase();
  }
  if (!op.getO().use_empty())
    op.getO().replaceAllUsesWith(
        nn::TransposeOp::create(builder, op.getLoc(), o, kSwapped));
  op.getStats().replaceAllUsesWith(stats);
  op.erase();
  // What windows share dies with the last of them.
  SmallPtrSet<Operation *, 16> erased;
  for (const Window &window : windows)
    for (Operation *moving : llvm::reverse(window.ops))
      if (!erased.contains(moving) && isOpTriviallyDead(moving)) {
        moving->erase();
        erased.insert(moving);
      }
}

bool PackAttention::run() {
  const Value operands[] = {op.getQ(), op.getK(), op.getV()};
  auto windowsOf = [&](bool sliced) {
    return llvm::map_to_vector(
        operands, [&](Value value) { return windowOf(value, sliced); });
  };
  SmallVector<int64_t> shape(nn::tensorOf(op.getQ()).getShape());
  auto [batch, heads, length, depth] =
      std::tuple(shape[0], shape[1], shape[2], shape[3]);
  SmallVector<Window> windows = windowsOf(true);
  const Value base = windows[0].base;
  auto isThird = [&](auto window) {
    return window.value().base == base &&
           reads(window.value(), shape, 3, window.index());
  };
  if (isFast(3 * heads * depth) && op.getQ().getType() == op.getK().getType() &&
      llvm::all_of(llvm::enumerate(windows), isThird) &&
      !leadsElsewhere(windows)) {
    auto packed = PackedAttentionOp::create(
        builder, op.getLoc(), reshaped(base, {batch, length, 3, heads, depth}),
        op.getMask(), op.getScaleAttr(), op.getCausalAttr(),
        op.getDropoutRateAttr(), op.getDropoutIdAttr(), op.getSoftcapAttr(),
        op.getMaskGradientAttr());
    replace(packed.getO(), packed.getStats(), windows);
    return true;
  }
  windows = windowsOf(false);
  auto moves = [](const Window &window) {
    return llvm::any_of(window.ops, llvm::IsaPred<nn::TransposeOp>);
  };
  if (!isFast(heads * depth) || llvm::none_of(windows, moves) ||
      leadsElsewhere(windows))
    return false;
  for (auto [window, value] : llvm::zip_equal(windows, operands))
    if (!reads(window, nn::tensorOf(value).getShape(), 1, 0))
      return false;
  SmallVector<Value> rows;
  for (auto [window, value] : llvm::zip_equal(windows, operands)) {
    SmallVector<int64_t> sizes(nn::tensorOf(value).getShape());
    std::swap(sizes[1], sizes[2]);
    rows.push_back(reshaped(window.base, sizes));
  }
  auto attention = AttentionOp::create(
      builder, op.getLoc(), rows[0], rows[1], rows[2], op.getMask(),
      op.getScaleAttr(), op.getCausalAttr(), op.getDropoutRateAttr(),
      op.getDropoutIdAttr(), op.getSoftcapAttr(), op.getMaskGradientAttr());
  replace(attention.getO(), attention.getStats(), windows);
  return true;
}

namespace {

struct PackAttentionPass : impl::CallPackAttentionBase<PackAttentionPass> {
  using CallPackAttentionBase::CallPackAttentionBase;

  void runOnOperation() override {
    SmallVector<nn::AttentionOp> found;
    getOperation().walk([&](nn::AttentionOp op) { found.push_back(op); });
    for (nn::AttentionOp op : found)
      PackAttention(op, cached).run();
  }
};

} // namespace
} // namespace pipewright::call
