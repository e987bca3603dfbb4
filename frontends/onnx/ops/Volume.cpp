//===- Volume.cpp - Convolutions beyond two dimensions
//---------------------===//
//
// A convolution of volumes is one of planes whose channels are those of all
// planes under the window. Its transpose adds up planes that overlap, and so
// does Col2Im along each dimension.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Volume.h"

#include "frontends/onnx/OpRegistry.h"

#include "dialects/nn/NNLimits.h"

using namespace mlir;

namespace pipewright::frontend {

Value stackPlanes(NodeContext &n, Value x, const Window &window) {
  if (!x)
    return x;
  Shape shape(shapeOf(x));
  int64_t kernel = window.kernel[0], dilation = window.dilations[0];
  int64_t extent = (kernel - 1) * dilation + 1, low = window.pads[0],
          high = window.pads[3];
  int64_t places = (shape[2] + low + high - extent) / window.strides[0] + 1;
  if (shape[2] + low + high < extent) {
    n.error() << "expects a padded input of at least " << extent
              << " planes, but got " << shape[2] + low + high;
    return Value();
  }
  // [N, D, C, H, W]
  x = n.b.transpose(x, {0, 2, 1, 3, 4});
  if (low || high)
    x = n.b.create<nn::PadOp>(x, {n.b.ints("low", {0, low, 0, 0, 0}),
                                  n.b.ints("high", {0, high, 0, 0, 0})});
  SmallVector<Value> planes;
  for (int64_t i = 0; i < kernel && x; ++i)
    planes.push_back(n.b.reshape(
        n.b.sliceAxis(x, 1, i * dilation, places, window.strides[0]),
        {shape[0], places, shape[1], 1, shape[3], shape[4]}));
  Value stacked =
      kernel == 1 ? planes.front()
                  : n.b.create<nn::ConcatOp>(planes, n.b.integer("axis", 3));
  return n.b.reshape(
      stacked, {shape[0] * places, shape[1] * kernel, shape[3], shape[4]});
}

Value volumeOf(NodeContext &n, Value images, int64_t samples) {
  if (!images)
    return images;
  Shape shape(shapeOf(images));
  Value planes = n.b.reshape(
      images, {samples, shape[0] / samples, shape[1], shape[2], shape[3]});
  return n.b.transpose(planes, {0, 2, 1, 3, 4});
}

Value overlapAdd(NodeContext &n, Value x, int64_t size, int64_t stride,
                 int64_t dilation, int64_t low, int64_t high) {
  if (!x)
    return x;
  Shape shape(shapeOf(x));
  int64_t kernel = shape[1];
  // Element i of a window goes to its place i alone.
  ConstantTensor filter(ElementKind::Float, {kernel, 1, kernel, 1});
  for (int64_t i = 0; i < kernel; ++i)
    filter.setFloat(i * kernel + i, 1);
  Value y = n.b.create<nn::ConvBackwardDataOp>(
      {x, n.made(std::move(filter), ".overlap_" + Twine(kernel))},
      {n.b.ints("strides", {stride, 1}), n.b.ints("pads", {low, 0, high, 0}),
       n.b.ints("dilations", {dilation, 1}), n.b.integer("groups", 1)},
      RankedTensorType::get({shape[0], 1, size, shape[3]},
                            n.b.getBuilder().getF32Type()));
  return n.b.reshape(y, {shape[0], size, shape[3]});
}

//===----------------------------------------------------------------------===//
// Col2Im
//===----------------------------------------------------------------------===//

namespace {
/// The blocks that an image was cut into, and how many along each dimension.
struct Blocks {
  Shape image, size, strides, pads, dilations, counts;
};
} // namespace

static FailureOr<Blocks> readBlocks(NodeContext &n) {
  FailureOr<Shape> image = n.constantInts(1, "image_shape");
  if (failed(image))
    return failure();
  FailureOr<Shape> size = n.constantInts(2, "block_shape");
  if (failed(size))
    return failure();
  size_t count = image->size();
  Blocks blocks{*image, *size};
  blocks.strides = n.intsAttribute("strides").value_or(Shape(count, 1));
  blocks.dilations = n.intsAttribute("dilations").value_or(Shape(count, 1));
  blocks.pads = n.intsAttribute("pads").value_or(Shape(2 * count, 0));
  if (count < 1 || count > 3 || size->size() != count ||
      blocks.strides.size() != count || blocks.dilations.size() != count ||
      blocks.pads.size() != 2 * count)
    return n.error() << "expects image_shape of 1 to 3 dimensions, and "
                        "block_shape, strides, dilations and pads for those";
  auto within = [](ArrayRef<int64_t> values, int64_t least, int64_t most) {
    return llvm::all_of(values,
                        [&](int64_t v) { return v >= least && v <= most; });
  };
  constexpr int64_t largestBlock = 256;
  if (!within(blocks.image, 1, nn::kMaxWindowEntry) ||
      !within(blocks.strides, 1, nn::kMaxWindowEntry) ||
      !within(blocks.dilations, 1, nn::kMaxWindowEntry) ||
      !within(blocks.pads, 0, nn::kMaxWindowEntry) ||
      !within(blocks.size, 1, largestBlock))
    return n.error() << "expects block_shape of 1 to " << largestBlock
                     << ", image_shape, strides and dilations of 1 or more, "
                        "and pads of 0 or more";
  for (size_t i = 0; i < count; ++i) {
    int64_t extent = (blocks.size[i] - 1) * blocks.dilations[i] + 1;
    int64_t room =
        blocks.image[i] + blocks.pads[i] + blocks.pads[i + count] - extent;
    blocks.counts.push_back(room < 0 ? 0 : room / blocks.strides[i] + 1);
  }
  return blocks;
}

/// Blocks [N, C * elements of a block, blocks], added up where they overlap.
static LogicalResult importCol2Im(NodeContext &n) {
  FailureOr<Blocks> read = readBlocks(n);
  if (failed(read))
    return failure();
  const Blocks &blocks = *read;
  int64_t perBlock = elementCount(blocks.size),
          count = elementCount(blocks.counts);
  if (n.rank(0) != 3 || n.input(0).element != ElementKind::Float ||
      elementCount(n.shape(0)) == 0 || n.shape(0)[1] % perBlock != 0 ||
      n.shape(0)[2] != count)
    return n.error() << "expects floats [samples, channels times " << perBlock
                     << ", " << count
                     << "], as image_shape, block_shape, "
                        "strides, dilations and pads give";
  int64_t samples = n.shape(0)[0], channels = n.shape(0)[1] / perBlock;
  size_t dims = blocks.image.size();
  // [N * C, block..., places...]; from the last dimension to the first, the
  // block's and the places' become the image's.
  Shape shape = {samples * channels};
  llvm::append_range(shape, blocks.size);
  llvm::append_range(shape, blocks.counts);
  Value x = n.b.reshape(n.value(0), shape);
  for (size_t i = dims; i-- > 0 && x;) {
    Shape now(shapeOf(x)), order = {0};
    for (size_t d = 0; d < i; ++d)
      order.push_back(1 + d);
    for (size_t d = 0; d < i; ++d)
      order.push_back(2 + i + d);
    order.push_back(1 + i);
    for (size_t d = 2 + 2 * i; d < now.size(); ++d)
      order.push_back(d);
    x = n.b.transpose(x, order);
    if (!x)
      return failure();
    Shape moved(shapeOf(x));
    int64_t outer = elementCount(ArrayRef(moved).take_front(1 + 2 * i)),
            inner = elementCount(ArrayRef(moved).drop_front(3 + 2 * i));
    x = overlapAdd(
        n, n.b.reshape(x, {outer, blocks.size[i], blocks.counts[i], inner}),
        blocks.image[i], blocks.strides[i], blocks.dilations[i], blocks.pads[i],
        blocks.pads[i + dims]);
    moved.erase(moved.begin() + 1 + 2 * i);
    moved[1 + 2 * i] = blocks.image[i];
    x = n.b.reshape(x, moved);
  }
  Shape result = {samples, channels};
  llvm::append_range(result, blocks.image);
  return n.setResult(0, n.b.reshape(x, result));
}

ArrayRef<OpRow> volumeOps() {
  static const OpRow rows[] = {
      {"Col2Im", 18, exactly(3), importCol2Im},
  };
  return rows;
}

} // namespace pipewright::frontend
