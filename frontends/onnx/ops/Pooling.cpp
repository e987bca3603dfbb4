//===- Pooling.cpp - Pooling ----------------------------------------------===//
//
// Local pooling through one window form; global pooling is a reduction.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/LpNorms.h"
#include "frontends/onnx/ops/Window.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace pipewright::frontend {

static LogicalResult importMaxPool(NodeContext &n) {
  // How indices count, which are not given.
  n.intAttribute("storage_order", 0);
  if (failed(n.expectUnread(1)))
    return failure();
  FailureOr<Window> window = readWindow(n, {});
  if (failed(window))
    return failure();
  Value y = n.b.create<nn::MaxPoolOp>(
      asImage(n, n.value(0)),
      {n.b.ints("kernel", window->kernel), n.b.ints("strides", window->strides),
       n.b.ints("pads", window->pads),
       n.b.ints("dilations", window->dilations)});
  return n.setResult(0, fromImage(n, y));
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

static LogicalResult importAveragePool(NodeContext &n) {
  bool countPads = n.intAttribute("count_include_pad", 0);
  FailureOr<Window> window = readWindow(n, {});
  if (failed(window))
    return failure();
  Value image = asImage(n, n.value(0));
  if (!image)
    return failure();
  // The pads that ceil mode adds are never counted.
  bool isPlain =
      !isDilated(*window) && !(countPads && window->pads != window->ownPads);
  if (!isPlain) {
    Value sums = sumOfWindows(n, image, *window);
    return n.setResult(0, fromImage(n, divideByCounts(n, sums, shapeOf(image),
                                                      *window, countPads)));
  }
  SmallVector<NamedAttribute> attrs = {n.b.ints("kernel", window->kernel),
                                       n.b.ints("strides", window->strides),
                                       n.b.ints("pads", window->pads)};
  if (countPads)
    attrs.push_back(n.b.unit("count_include_pad"));
  return n.setResult(0,
                     fromImage(n, n.b.create<nn::AveragePoolOp>(image, attrs)));
}

/// The root of the sum of powers over each window.
static LogicalResult importLpPool(NodeContext &n) {
  FailureOr<int64_t> p = readPower(n);
  if (failed(p))
    return failure();
  FailureOr<Window> window = readWindow(n, {});
  if (failed(window))
    return failure();
  Value powers = absolutePower(n, asImage(n, n.value(0)), *p);
  Value y = rootOf(n, sumOfWindows(n, powers, *window), *p);
  return n.setResult(0, fromImage(n, y));
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
