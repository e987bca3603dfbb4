//===- Window.cpp - Sliding windows of Conv and pooling -------------------===//
//
// Turns ONNX's spellings of a window into explicit pads in two dimensions.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Window.h"

#include "dialects/nn/NNLimits.h"

using namespace mlir;

namespace pipewright::frontend {

Value asImage(NodeContext &n, Value x) {
  if (!x || shapeOf(x).size() != 3)
    return x;
  Shape shape(shapeOf(x));
  shape.insert(shape.begin() + 2, 1);
  return n.b.reshape(x, shape);
}

Value fromImage(NodeContext &n, Value x) {
  if (!x || n.rank(0) != 3)
    return x;
  Shape shape(shapeOf(x));
  shape.erase(shape.begin() + 2);
  return n.b.reshape(x, shape);
}

/// Pads that give ceil(input / stride) results; `upper` puts an odd one last.
static void padToSame(int64_t input, int64_t extent, int64_t stride, bool upper,
                      int64_t &low, int64_t &high) {
  int64_t output = (input + stride - 1) / stride;
  int64_t total = std::max<int64_t>((output - 1) * stride + extent - input, 0);
  low = upper ? total / 2 : total - total / 2;
  high = total - low;
}

/// The end pad with which rounding down gives what rounding up would. A window
/// that starts beyond the input and its front pad is dropped.
static int64_t padForCeil(int64_t input, int64_t extent, int64_t stride,
                          int64_t low, int64_t high) {
  int64_t span = input + low + high - extent;
  int64_t output = (span + stride - 1) / stride + 1;
  if ((output - 1) * stride >= input + low)
    --output;
  return std::max(high, (output - 1) * stride + extent - input - low);
}

FailureOr<Window> readGivenWindow(NodeContext &n, Shape kernel) {
  int64_t rank = n.rank(0);
  if (rank < 3 || rank > 5)
    return n.error() << "expects an input of rank 3 to 5, but got rank "
                     << rank;
  size_t count = rank - 2;
  Window window;
  std::optional<Shape> given = n.intsAttribute("kernel_shape");
  if (!kernel.empty() && given && *given != kernel)
    return n.error() << "kernel_shape differs from the filter's shape";
  window.kernel = kernel.empty() ? given.value_or(Shape()) : kernel;
  window.strides = n.intsAttribute("strides").value_or(Shape(count, 1));
  window.dilations = n.intsAttribute("dilations").value_or(Shape(count, 1));
  window.pads = n.intsAttribute("pads").value_or(Shape(2 * count, 0));
  if (window.kernel.size() != count || window.strides.size() != count ||
      window.dilations.size() != count || window.pads.size() != 2 * count)
    return n.error() << "expects kernel_shape, strides, dilations and pads for "
                     << count << " dimensions";
  auto atLeastOne = [](int64_t v) {
    return v >= 1 && v <= nn::kMaxWindowEntry;
  };
  if (!llvm::all_of(window.kernel, atLeastOne) ||
      !llvm::all_of(window.strides, atLeastOne) ||
      !llvm::all_of(window.dilations, atLeastOne) ||
      llvm::any_of(window.pads,
                   [](int64_t p) { return p < 0 || p > nn::kMaxWindowEntry; }))
    return n.error() << "expects kernel_shape, strides and dilations of 1 or "
                        "more, pads of 0 or more, and all of at most "
                     << nn::kMaxWindowEntry;
  window.ownPads = window.pads;
  return window;
}

/// Dimensions `first` and on, `count` of them.
static Window dimensionsOf(const Window &window, size_t first, size_t count) {
  auto cut = [&](const Shape &shape) {
    return Shape(ArrayRef(shape).slice(first, count));
  };
  auto cutPads = [&](const Shape &pads) {
    Shape result = cut(pads);
    llvm::append_range(
        result, ArrayRef(pads).slice(first + window.kernel.size(), count));
    return result;
  };
  return {cut(window.kernel), cut(window.strides), cut(window.dilations),
          cutPads(window.pads), cutPads(window.ownPads)};
}

Window planeOf(const Window &window) {
  return dimensionsOf(window, window.kernel.size() - 2, 2);
}

Window depthOf(const Window &window) {
  Window depth = dimensionsOf(window, 0, 1);
  for (Shape *sizes : {&depth.kernel, &depth.strides, &depth.dilations})
    sizes->push_back(1);
  for (Shape *pads : {&depth.pads, &depth.ownPads})
    *pads = {(*pads)[0], 0, (*pads)[1], 0};
  return depth;
}

LogicalResult expectFewPlanes(NodeContext &n, const Window &window) {
  constexpr int64_t most = 256;
  if (window.kernel.size() == 3 && window.kernel[0] > most)
    return n.error() << "expects a depth of the filter of at most " << most
                     << ", but got " << window.kernel[0];
  return success();
}

Value poolEach(NodeContext &n, Value x, const Window &window,
               function_ref<Value(Value, const Window &)> pool) {
  if (!x || n.rank(0) != 5) {
    Value y = pool(asImage(n, x), window);
    return fromImage(n, y);
  }
  Shape shape(shapeOf(x));
  Value planes =
      pool(n.b.reshape(x, {shape[0], shape[1] * shape[2], shape[3], shape[4]}),
           planeOf(window));
  if (!planes)
    return Value();
  shape[3] = shapeOf(planes)[2];
  shape[4] = shapeOf(planes)[3];
  Value y = pool(
      n.b.reshape(planes, {shape[0], shape[1], shape[2], shape[3] * shape[4]}),
      depthOf(window));
  if (!y)
    return Value();
  shape[2] = shapeOf(y)[2];
  return n.b.reshape(y, shape);
}

void makeTwoDimensional(Window &window) {
  if (window.kernel.size() != 1)
    return;
  window.kernel.insert(window.kernel.begin(), 1);
  window.strides.insert(window.strides.begin(), 1);
  window.dilations.insert(window.dilations.begin(), 1);
  for (Shape *pads : {&window.pads, &window.ownPads})
    *pads = {0, (*pads)[0], 0, (*pads)[1]};
}

FailureOr<Window> readWindow(NodeContext &n, Shape kernel) {
  FailureOr<Window> given = readGivenWindow(n, kernel);
  if (failed(given))
    return failure();
  Window window = *given;
  size_t count = window.kernel.size();
  std::string autoPad = n.stringAttribute("auto_pad", "NOTSET");
  bool ceil = n.intAttribute("ceil_mode", 0);
  if (autoPad != "NOTSET" && autoPad != "VALID" && autoPad != "SAME_UPPER" &&
      autoPad != "SAME_LOWER")
    return n.error() << "auto_pad=" << autoPad << " is not supported";
  for (size_t i = 0; i < count; ++i) {
    int64_t input = n.shape(0)[i + 2];
    int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    int64_t &low = window.pads[i], &high = window.pads[i + count];
    if (autoPad == "VALID")
      low = high = 0;
    else if (autoPad != "NOTSET")
      padToSame(input, extent, window.strides[i], autoPad == "SAME_UPPER", low,
                high);
  }
  window.ownPads = window.pads;
  for (size_t i = 0; ceil && i < count; ++i) {
    int64_t input = n.shape(0)[i + 2];
    int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    int64_t low = window.pads[i], &high = window.pads[i + count];
    if (input + low + high >= extent)
      high = padForCeil(input, extent, window.strides[i], low, high);
  }
  makeTwoDimensional(window);
  return window;
}

} // namespace pipewright::frontend
