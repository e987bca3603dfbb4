//===- Pooling.cpp - Pooling ----------------------------------------------===//
//
// Local pooling through one window form; global pooling is a reduction.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/LpNorms.h"
#include "frontends/onnx/ops/Selection.h"
#include "frontends/onnx/ops/Window.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace pipewright::frontend {

static Value largestOf(NodeContext &n, Value image, const Window &window) {
  return n.b.create<nn::MaxPoolOp>(
      image,
      {n.b.ints("kernel", window.kernel), n.b.ints("strides", window.strides),
       n.b.ints("pads", window.pads), n.b.ints("dilations", window.dilations)});
}

/// The elements of image [N, C, H, W] under each element of the window, one
/// behind the other in dimension 2; -inf in the pads.
static Value spreadWindows(NodeContext &n, Value image, const Window &window,
                           ArrayRef<int64_t> places) {
  auto filled = [&](int64_t axis, int64_t count) {
    Shape shape(shapeOf(image));
    shape[axis] = count;
    return n.b.splat(-std::numeric_limits<float>::infinity(), shape);
  };
  for (int64_t axis : {2, 3}) {
    int64_t low = window.pads[axis - 2], high = window.pads[axis];
    SmallVector<Value> parts;
    if (low && image)
      parts.push_back(filled(axis, low));
    parts.push_back(image);
    if (high && image)
      parts.push_back(filled(axis, high));
    if (parts.size() > 1)
      image = n.b.create<nn::ConcatOp>(parts, n.b.integer("axis", axis));
  }
  if (!image)
    return image;
  SmallVector<Value> parts;
  for (int64_t row = 0; row < window.kernel[0]; ++row)
    for (int64_t column = 0; column < window.kernel[1]; ++column) {
      Value part = n.b.sliceAxis(image, 2, row * window.dilations[0], places[0],
                                 window.strides[0]);
      part = n.b.sliceAxis(part, 3, column * window.dilations[1], places[1],
                           window.strides[1]);
      if (!part)
        return part;
      Shape shape(shapeOf(part));
      shape.insert(shape.begin() + 2, 1);
      parts.push_back(n.b.reshape(part, shape));
    }
  return n.b.create<nn::ConcatOp>(parts, n.b.integer("axis", 2));
}

/// Where the largest elements are, as indices of the whole tensor, whose rows
/// or, by storage_order 1, columns lie one behind the other.
static Value placesOfLargest(NodeContext &n, Value image, const Window &window,
                             ArrayRef<int64_t> places, bool byColumns) {
  constexpr int64_t most = 1024;
  int64_t elements = elementCount(window.kernel);
  if (elements > most) {
    n.error() << "expects a window of at most " << most
              << " elements where indices are given, but got " << elements;
    return Value();
  }
  int64_t samples = shapeOf(image)[0], channels = shapeOf(image)[1];
  if (failed(n.expectListable(
          std::max(elementCount(places), elementCount({samples, channels})),
          "places of windows")))
    return Value();
  Shape size(shapeOf(image).take_back(2));
  int64_t perRow = byColumns ? 1 : size[1], perColumn = byColumns ? size[0] : 1;
  ConstantTensor offsets(ElementKind::Int, {elements, 1, 1});
  for (int64_t i = 0; i < elements; ++i)
    offsets.setInt(i,
                   i / window.kernel[1] * window.dilations[0] * perRow +
                       i % window.kernel[1] * window.dilations[1] * perColumn);
  ConstantTensor begins(ElementKind::Int, Shape(places));
  for (int64_t i = 0, e = begins.size(); i < e; ++i)
    begins.setInt(
        i,
        (i / places[1] * window.strides[0] - window.pads[0]) * perRow +
            (i % places[1] * window.strides[1] - window.pads[1]) * perColumn);
  ConstantTensor images(ElementKind::Int, {samples, channels, 1, 1});
  for (int64_t i = 0, e = images.size(); i < e; ++i)
    images.setInt(i, i * size[0] * size[1]);
  Value all = spreadWindows(n, image, window, places);
  Value winner =
      placeOfLargest(n, all, 2, n.made(std::move(offsets), ".offsets"));
  if (!winner)
    return winner;
  winner = n.b.reshape(winner, {samples, channels, places[0], places[1]});
  Value begin = n.b.create<nn::AddOp>({n.made(std::move(begins), ".begins"),
                                       n.made(std::move(images), ".images")});
  return n.b.create<nn::AddOp>({winner, begin});
}

static LogicalResult importMaxPool(NodeContext &n) {
  bool byColumns = n.intAttribute("storage_order", 0);
  FailureOr<Window> window = readWindow(n, {});
  if (failed(window))
    return failure();
  if (n.isOutputRead(1) && n.rank(0) == 5)
    return n.error() << "output 1 ('" << n.outputName(1)
                     << "') is used, but indices are supported of one or two "
                        "dimensions";
  Value x = n.value(0);
  Value y = poolEach(n, x, *window, [&](Value image, const Window &part) {
    return largestOf(n, image, part);
  });
  if (!y || failed(n.setResult(0, y)))
    return failure();
  if (!n.isOutputRead(1))
    return success();
  Shape shape(shapeOf(y)), places = {1, shape.back()};
  if (n.rank(0) == 4)
    places[0] = shape[2];
  Value indices = placesOfLargest(n, asImage(n, x), *window, places, byColumns);
  return n.setResult(1, n.b.reshape(indices, shape));
}

static bool isDilated(const Window &window) {
  return llvm::any_of(window.dilations, [](int64_t d) { return d != 1; });
}

/// Sums of images over windows, elements beyond the image being 0.
static Value sumOfWindows(NodeContext &n, Value image, const Window &window) {
  if (!image)
    return image;
  int64_t channels = shapeOf(image)[1];
  if (isDilated(window)) {
    Shape filter = {channels, 1, window.kernel[0], window.kernel[1]};
    return n.b.create<nn::ConvOp>({image, n.b.splat(1, filter)},
                                  {n.b.ints("strides", window.strides),
                                   n.b.ints("pads", window.pads),
                                   n.b.ints("dilations", window.dilations),
                                   n.b.integer("groups", channels)});
  }
  Value mean = n.b.create<nn::AveragePoolOp>(
      image,
      {n.b.ints("kernel", window.kernel), n.b.ints("strides", window.strides),
       n.b.ints("pads", window.pads), n.b.unit("count_include_pad")});
  float size = float(window.kernel[0]) * float(window.kernel[1]);
  return n.b.create<nn::MulOp>({mean, n.b.splat(size)});
}

/// How many elements of a window lie within the image, or within its own pads
/// as well, for each of `outputs` places along height (0) or width (1).
static SmallVector<float> countsAlong(const Window &window, size_t dim,
                                      int64_t size, int64_t outputs,
                                      bool countPads) {
  int64_t low = window.pads[dim], dilation = window.dilations[dim];
  int64_t begin = countPads ? -low : 0;
  int64_t end = countPads ? size + window.ownPads[dim + 2] : size;
  SmallVector<float> counts;
  for (int64_t i = 0; i < outputs; ++i) {
    int64_t first = i * window.strides[dim] - low;
    int64_t before = std::max<int64_t>(begin - first, 0);
    int64_t from = llvm::divideCeil(before, dilation);
    int64_t to = std::min<int64_t>(
        window.kernel[dim],
        llvm::divideFloorSigned(end - 1 - first, dilation) + 1);
    counts.push_back(float(std::max<int64_t>(to - from, 0)));
  }
  return counts;
}

/// `sums` of windows divided by how many elements they have.
static Value divideByCounts(NodeContext &n, Value sums, ArrayRef<int64_t> image,
                            const Window &window, bool countPads) {
  for (size_t dim = 0; dim < 2 && sums; ++dim) {
    Shape shape = {shapeOf(sums)[dim + 2]};
    if (failed(n.expectComputable(shape)))
      return Value();
    SmallVector<float> counts =
        countsAlong(window, dim, image[dim + 2], shape[0], countPads);
    if (llvm::is_contained(counts, 0.0f)) {
      n.error() << "has a window that covers nothing but padding";
      return Value();
    }
    ConstantTensor tensor(ElementKind::Float, shape);
    for (auto [i, count] : llvm::enumerate(counts))
      tensor.setFloat(int64_t(i), count);
    if (dim == 0)
      shape.push_back(1);
    Value divisor = n.made(tensor.reshaped(shape), ".counts_" + Twine(dim));
    sums = n.b.create<nn::DivOp>({sums, divisor});
  }
  return sums;
}

static Value averageOf(NodeContext &n, Value image, const Window &window,
                       bool countPads) {
  if (!image)
    return image;
  // The pads that ceil mode adds are never counted.
  if (isDilated(window) || (countPads && window.pads != window.ownPads))
    return divideByCounts(n, sumOfWindows(n, image, window), shapeOf(image),
                          window, countPads);
  SmallVector<NamedAttribute> attrs = {n.b.ints("kernel", window.kernel),
                                       n.b.ints("strides", window.strides),
                                       n.b.ints("pads", window.pads)};
  if (countPads)
    attrs.push_back(n.b.unit("count_include_pad"));
  return n.b.create<nn::AveragePoolOp>(image, attrs);
}

static LogicalResult importAveragePool(NodeContext &n) {
  bool countPads = n.intAttribute("count_include_pad", 0);
  FailureOr<Window> window = readWindow(n, {});
  if (failed(window))
    return failure();
  return n.setResult(
      0, poolEach(n, n.value(0), *window, [&](Value image, const Window &part) {
        return averageOf(n, image, part, countPads);
      }));
}

/// The root of the sum of powers over each window.
static LogicalResult importLpPool(NodeContext &n) {
  FailureOr<int64_t> p = readPower(n);
  if (failed(p))
    return failure();
  FailureOr<Window> window = readWindow(n, {});
  if (failed(window))
    return failure();
  Value sums = poolEach(n, absolutePower(n, n.value(0), *p), *window,
                        [&](Value image, const Window &part) {
                          return sumOfWindows(n, image, part);
                        });
  return n.setResult(0, rootOf(n, sums, *p));
}

static LogicalResult importGlobalLpPool(NodeContext &n) {
  FailureOr<int64_t> p = readPower(n);
  if (failed(p))
    return failure();
  if (n.rank(0) < 3)
    return n.error() << "expects rank 3 or more, but got " << n.rank(0);
  Shape axes = llvm::to_vector<4>(llvm::seq<int64_t>(2, n.rank(0)));
  Value sum = n.b.reduce<nn::ReduceSumOp>(absolutePower(n, n.value(0), *p),
                                          axes, /*keepDims=*/true);
  return n.setResult(0, rootOf(n, sum, *p));
}

template <typename OpTy>
static LogicalResult importGlobalPool(NodeContext &n) {
  if (n.rank(0) < 3)
    return n.error() << "expects rank 3 or more, but got " << n.rank(0);
  Shape axes = llvm::to_vector<4>(llvm::seq<int64_t>(2, n.rank(0)));
  return n.setResult(0, n.b.reduce<OpTy>(n.value(0), axes, /*keepDims=*/true));
}

ArrayRef<OpRow> poolingOps() {
  static const OpRow rows[] = {
      {"MaxPool", 7, exactly(1), importMaxPool},
      {"AveragePool", 7, exactly(1), importAveragePool},
      {"LpPool", 7, exactly(1), importLpPool},
      {"GlobalLpPool", 7, exactly(1), importGlobalLpPool},
      {"GlobalAveragePool", 7, exactly(1), importGlobalPool<nn::ReduceMeanOp>},
      {"GlobalMaxPool", 7, exactly(1), importGlobalPool<nn::ReduceMaxOp>},
  };
  return rows;
}

} // namespace pipewright::frontend
