//===- Resize.cpp - Interpolation -----------------------------------------===//
//
// Interpolation is linear and goes along one dimension after the other: a
// product with a constant matrix each, [result's size, input's size]. Repeated
// elements are a broadcast.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNLimits.h"
#include "frontends/onnx/Limits.h"
#include "frontends/onnx/NodeContext.h"
#include "frontends/onnx/OpRegistry.h"
#include "frontends/onnx/ops/InterpolationMatrix.h"

#include <cmath>

using namespace mlir;

namespace pipewright::frontend {

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// The factors that an input gives, which must be known.
static FailureOr<SmallVector<float>> readScales(NodeContext &n, unsigned i) {
  constexpr int64_t most = nn::kMaxTensorRank;
  ArrayRef<float> stored;
  if (n.hasInput(i) && n.rank(i) == 1 && n.shape(i)[0] <= most)
    stored = n.graph.storedFloats(n.input(i));
  if (stored.empty())
    return n.error() << "expects scales to be a constant list of floats";
  SmallVector<float> scales(stored);
  scales.resize(n.shape(i)[0], stored.front());
  return scales;
}

/// One factor for each of `axes`.
static FailureOr<SmallVector<Stretch>> stretchByScales(NodeContext &n,
                                                       ArrayRef<int64_t> axes,
                                                       ArrayRef<float> scales) {
  if (scales.size() != axes.size())
    return n.error() << "expects " << axes.size() << " scales, but got "
                     << scales.size();
  SmallVector<Stretch> result;
  for (int64_t size : n.shape(0))
    result.push_back({size, size, 1});
  for (auto [axis, scale] : llvm::zip_equal(axes, scales)) {
    Stretch &stretch = result[axis];
    double size = std::floor(double(float(stretch.from) * scale));
    // Not a number is in no range.
    if (!(scale > 0 && size >= 1 && size <= nn::kMaxWindowEntry))
      return n.error() << "expects scales that give sizes of 1 to "
                       << nn::kMaxWindowEntry << ", but got " << scale
                       << " for dimension " << axis << " of size "
                       << stretch.from;
    stretch.to = int64_t(size);
    stretch.scale = scale;
    // A quotient of sizes that was rounded to a float.
    double quotient = size / double(stretch.from);
    if (float(quotient) == scale)
      stretch.scale = quotient;
  }
  return result;
}

/// One size for each of `axes`.
static FailureOr<SmallVector<Stretch>>
stretchToSizes(NodeContext &n, ArrayRef<int64_t> axes, Shape sizes) {
  if (sizes.size() != axes.size())
    return n.error() << "expects " << axes.size() << " sizes, but got "
                     << sizes.size();
  SmallVector<Stretch> result;
  for (int64_t size : n.shape(0))
    result.push_back({size, size, 1});
  const OriginalValue *original = n.originalInput(0);
  for (auto [axis, size] : llvm::zip_equal(axes, sizes)) {
    if (size < 1 || size > nn::kMaxWindowEntry)
      return n.error() << "expects sizes of 1 to " << nn::kMaxWindowEntry
                       << ", but got " << size;
    Stretch &stretch = result[axis];
    // A dimension that keeps its size does so whatever the batch is.
    if (original && original->shape[axis] == size)
      continue;
    stretch = {stretch.from, size, double(size) / double(stretch.from)};
  }
  return result;
}

/// Gives all of `axes` one scale, the smallest or largest of theirs.
static LogicalResult keepAspectRatio(NodeContext &n, ArrayRef<int64_t> axes,
                                     SmallVectorImpl<Stretch> &stretches) {
  std::string policy = n.stringAttribute("keep_aspect_ratio_policy", "stretch");
  bool isSmallest = policy == "not_larger";
  if (policy != "stretch" && policy != "not_smaller" && !isSmallest)
    return n.error() << "keep_aspect_ratio_policy=" << policy
                     << " is not supported";
  if (policy == "stretch" || axes.empty())
    return success();
  double scale = stretches[axes.front()].scale;
  for (int64_t axis : axes)
    scale = isSmallest ? std::min(scale, stretches[axis].scale)
                       : std::max(scale, stretches[axis].scale);
  for (int64_t axis : axes) {
    Stretch &stretch = stretches[axis];
    double size = std::floor(scale * double(stretch.from) + 0.5);
    if (size < 1 || size > nn::kMaxWindowEntry)
      return n.error() << "keep_aspect_ratio_policy=" << policy
                       << " gives dimension " << axis << " the size " << size;
    stretch = {stretch.from, int64_t(size), scale};
  }
  return success();
}

/// A list of length 0 counts as left out.
static bool hasElements(const NodeContext &n, unsigned i) {
  return n.hasInput(i) && elementCount(n.shape(i)) > 0;
}

/// The axes that sizes and scales are of.
static FailureOr<Shape> readResizedAxes(NodeContext &n) {
  if (std::optional<Shape> given = n.intsAttribute("axes"))
    return n.normalizeAxes(*given, n.rank(0));
  return Shape(llvm::to_vector<4>(llvm::seq<int64_t>(0, n.rank(0))));
}

/// The part of each axis that tf_crop_and_resize takes: where it begins for
/// all, and then where it ends.
static LogicalResult readParts(NodeContext &n, ArrayRef<int64_t> axes,
                               SmallVectorImpl<Stretch> &stretches) {
  size_t count = axes.size();
  ArrayRef<float> parts;
  if (n.hasInput(1) && n.shape(1) == ArrayRef<int64_t>(2 * count))
    parts = n.graph.storedFloats(n.input(1));
  // One for all, where all are equal.
  SmallVector<float> ends(parts);
  if (!parts.empty())
    ends.resize(2 * count, parts.front());
  if (ends.empty() ||
      !llvm::all_of(ends, [](float end) { return std::isfinite(end); }))
    return n.error() << "expects roi to be a constant list of " << 2 * count
                     << " finite floats";
  for (auto [i, axis] : llvm::enumerate(axes)) {
    stretches[axis].begin = ends[i];
    stretches[axis].end = ends[count + i];
  }
  return success();
}

static FailureOr<SmallVector<Stretch>> readStretches(NodeContext &n,
                                                     ArrayRef<int64_t> axes) {
  // (x, scales) up to opset 10, (x, roi, scales, sizes) after.
  unsigned scalesInput = n.opset < 11 ? 1 : 2;
  unsigned sizesInput = n.opset < 11 ? kAnyNumber : 3;
  if (hasElements(n, scalesInput) == hasElements(n, sizesInput))
    return n.error() << "expects either scales or sizes";
  if (hasElements(n, scalesInput)) {
    FailureOr<SmallVector<float>> scales = readScales(n, scalesInput);
    if (failed(scales))
      return failure();
    n.stringAttribute("keep_aspect_ratio_policy", "stretch");
    return stretchByScales(n, axes, *scales);
  }
  FailureOr<Shape> sizes = n.constantInts(sizesInput, "sizes");
  if (failed(sizes))
    return failure();
  FailureOr<SmallVector<Stretch>> stretches = stretchToSizes(n, axes, *sizes);
  if (failed(stretches) || failed(keepAspectRatio(n, axes, *stretches)))
    return failure();
  return stretches;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {
/// Applies the matrices of a node to its input. Equal ones are made once.
class Interpolator {
public:
  Interpolator(NodeContext &n, const InterpolationOptions &options)
      : n(n), options(options), x(n.value(0)) {}

  Value run(ArrayRef<Stretch> stretches);

private:
  bool repeats(const Stretch &stretch) const;
  Value matrixFor(const Stretch &stretch);
  void repeat(int64_t axis, int64_t count);
  void multiply(int64_t axis, Value matrix);
  void swapLast();

  NodeContext &n;
  const InterpolationOptions &options;
  Value x;
  /// The last two dimensions of `x` have changed places.
  bool isSwapped = false;
  SmallVector<std::pair<Stretch, Value>> matrices;
};
} // namespace

/// Whether every element is repeated equally often.
bool Interpolator::repeats(const Stretch &stretch) const {
  if (options.mode != Interpolation::Nearest ||
      stretch.to > kMaxInterpolationElements || stretch.to % stretch.from != 0)
    return false;
  int64_t count = stretch.to / stretch.from;
  for (int64_t row = 0; row < stretch.to; ++row)
    if (nearestColumn(options, stretch, row) != row / count ||
        isBeyondInput(options, stretch, row))
      return false;
  return true;
}

Value Interpolator::matrixFor(const Stretch &stretch) {
  for (const auto &[other, value] : matrices)
    if (other == stretch)
      return value;
  if (elementCount({stretch.to, stretch.from}) > kMaxInterpolationElements) {
    n.error() << "interpolates " << stretch.from << " elements to "
              << stretch.to << ", but expects at most "
              << kMaxInterpolationElements
              << " for the product of the two numbers";
    return Value();
  }
  ConstantTensor matrix(ElementKind::Float, {stretch.to, stretch.from});
  std::vector<double> weights(stretch.from);
  for (int64_t row = 0; row < stretch.to; ++row) {
    interpolationRow(options, stretch, row, weights);
    for (auto [column, weight] : llvm::enumerate(weights))
      matrix.setFloat(row * stretch.from + int64_t(column), float(weight));
  }
  Value value =
      n.made(std::move(matrix), ".interpolation_" + Twine(matrices.size()));
  matrices.push_back({stretch, value});
  return value;
}

void Interpolator::swapLast() {
  if (std::exchange(isSwapped, false)) {
    Shape order = llvm::to_vector<4>(llvm::seq<int64_t>(0, shapeOf(x).size()));
    std::swap(order.back(), order.end()[-2]);
    x = n.b.transpose(x, order);
  }
}

/// Each element `count` times.
void Interpolator::repeat(int64_t axis, int64_t count) {
  swapLast();
  Shape result(shapeOf(x)), apart(result);
  apart.insert(apart.begin() + axis + 1, 1);
  Shape wide = apart;
  wide[axis + 1] = count;
  result[axis] *= count;
  x = n.b.reshape(n.b.broadcastTo(n.b.reshape(x, apart), wide), result);
}

/// The product with the transposed matrix along one dimension. Of the last two
/// dimensions the product transposes by itself, and leaves them swapped.
void Interpolator::multiply(int64_t axis, Value matrix) {
  auto rank = int64_t(shapeOf(x).size());
  SmallVector<NamedAttribute> transposes = {n.b.unit("transpose_b")};
  if (axis == rank - 2 || isSwapped) {
    transposes.push_back(n.b.unit("transpose_a"));
    x = n.b.create<nn::MatmulOp>({x, matrix}, transposes);
    isSwapped = axis == rank - 2;
    return;
  }
  Shape order = llvm::to_vector<4>(llvm::seq<int64_t>(0, rank));
  std::swap(order[axis], order.back());
  x = n.b.create<nn::MatmulOp>({n.b.transpose(x, order), matrix}, transposes);
  x = n.b.transpose(x, order);
}

Value Interpolator::run(ArrayRef<Stretch> stretches) {
  for (auto [axis, stretch] : llvm::enumerate(stretches)) {
    if (!x)
      return x;
    if (stretch.isIdentity())
      continue;
    if (repeats(stretch))
      repeat(int64_t(axis), stretch.to / stretch.from);
    else if (Value matrix = matrixFor(stretch))
      multiply(int64_t(axis), matrix);
    else
      return Value();
  }
  if (x)
    swapLast();
  return x;
}

static LogicalResult interpolate(NodeContext &n,
                                 const InterpolationOptions &options,
                                 ArrayRef<Stretch> stretches) {
  if (n.input(0).element != ElementKind::Float)
    return n.error() << "expects a float input";
  Value y = Interpolator(n, options).run(stretches);
  // Nothing changes where all sizes stay.
  if (y && y == n.value(0))
    return n.forward(0, 0);
  return n.setResult(0, y);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

template <typename Enum>
static LogicalResult
readEnum(NodeContext &n, StringRef name, StringRef defaultValue,
         ArrayRef<std::pair<StringRef, Enum>> words, Enum &value) {
  std::string word = n.stringAttribute(name, defaultValue);
  for (const auto &[known, meaning] : words)
    if (word == known) {
      value = meaning;
      return success();
    }
  return n.error() << name << "=" << word << " is not supported";
}

static constexpr std::pair<StringRef, Interpolation> kModes[] = {
    {"nearest", Interpolation::Nearest},
    {"linear", Interpolation::Linear},
    {"cubic", Interpolation::Cubic}};
static constexpr std::pair<StringRef, Coordinates> kCoordinates[] = {
    {"half_pixel", Coordinates::HalfPixel},
    {"half_pixel_symmetric", Coordinates::HalfPixelSymmetric},
    {"pytorch_half_pixel", Coordinates::PyTorchHalfPixel},
    {"tf_half_pixel_for_nn", Coordinates::TfHalfPixelForNearest},
    {"align_corners", Coordinates::AlignCorners},
    {"asymmetric", Coordinates::Asymmetric},
    {"tf_crop_and_resize", Coordinates::Crop}};
static constexpr std::pair<StringRef, Rounding> kRoundings[] = {
    {"round_prefer_floor", Rounding::PreferFloor},
    {"round_prefer_ceil", Rounding::PreferCeil},
    {"floor", Rounding::Floor},
    {"ceil", Rounding::Ceil}};

static FailureOr<InterpolationOptions> readOptions(NodeContext &n) {
  InterpolationOptions options;
  // Before opset 11 coordinates are not shifted, and rounded down.
  bool isOld = n.opset < 11;
  if (failed(readEnum<Interpolation>(n, "mode", "nearest", kModes,
                                     options.mode)) ||
      failed(readEnum<Coordinates>(n, "coordinate_transformation_mode",
                                   isOld ? "asymmetric" : "half_pixel",
                                   kCoordinates, options.coordinates)) ||
      failed(readEnum<Rounding>(n, "nearest_mode",
                                isOld ? "floor" : "round_prefer_floor",
                                kRoundings, options.rounding)))
    return failure();
  options.cubicCoefficient = n.floatAttribute("cubic_coeff_a", -0.75f);
  options.excludesOutside = n.intAttribute("exclude_outside", 0);
  options.antialias =
      n.intAttribute("antialias", 0) && options.mode != Interpolation::Nearest;
  if (!std::isfinite(options.cubicCoefficient))
    return n.error() << "expects cubic_coeff_a to be a finite number";
  return options;
}

/// `y`, but `value` where an element lies beyond the input along an axis.
static Value extrapolate(NodeContext &n, const InterpolationOptions &options,
                         ArrayRef<Stretch> stretches, float value, Value y) {
  Value isBeyond;
  for (auto [axis, stretch] : llvm::enumerate(stretches)) {
    Shape shape(stretches.size(), 1);
    shape[axis] = stretch.to;
    ConstantTensor rows(ElementKind::Bool, shape);
    for (int64_t row = 0; row < stretch.to; ++row)
      rows.setBool(row, isBeyondInput(options, stretch, row));
    if (rows.isUniform() && !rows.boolAt(0))
      continue;
    Value along = n.made(std::move(rows), ".beyond_" + Twine(axis));
    isBeyond =
        isBeyond ? n.b.create<nn::LogicalOrOp>({isBeyond, along}) : along;
  }
  if (!isBeyond || !y)
    return y;
  return n.b.create<nn::WhereOp>({isBeyond, n.b.splat(value), y});
}

static LogicalResult cropAndResize(NodeContext &n,
                                   const InterpolationOptions &options,
                                   ArrayRef<Stretch> stretches) {
  float value = n.floatAttribute("extrapolation_value", 0);
  for (const Stretch &stretch : stretches)
    if (failed(n.expectListable(stretch.to, "places")))
      return failure();
  if (n.input(0).element != ElementKind::Float)
    return n.error() << "expects a float input";
  return n.setResult(0, extrapolate(n, options, stretches, value,
                                    Interpolator(n, options).run(stretches)));
}

static LogicalResult importResize(NodeContext &n) {
  FailureOr<InterpolationOptions> options = readOptions(n);
  FailureOr<Shape> axes = readResizedAxes(n);
  if (failed(options) || failed(axes))
    return failure();
  FailureOr<SmallVector<Stretch>> stretches = readStretches(n, *axes);
  if (failed(stretches))
    return failure();
  bool isCrop = options->coordinates == Coordinates::Crop;
  if (isCrop && failed(readParts(n, *axes, *stretches)))
    return failure();
  if (isCrop)
    return cropAndResize(n, *options, *stretches);
  n.floatAttribute("extrapolation_value", 0);
  return interpolate(n, *options, *stretches);
}

/// Scales are an attribute up to opset 8 and an input after; since opset 10
/// there is Resize in its place.
static LogicalResult importUpsample(NodeContext &n) {
  InterpolationOptions options;
  options.coordinates = Coordinates::Asymmetric;
  options.rounding = Rounding::Floor;
  if (failed(readEnum<Interpolation>(
          n, "mode", "nearest", ArrayRef(kModes).take_front(2), options.mode)))
    return failure();
  SmallVector<float> scales;
  if (n.opset < 9) {
    const onnx::AttributeProto *given = n.attribute("scales");
    if (!given || n.hasInput(1))
      return n.error() << "expects attribute scales and one input";
    scales.assign(given->floats().begin(), given->floats().end());
  } else {
    FailureOr<SmallVector<float>> read = readScales(n, 1);
    if (failed(read))
      return failure();
    scales = *read;
  }
  Shape axes = llvm::to_vector<4>(llvm::seq<int64_t>(0, n.rank(0)));
  FailureOr<SmallVector<Stretch>> stretches = stretchByScales(n, axes, scales);
  if (failed(stretches))
    return failure();
  return interpolate(n, options, *stretches);
}

ArrayRef<OpRow> resizeOps() {
  static const OpRow rows[] = {
      {"Resize", 10, between(1, 4), importResize},
      {"Upsample", 7, between(1, 2), importUpsample},
  };
  return rows;
}

} // namespace pipewright::frontend
