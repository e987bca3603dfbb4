//===- Shape.cpp - Reshape and its relatives ------------------------------===//
//
// Ops that give the same elements another shape or order. One function serves
// computed values and constants: only the last line differs.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Broadcasting.h"

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

/// The shape that a Reshape of `in` has once the batch size is another than
/// the one that its target was written for: the dimension that holds the batch
/// is found by its stride. None if no single dimension holds it.
static std::optional<Shape> rescaleTarget(ArrayRef<int64_t> oldIn,
                                          ArrayRef<int64_t> newIn,
                                          ArrayRef<int64_t> oldOut,
                                          BatchChange batch) {
  std::optional<size_t> changed;
  for (size_t i = 0; i < oldIn.size(); ++i) {
    if (oldIn[i] == newIn[i])
      continue;
    if (changed || oldIn[i] % batch.original)
      return std::nullopt;
    changed = i;
  }
  if (!changed)
    return Shape(oldOut);
  // The batch is the outermost part of its dimension.
  int64_t stride =
      stridesOf(oldIn)[*changed] * oldIn[*changed] / batch.original;
  Shape strides = stridesOf(oldOut);
  auto holdsBatch = [&](size_t j) {
    return strides[j] <= stride &&
           stride * batch.original <= strides[j] * oldOut[j] &&
           oldOut[j] % batch.original == 0;
  };
  Shape result(oldOut);
  auto scale = [&](size_t j) {
    result[j] = llvm::SaturatingMultiply<uint64_t>(oldOut[j] / batch.original,
                                                   batch.wanted) &
                std::numeric_limits<int64_t>::max();
    return result;
  };
  // With batch size 1 several dimensions fit; the same position is likeliest.
  if (*changed < oldOut.size() && holdsBatch(*changed))
    return scale(*changed);
  for (size_t j = 0; j < oldOut.size(); ++j)
    if (holdsBatch(j))
      return scale(j);
  return std::nullopt;
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

static LogicalResult importReshape(NodeContext &n) {
  bool allowZero = n.intAttribute("allowzero", 0);
  FailureOr<Shape> target = n.constantInts(1, "target shape");
  if (failed(target))
    return failure();
  const Shape *oldIn = n.originalInput(0), *oldOut = n.originalResult(0);
  if (oldIn && oldOut && ArrayRef<int64_t>(*oldIn) != n.shape(0)) {
    std::optional<Shape> scaled =
        rescaleTarget(*oldIn, n.shape(0), *oldOut, *n.graph.batchChange);
    if (!scaled)
      return n.error() << "the target shape does not tell where the batch is";
    target = *scaled;
  }
  FailureOr<Shape> shape = resolveTarget(n, *target, allowZero);
  if (failed(shape))
    return failure();
  return setReshaped(n, *shape);
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

static LogicalResult importExpand(NodeContext &n) {
  FailureOr<Shape> target = n.constantInts(1, "target shape");
  if (failed(target))
    return failure();
  // A batch size written into the target follows a changed batch.
  if (n.graph.batchChange && n.graph.batchChange->original > 1 &&
      !target->empty() && target->front() == n.graph.batchChange->original)
    target->front() = n.graph.batchChange->wanted;
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
