//===- Shape.cpp - Reshape and its relatives ------------------------------===//
//
// Ops that give the same elements another shape or order. One function serves
// computed values and constants: only the last line differs.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"
#include "frontends/onnx/ops/Reshaping.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace pipewright::frontend {

/// Sets result 0 to input 0 under another shape of the same size.
static LogicalResult setReshaped(NodeContext &n, ArrayRef<int64_t> shape) {
  if (const ConstantTensor *constant = n.constant(0))
    return n.setResult(0, constant->reshaped(shape));
  if (n.shape(0) == shape)
    return n.forward(0, 0);
  return n.setResult(0, n.b.reshape(n.value(0), shape));
}

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

/// Whether a target without a -1 has as many elements as the input: then it is
/// made of the input's shape, and follows the batch by itself.
static bool fitsInput(NodeContext &n, ArrayRef<int64_t> target,
                      bool allowZero) {
  int64_t count = 1;
  for (auto [i, size] : llvm::enumerate(target)) {
    if (size < 0 || (size == 0 && int64_t(i) >= n.rank(0)))
      return false;
    int64_t factor = size == 0 && !allowZero ? n.shape(0)[i] : size;
    if (llvm::MulOverflow(count, factor, count))
      return false;
  }
  return count == elementCount(n.shape(0));
}

/// The shape that a Reshape gives once the batch size is another than the one
/// that its target was written for. None if no single dimension of it has the
/// batch.
static std::optional<Shape>
rescaleTarget(NodeContext &n, const OriginalValue &from, ArrayRef<int64_t> to) {
  BatchChange batch = *n.graph.batchChange;
  auto place = n.graph.findBatch(n.input(0), from);
  if (!place)
    return std::nullopt;
  place = batch.original == 1
              ? likelyPlace(*place, from.shape, to)
              : placeAfterReshape(*place, from.shape, to, batch.original);
  if (!place)
    return std::nullopt;
  Shape result(to);
  int64_t &size = result[place->dim];
  size =
      llvm::SaturatingMultiply<uint64_t>(size / batch.original, batch.wanted) &
      std::numeric_limits<int64_t>::max();
  return result;
}

/// Resolves 0 (copy) and -1 (what is left) of a Reshape's target.
static FailureOr<Shape> resolveTarget(NodeContext &n, Shape target,
                                      bool allowZero) {
  int64_t count = elementCount(n.shape(0)), known = 1;
  std::optional<size_t> unknown;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !allowZero) {
      if (int64_t(i) >= n.rank(0))
        return n.error() << "target dimension " << i
                         << " is 0 (copy), but the input has rank "
                         << n.rank(0);
      target[i] = n.shape(0)[i];
    }
    if (target[i] == -1 && !unknown) {
      unknown = i;
      continue;
    }
    if (target[i] < 0)
      return n.error() << "expects target dimensions of 0 or more and at most "
                          "one -1";
    if (llvm::MulOverflow(known, target[i], known))
      known = std::numeric_limits<int64_t>::max();
  }
  if (unknown && known > 0 && count % known == 0)
    target[*unknown] = count / known;
  else if (unknown || known != count) {
    auto diag = n.error() << "cannot reshape [";
    llvm::interleaveComma(n.shape(0), diag);
    diag << "] to [";
    llvm::interleaveComma(target, diag);
    return diag << "]";
  }
  return target;
}

LogicalResult setReshapedTo(NodeContext &n, Shape target, bool allowZero) {
  const OriginalValue *from = n.originalInput(0), *to = n.originalResult(0);
  if (from && to && ArrayRef<int64_t>(from->shape) != n.shape(0) &&
      !fitsInput(n, target, allowZero)) {
    std::optional<Shape> scaled = rescaleTarget(n, *from, to->shape);
    if (!scaled)
      return n.error() << "the target shape does not tell where the batch is";
    target = *scaled;
  }
  FailureOr<Shape> shape = resolveTarget(n, target, allowZero);
  if (failed(shape))
    return failure();
  return setReshaped(n, *shape);
}

static LogicalResult importReshape(NodeContext &n) {
  bool allowZero = n.intAttribute("allowzero", 0);
  FailureOr<Shape> target = n.constantInts(1, "target shape");
  if (failed(target))
    return failure();
  return setReshapedTo(n, std::move(*target), allowZero);
}

static LogicalResult importFlatten(NodeContext &n) {
  int64_t axis = n.intAttribute("axis", 1);
  int64_t rank = n.rank(0);
  if (axis < -rank || axis > rank)
    return n.error() << "axis " << axis << " is out of range for rank " << rank;
  if (axis < 0)
    axis += rank;
  ArrayRef<int64_t> shape = n.shape(0);
  return setReshaped(n, {elementCount(shape.take_front(axis)),
                         elementCount(shape.drop_front(axis))});
}

/// Axes are an attribute up to opset 12 and an input after.
static FailureOr<std::optional<Shape>> readAxes(NodeContext &n) {
  if (n.opset < 13)
    return n.intsAttribute("axes");
  if (!n.hasInput(1))
    return std::optional<Shape>();
  FailureOr<Shape> axes = n.constantInts(1, "axes");
  if (failed(axes))
    return failure();
  return std::optional<Shape>(*axes);
}

static LogicalResult importSqueeze(NodeContext &n) {
  FailureOr<std::optional<Shape>> given = readAxes(n);
  if (failed(given))
    return failure();
  Shape axes;
  if (*given) {
    FailureOr<Shape> normal = n.normalizeAxes(**given, n.rank(0));
    if (failed(normal))
      return failure();
    axes = *normal;
  }
  Shape shape;
  for (auto [i, dim] : llvm::enumerate(n.shape(0))) {
    bool drop = *given ? llvm::is_contained(axes, int64_t(i)) : dim == 1;
    if (drop && dim != 1)
      return n.error() << "expects dimension " << i << " to be 1, but got "
                       << dim;
    if (!drop)
      shape.push_back(dim);
  }
  return setReshaped(n, shape);
}

static LogicalResult importUnsqueeze(NodeContext &n) {
  FailureOr<std::optional<Shape>> given = readAxes(n);
  if (failed(given))
    return failure();
  if (!*given)
    return n.error() << "expects axes";
  int64_t rank = n.rank(0) + (*given)->size();
  FailureOr<Shape> axes = n.normalizeAxes(**given, rank);
  if (failed(axes))
    return failure();
  Shape shape;
  const int64_t *next = n.shape(0).begin();
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(llvm::is_contained(*axes, i) ? 1 : *next++);
  return setReshaped(n, shape);
}

//===----------------------------------------------------------------------===//
// Transpose
//===----------------------------------------------------------------------===//

static LogicalResult importTranspose(NodeContext &n) {
  int64_t rank = n.rank(0);
  Shape perm = llvm::to_vector<4>(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  if (std::optional<Shape> given = n.intsAttribute("perm"))
    perm = *given;
  FailureOr<Shape> normal = n.normalizeAxes(perm, rank);
  if (failed(normal))
    return failure();
  if (int64_t(normal->size()) != rank)
    return n.error() << "expects perm to have " << rank << " entries, but got "
                     << perm.size();
  const ConstantTensor *constant = n.constant(0);
  if (!constant)
    return n.setResult(0, n.b.transpose(n.value(0), *normal));

  Shape shape, sourceStrides = stridesOf(n.shape(0));
  for (int64_t axis : *normal)
    shape.push_back(n.shape(0)[axis]);
  Shape strides = stridesOf(shape);
  return n.setResult(0, constant->remapped(shape, [&](int64_t index) {
    int64_t source = 0;
    for (int64_t d = 0; d < rank; ++d) {
      source += index / strides[d] * sourceStrides[(*normal)[d]];
      index %= strides[d];
    }
    return source;
  }));
}

//===----------------------------------------------------------------------===//
// Repetition
//===----------------------------------------------------------------------===//

/// Changes the batch size that is written into a target of Expand: where the
/// input follows the batch, else in front. A target that was computed follows
/// by itself.
static void followBatch(NodeContext &n, Shape &target) {
  const OriginalValue *from = n.originalInput(0), *to = n.originalResult(0);
  if (!from || !to || n.graph.batchChange->original == 1)
    return;
  BatchChange batch = *n.graph.batchChange;
  int64_t rank = target.size(), inputRank = from->shape.size();
  ArrayRef<int64_t> wanted = ArrayRef(to->shape).take_back(rank);
  bool isFound = false;
  for (int64_t i = 0; i < rank; ++i) {
    if (target[i] != 1 && target[i] != wanted[i])
      return;
    int64_t d = i + inputRank - rank;
    if (d >= 0 && target[i] == from->shape[d] &&
        from->shape[d] != n.shape(0)[d]) {
      target[i] = n.shape(0)[d];
      isFound = true;
    }
  }
  bool isFree = rank > inputRank || (rank > 0 && from->shape.front() == 1);
  if (!isFound && isFree && target.front() == batch.original)
    target.front() = batch.wanted;
}

static LogicalResult importExpand(NodeContext &n) {
  FailureOr<Shape> target = n.constantInts(1, "target shape");
  if (failed(target))
    return failure();
  followBatch(n, *target);
  if (failed(n.followBatch(0, *target)))
    return failure();
  std::optional<Shape> shape = broadcastShape(n.shape(0), *target);
  if (!shape || llvm::any_of(*target, [](int64_t d) { return d < 1; }))
    return n.error() << "the input does not broadcast to the target shape";
  if (const ConstantTensor *constant = n.constant(0)) {
    if (!constant->isSplat() && failed(n.expectComputable(*shape)))
      return failure();
    return n.setResult(0, broadcastTensor(*constant, *shape));
  }
  return n.setResult(0, n.b.broadcastTo(n.value(0), *shape));
}

static LogicalResult importTile(NodeContext &n) {
  FailureOr<Shape> repeats = n.constantInts(1, "repeats");
  if (failed(repeats))
    return failure();
  if (int64_t(repeats->size()) != n.rank(0) ||
      llvm::any_of(*repeats, [](int64_t r) { return r < 1; }))
    return n.error() << "expects one repeat of 1 or more per dimension";
  // [a, b] repeated [r, s] is [1, a, 1, b] broadcast to [r, a, s, b].
  Shape apart, wide, shape;
  for (auto [dim, repeat] : llvm::zip(n.shape(0), *repeats)) {
    apart.append({1, dim});
    wide.append({repeat, dim});
    if (llvm::MulOverflow(dim, repeat, shape.emplace_back()))
      return n.error() << "repeats dimension " << shape.size() - 1 << " of "
                       << dim << " " << repeat << " times, which is too large";
  }
  if (const ConstantTensor *constant = n.constant(0)) {
    if (!constant->isSplat() && failed(n.expectComputable(shape)))
      return failure();
    return n.setResult(
        0, broadcastTensor(constant->reshaped(apart), wide).reshaped(shape));
  }
  Value x = n.b.broadcastTo(n.b.reshape(n.value(0), apart), wide);
  return n.setResult(0, n.b.reshape(x, shape));
}

//===----------------------------------------------------------------------===//
// Blocks of an image
//===----------------------------------------------------------------------===//

namespace {
/// Square blocks of an image [N, C, H, W] that are channels.
struct Blocks {
  int64_t size;
  /// A channel's number begins with the place in a block (mode DCR), or ends
  /// with it (CRD).
  bool areFirst;
};
} // namespace

static FailureOr<Blocks> readBlocks(NodeContext &n) {
  int64_t size = n.intAttribute("blocksize", 0);
  std::string mode = n.stringAttribute("mode", "DCR");
  // Its square is a number of channels.
  constexpr int64_t largest = 1 << 15;
  if (n.rank(0) != 4)
    return n.error() << "expects rank 4, but got " << n.rank(0);
  if (size < 1 || size > largest)
    return n.error() << "expects blocksize of 1 to " << largest << ", but got "
                     << size;
  if (mode != "DCR" && mode != "CRD")
    return n.error() << "mode=" << mode << " is not supported";
  return Blocks{size, mode == "DCR"};
}

/// Channels become blocks of a larger image.
static LogicalResult importDepthToSpace(NodeContext &n) {
  FailureOr<Blocks> blocks = readBlocks(n);
  if (failed(blocks))
    return failure();
  ArrayRef<int64_t> shape = n.shape(0);
  int64_t size = blocks->size, channels = shape[1] / (size * size);
  if (channels * size * size != shape[1])
    return n.error() << "expects channels in multiples of " << size * size
                     << ", but got " << shape[1];
  Value x = n.value(0);
  if (blocks->areFirst) {
    x = n.b.reshape(x, {shape[0], size, size, channels, shape[2], shape[3]});
    x = n.b.transpose(x, {0, 3, 4, 1, 5, 2});
  } else {
    x = n.b.reshape(x, {shape[0], channels, size, size, shape[2], shape[3]});
    x = n.b.transpose(x, {0, 1, 4, 2, 5, 3});
  }
  return n.setResult(0, n.b.reshape(x, {shape[0], channels, shape[2] * size,
                                        shape[3] * size}));
}

/// The inverse of DepthToSpace. Before opset 28 it has mode DCR only.
static LogicalResult importSpaceToDepth(NodeContext &n) {
  FailureOr<Blocks> blocks = readBlocks(n);
  if (failed(blocks))
    return failure();
  ArrayRef<int64_t> shape = n.shape(0);
  int64_t size = blocks->size;
  int64_t height = shape[2] / size, width = shape[3] / size;
  if (height * size != shape[2] || width * size != shape[3])
    return n.error() << "expects an image in multiples of blocksize " << size
                     << ", but got " << shape[2] << " x " << shape[3];
  Value x =
      n.b.reshape(n.value(0), {shape[0], shape[1], height, size, width, size});
  x = blocks->areFirst ? n.b.transpose(x, {0, 3, 5, 1, 2, 4})
                       : n.b.transpose(x, {0, 1, 3, 5, 2, 4});
  return n.setResult(
      0, n.b.reshape(x, {shape[0], shape[1] * size * size, height, width}));
}

ArrayRef<OpRow> shapeOps() {
  static const OpRow rows[] = {
      {"Reshape", 7, exactly(2), importReshape, importReshape},
      {"Flatten", 7, exactly(1), importFlatten, importFlatten},
      {"Squeeze", 7, between(1, 2), importSqueeze, importSqueeze},
      {"Unsqueeze", 7, between(1, 2), importUnsqueeze, importUnsqueeze},
      {"Transpose", 7, exactly(1), importTranspose, importTranspose},
      {"Expand", 8, exactly(2), importExpand, importExpand},
      {"Tile", 7, exactly(2), importTile, importTile},
      {"DepthToSpace", 7, exactly(1), importDepthToSpace},
      {"SpaceToDepth", 7, exactly(1), importSpaceToDepth},
  };
  return rows;
}

} // namespace pipewright::frontend
