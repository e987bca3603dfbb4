//===- ConvTranspose.cpp - Transposed convolution -------------------------===//
//
// A transposed convolution is the gradient of a convolution with respect to its
// images: ONNX's filter [C, O / groups, ...] is that convolution's.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNLimits.h"
#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/Volume.h"

using namespace mlir;

namespace pipewright::frontend {

namespace {
/// One dimension of the result, which is cut out of the sums of all products.
struct Extent {
  int64_t cutLow, cutHigh;
  /// The result without added zeros.
  int64_t core;
  /// Elements at the end that no product reaches.
  int64_t zeros;
};

/// What a node says of its result's size.
struct ResultSize {
  Shape padding;
  std::optional<Shape> shape;
  std::string autoPad;
};
} // namespace

static FailureOr<ResultSize> readResultSize(NodeContext &n, size_t count) {
  ResultSize size;
  size.padding = n.intsAttribute("output_padding").value_or(Shape(count, 0));
  size.shape = n.intsAttribute("output_shape");
  size.autoPad = n.stringAttribute("auto_pad", "NOTSET");
  if (size.padding.size() != count ||
      (size.shape && size.shape->size() != count))
    return n.error() << "expects output_padding and output_shape for " << count
                     << " dimensions";
  if (llvm::any_of(size.padding,
                   [](int64_t p) { return p < 0 || p > nn::kMaxWindowEntry; }))
    return n.error() << "expects output_padding of 0 to "
                     << nn::kMaxWindowEntry;
  if (!llvm::is_contained(
          ArrayRef<StringRef>{"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"},
          StringRef(size.autoPad)))
    return n.error() << "auto_pad=" << size.autoPad << " is not supported";
  return size;
}

/// Where a result of `out` elements begins in the middle of `full` ones. An odd
/// one is cut off at the end or, unless `isUpper`, at the start.
static int64_t middle(int64_t full, int64_t out, bool isUpper) {
  int64_t total = std::max<int64_t>(full - out, 0);
  return isUpper ? total / 2 : total - total / 2;
}

static FailureOr<Extent> extentOf(NodeContext &n, const Window &window,
                                  const ResultSize &size, size_t i) {
  size_t count = window.kernel.size();
  int64_t stride = window.strides[i], in = n.shape(0)[i + 2];
  if (double(stride) * double(in) > double(nn::kMaxTensorElements))
    return n.error() << "a stride of " << stride << " makes dimension " << i + 2
                     << " of size " << in << " too large";
  int64_t full =
      stride * (in - 1) + (window.kernel[i] - 1) * window.dilations[i] + 1;
  int64_t begin = 0, out = full + size.padding[i];
  if (size.shape || StringRef(size.autoPad).starts_with("SAME")) {
    int64_t padded = out;
    out = size.shape ? (*size.shape)[i] : stride * in;
    begin = middle(padded, out, size.autoPad == "SAME_UPPER");
  } else if (size.autoPad == "NOTSET") {
    begin = window.pads[i];
    out -= begin + window.pads[i + count];
  }
  if (out < 1 || out > nn::kMaxTensorElements || begin >= full)
    return n.error() << "gives dimension " << i + 2 << " the size " << out
                     << " from element " << begin << " of " << full << " on";
  int64_t missing = std::max<int64_t>(begin + out - full, 0);
  // Less than a stride of zeros is a part of the convolution's image.
  int64_t zeros = std::max<int64_t>(missing - (stride - 1), 0);
  return Extent{begin, std::max<int64_t>(full - begin - out, 0), out - zeros,
                zeros};
}

/// Fails unless filter [C, O / groups, ...] and bias [O] fit to the input.
static LogicalResult checkFilter(NodeContext &n, int64_t groups) {
  if (n.rank(1) != n.rank(0) || n.rank(0) < 3)
    return n.error() << "expects input and filter of one rank of 3 to 5, but "
                        "got "
                     << n.rank(0) << " and " << n.rank(1);
  int64_t channels = n.shape(0)[1];
  if (groups < 1 || channels % groups != 0)
    return n.error() << "expects group to divide " << channels
                     << " channels, but got " << groups;
  if (n.shape(1)[0] != channels)
    return n.error() << "expects a filter for " << channels
                     << " channels, but got " << n.shape(1)[0];
  int64_t outputs = n.shape(1)[1] * groups;
  if (n.hasInput(2) && n.shape(2) != ArrayRef(outputs))
    return n.error() << "expects a bias of " << outputs << " elements";
  return success();
}

/// `x` with zeros at the end of its last dimensions.
static Value addZeros(NodeContext &n, Value x, ArrayRef<int64_t> zeros) {
  if (llvm::all_of(zeros, [](int64_t count) { return count == 0; }))
    return x;
  Shape low(zeros.size() + 2, 0), high = {0, 0};
  llvm::append_range(high, zeros);
  return n.b.create<nn::PadOp>(x,
                               {n.b.ints("low", low), n.b.ints("high", high)});
}

static Value transposed(NodeContext &n, Value image, Value filter,
                        const Window &window, int64_t groups,
                        ArrayRef<int64_t> shape) {
  return n.b.create<nn::ConvBackwardDataOp>(
      {image, filter},
      {n.b.ints("strides", window.strides), n.b.ints("pads", window.pads),
       n.b.ints("dilations", window.dilations), n.b.integer("groups", groups)},
      RankedTensorType::get(shape, n.b.getBuilder().getF32Type()));
}

/// A volume [N, O, D, H, W]: each plane gives one for each plane of the filter,
/// which are added up where they overlap.
static Value transposedVolume(NodeContext &n, const Window &window,
                              int64_t groups, ArrayRef<int64_t> shape) {
  Value x = n.b.transpose(n.value(0), {0, 2, 1, 3, 4}), filter = n.weight(1);
  if (!x || !filter)
    return Value();
  int64_t samples = shape[0], outputs = shape[1], planes = n.shape(0)[2],
          kernel = window.kernel[0], area = shape[3] * shape[4];
  x = n.b.reshape(
      x, {samples * planes, n.shape(0)[1], n.shape(0)[3], n.shape(0)[4]});
  filter = n.b.reshape(filter, {n.shape(1)[0], n.shape(1)[1] * kernel,
                                n.shape(1)[3], n.shape(1)[4]});
  x = transposed(n, x, filter, planeOf(window), groups,
                 {samples * planes, outputs * kernel, shape[3], shape[4]});
  x = n.b.transpose(n.b.reshape(x, {samples, planes, outputs, kernel, area}),
                    {0, 2, 3, 1, 4});
  x = overlapAdd(n, n.b.reshape(x, {samples * outputs, kernel, planes, area}),
                 shape[2], window.strides[0], window.dilations[0],
                 window.pads[0], window.pads[3]);
  return n.b.reshape(x, shape);
}

static LogicalResult importConvTranspose(NodeContext &n) {
  int64_t groups = n.intAttribute("group", 1);
  if (failed(checkFilter(n, groups)))
    return failure();
  FailureOr<Window> window =
      readGivenWindow(n, Shape(n.shape(1).drop_front(2)));
  if (failed(window))
    return failure();
  if (failed(expectFewPlanes(n, *window)))
    return failure();
  size_t count = window->kernel.size();
  FailureOr<ResultSize> size = readResultSize(n, count);
  if (failed(size))
    return failure();
  Shape shape = {n.shape(0)[0], n.shape(1)[1] * groups}, zeros;
  Shape pads(2 * count, 0);
  for (size_t i = 0; i < count; ++i) {
    FailureOr<Extent> extent = extentOf(n, *window, *size, i);
    if (failed(extent))
      return failure();
    shape.push_back(extent->core);
    zeros.push_back(extent->zeros);
    pads[i] = extent->cutLow;
    pads[i + count] = extent->cutHigh;
  }
  window->pads = pads;
  makeTwoDimensional(*window);
  if (count == 1) {
    shape.insert(shape.begin() + 2, 1);
    zeros.insert(zeros.begin(), 0);
  }
  Value y = count == 3
                ? transposedVolume(n, *window, groups, shape)
                : transposed(n, asImage(n, n.value(0)), asImage(n, n.weight(1)),
                             *window, groups, shape);
  y = addZeros(n, y, zeros);
  Shape bias(zeros.size() + 1, 1);
  bias[0] = shape[1];
  if (y && n.hasInput(2))
    y = n.b.create<nn::AddOp>({y, n.b.reshape(n.weight(2), bias)});
  return n.setResult(0, fromImage(n, y));
}

ArrayRef<OpRow> convTransposeOps() {
  static const OpRow rows[] = {
      {"ConvTranspose", 7, between(2, 3), importConvTranspose},
  };
  return rows;
}

} // namespace pipewright::frontend
